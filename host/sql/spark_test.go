package sql

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/fault"
)

// Every value below is what Spark 4 gives with ANSI mode on.
func TestSparkFunctionsMeanWhatTheyMeanInSpark(t *testing.T) {
	e := openEngine(t)
	one := map[string]arrow.RecordBatch{"t": table(t, "s STRING, j STRING, d DATE, n INT, l ARRAY<INT>, x DOUBLE",
		`[{"s":"a1b22","j":"{\"a\":{\"b\":[1,\"two\"]}}","d":"2024-02-29","n":null,"l":[3,1,2],"x":2.718281828459045}]`)}
	for _, c := range []struct{ expr, want string }{
		{"nvl(n, 7)", "7"},
		{"nvl2(n, 1, 2)", "2"},
		{"isnull(n)", "true"},
		{"ifnull(n, 3)", "3"},
		{"if(n IS NULL, 'y', 'n')", `"y"`},
		{"concat(s, '-', n)", "null"},
		{"concat(s, '-', 5)", `"a1b22-5"`},
		{"concat_ws('-', s, n, 'z')", `"a1b22-z"`},
		{"split(s, '[0-9]+')", `["a","b",""]`},
		{"regexp_replace(s, '[0-9]', '#')", `"a#b##"`},
		{"regexp_replace(s, '([a-z])', '<$1>')", `"<a>1<b>22"`},
		{"regexp_extract(s, '([a-z])([0-9]+)$')", `"b"`},
		{"regexp_extract(s, '([a-z])([0-9]+)$', 2)", `"22"`},
		{"rlike(s, 'b2')", "true"},
		{"startswith(s, 'a1')", "true"},
		{"locate('b', s)", "3"},
		{"log(x)", "1"},
		{"get_json_object(j, '$.a.b[1]')", `"two"`},
		{"get_json_object(j, '$.a')", `"{\"b\":[1,\"two\"]}"`},
		{"get_json_object('not json', '$.a')", "null"},
		{"size(l)", "3"},
		{"array_join(array_sort(l), ',')", `"1,2,3"`},
		{"sequence(1, 3)", "[1,2,3]"},
		{"dayofweek(d)", "5"},
		{"weekday(d)", "3"},
		{"date_add(d, 1)", `"2024-03-01"`},
		{"date_sub(d, 29)", `"2024-01-31"`},
		{"datediff(DATE '2024-03-02', d)", "2"},
		{"add_months(d, 12)", `"2025-02-28"`},
		{"to_date('13.04.2026', 'dd.MM.yyyy')", `"2026-04-13"`},
		{"to_date('20260413', 'yyyyMMdd')", `"2026-04-13"`},
		{"to_date('13 April 2026', 'd MMMM yyyy')", `"2026-04-13"`},
		{"to_date('2026-04-13')", `"2026-04-13"`},
		{"to_timestamp('2026-04-13 01:02:03')", `"2026-04-13T01:02:03Z"`},
		{"to_timestamp('13/04/2026 1:02 PM', 'dd/MM/yyyy h:mm a')", `"2026-04-13T13:02:00Z"`},
		{"try_to_timestamp('nonsense', 'yyyy')", "null"},
		{"date_format(d, 'yyyy/MM/dd')", `"2024/02/29"`},
		{"date_format(to_timestamp('2026-04-13 01:02:03'), \"yyyy-MM-dd'T'HH:mm:ss\")", `"2026-04-13T01:02:03"`},
		{"date_format(to_timestamp('2026-04-13 01:02:03'), 'yyyy-MM-dd''T''HH:mm:ss')", `"2026-04-13T01:02:03"`},
		{"from_unixtime(0)", `"1970-01-01 00:00:00"`},
		{"from_unixtime(86400, 'yyyy-MM-dd')", `"1970-01-02"`},
		{"unix_timestamp(TIMESTAMP '1970-01-02 00:00:00')", "86400"},
		{"unix_timestamp('1970-01-02', 'yyyy-MM-dd')", "86400"},
		{"timestamp_millis(1500)", `"1970-01-01T00:00:01.5Z"`},
		{"unix_timestamp()", "1776076200"},
		{"string(5)", `"5"`},
		{"CAST('7' AS STRING)", `"7"`},
		{"CAST('7.5' AS DECIMAL(18,2))", "7.50"},
		{"CAST('7.6' AS DECIMAL)", "8"},
		{"'7.6'::decimal", "8"},
		{"CAST('7' AS LONG)", "7"},
		{"CAST('7' AS BYTE)", "7"},
		{"sha256('a')", `"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"`},
		{"explode(l)", "3|1|2"},
		{"10 / 4", "2.5"},
	} {
		t.Run(c.expr, func(t *testing.T) {
			rows, err := run(t, e, Query{Text: "SELECT " + c.expr + " AS v FROM t"}, one)
			got := strings.Join(rows, "|")
			if err != nil {
				got = "error"
			}
			if got != c.want {
				t.Errorf("got %s (%v), want %s", got, err, c.want)
			}
		})
	}
}

