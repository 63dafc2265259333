package sql

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/relation"
)

var batchTime = time.Date(2026, 4, 13, 10, 30, 0, 123456000, time.UTC)

// openEngine gives an engine whose result batches are checked for leaks.
func openEngine(t testing.TB) *Engine {
	t.Helper()
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	e, err := Open(context.Background(), Options{Threads: 2, Alloc: alloc, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		alloc.AssertSize(t, 0)
	})
	return e
}

// schemaOf reads "a INT, b ARRAY<STRING>".
func schemaOf(t testing.TB, ddl string) *arrow.Schema {
	t.Helper()
	fields, err := coltype.ParseDDL(ddl)
	if err != nil {
		t.Fatal(err)
	}
	var out []arrow.Field
	for _, f := range fields {
		out = append(out, f.Arrow())
	}
	return arrow.NewSchema(out, nil)
}

// table makes one batch from JSON rows, "[{…},{…}]".
func table(t testing.TB, ddl, rows string) arrow.RecordBatch {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schemaOf(t, ddl), strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// stream adds __weir_row, and _metadata when file is set, as a source does.
func stream(t testing.TB, rec arrow.RecordBatch, file string) arrow.RecordBatch {
	t.Helper()
	cols := append([]arrow.Array(nil), rec.Columns()...)
	if file != "" {
		b := array.NewStructBuilder(memory.DefaultAllocator, relation.MetadataType())
		for range rec.NumRows() {
			b.Append(true)
			b.FieldBuilder(0).(*array.StringBuilder).Append(file)
			for i := 1; i < b.NumField(); i++ {
				b.FieldBuilder(i).AppendNull()
			}
		}
		cols = append(cols, b.NewArray())
	}
	rows := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range rec.NumRows() {
		rows.Append(i)
	}
	cols = append(cols, rows.NewArray())
	return array.NewRecordBatch(relation.SourceColumns(rec.Schema().Fields(), file != ""), cols, rec.NumRows())
}

func readerOf(t testing.TB, recs ...arrow.RecordBatch) array.RecordReader {
	t.Helper()
	r, err := array.NewRecordReader(recs[0].Schema(), recs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// run gives the result as JSON rows, hidden columns shown.
func run(t testing.TB, e *Engine, q Query, inputs map[string]arrow.RecordBatch) ([]string, error) {
	t.Helper()
	readers := map[string]array.RecordReader{}
	for name, rec := range inputs {
		readers[name] = readerOf(t, rec)
		defer readers[name].Release()
	}
	if q.Clock.IsZero() {
		q.Clock = batchTime
	}
	r, err := e.Run(context.Background(), q, readers)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var out []string
	for r.Next() {
		rec := r.RecordBatch()
		if err := rec.Schema().Equal(r.Schema()); !err {
			t.Errorf("batch has %s, reader %s", rec.Schema(), r.Schema())
		}
		for i := range int(rec.NumRows()) {
			out = append(out, rowText(rec, i))
		}
	}
	return out, r.Err()
}

// rowText is one row's values, hidden columns included.
func rowText(rec arrow.RecordBatch, i int) string {
	var parts []string
	for c := range rec.Schema().Fields() {
		parts = append(parts, string(relation.AppendJSON(nil, rec.Column(c), i)))
	}
	return strings.Join(parts, " ")
}
