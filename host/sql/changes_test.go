package sql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/storage"
)

const changedTable = "id BIGINT, p STRING, n INT, s STRING, ts TIMESTAMP, d DECIMAL(10,2)"

// changedRows makes rows of changedTable, from a key on.
func changedRows(rng *rand.Rand, first, n int) string {
	var out []string
	for i := range n {
		row := []string{fmt.Sprintf(`"id":%d`, first+i)}
		for _, v := range []string{
			fmt.Sprintf(`"p":%q`, string(rune('a'+rng.IntN(3)))), fmt.Sprintf(`"n":%d`, rng.IntN(30)), fmt.Sprintf(`"s":"%c%d"`, 'a'+rng.IntN(4), rng.IntN(9)),
			fmt.Sprintf(`"ts":"2024-01-%02dT12:00:00.0005Z"`, 1+rng.IntN(28)), fmt.Sprintf(`"d":"%d.25"`, rng.IntN(50)-25),
		} {
			if rng.IntN(6) > 0 {
				row = append(row, v)
			}
		}
		out = append(out, "{"+strings.Join(row, ",")+"}")
	}
	return "[" + strings.Join(out, ",") + "]"
}

// liveRows gives the rows of the newest version for which one of the expressions
// is not true unchanged, and the values of the others as it says.
func liveRows(t *testing.T, s *delta.Snapshot, v *Evaluator, exprs ...string) []string {
	t.Helper()
	r, err := s.Scan(context.Background(), delta.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	p, err := v.Compile(context.Background(), s.Schema(), exprs)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for r.Next() {
		rec, err := p.Eval(context.Background(), r.RecordBatch())
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(rec.NumRows()) {
			out = append(out, rowText(rec, i))
		}
		rec.Release()
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	slices.Sort(out)
	return out
}

// DELETE and UPDATE with conditions of every kind, files left out by them,
// change the rows that the condition is true for and no others.
func TestRowsChangeWhereTheConditionIsTrue(t *testing.T) {
	ctx, v := context.Background(), newEvaluator(t)
	columns := []string{"id", "p", "n", "s", "ts", "d"}
	for i, where := range []string{
		"id < 20", "n = 7 OR n IS NULL", "p = 'a'", "p IS NULL", "p = \"b\" AND n > 10", "s LIKE 'a%'", "s RLIKE '[13579]$'", "NOT (n <> 3)", "p IN ('a', 'c') AND s > 'b5'",
		"ts >= TIMESTAMP '2024-01-15 12:00:00.0005'", "CAST(ts AS DATE) = DATE '2024-01-03'", "d < 0 AND d <> -1.25", "n <=> NULL", "id % 7 = 3", "length(s) + n > 12", "true", "n > 1000",
	} {
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		store, err := storage.OpenDir(t.TempDir(), storage.NoSync)
		if err != nil {
			t.Fatal(err)
		}
		table := delta.Open(store, delta.WithEngine(v))
		properties := map[string]string{"delta.enableDeletionVectors": fmt.Sprint(i%2 == 0)}
		if _, err := table.Commit(ctx, delta.Commit{Schema: schemaOf(t, changedTable), PartitionBy: [][]string{nil, {"p"}}[i/2%2], Properties: properties}); err != nil {
			t.Fatal(err)
		}
		for k := range 6 {
			appendRows(t, table, changedRows(rng, k*20, 20))
		}
		s, err := table.Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		// Both sides of the comparison come from the evaluator, over all rows.
		set := map[string]string{"n": "coalesce(n, 0) + 100", "s": `concat("new ", coalesce(s, ''))`}
		changed := slices.Clone(columns)
		for k, c := range columns {
			if expr, ok := set[c]; ok {
				changed[k] = fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", where, expr, c)
			}
		}
		hits := func(rows []string) int {
			n := 0
			for _, r := range rows {
				if strings.HasSuffix(r, " true") {
					n++
				}
			}
			return n
		}
		want, n := liveRows(t, s, v, changed...), hits(liveRows(t, s, v, "id", "("+where+") IS TRUE"))
		res, err := table.Update(ctx, delta.UpdateOptions{Where: where, Set: set})
		if err != nil || res.Updated != int64(n) {
			t.Fatalf("UPDATE WHERE %s: %+v, %v, want %d", where, res, err, n)
		}
		if s, err = table.Snapshot(ctx); err != nil {
			t.Fatal(err)
		}
		if got := liveRows(t, s, v, columns...); !slices.Equal(got, want) {
			t.Errorf("UPDATE WHERE %s: %d rows, want %d", where, len(got), len(want))
		}
		want = nil
		for _, r := range liveRows(t, s, v, append([]string{"(" + where + ") IS TRUE"}, columns...)...) {
			if rest, ok := strings.CutPrefix(r, "false "); ok {
				want = append(want, rest)
			}
		}
		if res, err = table.Delete(ctx, delta.DeleteOptions{Where: where}); err != nil {
			t.Fatalf("DELETE WHERE %s: %v", where, err)
		}
		if s, err = table.Snapshot(ctx); err != nil {
			t.Fatal(err)
		}
		if got := liveRows(t, s, v, columns...); !slices.Equal(got, want) {
			t.Errorf("DELETE WHERE %s: %d rows, want %d; deleted %d", where, len(got), len(want), res.Deleted)
		}
	}
}

func appendRows(t *testing.T, table *delta.Table, rows string) {
	t.Helper()
	ctx := context.Background()
	s, err := table.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w, err := table.Write(ctx, delta.WriteOptions{Snapshot: s, Name: fmt.Sprint("v", s.Version())})
	if err != nil {
		t.Fatal(err)
	}
	rec := tableOf(t, s.Schema(), rows)
	defer rec.Release()
	if err := w.Write(ctx, rec); err != nil {
		t.Fatal(err)
	}
	add, err := w.Close(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Commit(ctx, delta.Commit{Read: s, Add: add}); err != nil {
		t.Fatal(err)
	}
}

func tableOf(t *testing.T, schema *arrow.Schema, rows string) arrow.RecordBatch {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}