func TestTypesHaveSparksMeaning(t *testing.T) {
	e := openEngine(t)
	for _, c := range []struct{ expr, want string }{
		{"CAST('2026-04-13 00:00:00' AS TIMESTAMP)", "timestamp"},
		{"CAST('2026-04-13 00:00:00' AS TIMESTAMP_NTZ)", "timestamp_ntz"},
		{"CAST('2026-04-13 00:00:00' AS TIMESTAMP_LTZ)", "timestamp"},
		{"TIMESTAMP '2026-04-13 00:00:00'", "timestamp"},
		{"CAST([{'a': '2026-04-13'}] AS STRUCT(a TIMESTAMP)[])", "array<struct<a:timestamp>>"},
		{"current_timestamp", "timestamp"},
		{"current_date", "date"},
		{"CAST(1 AS SHORT)", "smallint"},
		{"CAST(1 AS DECIMAL)", "decimal(10,0)"},
		{"CAST('x' AS BINARY)", "binary"},
		{"'{\"a\":1}'::JSON", "string"},
		{"'c0ffee00-0000-4000-8000-000000000000'::UUID", "string"},
		{"[1, 2]::INTEGER[2]", "array<int>"},
		{"MAP {'a': 1}", "map<string,int>"},
		{"{'a': 1, 'b c': [1.5]}", "struct<a:int,`b c`:array<decimal(2,1)>>"},
		{"sum(x)", "bigint"},
		{"1.5 * 2.25", "decimal(6,3)"},
		{"date_trunc('month', current_timestamp)", "timestamp"},
	} {
		t.Run(c.expr, func(t *testing.T) {
			s, err := e.Describe(t.Context(), Query{Text: "SELECT " + c.expr + " AS v FROM t"}, map[string]*arrow.Schema{"t": schemaOf(t, "x BIGINT")})
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := coltype.Name(s.Field(0).Type); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// DuckDB divides decimals as DOUBLE; Spark divides exactly and rounds half away from zero.
func TestDecimalsAreExactOrRefused(t *testing.T) {
	e := openEngine(t)
	in := map[string]arrow.RecordBatch{"t": table(t, "a DECIMAL(18,2), r DECIMAL(18,6), n BIGINT", `[
		{"a":"1234567890123456.78","r":"161.342500","n":9223372036854775807},{"a":"0.05","r":"0.800000","n":-9223372036854775807}]`)}
	for _, c := range []struct{ sql, want, code string }{
		{sql: "SELECT a / r AS x FROM t", want: "7651845546731.0645366224026527|0.0625000000000000"},
		{sql: "SELECT a / n AS x FROM t", want: "0.0001338521188552697374|-0.0000000000000000000054"},
		{sql: "SELECT a / 3 AS x FROM t", want: "411522630041152.260000|0.016667"},
		{sql: "SELECT sum(a) / count(*) AS x FROM t", want: "617283945061728.415000000000"},
		{sql: "SELECT a / (r - r) AS x FROM t", code: "DIVIDE_BY_ZERO"},
		{sql: "SELECT n / 0 AS x FROM t", code: "DIVIDE_BY_ZERO"},
		{sql: "SELECT NULL / 0 AS x FROM t LIMIT 1", want: "null"},
		{sql: "SELECT (SELECT sum(a) FROM t) / count(*) AS x FROM t", want: "617283945061728.415000000000"},
		{sql: "SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM t) = 4 AS x FROM t LIMIT 1", want: "true"},
		{sql: "SELECT CAST(a AS DOUBLE) / 4 AS x FROM t WHERE a < 1", want: "0.0125"},
		{sql: "SELECT n / 2e0 AS x FROM t WHERE n < 0", want: "-4611686018427388000"},
		{sql: "SELECT sum(n) AS x, max(n) + 0 AS y FROM t", want: "0 9223372036854775807"},
		{sql: "SELECT sum(n) AS x FROM t WHERE n > 0", want: "9223372036854775807"},
		{sql: "SELECT (n::HUGEINT * n::HUGEINT)::VARCHAR AS x FROM t WHERE n > 0", want: `"85070591730234615847396907784232501249"`},
		// Half away from zero, as the currency conversion does it.
		{sql: `SELECT CAST(q AS DECIMAL(18,2)) / 100e0 AS x FROM (SELECT ((CAST(a * 100 AS HUGEINT) * 1000000 * 2 + CAST(r * 1000000 AS HUGEINT)) // (2 * CAST(r * 1000000 AS HUGEINT)))::BIGINT AS q FROM t WHERE a < 1)`, want: "0.06"},
	} {
		t.Run(c.sql, func(t *testing.T) {
			rows, err := run(t, e, Query{Text: c.sql}, in)
			if fault.CodeOf(err) != c.code {
				t.Fatal(err)
			}
			if got := strings.Join(rows, "|"); err == nil && got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
