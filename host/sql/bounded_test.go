package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// doubled is a query that doubles a value level by level.
func doubled(start, twice string, levels int) string {
	text := "SELECT " + start + " AS x"
	for range levels {
		text = "SELECT " + twice + " AS x FROM (" + text + ")"
	}
	return text
}

// bombs are queries of one SELECT that would make values without end, or take time
// that nothing can cut short. t has a thousand rows: n INT, s STRING, l ARRAY<INT>.
var bombs = []string{
	"SELECT repeat('x', 2000000000)",
	"SELECT repeat('x', 16777216 - n) FROM t",
	"SELECT repeat(s, 100000000) FROM t",
	"SELECT repeat([1, 2, 3], 1000000000)",
	"SELECT length(repeat(repeat('x', 1000000), 1000000))",
	"SELECT CASE WHEN n < 0 THEN repeat('x', 2000000000) END FROM t WHERE repeat('x', 2000000000) > ''",
	"SELECT lpad(s, 2000000000, 'x') FROM t",
	"SELECT rpad('a', 2000000000, 'x')",
	"SELECT bitstring('01', 2147483647)::VARCHAR",
	"SELECT range(4000000000)",
	"SELECT len(range(0, 4000000000))",
	"SELECT sequence(1, 4000000000)",
	"SELECT range(4000000000, 0, -1)",
	"SELECT generate_series(TIMESTAMP '1900-01-01', TIMESTAMP '2100-01-01', INTERVAL 1 second)",
	"SELECT generate_series(DATE '0001-01-01', DATE '9999-01-01', INTERVAL 1 minute)",
	"SELECT list_resize([1], 4000000000)",
	"SELECT array_resize([1], 400000000, 7)",
	"SELECT list_transform(range(1000000), lambda x: range(1000000))",
	"SELECT [repeat('x', 1000000) FOR x IN range(1000000)]",
	"SELECT list_transform(a, lambda x: a) FROM (SELECT range(200000) AS a)",
	"SELECT list_transform(a, lambda x: list_transform(a, lambda y: x + y)) FROM (SELECT range(100000) AS a)",
	"SELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000))",
	"SELECT damerau_levenshtein(repeat('a', 100000), repeat('b', 100000))",
	"SELECT jaro_winkler_similarity(repeat('a', 1000000), repeat('b', 1000000))",
	"SELECT repeat('a', 100000) LIKE '%a%a%a%a%a%a_b'",
	"SELECT repeat('a', 100000) ILIKE '%a%a%a%a%a%ab'",
	"SELECT repeat('a', 100000) GLOB '*a*a*a*a*a*b'",
	"SELECT repeat('a', 100000) LIKE repeat('%a', n) FROM t",
	"SELECT replace(repeat('a', 1000000), 'a', repeat('b', 1000000))",
	"SELECT regexp_replace(repeat('a', 1000000), 'a', repeat('b', 1000000), 'g')",
	"SELECT format('{:>2000000000}', 'x')",
	"SELECT format('{:{}}', 'x', 2000000000)",
	"SELECT format(s, n) FROM t",
	"SELECT printf('%2000000000d', 1)",
	"SELECT printf('%*d', 2000000000, 1)",
	"SELECT json_extract(repeat('[', 10) || repeat(']', 10), '$..*')",
	strings.Replace(doubled("s", "x || x", 60), "s AS x", "s AS x FROM t", 1),
	doubled("'x'", "concat(x, x)", 60),
	doubled("'x'", "concat_ws('', x, x)", 60),
	doubled("1", "[x, x]", 60),
	doubled("1", "{'a': x, 'b': x}", 60),
	doubled("'x'", "to_json({'a': x, 'b': x})", 60),
	doubled("'x'", "replace(x, 'x', 'xxxxxxxxxxxxxxxx')", 60),
	doubled("'x'", "hex(x)", 60),
	doubled("[1]", "x || x", 60),
	"WITH a AS (SELECT s || s || s || s AS x FROM t), b AS (SELECT a.x || b.x || a.x || b.x AS x FROM a, a AS b), c AS (SELECT x||x||x||x||x||x||x||x||x||x AS x FROM b), " +
		"d AS (SELECT x||x||x||x||x||x||x||x||x||x AS x FROM c), e AS (SELECT x||x||x||x||x||x||x||x||x||x AS x FROM d), f AS (SELECT x||x||x||x||x||x||x||x||x||x AS x FROM e), " +
		"g AS (SELECT x||x||x||x||x||x||x||x||x||x AS x FROM f) SELECT max(x) FROM g",
	"WITH RECURSIVE r(x, n) AS (SELECT 'x', 1 UNION ALL SELECT x || x, n + 1 FROM r WHERE n < 60) SELECT max(length(x)) FROM r",
	"WITH RECURSIVE r AS (SELECT 'x' AS x, 'y' AS y, 1 AS n UNION ALL SELECT x || y, y || x, n + 1 FROM r WHERE n < 90) SELECT max(length(x)) FROM r",
	"WITH RECURSIVE r AS (SELECT [1] AS x, 1 AS n UNION ALL SELECT list_concat(x, x), n + 1 FROM r WHERE n < 60) SELECT max(len(x)) FROM r",
	"SELECT list_reduce(list_transform(range(60), lambda x: 'x'), lambda a, b: a || a, 'y')",
	"SELECT list_reduce(list_transform(range(60), lambda x: 'x'), lambda a, b: a || b || a)",
}

