package delta

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// fixture is an empty table in a folder, with an allocator that tells of leaks.
type fixture struct {
	t     testing.TB
	mem   *memory.CheckedAllocator
	dir   string
	store *storage.Dir
	table *Table
}

func newFixture(t testing.TB) *fixture {
	f := &fixture{t: t, mem: memory.NewCheckedAllocator(memory.NewGoAllocator()), dir: t.TempDir()}
	if keep := os.Getenv("DELTA_TEST_KEEP"); keep != "" {
		f.dir = filepath.Join(keep, t.Name())
	}
	var err error
	if f.store, err = storage.OpenDir(f.dir, storage.NoSync); err != nil {
		t.Fatal(err)
	}
	f.table = f.reopen()
	t.Cleanup(func() { f.mem.AssertSize(t, 0) })
	return f
}

// reopen gives the table without anything cached.
func (f *fixture) reopen() *Table { return Open(f.store, WithAllocator(f.mem)) }

// batch decodes rows from JSON.
func (f *fixture) batch(schema *arrow.Schema, rows string) arrow.RecordBatch {
	f.t.Helper()
	rec, _, err := array.RecordFromJSON(f.mem, schema, strings.NewReader(rows))
	if err != nil {
		f.t.Fatal(err)
	}
	return rec
}

// write makes files of JSON rows.
func (f *fixture) write(opt WriteOptions, batches ...string) []AddFile {
	f.t.Helper()
	w, err := f.table.Write(context.Background(), opt)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, rows := range batches {
		schema := opt.Schema
		if schema == nil {
			schema = opt.Snapshot.Schema()
		}
		rec := f.batch(schema, rows)
		err := w.Write(context.Background(), rec)
		rec.Release()
		if err != nil {
			f.t.Fatal(err)
		}
	}
	files, err := w.Close(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	return files
}

func (f *fixture) commit(c Commit) int64 {
	f.t.Helper()
	res, err := f.table.Commit(context.Background(), c)
	if err = errors.Join(err, res.CheckpointError); err != nil {
		f.t.Fatal(err)
	}
	return res.Version
}

func (f *fixture) snapshot() *Snapshot {
	f.t.Helper()
	s, err := f.table.Snapshot(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// rows scans a table anew, with nothing cached, sorted.
func (f *fixture) rows() []string {
	f.t.Helper()
	s, err := f.reopen().Snapshot(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	rows, err := scanRows(context.Background(), s, ScanOptions{}, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	slices.Sort(rows)
	return rows
}

var utc = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}

// allTypes has a column of every type that a table can hold.
func allTypes(ntz bool) *arrow.Schema {
	col := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	inner := arrow.StructOf(col("x", arrow.PrimitiveTypes.Int32), col("s", arrow.BinaryTypes.String), col("l", arrow.ListOf(arrow.BinaryTypes.String)))
	fields := []arrow.Field{
		col("b", arrow.FixedWidthTypes.Boolean), col("i8", arrow.PrimitiveTypes.Int8), col("i16", arrow.PrimitiveTypes.Int16),
		col("i32", arrow.PrimitiveTypes.Int32), col("i64", arrow.PrimitiveTypes.Int64), col("f32", arrow.PrimitiveTypes.Float32),
		col("f64", arrow.PrimitiveTypes.Float64), col("str", arrow.BinaryTypes.String), col("bin", arrow.BinaryTypes.Binary),
		col("d", arrow.FixedWidthTypes.Date32), col("ts", utc),
		col("dec9", &arrow.Decimal128Type{Precision: 9, Scale: 2}), col("dec18", &arrow.Decimal128Type{Precision: 18, Scale: 4}),
		col("dec38", &arrow.Decimal128Type{Precision: 38, Scale: 10}),
		col("list", arrow.ListOf(arrow.PrimitiveTypes.Int64)), col("map", arrow.MapOf(arrow.BinaryTypes.String, inner)), col("st", inner),
		col("ll", arrow.ListOf(arrow.ListOf(inner))),
	}
	if ntz {
		fields = append(fields, col("ntz", &arrow.TimestampType{Unit: arrow.Microsecond}))
	}
	return arrow.NewSchema(fields, nil)
}

const allTypesRows = `[
{"b":true,"i8":-128,"i16":32767,"i32":-5,"i64":9223372036854775807,"f32":1.5,"f64":-2.25,"str":"grüße","bin":"AAEC","d":"2024-02-29","ts":"2024-06-15T19:30:45.123456Z","dec9":"1234567.89","dec18":"-0.0001","dec38":"1234567890123456789012345678.0123456789","list":[1,null,3],"map":[{"key":"k","value":{"x":1,"s":"v","l":["a",null]}}],"st":{"x":7,"s":null,"l":[]},"ll":[[{"x":1,"s":"q","l":null}],[],null]},
{"b":null,"i8":null,"i16":null,"i32":null,"i64":null,"f32":null,"f64":null,"str":null,"bin":null,"d":null,"ts":null,"dec9":null,"dec18":null,"dec38":null,"list":null,"map":null,"st":null,"ll":null},
{"b":false,"i8":5,"i16":-1,"i32":2,"i64":-9223372036854775808,"f32":-0.5,"f64":1e300,"str":"","bin":"","d":"0001-01-01","ts":"1969-12-31T23:59:59.999999Z","dec9":"-0.01","dec18":"99999999999999.9999","dec38":"-1","list":[],"map":[],"st":{"x":null,"s":"z","l":["b"]},"ll":[]}]`

func TestEveryTypeComesBackAsItWasWritten(t *testing.T) {
	f := newFixture(t)
	schema := allTypes(true)
	files := f.write(WriteOptions{Schema: schema, Name: "n"}, allTypesRows)
	f.commit(Commit{Schema: schema, Add: files})
	rec := f.batch(schema, allTypesRows)
	defer rec.Release()
	want := recordRows(rec, nil)
	slices.Sort(want)
	if got := f.rows(); !slices.Equal(got, want) {
		t.Errorf("%s", firstDifference(got, want))
	}
	if p := f.snapshot().Protocol(); p.MinReaderVersion != 3 || p.MinWriterVersion != 7 || fmt.Sprint(p.ReaderFeatures, p.WriterFeatures) != "[timestampNtz] [appendOnly invariants timestampNtz]" {
		t.Errorf("protocol %+v", p)
	}
	t.Log(files[0].Stats)
}

var _ = fault.CodeOf
var _ = time.Now
