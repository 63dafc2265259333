package sql

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// covers A98, B4
func TestExpectationsMarkRowsInOneColumn(t *testing.T) {
	e := openEngine(t)
	in := stream(t, table(t, "id INT, qty INT", `[{"id":1,"qty":5},{"id":2,"qty":null},{"id":null,"qty":-1}]`), "/f")
	q := Query{
		Text: "SELECT id AS k, qty * 2 AS q FROM t", Stream: "t",
		Expectations: []string{"k IS NOT NULL", "q > 0", "q > 0 -- a comment", "q <= 10 OR k > 1", "current_date = DATE '2026-04-13'"},
		NullPass:     []bool{false, false, true, false, false},
	}
	rows, err := run(t, e, q, map[string]arrow.RecordBatch{"t": in})
	if err != nil {
		t.Fatal(err)
	}
	want := "1 10 0 0|2 null 1 2|null -2 2 7"
	if got := strings.Join(rows, "|"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	q.Expectations, q.NullPass = nil, nil
	for range relation.MaskBits {
		q.Expectations = append(q.Expectations, "k = 1")
	}
	if rows, err = run(t, e, q, map[string]arrow.RecordBatch{"t": in}); err != nil {
		t.Fatal(err)
	}
	if got := rows[1]; got != fmt.Sprintf("2 null 1 %d", int64(1)<<relation.MaskBits-1) {
		t.Errorf("all 62: %s", got)
	}
	q.Expectations = append(q.Expectations, "true")
	if _, err = run(t, e, q, map[string]arrow.RecordBatch{"t": in}); fault.CodeOf(err) != "TOO_MANY_EXPECTATIONS" {
		t.Errorf("63 expectations: %v", err)
	}
}

// covers A99
func TestConditionsLookAtOneRow(t *testing.T) {
	e := openEngine(t)
	in := map[string]*arrow.Schema{"t": stream(t, table(t, "id INT", "[]"), "/f").Schema()}
	for _, c := range []struct{ condition, code string }{
		{"id IN (SELECT 1)", "INVALID_EXPECTATION"},
		{"count(*) > 1", "INVALID_EXPECTATION"},
		{"row_number() OVER () = 1", "INVALID_EXPECTATION"},
		{"id", "INVALID_EXPECTATION"},
		{"(id = 1, id = 2)", "INVALID_EXPECTATION"},
		{"id = 1) OR (id = 2", ""},
		{"id = 1), (id = 2", "PARSE_SYNTAX_ERROR"},
		{"id = 1) FROM t WHERE (true", "PARSE_SYNTAX_ERROR"},
		{"*", "PARSE_SYNTAX_ERROR"},
		{"nope = 1", "UNRESOLVED_COLUMN"},
		{"_metadata.file_path = 'x'", "UNRESOLVED_COLUMN"},
		{"__weir_row = 1", "RESERVED_COLUMN_NAME"},
		{"random() < 0.5", "UNSUPPORTED_STREAMING_OPERATION"},
		{"py_udf(id)", "UNRESOLVED_ROUTINE"},
	} {
		q := Query{Text: "SELECT id FROM t", Stream: "t", Expectations: []string{"true", c.condition}, ExpectationNames: []string{"ok", "the rule"}}
		_, err := e.Describe(t.Context(), q, in)
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %v, want %s", c.condition, err, c.code)
		}
		if err != nil && !strings.Contains(err.Error(), "expectation the rule") {
			t.Errorf("%s: the rule is not named: %v", c.condition, err)
		}
	}
}

// allTypes has every type that crosses, with nulls and nesting.
const allTypes = `b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, f FLOAT, d DOUBLE, s STRING, bin BINARY,
	dt DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, de DECIMAL(9,2), de2 DECIMAL(38,10), l ARRAY<STRING>, ll ARRAY<ARRAY<INT>>,
	st STRUCT<a: INT, b: ARRAY<STRUCT<c: STRING>>>, m MAP<STRING, DECIMAL(18,3)>, u8 UINT8, u64 UINT64`

