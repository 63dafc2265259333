package delta

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// compareNulls compares the counts of nulls with those of a scan. The tables of
// other engines and the random lives of tables go through it.
func compareNulls(t testing.TB, what string, s *Snapshot) {
	t.Helper()
	ctx := context.Background()
	r, err := s.Scan(ctx, ScanOptions{})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer r.Release()
	want, rows := make([]int64, r.Schema().NumFields()), int64(0)
	for r.Next() {
		rows += r.RecordBatch().NumRows()
		for i, c := range r.RecordBatch().Columns() {
			if c.DataType().ID() == arrow.NULL {
				want[i] += int64(c.Len())
				continue
			}
			want[i] += int64(c.NullN())
		}
	}
	if err := r.Err(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	got, err := s.CountNulls(ctx)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	cheap, err := s.NullCounts(ctx)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if got.Rows != rows || cheap.Rows != rows {
		t.Errorf("%s: %d and %d rows, not %d", what, got.Rows, cheap.Rows, rows)
	}
	for i, f := range s.Schema().Fields() {
		if got.Nulls[i] != want[i] {
			t.Errorf("%s: %s is NULL in %d rows, not %d", what, f.Name, got.Nulls[i], want[i])
		}
		if n := cheap.Nulls[i]; n >= 0 && n != want[i] {
			t.Errorf("%s: statistics have %s as NULL in %d rows, not %d", what, f.Name, n, want[i])
		}
	}
}

// covers A163
func TestNullsAreKnownWithoutReadingWhereThereAreStatistics(t *testing.T) {
	f := newFixture(t)
	v := f.commit(Commit{Schema: dmlSchema, PartitionBy: []string{"part"}})
	s := f.snapshot()
	files := f.write(WriteOptions{Snapshot: s, Name: "x"}, `[{"key":1,"part":"a","n":null},{"key":null,"part":"a","n":2},{"key":3,"part":null,"n":null}]`)
	f.commit(Commit{Read: s, Operation: "WRITE", Add: files})
	s = f.snapshot()
	if s.Version() == v {
		t.Fatal("nothing was written")
	}
	got, err := s.NullCounts(context.Background())
	if err != nil || got.Rows != 3 || got.Nulls[0] != 1 || got.Nulls[1] != 1 || got.Nulls[2] != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	compareNulls(t, "partitioned", s)
}
