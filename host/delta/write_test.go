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
}

// plain has two columns.
var plain = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// manyRows gives rows whose values repeat now and then.
func (f *fixture) manyRows(from, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(f.mem, plain)
	defer b.Release()
	for i := from; i < from+n; i++ {
		b.Field(0).(*array.Int64Builder).Append(int64(i) * 7919 % 100_003)
		if i%11 == 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append(strings.Repeat(fmt.Sprint(i%97, "x"), i%13))
		}
	}
	return b.NewRecordBatch()
}

// grouped is plain with a column to partition by.
var grouped = arrow.NewSchema(append(plain.Fields(), arrow.Field{Name: "p", Type: arrow.PrimitiveTypes.Int32, Nullable: true}), nil)

// withGroups adds that column: a few values and nulls, in runs and alone.
func (f *fixture) withGroups(rec arrow.RecordBatch) arrow.RecordBatch {
	defer rec.Release()
	b := array.NewInt32Builder(f.mem)
	defer b.Release()
	for i := range int(rec.NumRows()) {
		if v := int32(i / 1000 % 5); i%7 == 0 {
			b.AppendNull()
		} else {
			b.Append(v)
		}
	}
	p := b.NewArray()
	defer p.Release()
	return array.NewRecordBatch(grouped, append(slices.Clone(rec.Columns()), p), rec.NumRows())
}

// contents reads the files of a write and forgets them.
func (f *fixture) contents(files []AddFile) map[string]string {
	f.t.Helper()
	out := map[string]string{}
	for i := range files {
		data, err := f.store.Get(context.Background(), files[i].Path)
		if err != nil {
			f.t.Fatal(err)
		}
		if int64(len(data)) != files[i].Size {
			f.t.Errorf("size %d of %d bytes", files[i].Size, len(data))
		}
		out[files[i].Path] = string(data) + files[i].Stats
		if err := f.store.Delete(context.Background(), files[i].Path); err != nil {
			f.t.Fatal(err)
		}
	}
	return out
}