// allTypesBatch has rows whose values derive from their number.
func allTypesBatch(t testing.TB, from, n int) arrow.RecordBatch {
	var rows []string
	for i := from; i < from+n; i++ {
		if i%7 == 3 {
			rows = append(rows, `{}`)
			continue
		}
		rows = append(rows, fmt.Sprintf(`{"b":%v,"i8":%d,"i16":%d,"i32":%d,"i64":%d,"f":%d.5,"d":%d.25,"s":"text number %d, long enough","bin":"AAE=",
			"dt":"2024-02-%02d","ts":"2024-01-01T00:00:%02d.%06dZ","ntz":"2024-01-01T00:00:%02d.5","de":"%d.25","de2":"%d.0000000001",
			"l":["x%d",null],"ll":[[%d],[],null],"st":{"a":%d,"b":[{"c":"c%d"},null]},"m":[{"key":"k%d","value":"1.5"}],"u8":%d,"u64":%d}`,
			i%2 == 0, i%100, i, i, i, i, i, i, i%28+1, i%60, i, i%60, i, i, i, i, i, i, i, i%200, i))
	}
	return table(t, allTypes, "["+strings.Join(rows, ",")+"]")
}

func TestEveryTypeGoesThroughUnchanged(t *testing.T) {
	e := openEngine(t)
	whole := stream(t, allTypesBatch(t, 0, 6000), "/f")
	// Slices begin in the middle of bytes of validity, offsets and vectors.
	var parts []arrow.RecordBatch
	for _, cut := range [][2]int64{{0, 3}, {3, 2051}, {2051, 2052}, {2052, 2052}, {2052, 5999}, {5999, 6000}} {
		parts = append(parts, whole.NewSlice(cut[0], cut[1]))
	}
	for _, text := range []string{"SELECT * FROM t", "SELECT * FROM t WHERE true", "SELECT * FROM (SELECT m, * EXCLUDE (m) FROM t) WHERE true", "SELECT st, l, bin FROM t", "SELECT ll FROM t WHERE i64 % 5 = 0 OR i64 IS NULL"} {
		in := readerOf(t, parts...)
		out, err := e.Run(t.Context(), Query{Text: text, Stream: "t", Clock: batchTime}, map[string]array.RecordReader{"t": in})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for out.Next() {
			rec := out.RecordBatch()
			ids, _ := relation.Int64Column(rec, relation.RowColumn)
			for c, f := range relation.DataSchema(rec.Schema()).Fields() {
				from := whole.Column(whole.Schema().FieldIndices(f.Name)[0])
				if !arrow.TypeEqual(from.DataType(), f.Type) {
					t.Fatalf("%s: %s became %s", f.Name, from.DataType(), f.Type)
				}
				for i := range int(rec.NumRows()) {
					a, b := relation.AppendJSON(nil, from, int(ids.Value(i))), relation.AppendJSON(nil, rec.Column(c), i)
					if string(a) != string(b) {
						t.Fatalf("%s: row %d column %s: %s became %s", text, ids.Value(i), f.Name, a, b)
					}
				}
			}
			n += int(rec.NumRows())
		}
		if out.Err() != nil || n == 0 || strings.HasPrefix(text, "SELECT * ") && n != 6000 {
			t.Fatal(text, n, out.Err())
		}
		out.Release()
		in.Release()
	}
}

func TestRowsKeepTheirOrderAcrossBatchesAndThreads(t *testing.T) {
	e := openEngine(t)
	batches := orderBatches(300_000, 10_000)
	side := table(t, "currency STRING, rate INT", `[{"currency":"EUR","rate":1},{"currency":"JPY","rate":2},{"currency":"JPY","rate":3}]`)
	for _, text := range []string{
		"SELECT order_id FROM o WHERE qty > 10",
		"SELECT order_id, rate FROM o JOIN side USING (currency)",
		"SELECT order_id, unnest([1, 2, 3]) AS x FROM o",
	} {
		in, s := readerOf(t, batches...), readerOf(t, side)
		out, err := e.Run(t.Context(), Query{Text: text, Stream: "o", Clock: batchTime}, map[string]array.RecordReader{"o": in, "side": s})
		if err != nil {
			t.Fatal(err)
		}
		last, n := int64(-1), 0
		for out.Next() {
			ids, _ := relation.Int64Column(out.RecordBatch(), relation.RowColumn)
			for _, v := range ids.Int64Values() {
				if v < last {
					t.Fatalf("%s: row %d comes after %d", text, v, last)
				}
				last = v
				n++
			}
		}
		if out.Err() != nil || n == 0 {
			t.Fatal(n, out.Err())
		}
		out.Release()
		in.Release()
		s.Release()
	}
}