func bombTable(t testing.TB) arrow.RecordBatch {
	rows := make([]string, 1000)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"n":%d,"s":"text %d","l":[1,2,%d]}`, i, i, i)
	}
	return table(t, "n INT, s STRING, l ARRAY<INT>", "["+strings.Join(rows, ",")+"]")
}

// A scalar function makes its values before DuckDB's memory limit or an interrupt could
// see it: what the operator writes ends by name, too.
func TestNoFunctionMakesMuchOfLittle(t *testing.T) {
	e := openEngine(t)
	rows := bombTable(t)
	defer rows.Release()
	for _, text := range bombs {
		got, err := run(t, e, Query{Text: text}, map[string]arrow.RecordBatch{"t": rows})
		if code := fault.CodeOf(err); code != limitCode && code != "NOT_SUPPORTED" {
			t.Errorf("%.200s: %d rows, %v", text, len(got), err)
		}
	}
}

// covers A105
func TestBoundedFunctionsGiveWhatTheyGave(t *testing.T) {
	e := openEngine(t)
	rows := table(t, "n INT, s STRING, l ARRAY<INT>", `[{"n":2,"s":"a_b%c","l":[1,2,null]},{"n":null,"s":null,"l":null},{"n":-1,"s":"","l":[]}]`)
	defer rows.Release()
	for _, c := range [][2]string{
		{"repeat(s, n)", `"a_b%ca_b%c"|null|""`},
		{"repeat(l, 2)", "[1,2,null,1,2,null]|null|[]"},
		{"lpad(s, 7, 'xy')", `"xya_b%c"|null|"xyxyxyx"`},
		{"rpad(s, n, 'x')", `"a_"|null|""`},
		{"range(n)", "[0,1]|null|[]"},
		{"range(1, n)", "[1]|null|[]"},
		{"generate_series(4, n, -1)", "[4,3,2]|null|[4,3,2,1,0,-1]"},
		{"len(generate_series(DATE '2020-01-01', DATE '2020-03-01', INTERVAL 1 month))", "3|3|3"},
		{"len(generate_series(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02', INTERVAL 1 hour))", "25|25|25"},
		{"list_resize(l, 4, 9)", "[1,2,null,9]|null|[9,9,9,9]"},
		{"levenshtein(s, 'abc')", "2|null|3"},
		{"s LIKE '%a%_b%'", "true|null|false"},
		{"s LIKE '%a%_%c'", "true|null|false"},
		{"s ILIKE '%A%B%C'", "true|null|false"},
		{"s LIKE s", "true|null|true"},
		{"replace(s, '_', 'a text of more than sixteen bytes')", `"aa text of more than sixteen bytesb%c"|null|""`},
		{"regexp_replace(s, '[_%]', s)", `"aa_b%cba_b%cc"|null|""`},
		{"list_transform(l, lambda x: x + n)", "[3,4,null]|null|[]"},
		{"list_transform(l, lambda x: list_transform(l, lambda y: x * y))", "[[1,2,null],[2,4,null],[null,null,null]]|null|[]"},
		{"[lpad('1', 3, '0') FOR x IN l]", `["001","001","001"]|null|[]`},
		{"list_reduce(l, lambda a, b: a + b + n, 1)", "null|null|1"},
		{"list_reduce(['a', 'b'], lambda a, b: a || b || a)", `"aba"|"aba"|"aba"`},
		{"s || s || n", `"a_b%ca_b%c2"|null|"-1"`},
		{"format('{:>5}|{}', n, s)", `"    2|a_b%c"|null|"   -1|"`},
	} {
		got, err := run(t, e, Query{Text: "SELECT " + c[0] + " AS x FROM t"}, map[string]arrow.RecordBatch{"t": rows})
		if err != nil || strings.Join(got, "|") != c[1] {
			t.Errorf("%s: %s %v, want %s", c[0], strings.Join(got, "|"), err, c[1])
		}
	}
	// Guards do not show in the names of columns.
	schema, err := e.Describe(t.Context(), Query{Text: "SELECT repeat(s, n), list_transform(l, lambda x: x + n) FROM t"}, map[string]*arrow.Schema{"t": rows.Schema()})
	if err != nil || strings.Contains(schema.String(), reservedPrefix) {
		t.Errorf("%v %v", schema, err)
	}
	for _, text := range []string{"SELECT repeat('a', 1.5)", "SELECT range(true, [1], 2)"} {
		if _, err := e.Describe(t.Context(), Query{Text: text}, nil); fault.CodeOf(err) != "DATATYPE_MISMATCH" {
			t.Errorf("%s: %v", text, err)
		}
	}
	const paths = "WITH RECURSIVE r(name, path, depth) AS (SELECT 'a', 'a', 1 UNION ALL SELECT name || depth, path || '/' || name || depth, depth + 1 FROM r WHERE depth < 3) SELECT path FROM r ORDER BY depth"
	if got, err := run(t, e, Query{Text: paths}, nil); err != nil || strings.Join(got, " ") != `"a" "a/a1" "a/a1/a12"` {
		t.Errorf("paths: %v %v", got, err)
	}
}
