package sql

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// rowsOf runs a query over batches and gives its rows as text.
func rowsOf(t *testing.T, e *Engine, q Query, batches []arrow.RecordBatch) ([]string, error) {
	t.Helper()
	in := readerOf(t, batches...)
	defer in.Release()
	q.Clock = batchTime
	r, err := e.Run(t.Context(), q, map[string]array.RecordReader{q.Stream: in})
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var out []string
	for r.Next() {
		if !r.RecordBatch().Schema().Equal(r.Schema()) {
			t.Errorf("batch has %s, reader %s", r.RecordBatch().Schema(), r.Schema())
		}
		for i := range int(r.RecordBatch().NumRows()) {
			out = append(out, rowText(r.RecordBatch(), i))
		}
	}
	return out, r.Err()
}

// An ordinary query goes around DuckDB only when it gives its relation's columns
// as they are.
func TestOrdinaryQueriesThatPassColumnsOn(t *testing.T) {
	around, through := openEngine(t), openEngine(t)
	through.detours = false
	whole := allTypesBatch(t, 0, 5000)
	batches := []arrow.RecordBatch{whole.NewSlice(0, 3), whole.NewSlice(3, 3), whole.NewSlice(3, 4100), whole.NewSlice(4100, 5000)}
	for text, detour := range map[string]bool{
		"SELECT * FROM t":                                    true,
		"SELECT i64 AS a, st, i64 AS a FROM t":               true,
		"SELECT * EXCLUDE (b) FROM t AS x":                   true,
		"SELECT i64, i64 + 1 AS j FROM t":                    false,
		"SELECT i64 FROM t WHERE i64 > 5":                    false,
		"SELECT DISTINCT i8 FROM t":                          false,
		"SELECT i8, count(*) AS n FROM t GROUP BY ALL":       false,
		"SELECT b FROM t GROUP BY ALL":                       false,
		"SELECT i64 FROM t ORDER BY i64 DESC":                false,
		"SELECT i64 FROM t LIMIT 7":                          false,
		"SELECT i64, row_number() OVER () AS n FROM t":       false,
		"SELECT i64 FROM t QUALIFY row_number() OVER () = 1": false,
		"SELECT a.i64 FROM t AS a JOIN t AS c USING (i64)":   false,
		"SELECT i64, unnest(l) AS x FROM t":                  false,
	} {
		q := Query{Text: text}
		plan, err := around.plan(t.Context(), q, map[string]*arrow.Schema{"t": whole.Schema()})
		if err != nil {
			t.Fatal(text, err)
		}
		if got := plan.around != nil; got != detour {
			t.Errorf("%s: a detour is %v", text, got)
		}
		rows := func(e *Engine) []string {
			in := readerOf(t, batches...)
			defer in.Release()
			q.Clock = batchTime
			r, err := e.Run(t.Context(), q, map[string]array.RecordReader{"t": in})
			if err != nil {
				t.Fatal(text, err)
			}
			defer r.Release()
			var out []string
			for r.Next() {
				for i := range int(r.RecordBatch().NumRows()) {
					out = append(out, rowText(r.RecordBatch(), i))
				}
			}
			if r.Err() != nil {
				t.Fatal(text, r.Err())
			}
			return out
		}
		got, want := rows(around), rows(through)
		if !strings.Contains(text, "ORDER") {
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d rows, and %d through the engine; %s", text, len(got), len(want), firstDifference(got, want))
		}
	}
}

// A column whose layout is not the engine's keeps an ordinary query from the
// detour: its names may stand twice.
func TestAColumnOfAnotherLayoutGoesThrough(t *testing.T) {
	e := openEngine(t)
	schema := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.LargeString, Nullable: true}, {Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.LargeStringBuilder).Append("x")
	b.Field(1).(*array.Int64Builder).Append(7)
	rec := b.NewRecordBatch()
	defer rec.Release()
	got, err := run(t, e, Query{Text: "SELECT s, n, s, n FROM t"}, map[string]arrow.RecordBatch{"t": rec})
	if err != nil || len(got) != 1 || got[0] != `"x" 7 "x" 7` {
		t.Errorf("%q, %v", got, err)
	}
}