// failing fails, or panics, after some batches.
type failing struct {
	array.RecordReader
	left  int
	err   error
	panic bool
}

func (f *failing) Next() bool {
	if f.left == 0 {
		if f.panic {
			panic("kaboom")
		}
		return false
	}
	f.left--
	return f.RecordReader.Next()
}

func (f *failing) Err() error { return f.err }

func TestAnInputThatFailsFailsTheQueryWithItsOwnError(t *testing.T) {
	e := openEngine(t)
	sentinel := errors.New("the disk is gone")
	for _, text := range []string{"SELECT * FROM o", "SELECT order_id FROM o WHERE qty = 1", "SELECT o.order_id FROM o JOIN o2 USING (order_id)"} {
		for _, panics := range []bool{false, true} {
			q := Query{Text: text, Stream: "o", Clock: batchTime}
			batches := orderBatches(50_000, 10_000)
			in, in2 := readerOf(t, batches...), readerOf(t, batches...)
			out, err := e.Run(t.Context(), q, map[string]array.RecordReader{"o": &failing{in, 3, sentinel, panics}, "o2": in2})
			if err == nil {
				for out.Next() {
				}
				err = out.Err()
				out.Release()
			}
			if !panics && !errors.Is(err, sentinel) || panics && !strings.Contains(fmt.Sprint(err), "kaboom") {
				t.Errorf("%s: got %v", text, err)
			}
			in.Release()
			in2.Release()
		}
	}
}

func TestAValueThatCannotBeCastIsAnErrorWithoutTheValue(t *testing.T) {
	e := openEngine(t)
	in := stream(t, table(t, "s STRING", `[{"s":"1"},{"s":"a secret"}]`), "")
	_, err := run(t, e, Query{Text: "SELECT CAST(s AS INT) AS i FROM t", Stream: "t", File: "q.sql", Line: 3}, map[string]arrow.RecordBatch{"t": in})
	if fault.CodeOf(err) != "CAST_INVALID_INPUT" || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "q.sql, line 3") {
		t.Errorf("got %v", err)
	}
}

func TestAFailureAfterTheFirstBatchIsNotAnEnd(t *testing.T) {
	e := openEngine(t)
	attempt := func() error {
		in := readerOf(t, orderBatches(200_000, 10_000)...)
		defer in.Release()
		out, err := e.Run(t.Context(), Query{Text: "SELECT CASE WHEN order_id = 190000 THEN CAST('x' || customer AS INT) ELSE 1 END AS v FROM o", Stream: "o", Clock: batchTime}, map[string]array.RecordReader{"o": in})
		if err != nil {
			t.Fatal(err)
		}
		defer out.Release()
		for out.Next() {
		}
		return out.Err()
	}
	err := attempt()
	// DuckDB may say that it stopped and not why: an error that asks for another try.
	var coded *fault.Error
	for range 20 {
		if !errors.As(err, &coded) || !coded.Retry {
			break
		}
		err = attempt()
	}
	if fault.CodeOf(err) != "CAST_INVALID_INPUT" {
		t.Errorf("got %v", err)
	}
}

