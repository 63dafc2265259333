package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// The tree is printed and parsed again before it runs: nothing may change on
// the way.
func TestRewritingKeepsTheMeaning(t *testing.T) {
	e := openEngine(t)
	for _, text := range []string{
		"SELECT 2e0, 1e300 * 1e10, 0.1e0 + 0.2e0, 1.5, 123456789012345678901234567890, -5, 1e-320, 0x1F, 1_000",
		`SELECT 'it''s', 'ünïcödé ☃', ''`,
		`SELECT DATE '2024-02-29', TIMESTAMP_S '2024-01-01 00:00:00', TIME '10:11:12.5'`,
		"SELECT TIMESTAMP_S '2024-01-31 00:00:00' + INTERVAL 1 MONTH, TIMESTAMP_S '2024-01-31 00:00:00' + INTERVAL '2 days', INTERVAL (3) HOUR + TIMESTAMP_S '2024-01-01 00:00:00'",
		"SELECT a, sum(a) OVER (PARTITION BY a % 2 ORDER BY a DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) AS s, lag(a, 1, 0) OVER (ORDER BY a), first_value(a IGNORE NULLS) OVER w FROM (VALUES (1), (2), (3)) v(a) WINDOW w AS (ORDER BY a RANGE UNBOUNDED PRECEDING) ORDER BY a",
		"SELECT a % 2 AS g, count(*) FILTER (WHERE a > 1), list(a ORDER BY a DESC NULLS LAST), count(DISTINCT a), string_agg(a::VARCHAR, '-' ORDER BY a) FROM (VALUES (1), (2), (3), (NULL)) v(a) GROUP BY ROLLUP (a % 2) HAVING count(*) > 0 ORDER BY 1 NULLS FIRST, 2",
		"SELECT CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' ELSE NULL END, CASE WHEN a > 1 THEN 1 END, a BETWEEN 1 AND 2, a NOT IN (1, 2), a IS NOT DISTINCT FROM NULL, NOT (a = 1 OR a = 2 AND a <> 3) FROM (VALUES (1), (2), (NULL)) v(a) ORDER BY a",
		"SELECT {'a': 1, 'b': [1, 2, {'c': 3}.c]}.b, MAP {'k': 1}['k'], [x + 1 FOR x IN [1, 2, 3] IF x > 1], list_transform([1, 2], lambda x, i: x * i), row(1, 2) = (1, 2), [1] || [2]",
		"SELECT 'abc' LIKE 'a%', 'abc' NOT ILIKE 'A_', 'a%c' LIKE 'a!%c' ESCAPE '!', 'abc' GLOB 'a*', 'abc' COLLATE NOCASE = 'ABC'",
		"SELECT 7 // 2, -7 // 2, 7 % 3, 2 ** 10, ~5, 5 & 3, 5 | 3, 1 << 4, @(-3), - -3, 10 / 4",
		"SELECT cast('1' AS INT), try_cast('x' AS INT), '5'::DECIMAL(5,1), CAST([1] AS VARCHAR[]), CAST({'a': 1} AS STRUCT(a BIGINT)), '1'::UTINYINT, true::INT, TRY(CAST('x' AS INT))",
		"SELECT * EXCLUDE (b) REPLACE (a * 10 AS a) FROM (SELECT 1 AS a, 2 AS b, 3 AS c)",
		"SELECT t.* RENAME (a AS z), COLUMNS('[ab]') FROM (SELECT 1 AS a, 2 AS b) t",
		"SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v(id, name) NATURAL JOIN (VALUES (1, 10)) AS w(id, n)",
		"SELECT * FROM range(5) a(x) LEFT JOIN range(3) b(y) ON x = y ANTI JOIN range(1) c(z) ON x = z POSITIONAL JOIN range(2) d(w) ORDER BY ALL",
		"SELECT x, y FROM range(3) a(x), LATERAL (SELECT x * 2 AS y) ORDER BY x",
		"SELECT * FROM range(3) UNION ALL SELECT 7 EXCEPT SELECT 1 INTERSECT SELECT 1 ORDER BY 1 DESC LIMIT 3 OFFSET 1",
		"SELECT 1 AS a, 2 AS b UNION ALL BY NAME SELECT 3 AS b, 4 AS a ORDER BY ALL",
		"WITH a(x) AS MATERIALIZED (SELECT 1), b AS NOT MATERIALIZED (SELECT x + 1 AS x FROM a) SELECT * FROM a, b",
		"WITH RECURSIVE f(n, v) AS (SELECT 1, 1 UNION ALL SELECT n + 1, v * (n + 1) FROM f WHERE n < 10) SELECT max(v) FROM f",
		"SELECT DISTINCT ON (x % 2) x FROM range(5) t(x) ORDER BY x % 2, x DESC",
		"SELECT (SELECT max(x) FROM range(3) t(x)), EXISTS (SELECT 1 WHERE false), 2 = ANY (SELECT x FROM range(3) t(x)), 2 > ALL (SELECT 1), 3 NOT IN (SELECT x FROM range(3) t(x))",
		"SELECT unnest([1, 2]) AS a, unnest({'p': 1, 'q': 2}), generate_subscripts FROM (SELECT 1 AS generate_subscripts)",
		"SELECT * FROM (SELECT 1 AS id, 'x' AS jan, 'y' AS feb) UNPIVOT INCLUDE NULLS (v FOR m IN (jan, feb)) ORDER BY m",
		"SELECT x FROM range(10) t(x) QUALIFY row_number() OVER (ORDER BY x DESC) <= 2 ORDER BY x",
		"SELECT extract(year FROM DATE '2024-02-29'), date_part('month', DATE '2024-02-29'), trim(BOTH 'x' FROM 'xax'), substring('abcdef' FROM 2 FOR 3), position('c' IN 'abc'), overlay_ FROM (SELECT 1 AS overlay_)",
		"SELECT json_extract('{\"a\": [1, 2]}', '$.a[1]'), '{\"a\": 1}'::JSON -> 'a', '{\"a\": 1}'->>'a', coalesce(NULL, 1), nullif(1, 1), ifnull(NULL, 2), greatest(1, 3, 2)",
	} {
		t.Run(text, func(t *testing.T) {
			want, werr := raw(t, e, text)
			got, err := run(t, e, Query{Text: text}, nil)
			if err != nil || werr != nil {
				t.Fatalf("rewritten: %v, as it is: %v", err, werr)
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("rewritten:\n%s\nas it is:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// raw runs a text as it is.
func raw(t *testing.T, e *Engine, text string) ([]string, error) {
	t.Helper()
	c, err := e.db.connect()
	if err != nil {
		t.Fatal(err)
	}
	bound, err := c.prepare(text, true)
	if err != nil {
		c.release()
		return nil, err
	}
	var fields []arrow.Field
	var items, aliases []string
	for i, o := range bound.types {
		if o.refused != "" {
			t.Fatalf("column %d: %s", i, o.refused)
		}
		fields = append(fields, arrow.Field{Name: bound.names[i], Type: o.arrow, Nullable: true})
		aliases = append(aliases, fmt.Sprintf("c%d", i))
		items = append(items, fmt.Sprintf("CAST(c%d AS %s)", i, o.sql))
	}
	bound.close()
	c.release()
	p := &plan{schema: arrow.NewSchema(fields, nil), text: "SELECT " + strings.Join(items, ", ") + " FROM (" + text + ") AS r(" + strings.Join(aliases, ", ") + ")"}
	out, err := e.start(t.Context(), p, batchTime, nil)
	if err != nil {
		return nil, err
	}
	defer out.Release()
	var rows []string
	for out.Next() {
		for i := range int(out.RecordBatch().NumRows()) {
			rows = append(rows, rowText(out.RecordBatch(), i))
		}
	}
	return rows, out.Err()
}