// covers "Replay": the bytes of files follow from rows and name, not from batches, time or chance.
func TestTheSameRowsGiveTheSameBytesHoweverTheyAreBatched(t *testing.T) {
	const rows = 70_000
	for name, opt := range map[string]WriteOptions{
		"one file":    {Schema: plain, Name: "n"},
		"many files":  {Schema: plain, Name: "n", TargetSize: 20 << 10},
		"partitioned": {Schema: grouped, Name: "n", PartitionBy: []string{"p"}},
	} {
		t.Run(name, func(t *testing.T) {
			var first map[string]string
			for _, size := range []int{rows, 11, 1000, 33_000, 32 << 10} {
				f := newFixture(t)
				f.table = Open(f.store, WithAllocator(f.mem), WithClock(func() time.Time { return time.Unix(int64(size), 0) }))
				w, err := f.table.Write(context.Background(), opt)
				if err != nil {
					t.Fatal(err)
				}
				all := f.manyRows(0, rows)
				if opt.PartitionBy != nil {
					all = f.withGroups(all)
				}
				for from := 0; from < rows; from += size {
					part := all.NewSlice(int64(from), int64(min(from+size, rows)))
					err := w.Write(context.Background(), part)
					part.Release()
					if err != nil {
						t.Fatal(err)
					}
				}
				all.Release()
				files, err := w.Close(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				got := f.contents(files)
				if first == nil {
					first = got
					if name == "many files" && len(got) < 2 {
						t.Errorf("%d files", len(got))
					}
				}
				if len(got) != len(first) {
					t.Fatalf("batches of %d: %d files, want %d", size, len(got), len(first))
				}
				for path, data := range first {
					if got[path] != data {
						t.Errorf("batches of %d: file %s differs", size, path)
					}
				}
			}
		})
	}
}

func TestLargeRowsDoNotPileUp(t *testing.T) {
	f := newFixture(t)
	one := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	w, err := f.table.Write(context.Background(), WriteOptions{Schema: one, Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	row := f.batch(one, `[{"s":"`+strings.Repeat("x", 1<<20)+`"}]`)
	defer row.Release()
	for range 100 {
		if err := w.Write(context.Background(), row); err != nil {
			t.Fatal(err)
		}
		if w.pendingBytes > chunkBytes {
			t.Fatalf("%d bytes pending", w.pendingBytes)
		}
	}
	files, err := w.Close(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := files[0].NumRecords(); !ok || n != 100 || len(files) != 1 {
		t.Errorf("%d rows in %d files", n, len(files))
	}
}

func TestBatchesAreBroughtIntoTheTablesShape(t *testing.T) {
	f := newFixture(t)
	col := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	table := arrow.NewSchema([]arrow.Field{
		col("Id", arrow.PrimitiveTypes.Int64), col("d", arrow.PrimitiveTypes.Float64), col("dec", &arrow.Decimal128Type{Precision: 20, Scale: 4}),
		col("st", arrow.StructOf(col("a", arrow.PrimitiveTypes.Int32), col("b", arrow.BinaryTypes.String))), col("ts", utc), col("none", arrow.BinaryTypes.String),
	}, nil)
	batch := arrow.NewSchema([]arrow.Field{
		col("ts", &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}), col("dec", &arrow.Decimal128Type{Precision: 5, Scale: 2}),
		col("st", arrow.StructOf(col("b", arrow.BinaryTypes.LargeString))), col("d", arrow.PrimitiveTypes.Float32), col("id", arrow.PrimitiveTypes.Int16),
	}, nil)
	w, err := f.table.Write(context.Background(), WriteOptions{Schema: table, Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	rec := f.batch(batch, `[{"id":7,"d":1.5,"dec":"-1.25","st":{"b":"x"},"ts":"2024-01-01T00:00:00.5Z"},{"st":null}]`)
	// A slice has offsets, which must not get lost.
	for _, part := range []arrow.RecordBatch{rec.NewSlice(1, 2), rec.NewSlice(0, 1)} {
		if err := w.Write(context.Background(), part); err != nil {
			t.Fatal(err)
		}
		part.Release()
	}
	rec.Release()
	files, err := w.Close(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	f.commit(Commit{Schema: table, Add: files})
	want := []string{
		"Id=7|d=1.5|dec=-1.2500|st={a:null,b:x,}|ts=2024-01-01T00:00:00.5Z|none=null|",
		"Id=null|d=null|dec=null|st=null|ts=null|none=null|",
	}
	if got := f.rows(); !slices.Equal(got, want) {
		t.Errorf("%s", firstDifference(got, want))
	}
}

func TestBatchesThatDoNotFitAreRefused(t *testing.T) {
	required := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "st", Nullable: true, Type: arrow.StructOf(
		arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64})}}, nil)
	for name, c := range map[string]struct {
		table, batch *arrow.Schema
		rows, code   string
	}{
		"a column that the table lacks": {plain, arrow.NewSchema([]arrow.Field{{Name: "new", Type: arrow.PrimitiveTypes.Int64}}, nil), `[{"new":1}]`, "DELTA_COLUMN_NOT_FOUND"},
		"a type that loses digits":      {plain, arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Float64}}, nil), `[{"id":1.5}]`, "DELTA_TYPE_MISMATCH"},
		"a number for a text":           {plain, arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.PrimitiveTypes.Int64}}, nil), `[{"s":1}]`, "DELTA_TYPE_MISMATCH"},
		"null in a NOT NULL column":     {required, arrow.NewSchema([]arrow.Field{plain.Field(0)}, nil), `[{"id":null}]`, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"},
		"a NOT NULL column is missing":  {required, arrow.NewSchema([]arrow.Field{{Name: "st", Nullable: true, Type: required.Field(1).Type}}, nil), `[{"st":null}]`, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"},
		"null in a NOT NULL field": {required, arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "st", Nullable: true, Type: arrow.StructOf(
			arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true})}}, nil), `[{"id":1,"st":{"a":null}}]`, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w, err := f.table.Write(context.Background(), WriteOptions{Schema: c.table, Name: "n"})
			if err != nil {
				t.Fatal(err)
			}
			rec := f.batch(c.batch, c.rows)
			defer rec.Release()
			if err := w.Write(context.Background(), rec); fault.CodeOf(err) != c.code {
				t.Errorf("%v, want %s", err, c.code)
			}
			if err := w.Abort(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNullStructsWithRequiredFieldsAreNoViolation(t *testing.T) {
	f := newFixture(t)
	schema := arrow.NewSchema([]arrow.Field{{Name: "st", Nullable: true, Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64})}}, nil)
	f.commit(Commit{Schema: schema, Add: f.write(WriteOptions{Schema: schema, Name: "n"}, `[{"st":null},{"st":{"a":1}}]`)})
	if got, want := f.rows(), []string{"st=null|", "st={a:1,}|"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestTypesThatATableCannotHoldAreRefusedByName(t *testing.T) {
	for _, dt := range []arrow.DataType{arrow.PrimitiveTypes.Uint64, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Duration_us,
		&arrow.Decimal256Type{Precision: 50}, arrow.StructOf(), arrow.ListOf(arrow.PrimitiveTypes.Uint8)} {
		f := newFixture(t)
		schema := arrow.NewSchema([]arrow.Field{{Name: "c", Type: dt, Nullable: true}}, nil)
		_, err := f.table.Write(context.Background(), WriteOptions{Schema: schema, Name: "n"})
		if fault.CodeOf(err) != "DELTA_UNSUPPORTED_TYPE" || !strings.Contains(err.Error(), `"c`) {
			t.Errorf("%s: %v", dt, err)
		}
		if _, err := f.table.Commit(context.Background(), Commit{Schema: schema}); fault.CodeOf(err) != "DELTA_UNSUPPORTED_TYPE" {
			t.Errorf("%s: %v", dt, err)
		}
	}
}

func TestAnAbortedOrFailedWriteLeavesNoFile(t *testing.T) {
	f := newFixture(t)
	w, err := f.table.Write(context.Background(), WriteOptions{Schema: plain, Name: "n", TargetSize: 50 << 10})
	if err != nil {
		t.Fatal(err)
	}
	rec := f.manyRows(0, 200_000)
	defer rec.Release()
	if err := w.Write(context.Background(), rec); err != nil {
		t.Fatal(err)
	}
	if err := w.wait(); err != nil {
		t.Fatal(err)
	}
	if len(w.added) == 0 {
		t.Fatal("no file was finished, the test tests nothing")
	}
	if err := errors.Join(w.Abort(context.Background()), w.Abort(context.Background())); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(f.dir); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	if err := w.Write(context.Background(), rec); err == nil {
		t.Error("written after the end")
	}
}

func TestAWriteWithoutRowsGivesNoFile(t *testing.T) {
	f := newFixture(t)
	if files := f.write(WriteOptions{Schema: plain, Name: "n"}, `[]`); len(files) != 0 {
		t.Errorf("%v", files)
	}
}

func TestColumnsArePickedInTheOrderAskedFor(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, Add: f.write(WriteOptions{Schema: plain, Name: "n"}, `[{"id":1,"s":"a"}]`)})
	for _, c := range []struct {
		columns []string
		want    string
	}{{[]string{"s", "id"}, "s=a|id=1|"}, {[]string{"S"}, "s=a|"}, {[]string{}, ""}, {nil, "id=1|s=a|"}} {
		got, err := scanRows(context.Background(), f.snapshot(), ScanOptions{Columns: c.columns}, nil)
		if err != nil || len(got) != 1 || got[0] != c.want {
			t.Errorf("%v: %q, %v", c.columns, got, err)
		}
	}
	if _, err := f.snapshot().Scan(context.Background(), ScanOptions{Columns: []string{"x"}}); fault.CodeOf(err) != "DELTA_COLUMN_NOT_FOUND" {
		t.Error(err)
	}
}