func TestCancelStopsAQuery(t *testing.T) {
	e := openEngine(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	out, err := e.Run(ctx, Query{Text: "SELECT sum(a.id * b.id) AS s FROM range(1000000) a, range(1000000) b", Clock: batchTime}, nil)
	if err == nil {
		for out.Next() {
		}
		err = out.Err()
		out.Release()
	}
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 20*time.Second {
		t.Errorf("got %v after %s", err, time.Since(start))
	}
	if _, err := run(t, e, Query{Text: "SELECT 1 AS a"}, nil); err != nil {
		t.Errorf("the engine does not run on: %v", err)
	}
}

func TestReleaseBeforeTheEndLetsGoOfEverything(t *testing.T) {
	e := openEngine(t)
	batches := orderBatches(100_000, 10_000)
	for range 20 {
		in := readerOf(t, batches...)
		out, err := e.Run(t.Context(), Query{Text: "SELECT * FROM o", Stream: "o", Clock: batchTime}, map[string]array.RecordReader{"o": in})
		if err != nil {
			t.Fatal(err)
		}
		out.Next()
		out.Release()
		in.Release()
	}
	scans.Range(func(k, _ any) bool { t.Errorf("scan %v is left over", k); return true })
}

func TestQueriesRunAtTheSameTimeAndInEachOther(t *testing.T) {
	e := openEngine(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			in := readerOf(t, orderBatches(50_000, 10_000)...)
			defer in.Release()
			q := Query{Text: fmt.Sprintf("SELECT order_id + %d AS order_id, qty FROM o", i), Stream: "o", Clock: batchTime}
			first, err := e.Run(t.Context(), q, map[string]array.RecordReader{"o": in})
			if err != nil {
				t.Error(err)
				return
			}
			defer first.Release()
			second, err := e.Run(t.Context(), Query{Text: "SELECT count(*) AS n, min(order_id) AS m FROM x", Clock: batchTime}, map[string]array.RecordReader{"x": first})
			if err != nil {
				t.Error(err)
				return
			}
			defer second.Release()
			for second.Next() {
				if got, want := rowText(second.RecordBatch(), 0), fmt.Sprintf("50000 %d", i); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			if second.Err() != nil {
				t.Error(second.Err())
			}
		})
	}
	wg.Wait()
}

func TestOrdinaryQueries(t *testing.T) {
	e := openEngine(t)
	in := map[string]arrow.RecordBatch{
		"silver.orders":     table(t, "id INT, qty INT", `[{"id":1,"qty":5},{"id":2,"qty":null},{"id":2,"qty":9}]`),
		"dev.silver.Orders": table(t, "id INT", `[{"id":42}]`),
		"files":             stream(t, table(t, "n INT", `[{"n":8}]`), "/in/x"),
	}
	for _, c := range []struct{ sql, want, names string }{
		{"SELECT id, count(*) AS n, sum(qty) FROM silver.orders GROUP BY id ORDER BY id DESC", "2 2 9|1 1 5", "id n sum(qty)"},
		{"SELECT * FROM dev.silver.orders", "42", "id"},
		{"SELECT silver.orders.qty FROM silver.orders WHERE silver.orders.id = 1", "5", "qty"},
		{"SELECT * FROM files", "8", "n"},
		{"SELECT f.*, _metadata.file_path AS p FROM files f", `8 "/in/x"`, "n p"},
		{"SELECT * FROM files JOIN silver.orders ON n > id WHERE qty = 5", "8 1 5", "n id qty"},
		{"SELECT o.id, p.id FROM silver.orders o JOIN SILVER.ORDERS p ON o.id = p.id ORDER BY ALL", "1 1|2 2|2 2|2 2|2 2", "id id"},
		{"SELECT orders.qty FROM silver.orders WHERE qty > 5", "9", "qty"},
		{"SELECT row_number() OVER (ORDER BY qty) AS r FROM silver.orders ORDER BY 1 LIMIT 2 OFFSET 1", "2|3", "r"},
		{"WITH RECURSIVE r(n) AS (SELECT min(id) FROM silver.orders UNION ALL SELECT n + 1 FROM r, (SELECT count(*) AS c FROM silver.orders) WHERE n < c) SELECT * FROM r", "1|2|3", "n"},
		{"SELECT now(), current_date", `"2026-04-13T10:30:00.123456Z" "2026-04-13"`, "now() current_date"},
		{"VALUES (1, 'a'), (2, 'b')", `1 "a"|2 "b"`, "col1 col2"},
		{"FROM silver.orders SELECT max(id)", "2", "max(id)"},
		{"SELECT DISTINCT id FROM silver.orders UNION SELECT 7 ORDER BY id", "1|2|7", "id"},
		{"SELECT random() < 2 AS r, typeof(uuid()) AS u", `true "uuid"`, "r u"},
		{"SELECT id FROM silver.orders WHERE EXISTS (SELECT 1 FROM dev.silver.orders x WHERE x.id > orders.id) LIMIT 1", "1", "id"},
		{"SELECT list_filter([1, 2, 3], lambda x: x > 1) AS l, [y * 2 FOR y IN [1, 2]] AS m", "[2,3] [2,4]", "l m"},
	} {
		t.Run(c.sql, func(t *testing.T) {
			rows, err := run(t, e, Query{Text: c.sql}, in)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(rows, "|"); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			schemas := map[string]*arrow.Schema{}
			for k, v := range in {
				schemas[k] = v.Schema()
			}
			s, err := e.Describe(t.Context(), Query{Text: c.sql}, schemas)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range s.Fields() {
				names = append(names, f.Name)
			}
			if got := strings.Join(names, " "); got != c.names {
				t.Errorf("columns %s, want %s", got, c.names)
			}
		})
	}
}