// What goes around DuckDB is what comes out of it, whatever the query and
// however the stream is cut into batches.
func TestColumnsThatGoAroundAreTheSame(t *testing.T) {
	around, through := openEngine(t), openEngine(t)
	through.detours = false
	whole := stream(t, allTypesBatch(t, 0, 3000), "/f")
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		text   string
		detour bool
	}{
		{"SELECT * FROM t", true},
		{"SELECT t.* FROM t", true},
		{"SELECT x.* EXCLUDE (ll, m) FROM t AS x", true},
		{"SELECT st, l AS list, bin FROM t", true},
		{"SELECT I64 AS a, i64 + 1 AS b, i64 AS c FROM t", true},
		{"SELECT *, upper(s) AS u FROM t", true},
		{"SELECT *, _metadata.file_path AS f, st.a AS sa, now() AS n FROM t", true},
		{"SELECT * EXCEPT (st), st.a AS st FROM t", true},
		{"SELECT i64 + 1 AS b FROM t", false},
		{"SELECT * FROM t WHERE i64 % 3 = 1", false},
		{"SELECT i64, unnest(l) AS x FROM t", false},
		{"SELECT i64, explode(l) AS x FROM t", false},
		{"SELECT * REPLACE (i64 + 1 AS i64) FROM t", false},
		{"SELECT i64, (SELECT max(u.i64) FROM (SELECT 1 AS i64) AS u) AS x FROM t", false},
		{"SELECT a.i64 FROM (SELECT i64 FROM t) AS a", false},
		{"WITH c AS (SELECT i64 FROM t) SELECT * FROM c", false},
		{"SELECT i64 FROM t UNION ALL SELECT i64 FROM t", false},
		{"SELECT COLUMNS('i.*') FROM t", false},
	} {
		for _, rules := range [][]string{nil, {"i64 > 100", "s IS NOT NULL"}} {
			for range 3 {
				var batches []arrow.RecordBatch
				for at := int64(0); at < whole.NumRows(); {
					n := min(1+rng.Int64N(1300), whole.NumRows()-at)
					if rng.IntN(5) == 0 {
						n = 0
					}
					batches = append(batches, whole.NewSlice(at, at+n))
					at += n
				}
				q := Query{Text: c.text, Stream: "t", Expectations: rules}
				in := map[string]*arrow.Schema{"t": whole.Schema()}
				if _, err := around.Describe(t.Context(), q, in); err != nil {
					// Columns of an expression over names may only be unknown in rules.
					if _, other := through.Describe(t.Context(), q, in); other == nil || other.Error() != err.Error() {
						t.Fatalf("%s: %v, and through the engine %v", c.text, err, other)
					}
					break
				}
				plan, err := around.plan(t.Context(), q, in)
				if err != nil {
					t.Fatal(err)
				}
				if got := plan.around != nil; got != c.detour {
					t.Fatalf("%s: a detour is %v", c.text, got)
				}
				got, err := rowsOf(t, around, q, batches)
				if err != nil {
					t.Fatal(c.text, err)
				}
				want, err := rowsOf(t, through, q, batches)
				if err != nil {
					t.Fatal(c.text, err)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%s: %d rows, and %d through the engine; %s", c.text, len(got), len(want), firstDifference(got, want))
				}
				for _, b := range batches {
					b.Release()
				}
			}
		}
	}
}

func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("row %d is %s, not %s", i, a[i], b[i])
		}
	}
	return "one is the beginning of the other"
}

// A reader that fails, a value that cannot be computed and a reader that is
// released early end a detour as they end any query.
func TestADetourEndsAsAQueryDoes(t *testing.T) {
	e := openEngine(t)
	whole := stream(t, allTypesBatch(t, 0, 4000), "/f")
	gone := errors.New("the disk is gone")
	for _, text := range []string{"SELECT * FROM t", "SELECT *, upper(s) AS u FROM t"} {
		for fails := range 3 {
			in := readerOf(t, whole, whole, whole, whole)
			r, err := e.Run(t.Context(), Query{Text: text, Stream: "t", Clock: batchTime}, map[string]array.RecordReader{"t": &failing{in, fails, gone, false}})
			if err == nil {
				for r.Next() {
				}
				err = r.Err()
				r.Release()
			}
			if !errors.Is(err, gone) {
				t.Errorf("%s: got %v", text, err)
			}
			in.Release()
		}
		for early := range 3 {
			in := readerOf(t, whole, whole, whole, whole)
			r, err := e.Run(t.Context(), Query{Text: text, Stream: "t", Clock: batchTime}, map[string]array.RecordReader{"t": in})
			if err != nil {
				t.Fatal(err)
			}
			for range early {
				r.Next()
			}
			r.Release()
			in.Release()
		}
	}
	_, err := rowsOf(t, e, Query{Text: "SELECT *, CAST(s AS INT) AS i FROM t", Stream: "t"}, []arrow.RecordBatch{whole})
	if err == nil {
		t.Error("a text became a number")
	}
}
