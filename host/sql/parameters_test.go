package sql

import (
	"fmt"
	"strings"
	"testing"
)

// covers A119, A120
func TestUseCompletesNames(t *testing.T) {
	in := Settings{Catalog: "main", Schema: "bronze"}
	for _, c := range []struct{ text, want string }{
		{"CREATE STREAMING TABLE t AS SELECT * FROM STREAM(a) JOIN s.b USING (id) JOIN c.s.d USING (id)", "t < a s.b c.s.d"},
		{"USE SCHEMA silver; CREATE STREAMING TABLE t AS SELECT * FROM STREAM(a) JOIN s.b USING (id) JOIN c.s.d USING (id)", "silver.t < silver.a s.b c.s.d"},
		{"USE DATABASE silver; CREATE MATERIALIZED VIEW t AS SELECT * FROM a", "silver.t < silver.a"},
		{"USE silver; CREATE MATERIALIZED VIEW t AS SELECT * FROM a", "silver.t < silver.a"},
		{"USE dev.silver; CREATE MATERIALIZED VIEW t AS SELECT * FROM a", "dev.silver.t < dev.silver.a"},
		{"USE CATALOG dev; CREATE STREAMING TABLE t AS SELECT * FROM STREAM(a) JOIN s.b USING (id) JOIN c.s.d USING (id)", "dev.bronze.t < dev.bronze.a dev.s.b c.s.d"},
		{"USE CATALOG dev; USE SCHEMA x; CREATE MATERIALIZED VIEW t AS SELECT * FROM a; USE SCHEMA y; CREATE VIEW u AS SELECT * FROM t", "dev.x.t < dev.x.a; dev.y.u < dev.y.t"},
		{"USE SCHEMA x; CREATE TEMPORARY VIEW v AS SELECT * FROM a; CREATE MATERIALIZED VIEW m AS SELECT * FROM v", "v < x.a; x.m < x.v"},
		{"USE SCHEMA x; CREATE FLOW f AS INSERT INTO t BY NAME SELECT * FROM STREAM LIVE.a", "f into x.t < x.a"},
		{"USE SCHEMA x; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(a) KEYS (k) SEQUENCE BY n", "f into x.t < x.a"},
		{"USE SCHEMA x; CREATE MATERIALIZED VIEW m (a INT, FOREIGN KEY (a) REFERENCES o) AS SELECT * FROM table_changes('a', 1)", "x.m < x.a; key x.o"},
		{"USE CATALOG IDENTIFIER(:where); USE SCHEMA IDENTIFIER(:where || '_s'); CREATE MATERIALIZED VIEW m AS SELECT 1 AS a", "dev.dev_s.m <"},
		{"USE CATALOG 'dev'; CREATE MATERIALIZED VIEW m AS WITH a AS (SELECT 1 AS b) SELECT * FROM a", "dev.bronze.m <"},
	} {
		t.Run(c.text, func(t *testing.T) {
			in.Configuration = map[string]string{"where": "dev"}
			list, err := ParsePipeline("t.sql", c.text, in)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range list {
				text := s.Name
				if s.Flow != nil {
					text += " into " + s.Flow.Target
				}
				text += " <"
				for _, src := range s.Sources {
					text += " " + src.Table
					if parts := strings.Split(src.Table, "."); src.Written != src.Table && src.Written != parts[len(parts)-1] && !strings.HasSuffix(src.Table, "."+src.Written) {
						t.Errorf("%s was written %s", src.Table, src.Written)
					}
				}
				got = append(got, text)
				for _, k := range s.Keys {
					got = append(got, "key "+k.References)
				}
			}
			if g := strings.Join(got, "; "); g != c.want {
				t.Errorf("got  %s\nwant %s", g, c.want)
			}
		})
	}
	for _, text := range []string{"USE CATALOG a.b", "USE SCHEMA a.b.c", "USE", "USE CATALOG", "USE SCHEMA s x", "USE SCHEMA ''"} {
		wantFault(t, text, "PARSE_SYNTAX_ERROR", "", "line 1")
	}
}

