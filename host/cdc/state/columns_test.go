package state

import (
	"context"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/fault"
)

// A run that was written before the target's columns were widened, reordered and
// added to gives its values as the columns are now, in lookups, scans and merges.
func TestOldRunsFollowTheColumnsOfTheTarget(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	s, _ := testStore(t, mem)
	ctx := context.Background()
	old := []arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int32},
		{Name: "Pair", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int16, Nullable: true}, arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true})},
		{Name: "gone", Type: arrow.BinaryTypes.String},
	}
	now := []arrow.Field{
		{Name: "new", Type: arrow.BinaryTypes.String},
		{Name: "pair", Type: arrow.StructOf(arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}, arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, arrow.Field{Name: "c", Type: arrow.PrimitiveTypes.Float64, Nullable: true})},
		{Name: "n", Type: arrow.PrimitiveTypes.Int64},
	}
	m := &Manifest{K: -1}
	for r, fields := range [][]arrow.Field{old, now, old, now} {
		m.Runs = append(m.Runs, writeJSON(t, s, mem, string(rune('a'+r)), fields))
	}
	check := func() {
		t.Helper()
		k, err := s.Put(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		st, err := s.Load(ctx, k, now...)
		if err != nil {
			t.Fatal(err)
		}
		hashes := []rowcode.Hash{rowcode.HashOf([]byte("k"))}
		rec, err := st.Find(ctx, hashes)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			`a, (null), {"a":1,"b":"x","c":null}, 7`, `b, v, {"a":1,"b":"x","c":2}, 7`,
			`c, (null), {"a":1,"b":"x","c":null}, 7`, `d, v, {"a":1,"b":"x","c":2}, 7`,
		}
		if rec.NumRows() != int64(len(want)) {
			t.Fatalf("%d rows", rec.NumRows())
		}
		for i, w := range want {
			got := []string{rec.Column(Order).(*array.Binary).ValueString(i)}
			for c := range now {
				got = append(got, rec.Column(Values+c).ValueStr(i))
			}
			if strings.Join(got, ", ") != w {
				t.Errorf("row %d is %s, want %s", i, strings.Join(got, ", "), w)
			}
		}
		rec.Release()
		if err := st.Release(); err != nil {
			t.Fatal(err)
		}
	}
	check()
	c, err := s.Compact(ctx, m, CompactOptions{})
	if err != nil || c == nil {
		t.Fatal(c, err)
	}
	if ok, err := s.Adopt(ctx, m, c); !ok || err != nil || len(m.Runs) != 1 {
		t.Fatal(ok, err, m.Runs)
	}
	check()

	narrow := []arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int16}}
	if _, err := s.Load(ctx, m.K, narrow...); fault.CodeOf(err) != "CDC_STATE_TYPE" {
		t.Errorf("a narrower column: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// writeJSON writes a run with one entry of the key k.
func writeJSON(t *testing.T, s *Store, mem memory.Allocator, order string, values []arrow.Field) RunInfo {
	t.Helper()
	base := batch(mem, []entry{{key: "k", order: order, kind: Upsert}})
	defer base.Release()
	rows, _, err := array.RecordFromJSON(mem, arrow.NewSchema(values, nil), strings.NewReader(`[{"n":7,"pair":{"a":1,"b":"x","c":2},"Pair":{"a":1,"b":"x"},"new":"v","gone":"g"}]`))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Release()
	rec := array.NewRecordBatch(Schema(values...), append(base.Columns()[:Values:Values], rows.Columns()...), 1)
	defer rec.Release()
	reader, err := array.NewRecordReader(rec.Schema(), []arrow.RecordBatch{rec})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	info, err := s.Write(context.Background(), reader)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