func TestSessionTimeZone(t *testing.T) {
	e, err := Open(t.Context(), Options{TimeZone: "Asia/Tokyo"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	rows, err := run(t, e, Query{Text: "SELECT current_date AS d, TIMESTAMP '2024-01-01 09:00:00' AS t, localtimestamp AS l", Clock: time.Date(2026, 4, 13, 20, 0, 0, 0, time.UTC)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(rows, "|"); got != `"2026-04-14" "2024-01-01T00:00:00Z" "2026-04-14T05:00:00"` {
		t.Errorf("got %s", got)
	}
	if _, err := Open(t.Context(), Options{TimeZone: "Moon/Base"}); fault.CodeOf(err) != "INVALID_SQL_OPTION" {
		t.Errorf("got %v", err)
	}
	if _, err := Open(t.Context(), Options{MemoryLimit: "plenty"}); fault.CodeOf(err) != "INVALID_SQL_OPTION" {
		t.Errorf("got %v", err)
	}
}

func TestRelations(t *testing.T) {
	e := openEngine(t)
	got, err := e.Relations(t.Context(), "WITH a AS (SELECT * FROM b.c) SELECT * FROM a JOIN `x y`.`Z` z USING (k) WHERE k IN (SELECT k FROM w, b.C)")
	if err != nil {
		t.Fatal(err)
	}
	if s := strings.Join(got, ","); s != "b.c,x y.Z,w" {
		t.Errorf("got %s", s)
	}
}

// A reader made of a coroutine must stay on the goroutine it began on, which
// DuckDB's threads are not.
func TestAReaderMayBeACoroutine(t *testing.T) {
	e := openEngine(t)
	for range 20 {
		inner := readerOf(t, orderBatches(100_000, 1000)...)
		next, stop := iter.Pull(func(yield func(struct{}) bool) {
			for inner.Next() {
				if !yield(struct{}{}) {
					return
				}
			}
		})
		in := coroutine{inner, next}
		out, err := e.Run(t.Context(), Query{Text: "SELECT count(*) AS n, sum(qty)::BIGINT AS s FROM o", Clock: batchTime}, map[string]array.RecordReader{"o": in})
		if err != nil {
			t.Fatal(err)
		}
		if !out.Next() || rowText(out.RecordBatch(), 0) != "100000 4950000" {
			t.Errorf("got %v %v", out.RecordBatch(), out.Err())
		}
		out.Release()
		stop()
		inner.Release()
	}
}

type coroutine struct {
	array.RecordReader
	next func() (struct{}, bool)
}

func (c coroutine) Next() bool {
	_, ok := c.next()
	return ok
}

func TestCancelLetsGoOfAnInputThatWaits(t *testing.T) {
	e := openEngine(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	inner := readerOf(t, orderBatches(1000, 1000)...)
	defer inner.Release()
	out, err := e.Run(ctx, Query{Text: "SELECT * FROM o", Stream: "o", Clock: batchTime}, map[string]array.RecordReader{"o": waiting{inner, ctx}})
	if err == nil {
		for out.Next() {
		}
		err = out.Err()
		out.Release()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// waiting gives nothing until the context ends, as a source without news does.
type waiting struct {
	array.RecordReader
	ctx context.Context
}

func (w waiting) Next() bool {
	<-w.ctx.Done()
	return false
}

func (w waiting) Err() error { return w.ctx.Err() }