// covers A9, A141, A142
func TestParametersAreKnownWhenAStatementIsRead(t *testing.T) {
	conf := map[string]string{"catalog": "dev", "min.qty": "5", "who": "it's \"me\"", "path": "/in/o'neill", "t": "a.`b c`", "n": "3", "long": "${n}"}
	for _, c := range []struct{ query, want, source string }{
		{"SELECT :who AS w FROM s", "SELECT 'it''s \"me\"' AS w FROM s", "s"},
		{"SELECT CAST(:n AS INT) + :n::INT AS w FROM s WHERE a >= :n AND b=:n", "SELECT CAST('3' AS INT) + '3'::INT AS w FROM s WHERE a >= '3' AND b='3'", "s"},
		{"SELECT * FROM IDENTIFIER(:catalog || '.x.y')", "SELECT * FROM `dev`.`x`.`y`", "dev.x.y"},
		{"SELECT * FROM identifier( concat(:catalog, '.', ('x' || '.y')) ) AS q", "SELECT * FROM `dev`.`x`.`y` AS q", "dev.x.y"},
		{"SELECT * FROM IDENTIFIER(:t)", "SELECT * FROM `a`.`b c`", "a.b c"},
		{"SELECT IDENTIFIER('a') AS b FROM IDENTIFIER(:catalog).x.y", "SELECT `a` AS b FROM `dev`.x.y", "dev.x.y"},
		{"SELECT details:a.b, 'x':who, x[1:n], x[:n], {'a':n, 'b': who} AS st, y::INT FROM s", "", ""},
		{"SELECT ':who' AS a, \":who\" AS b /* :nope */ FROM s -- :nope", "SELECT ':who' AS a, \":who\" AS b /* :nope */ FROM s", "s"},
		{"SELECT ${min.qty} AS a, '${who}' AS b, \"${who}\" AS c FROM s", "SELECT 5 AS a, 'it''s \"me\"' AS b, \"it's \"\"me\"\"\" AS c FROM s", "s"},
		{"SELECT '${long}' AS a FROM s", "SELECT '${n}' AS a FROM s", "s"},
	} {
		t.Run(c.query, func(t *testing.T) {
			list, err := ParsePipeline("t.sql", "CREATE MATERIALIZED VIEW m AS "+c.query, Settings{Configuration: conf})
			if c.want == "" {
				// DuckDB may refuse the rest, but nothing in it is a parameter.
				if err != nil && !strings.Contains(err.Error(), "PARSE_SYNTAX_ERROR") && !strings.Contains(err.Error(), "column:path") {
					t.Fatal(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if list[0].Query != c.want || len(list[0].Sources) != 1 || list[0].Sources[0].Table != c.source {
				t.Errorf("got  %s %+v\nwant %s", list[0].Query, list[0].Sources, c.want)
			}
		})
	}
	list, err := ParsePipeline("t.sql", "CREATE STREAMING TABLE IDENTIFIER(:catalog || '.s.t') COMMENT :who TBLPROPERTIES ('a' = :n) AS\n"+
		"SELECT * FROM STREAM read_files(:path || '/x', format => 'j' || 'son', maxFilesPerTrigger => :n) WHERE d > :nope", Settings{Configuration: conf})
	if err == nil || !strings.Contains(err.Error(), "[UNBOUND_SQL_PARAMETER] the parameter :nope is not set (file t.sql, line 2, column 108)") {
		t.Errorf("%v %v", list, err)
	}
	list, err = ParsePipeline("t.sql", "CREATE STREAMING TABLE IDENTIFIER(:catalog || '.s.t') COMMENT :who TBLPROPERTIES ('a' = :n) AS\n"+
		"SELECT * FROM STREAM(IDENTIFIER(:catalog || '.s.u')) JOIN read_files(:path || '/x', format => 'j' || 'son', maxFilesPerTrigger => :n) USING (id)", Settings{Configuration: conf})
	if err != nil {
		t.Fatal(err)
	}
	st := list[0]
	if got := fmt.Sprint(st.Name, st.Comment, st.Properties, st.Sources[0].Table, *st.Sources[1].Files); got != "dev.s.tit's \"me\"map[a:3]dev.s.u{/in/o'neill/x map[format:json maxFilesPerTrigger:3]}" {
		t.Error(got)
	}
}

func TestWrongParameters(t *testing.T) {
	for _, c := range []struct{ text, code, says, where string }{
		{"CREATE MATERIALIZED VIEW m AS SELECT :nope AS a", "UNBOUND_SQL_PARAMETER", "set are other", "column 38"},
		{"USE CATALOG IDENTIFIER(:nope)", "UNBOUND_SQL_PARAMETER", ":nope", "column 24"},
		{"CREATE MATERIALIZED VIEW m AS SELECT * FROM IDENTIFIER(a || 'b')", "NOT_A_CONSTANT_STRING", "texts and :parameters", "column 45"},
		{"CREATE MATERIALIZED VIEW m AS SELECT * FROM IDENTIFIER()", "NOT_A_CONSTANT_STRING", "", "column 45"},
		{"CREATE MATERIALIZED VIEW m AS SELECT * FROM IDENTIFIER('a b')", "PARSE_SYNTAX_ERROR", "not the name of a table", "column 45"},
		{"CREATE MATERIALIZED VIEW m AS SELECT * FROM IDENTIFIER('a;b')", "PARSE_SYNTAX_ERROR", "not the name of a table", "column 45"},
		{"CREATE MATERIALIZED VIEW m AS SELECT * FROM IDENTIFIER('a", "PARSE_SYNTAX_ERROR", "quote", "column 56"},
		{"CREATE MATERIALIZED VIEW m AS SELECT * FROM IDENTIFIER(" + strings.Repeat("(", 2000) + "'a'" + strings.Repeat(")", 2000) + ")", "NOT_A_CONSTANT_STRING", "", "column 45"},
	} {
		wantFault(t, c.text, c.code, c.says, c.where)
	}
}

// covers A141
func TestSetActsOnTheStatementsAfterIt(t *testing.T) {
	list, err := ParsePipeline("t.sql", `SET shop.day = '2026-01-01';
CREATE MATERIALIZED VIEW a AS SELECT ${shop.day} AS d;
SET shop.day = ${other};
SET name = 7;
CREATE MATERIALIZED VIEW b AS SELECT ${shop.day} AS d, :name AS n`, Settings{Configuration: map[string]string{"other": "DATE '2027-01-01'"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Query != "SELECT '2026-01-01' AS d" || list[1].Query != "SELECT DATE '2027-01-01' AS d, '7' AS n" {
		t.Errorf("%+v", list)
	}
	for _, c := range []struct{ text, code, says string }{
		{"SET a", "PARSE_SYNTAX_ERROR", "= and the value of a"},
		{"SET a =", "PARSE_SYNTAX_ERROR", "the value of a"},
		{"SET", "PARSE_SYNTAX_ERROR", "the name of a property"},
		{"SET spark.sql.session.timeZone = UTC", "NOT_SUPPORTED", "configuration in the spec"},
		{"SET pipelines.trigger.interval = '1 minute'", "NOT_SUPPORTED", "this file only"},
	} {
		wantFault(t, c.text, c.code, c.says, "line 1")
	}
}

func TestAValueCannotEndAStatement(t *testing.T) {
	_, err := ParsePipeline("t.sql", "CREATE MATERIALIZED VIEW m AS SELECT ${v} AS a", Settings{Configuration: map[string]string{"v": "1; DROP TABLE t"}})
	if err == nil || !strings.Contains(err.Error(), "semicolon") || !strings.Contains(err.Error(), "line 1, column 39") {
		t.Error(err)
	}
}
