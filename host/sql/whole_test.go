package sql

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// Every value below is what Spark 4 gives with ANSI mode on.
func TestCastToAnIntegerCutsOffAndDoesNotRound(t *testing.T) {
	e := openEngine(t)
	in := map[string]arrow.RecordBatch{"t": table(t, "d DOUBLE, f FLOAT, c DECIMAL(10,2), w DECIMAL(38,10), s STRING, i INT, b BOOLEAN, n DOUBLE, l ARRAY<DOUBLE>, k ARRAY<INT>, u ARRAY<STRING>, day DATE",
		`[{"d":2.9,"f":-1.5,"c":"-0.99","w":"1234567890123456789012345678.9999999999","s":" +12 ","i":7,"b":true,"n":null,"l":[1.9],"k":[1],"u":["1.9"],"day":"2026-04-13"}]`)}
	for _, c := range []struct{ expr, want, code string }{
		{expr: "CAST(d AS INT)", want: "2"},
		{expr: "CAST(-d AS INT)", want: "-2"},
		{expr: "CAST(d + 0.05e0 AS BIGINT)", want: "2"},
		{expr: "d::SMALLINT", want: "2"},
		{expr: "TRY_CAST(d AS TINYINT)", want: "2"},
		{expr: "TRY_CAST(d * 1e9 AS INT)", want: "null"},
		{expr: "CAST(d * 1e9 AS INT)", code: "CAST_INVALID_INPUT"},
		{expr: "CAST(f AS INT)", want: "-1"},
		{expr: "CAST(c AS INT)", want: "0"},
		{expr: "CAST(c * 100 AS BIGINT)", want: "-99"},
		{expr: "TRY_CAST(c AS LONG)", want: "0"},
		{expr: "CAST(CAST(w AS HUGEINT) AS STRING)", want: `"1234567890123456789012345678"`},
		{expr: "TRY_CAST(w AS BIGINT)", want: "null"},
		{expr: "CAST(n AS INT)", want: "null"},
		{expr: "CAST(NULL AS INT)", want: "null"},
		{expr: "CAST(1.5 AS INT)", want: "1"},
		{expr: "CAST(2.5e0 AS INT)", want: "2"},
		{expr: "CAST(-1.5 AS BIGINT)", want: "-1"},
		{expr: "CAST(s AS INT)", want: "12"},
		{expr: "CAST('1.9' AS INT)", code: "CAST_INVALID_INPUT"},
		{expr: "CAST(s || '.9' AS INT)", code: "CAST_INVALID_INPUT"},
		{expr: "TRY_CAST('1.9' AS INT)", want: "null"},
		{expr: "TRY_CAST('1e3' AS INT)", want: "null"},
		{expr: "TRY_CAST('1_000' AS INT)", want: "null"},
		{expr: "TRY_CAST('0x1f' AS INT)", want: "null"},
		{expr: "TRY_CAST(trim(s) || 'e1' AS INT)", want: "null"},
		{expr: "TRY_CAST('2147483648' AS INT)", want: "null"},
		{expr: "CAST('-2147483648' AS INT)", want: "-2147483648"},
		{expr: "CAST(CAST('1.9' AS DOUBLE) AS INT)", want: "1"},
		{expr: "CAST(CAST('1.9' AS DECIMAL(10,2)) AS INT)", want: "1"},
		{expr: "CAST(CAST(d AS INT) + 0.5 AS INT)", want: "2"},
		{expr: "CAST(i AS BIGINT)", want: "7"},
		{expr: "CAST(b AS INT)", want: "1"},
		{expr: "CAST(year(day) AS SMALLINT)", want: "2026"},
		{expr: "CAST('{\"a\": 5}'::JSON -> 'a' AS INT)", want: "5"},
		{expr: "TRY_CAST('{\"a\": 5.5}'::JSON -> 'a' AS INT)", want: "null"},
		{expr: "CAST(k AS BIGINT[])", want: "[1]"},
		{expr: "CAST(l AS INT[])", want: "[1]"},
		{expr: "TRY_CAST(u AS INT[])", want: "[null]"},
		{expr: "CAST({'a': 1.5} AS STRUCT(a INT))", want: `{"a":1}`},
		{expr: "CAST(MAP {1.5: 1} AS MAP(INT, INT))", want: `[{"key":1,"value":1}]`},
		{expr: "date_add(day, 1.9)", code: "DATATYPE_MISMATCH"},
		{expr: "date_sub(day, d)", code: "DATATYPE_MISMATCH"},
		{expr: "add_months(day, c)", code: "DATATYPE_MISMATCH"},
		{expr: "from_unixtime(d)", code: "DATATYPE_MISMATCH"},
		{expr: "date_add(day, CAST(1.9 AS INT))", want: `"2026-04-14"`},
		{expr: "date_add(day, i)", want: `"2026-04-20"`},
		{expr: "list_transform(l, lambda v: CAST(v AS INT))", want: "[1]"},
	} {
		t.Run(c.expr, func(t *testing.T) {
			rows, err := run(t, e, Query{Text: "SELECT " + c.expr + " AS v FROM t"}, in)
			if fault.CodeOf(err) != c.code {
				t.Fatal(err)
			}
			if got := strings.Join(rows, "|"); err == nil && got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestColumnsOfCastsKeepTheirNames(t *testing.T) {
	e := openEngine(t)
	s, err := e.Describe(t.Context(), Query{Text: "SELECT CAST(d AS INT), d::BIGINT, CAST(d AS INT) AS v FROM t"}, map[string]*arrow.Schema{"t": schemaOf(t, "d DOUBLE")})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{s.Field(0).Name, s.Field(1).Name, s.Field(2).Name}
	if want := "CAST(d AS INTEGER)|CAST(d AS BIGINT)|v"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", strings.Join(got, "|"), want)
	}
}

func TestCastsAreTheSameInGroupByAndCondition(t *testing.T) {
	e := openEngine(t)
	in := map[string]arrow.RecordBatch{"t": table(t, "d DOUBLE", `[{"d":1.2},{"d":1.9},{"d":2.1}]`)}
	rows, err := run(t, e, Query{Text: "SELECT CAST(d AS INT) AS i, count(*) AS n FROM t GROUP BY CAST(d AS INT) ORDER BY 1"}, in)
	if got := strings.Join(rows, "|"); err != nil || got != "1 2|2 1" {
		t.Errorf("got %s (%v)", got, err)
	}
	rows, err = run(t, e, Query{Text: "SELECT d FROM t WHERE CAST(d AS INT) = 1", Expectations: []string{"CAST(d AS INT) = d::INT"}}, in)
	if err != nil || len(rows) != 2 {
		t.Errorf("got %v (%v)", rows, err)
	}
}

func TestNestedCastsAndDivisionsStayBounded(t *testing.T) {
	e := openEngine(t)
	schemas := map[string]*arrow.Schema{"t": schemaOf(t, "d DOUBLE")}
	for _, text := range []string{
		"SELECT " + strings.Repeat("CAST(concat(", 300) + "d" + strings.Repeat(", 'x') AS DOUBLE)", 300) + " AS v FROM t",
		"SELECT " + strings.Repeat("CAST(sqrt(", 30) + "d" + strings.Repeat(") AS STRING)", 30) + " AS v FROM t",
		"SELECT d" + strings.Repeat(" / abs(d)", 30) + " AS v FROM t",
	} {
		_, err := e.Describe(t.Context(), Query{Text: text}, schemas)
		if fault.CodeOf(err) != "NOT_SUPPORTED" {
			t.Errorf("%.60s…: %v", text, err)
		}
	}
	_, err := e.Describe(t.Context(), Query{Text: "SELECT CAST(abs(CAST(abs(d / 2 / 3) AS INT)) AS BIGINT) AS v FROM t"}, schemas)
	if err != nil {
		t.Error(err)
	}
}

func TestStarsLeaveColumnsOutWithExcept(t *testing.T) {
	e := openEngine(t)
	in := map[string]arrow.RecordBatch{
		"t": stream(t, table(t, "a INT, b INT, c INT", `[{"a":1,"b":2,"c":3}]`), "f.json"),
		"u": table(t, "a INT, d INT", `[{"a":1,"d":4}]`),
	}
	for _, c := range []struct{ text, want, code string }{
		{text: "SELECT * EXCEPT (a, b) FROM t", want: "3 0"},
		{text: "SELECT * except(`b`) FROM t", want: "1 3 0"},
		{text: "SELECT t.* EXCEPT (a), u.* EXCEPT (a) FROM t JOIN u ON t.a = u.a", want: "2 3 4 0"},
		{text: "SELECT * EXCEPT (a) REPLACE (b * 10 AS b) FROM t", want: "20 3 0"},
		{text: "SELECT * REPLACE (b * 10 AS b) FROM t", want: "1 20 3 0"},
		{text: "SELECT * EXCEPT (nix) FROM t", code: "INVALID_QUERY"},
		{text: "SELECT * FROM t WHERE a IN (SELECT a * 1 FROM u EXCEPT (SELECT 2))", want: "1 2 3 0"},
		{text: "SELECT * FROM t WHERE a IN (SELECT a FROM u EXCEPT SELECT 1)", want: ""},
	} {
		t.Run(c.text, func(t *testing.T) {
			rows, err := run(t, e, Query{Text: c.text, Stream: "t"}, in)
			if fault.CodeOf(err) != c.code {
				t.Fatal(err)
			}
			if got := strings.Join(rows, "|"); err == nil && got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
