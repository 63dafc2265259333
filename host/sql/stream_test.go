package sql

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

func TestStreamingQueries(t *testing.T) {
	e := openEngine(t)
	orders := stream(t, table(t, "id INT, qty INT, items ARRAY<STRUCT<sku: STRING, n: INT>>",
		`[{"id":1,"qty":5,"items":[{"sku":"b","n":1},{"sku":"a","n":2}]},{"id":2,"qty":null,"items":[]},{"id":3,"qty":7,"items":[{"sku":"c","n":9}]}]`), "/in/o.json")
	wide := stream(t, table(t, "day STRING, USD STRING, JPY STRING", `[{"day":"d1","USD":"1.1","JPY":"N/A"},{"day":"d2","USD":"1.2","JPY":"150"}]`), "/in/w.csv")
	rates := table(t, "id INT, rate DECIMAL(10,2)", `[{"id":3,"rate":"2.50"},{"id":1,"rate":"1.00"},{"id":1,"rate":"0.50"}]`)
	for _, c := range []struct {
		name, sql string
		want      string
		cols      string
	}{
		{"star leaves hidden columns out", "SELECT * EXCLUDE (items) FROM orders", "1 5 0|2 null 1|3 7 2", "id qty __weir_row"},
		{"projection and filter", "SELECT id, qty * 2 AS q FROM orders WHERE qty > 5", "3 14 2", "id q __weir_row"},
		{"qualified star", "SELECT o.* EXCLUDE (items) FROM orders o", "1 5 0|2 null 1|3 7 2", "id qty __weir_row"},
		{"metadata by name", "SELECT id, _metadata.file_path AS f FROM orders", `1 "/in/o.json" 0|2 "/in/o.json" 1|3 "/in/o.json" 2`, "id f __weir_row"},
		{"input_file_name", "SELECT id, input_file_name() AS f FROM orders WHERE id = 1", `1 "/in/o.json" 0`, "id f __weir_row"},
		{"subquery", "SELECT * FROM (SELECT id, qty FROM orders WHERE qty IS NOT NULL) s WHERE id > 1", "3 7 2", "id qty __weir_row"},
		{"cte used once", "WITH c AS (SELECT id FROM orders), d AS (SELECT id + 1 AS j FROM c) SELECT * FROM d", "2 0|3 1|4 2", "j __weir_row"},
		{"unnest in the select list", "SELECT id, unnest(items) AS item FROM orders", `1 {"sku":"b","n":1} 0|1 {"sku":"a","n":2} 0|3 {"sku":"c","n":9} 2`, "id item __weir_row"},
		{"unnest in FROM", "SELECT id, i.item.sku AS sku FROM orders, UNNEST(items) AS i(item)", `1 "a" 0|1 "b" 0|3 "c" 2`, "id sku __weir_row"},
		{"lateral per row", "SELECT id, s.n FROM orders o, LATERAL (SELECT sum(i.item.n)::BIGINT AS n FROM UNNEST(o.items) AS i(item)) s", "1 3 0|2 null 1|3 9 2", "id n __weir_row"},
		{"unpivot with IN", "SELECT * FROM wide UNPIVOT (rate FOR currency IN (USD, JPY))", `"d1" "USD" "1.1" 0|"d1" "JPY" "N/A" 0|"d2" "USD" "1.2" 1|"d2" "JPY" "150" 1`, "day currency rate __weir_row"},
		{"unpivot with COLUMNS", "SELECT * FROM (UNPIVOT wide ON COLUMNS(* EXCLUDE (day)) INTO NAME currency VALUE rate) WHERE rate <> 'N/A'", `"d1" "USD" "1.1" 0|"d2" "USD" "1.2" 1|"d2" "JPY" "150" 1`, "day currency rate __weir_row"},
		{"inner join keeps order", "SELECT o.id, r.rate FROM orders o JOIN rates r ON o.id = r.id", "1 0.50 0|1 1.00 0|3 2.50 2", "id rate __weir_row"},
		{"left join", "SELECT id, rate FROM orders LEFT JOIN rates USING (id)", "1 0.50 0|1 1.00 0|2 null 1|3 2.50 2", "id rate __weir_row"},
		{"batch side may aggregate", "SELECT o.id, r.s FROM orders o LEFT JOIN (SELECT id, max(rate) AS s FROM rates GROUP BY id) r ON r.id = o.id", "1 1.00 0|2 null 1|3 2.50 2", "id s __weir_row"},
		{"batch side read twice", "SELECT o.id FROM orders o JOIN rates a USING (id) JOIN rates b ON b.id = o.id AND b.rate < a.rate", "1 0", "id __weir_row"},
		{"subquery over a table", "SELECT id FROM orders WHERE id IN (SELECT id FROM rates) AND qty < (SELECT max(rate) * 3 FROM rates)", "1 0|3 2", "id __weir_row"},
		{"asof join", "SELECT o.id, r.rate FROM orders o ASOF LEFT JOIN (SELECT id, max(rate) AS rate FROM rates GROUP BY id) r ON o.id >= r.id", "1 1.00 0|2 1.00 1|3 2.50 2", "id rate __weir_row"},
		{"union all of the stream", "SELECT id FROM orders UNION ALL SELECT qty FROM orders WHERE qty > 5", "1 0|2 1|3 2|7 2", "id __weir_row"},
		{"clock", "SELECT id, now() AS a, current_date AS b, current_timestamp() AS c, localtimestamp AS d FROM orders WHERE id = 1", `1 "2026-04-13T10:30:00.123456Z" "2026-04-13" "2026-04-13T10:30:00.123456Z" "2026-04-13T10:30:00.123456" 0`, "id a b c d __weir_row"},
		{"backticks and quotes", "SELECT `id`, \"qty\" AS q FROM `orders` WHERE `qty` = 5", `1 "qty" 0`, "id q __weir_row"},
		{"lateral view", "SELECT id, item.sku AS sku FROM orders LATERAL VIEW explode(items) e AS item", `1 "a" 0|1 "b" 0|3 "c" 2`, "id sku __weir_row"},
		{"lateral view outer", "SELECT id, p, item.sku AS sku FROM orders LATERAL VIEW OUTER posexplode(items) e AS p, item", `1 0 "b" 0|1 1 "a" 0|2 null null 1|3 0 "c" 2`, "id p sku __weir_row"},
		{"explode in the select list", "SELECT id, posexplode(items) AS (p, item) FROM orders WHERE id = 3", `3 0 {"sku":"c","n":9} 2`, "id p item __weir_row"},
		{"aggregate of a table in a subquery", "SELECT id, (SELECT sum(rate) FROM rates) / 2 AS half FROM orders WHERE id = 1", "1 2.000000 0", "id half __weir_row"},
		{"aggregate over the list of one row", "SELECT id, aggregate(transform(items, x -> x.n), 0, (a, n) -> a + n) AS n FROM orders", "1 3 0|2 0 1|3 9 2", "id n __weir_row"},
		{"columns expression", "SELECT COLUMNS('i.*') FROM orders WHERE id = 3", `3 [{"sku":"c","n":9}] 2`, "id items __weir_row"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inputs := map[string]arrow.RecordBatch{"orders": orders, "wide": wide, "rates": rates}
			name := "orders"
			if strings.Contains(c.sql, "wide") {
				name = "wide"
			}
			schemas := map[string]*arrow.Schema{"orders": orders.Schema(), "wide": wide.Schema(), "rates": rates.Schema()}
			if name == "orders" {
				delete(inputs, "wide")
				delete(schemas, "wide")
			} else {
				delete(inputs, "orders")
				delete(schemas, "orders")
			}
			q := Query{Text: c.sql, Stream: name}
			schema, err := e.Describe(t.Context(), q, schemas)
			if err != nil {
				t.Fatal(err)
			}
			var cols []string
			for _, f := range schema.Fields() {
				cols = append(cols, f.Name)
			}
			if got := strings.Join(cols, " "); got != c.cols {
				t.Errorf("columns %s, want %s", got, c.cols)
			}
			rows, err := run(t, e, q, inputs)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(rows, "|"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// covers A127, A217
func TestWhatAStreamCannotDoIsRefusedByName(t *testing.T) {
	e := openEngine(t)
	schemas := map[string]*arrow.Schema{
		"orders": stream(t, table(t, "id INT, qty INT, tags ARRAY<INT>, a DECIMAL(10,2)", `[]`), "/f").Schema(),
		"rates":  schemaOf(t, "id INT, rate DECIMAL(10,2), localtime STRING"),
	}
	for _, c := range []struct{ sql, code, text string }{
		{"SELECT count(*) AS n FROM orders", "UNSUPPORTED_STREAMING_OPERATION", "aggregate count_star"},
		{"SELECT id, sum(qty) AS s FROM orders GROUP BY id", "UNSUPPORTED_STREAMING_OPERATION", "GROUP BY"},
		{"SELECT id FROM orders GROUP BY ALL", "UNSUPPORTED_STREAMING_OPERATION", "GROUP BY"},
		{"SELECT DISTINCT id FROM orders", "UNSUPPORTED_STREAMING_OPERATION", "DISTINCT"},
		{"SELECT id FROM orders ORDER BY id", "UNSUPPORTED_STREAMING_OPERATION", "ORDER BY"},
		{"SELECT id FROM orders LIMIT 3", "UNSUPPORTED_STREAMING_OPERATION", "LIMIT"},
		{"SELECT id, row_number() OVER () AS n FROM orders", "UNSUPPORTED_STREAMING_OPERATION", "window function"},
		{"SELECT id FROM orders QUALIFY row_number() OVER () = 1", "UNSUPPORTED_STREAMING_OPERATION", "QUALIFY"},
		{"SELECT id FROM orders UNION SELECT id FROM orders", "UNSUPPORTED_STREAMING_OPERATION", "UNION"},
		{"SELECT id FROM orders EXCEPT SELECT id FROM rates", "UNSUPPORTED_STREAMING_OPERATION", "EXCEPT"},
		{"SELECT id FROM orders UNION ALL SELECT id FROM rates", "UNSUPPORTED_STREAMING_OPERATION", "stream and a table"},
		{"SELECT a.id FROM orders a JOIN orders b USING (id)", "UNSUPPORTED_STREAMING_OPERATION", "join of the stream"},
		{"SELECT id FROM orders RIGHT JOIN rates USING (id)", "UNSUPPORTED_STREAMING_OPERATION", "RIGHT JOIN"},
		{"SELECT id FROM orders FULL JOIN rates USING (id)", "UNSUPPORTED_STREAMING_OPERATION", "FULL OUTER JOIN"},
		{"SELECT r.id FROM rates r LEFT JOIN orders o USING (id)", "UNSUPPORTED_STREAMING_OPERATION", "LEFT JOIN"},
		{"SELECT id FROM rates WHERE id IN (SELECT id FROM orders)", "UNSUPPORTED_STREAMING_OPERATION", "subquery over the stream"},
		{"SELECT id, random() AS r FROM orders", "UNSUPPORTED_STREAMING_OPERATION", "random"},
		{"SELECT id, uuid() AS r FROM orders", "UNSUPPORTED_STREAMING_OPERATION", "uuid"},
		{"SELECT id, gen_random_uuid() AS r FROM orders", "UNSUPPORTED_STREAMING_OPERATION", "gen_random_uuid"},
		{"SELECT id FROM orders TABLESAMPLE 10%", "UNSUPPORTED_STREAMING_OPERATION", "TABLESAMPLE"},
		{"SELECT id FROM rates", "STREAMING_TABLE_QUERY_INVALID", "orders"},
		{"SELECT * FROM read_csv('/etc/passwd')", "UNRESOLVABLE_TABLE_VALUED_FUNCTION", "read_csv"},
		{"SELECT * FROM '/etc/passwd'", "TABLE_OR_VIEW_NOT_FOUND", "/etc/passwd"},
		{"SELECT * FROM duckdb_settings()", "UNRESOLVABLE_TABLE_VALUED_FUNCTION", "duckdb_settings"},
		{"SELECT * FROM information_schema.tables", "TABLE_OR_VIEW_NOT_FOUND", "information_schema.tables"},
		{"SELECT getenv('HOME') AS h FROM orders", "UNRESOLVED_ROUTINE", "getenv"},
		{"SELECT current_setting('threads') AS h FROM orders", "NOT_SUPPORTED", "current_setting"},
		{"SELECT hash(id) AS h FROM orders", "NOT_SUPPORTED", "md5"},
		{"SELECT localtime AS x FROM orders JOIN rates USING (id)", "AMBIGUOUS_REFERENCE", "table.localtime"},
		{"SELECT id, __weir_row FROM orders", "RESERVED_COLUMN_NAME", "__weir_row"},
		{"SELECT id AS __weir_x FROM orders", "RESERVED_COLUMN_NAME", "__weir_x"},
		{"SELECT *, _metadata FROM orders", "RESERVED_COLUMN_NAME", "AS source_metadata"},
		{"SELECT id, id FROM orders", "COLUMN_ALREADY_EXISTS", "id"},
		{"SELECT nope FROM orders", "UNRESOLVED_COLUMN", "nope"},
		{"SELECT nosuch(id) AS x FROM orders", "UNRESOLVED_ROUTINE", "nosuch"},
		{"SELECT sum(id) / count(*) AS a FROM orders", "UNSUPPORTED_STREAMING_OPERATION", "the aggregate sum"},
		{"SELECT id, collect_list(qty) AS l FROM orders GROUP BY id", "UNSUPPORTED_STREAMING_OPERATION", "GROUP BY"},
		{"SELECT count_if(qty > 1) AS n FROM orders", "UNSUPPORTED_STREAMING_OPERATION", "the aggregate count_if"},
		{"SELECT r.id FROM rates r WHERE r.rate > (SELECT avg(qty) FROM orders)", "UNSUPPORTED_STREAMING_OPERATION", "the aggregate avg"},
		{"SELECT id, lag(qty) OVER (ORDER BY id) AS l FROM orders", "UNSUPPORTED_STREAMING_OPERATION", "window"},
		{"SELECT tags[1:2] AS x FROM orders", "NOT_SUPPORTED", "slice"},
		{"SELECT id:x AS x FROM orders", "NOT_SUPPORTED", "get_json_object"},
		{"SELECT id::HUGEINT AS x FROM orders", "UNSUPPORTED_DATATYPE", "DECIMAL(38,0)"},
		{"SELECT INTERVAL 1 DAY AS x FROM orders", "UNSUPPORTED_DATATYPE", "INTERVAL"},
		{"SELECT id + $1 AS x FROM orders", "NOT_SUPPORTED", "parameter"},
		{"SELECT id FROM orders; SELECT 1", "PARSE_SYNTAX_ERROR", "statements"},
		{"DROP TABLE orders", "NOT_SUPPORTED", "SELECT"},
		{"SELEC id FROM orders", "PARSE_SYNTAX_ERROR", "SELEC"},
		{"SELECT id FROM orders WHERE id = 'a", "PARSE_SYNTAX_ERROR", "quote"},
		{"PIVOT orders ON id USING sum(qty)", "NOT_SUPPORTED", ""},
		{"SELECT date_format(now(), 'QQQ') AS d FROM orders", "INVALID_DATETIME_PATTERN", "QQQ"},
		{"WITH RECURSIVE r AS (SELECT id FROM orders UNION ALL SELECT id + 1 FROM r) SELECT id FROM r", "UNSUPPORTED_STREAMING_OPERATION", "recursive"},
		{"SHOW TABLES", "NOT_SUPPORTED", ""},
	} {
		t.Run(c.sql, func(t *testing.T) {
			_, err := e.Describe(t.Context(), Query{Text: c.sql, Stream: "orders", File: "f.sql", Line: 10}, schemas)
			if fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want [%s] … %s", err, c.code, c.text)
			}
			if err != nil && !strings.Contains(err.Error(), "f.sql, line 10") && c.code != "UNSUPPORTED_DATATYPE" {
				t.Errorf("no place in %v", err)
			}
		})
	}
}

// A streaming query over the pieces of its input gives what it gives over the
// whole: that is what makes it one.
func TestPiecesGiveWhatTheWholeGives(t *testing.T) {
	e := openEngine(t)
	whole := table(t, "id INT, qty INT, tags ARRAY<STRING>", ordersJSON(200))
	rates := table(t, "id INT, rate DECIMAL(10,2)", `[{"id":3,"rate":"2.50"},{"id":7,"rate":"1.00"},{"id":7,"rate":"0.50"}]`)
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, text := range []string{
		"SELECT *, now() AS at FROM t WHERE qty % 3 <> 0",
		"SELECT id, unnest(tags) AS tag FROM t",
		"SELECT id, tag FROM t, UNNEST(tags) AS u(tag) WHERE tag <> 'a1'",
		"SELECT * FROM (SELECT id, qty::STRING AS q, len(tags)::STRING AS n FROM t) UNPIVOT (v FOR k IN (q, n))",
		"SELECT t.id, rate FROM t LEFT JOIN rates ON t.id % 10 = rates.id",
		"SELECT id FROM t ANTI JOIN rates USING (id)",
		"SELECT id FROM t WHERE id % 10 IN (SELECT id FROM rates) UNION ALL SELECT qty FROM t",
		"WITH c AS (SELECT id, qty FROM t WHERE qty > 3) SELECT id, qty * 2 AS d FROM c WHERE id > (SELECT min(id) FROM rates)",
	} {
		q := Query{Text: text, Stream: "t", Expectations: []string{"id % 2 = 0"}}
		if strings.Contains(text, "UNPIVOT") {
			q.Expectations[0] = "v <> '1'"
		}
		inputs := func(part arrow.RecordBatch) map[string]arrow.RecordBatch {
			return map[string]arrow.RecordBatch{"t": stream(t, part, ""), "rates": rates}
		}
		want, err := run(t, e, q, inputs(whole))
		if err != nil {
			t.Fatal(text, err)
		}
		for range 5 {
			var got []string
			for from := int64(0); from < whole.NumRows(); {
				to := min(whole.NumRows(), from+1+rnd.Int64N(80))
				part, err := run(t, e, q, inputs(whole.NewSlice(from, to)))
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, part...)
				from = to
			}
			if a, b := withoutRow(got), withoutRow(want); strings.Join(a, "\n") != strings.Join(b, "\n") {
				t.Fatalf("%s: %d rows in pieces, %d in one", text, len(a), len(b))
			}
		}
	}
}

func ordersJSON(n int) string {
	var rows []string
	for i := range n {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"qty":%d,"tags":["a%d","b%d"]}`, i, i*7%11, i%3, i%2))
	}
	return "[" + strings.Join(rows, ",") + "]"
}

// withoutRow takes __weir_row, last but for the mask, out of the rows' texts
// and sorts them.
func withoutRow(rows []string) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		f := strings.Fields(r)
		out[i] = strings.Join(append(f[:len(f)-2:len(f)-2], f[len(f)-1]), " ")
	}
	slices.Sort(out)
	return out
}

// Whatever the text, it is planned or refused with a name.
func FuzzDescribe(f *testing.F) {
	for _, s := range []string{
		"SELECT a, b.c[1] FROM t x JOIN r USING (a) WHERE a IN (SELECT a FROM r) OR now() > TIMESTAMP '2020-01-01'",
		"WITH c(q) AS (SELECT * EXCLUDE (b) FROM t) SELECT q, unnest([1, 2]) AS u FROM c UNION ALL SELECT a, 3 FROM t",
		"SELECT * FROM t UNPIVOT (v FOR n IN (a, d))", "SELECT COLUMNS('a|d') FROM t", "SELECT concat(s, 1), to_date(s, 'yyyy') AS d, a / 2e0 FROM t",
		"SELECT t.*, l.x FROM t, LATERAL (SELECT a + 1 AS x) l", "FROM t SELECT list_filter([1], lambda x: x > 0)[1]", "SELECT CAST(s AS STRUCT(a TIMESTAMP, b DECIMAL)) AS z FROM `t`",
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	e, err := Open(f.Context(), Options{Threads: 1, MemoryLimit: "200MB"})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = e.Close() })
	in := map[string]*arrow.Schema{
		"t": stream(f, table(f, "a INT, b STRUCT<c: ARRAY<INT>>, s STRING, d INT", "[]"), "/f").Schema(),
		"r": schemaOf(f, "a INT, rate DECIMAL(10,2)"),
	}
	f.Fuzz(func(t *testing.T, text string, streaming bool) {
		q := Query{Text: text, Expectations: []string{"true"}}
		if streaming {
			q.Stream = "t"
		}
		s, err := e.Describe(t.Context(), q, in)
		if code := fault.CodeOf(err); err != nil && (code == "" || code == "INTERNAL_ERROR") {
			t.Fatal(err)
		}
		if err == nil && streaming && (s.NumFields() < 2 || s.Field(s.NumFields()-2).Name != RowColumn) {
			t.Fatalf("no row column in %s", s)
		}
	})
}
