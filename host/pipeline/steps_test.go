package pipeline

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/stream"
)

// ints makes a reader over BIGINT columns; -1 is NULL in every column but the hidden ones.
func ints(t *testing.T, mem memory.Allocator, names []string, batches ...[][]int64) array.RecordReader {
	t.Helper()
	var fields []arrow.Field
	for _, n := range names {
		fields = append(fields, arrow.Field{Name: n, Type: arrow.PrimitiveTypes.Int64, Nullable: !relation.Hidden(n)})
	}
	schema := arrow.NewSchema(fields, nil)
	var recs []arrow.RecordBatch
	for _, rows := range batches {
		b := array.NewRecordBuilder(mem, schema)
		for _, row := range rows {
			for i, v := range row {
				if v == -1 && fields[i].Nullable {
					b.Field(i).AppendNull()
				} else {
					b.Field(i).(*array.Int64Builder).Append(v)
				}
			}
		}
		recs = append(recs, b.NewRecordBatch())
		b.Release()
	}
	r, err := array.NewRecordReader(schema, recs)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range recs {
		rec.Release()
	}
	return r
}

func checked(t *testing.T) *memory.CheckedAllocator {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

func TestOrdinalsOfAFilteredStreamAreFoundByRow(t *testing.T) {
	mem := checked(t)
	var rows rowOrdinals
	var want []int64
	for _, values := range [][]int64{{0, 1, 2}, {3, 7, 8, 20}, {}, {21, 22, 5}} {
		b := array.NewInt64Builder(mem)
		b.AppendValues(values, nil)
		col := b.NewInt64Array()
		rows.add(col)
		col.Release()
		b.Release()
		want = append(want, values...)
	}
	for row, ordinal := range want {
		if got, ok := rows.at(int64(row)); !ok || got != ordinal {
			t.Errorf("row %d is %d (%v), want %d", row, got, ok, ordinal)
		}
	}
	for _, row := range []int64{-1, int64(len(want))} {
		if _, ok := rows.at(row); ok {
			t.Errorf("row %d was never read", row)
		}
	}
	if len(rows.runs) != 4 {
		t.Errorf("%d runs, want 4", len(rows.runs))
	}
}

func TestSeedDependsOnFlowBatchAndTaskOnly(t *testing.T) {
	base := stream.Task{Dataset: "c.s.t", Flow: "t", Batch: 3, Index: 1, Attempt: 1, UpdateID: "u1", Timestamp: time.Unix(1, 0)}
	again := base
	again.Attempt, again.UpdateID, again.Timestamp = 2, "u2", time.Unix(2, 0)
	if seed(&base, "m", "f") != seed(&again, "m", "f") {
		t.Error("a replay has another seed")
	}
	seeds := []uint64{seed(&base, "m", "f")}
	for _, change := range []func(*stream.Task){
		func(t *stream.Task) { t.Batch = 4 }, func(t *stream.Task) { t.Index = 2 },
		func(t *stream.Task) { t.Flow = "u" }, func(t *stream.Task) { t.Dataset = "c.s.u" },
	} {
		task := base
		change(&task)
		s := seed(&task, "m", "f")
		if slices.Contains(seeds, s) {
			t.Errorf("two tasks share a seed: %+v", task)
		}
		seeds = append(seeds, s)
	}
}

// covers A168
func TestDeclaredColumnsGiveOrderCommentsAndNotNull(t *testing.T) {
	mem := checked(t)
	d := &dataset{
		columns: []sql.Column{
			{Name: "Qty", Comment: "pieces"},
			{Name: "id", Type: arrow.PrimitiveTypes.Int64, NotNull: true},
		},
		rules: []expect.Rule{{Name: "warn", Action: expect.Warn}, {Name: "id", Action: expect.Drop}},
	}
	run := func(names []string, batches ...[][]int64) (*arrow.Schema, [][]int64, error) {
		in := ints(t, mem, names, batches...)
		defer in.Release()
		r, err := (&declareStep{dataset: d}).Run(context.Background(), nil, in)
		if err != nil {
			return nil, nil, err
		}
		defer r.Release()
		var rows [][]int64
		for r.Next() {
			rec := r.RecordBatch()
			for i := range int(rec.NumRows()) {
				var row []int64
				for c := range int(rec.NumCols()) {
					row = append(row, rec.Column(c).(*array.Int64).Value(i))
				}
				rows = append(rows, row)
			}
		}
		return r.Schema(), rows, r.Err()
	}
	const row, mask = relation.RowColumn, relation.MaskColumn

	schema, rows, err := run([]string{"ID", "qty", row, mask}, [][]int64{{5, 6, 0, 0}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rows[0], []int64{6, 5, 0, 0}) {
		t.Errorf("rows %v", rows)
	}
	if f := schema.Field(0); f.Name != "Qty" || !f.Nullable || f.Metadata.Keys()[0] != "comment" {
		t.Errorf("field %+v", f)
	}
	if f := schema.Field(1); f.Name != "id" || f.Nullable {
		t.Errorf("field %+v", f)
	}

	_, _, err = run([]string{"id", "qty", row, mask}, [][]int64{{1, 1, 0, 0}, {-1, 1, 1, 1}})
	wantFault(t, err, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", `"id"`)
	if _, _, err = run([]string{"id", "qty", row, mask}, [][]int64{{-1, 1, 0, 2}}); err != nil {
		t.Errorf("a row that an expectation drops need not keep NOT NULL: %v", err)
	}
	_, _, err = run([]string{"id", row})
	wantFault(t, err, "UNRESOLVED_COLUMN", `"Qty"`)
	_, _, err = run([]string{"id", "qty", "more", row})
	wantFault(t, err, "INCOMPATIBLE_SCHEMA", `"more"`)
	d.columns[0].Type = arrow.BinaryTypes.String
	_, _, err = run([]string{"id", "qty", row})
	wantFault(t, err, "INCOMPATIBLE_COLUMN_TYPE", "declared as string", "gives bigint")
}
