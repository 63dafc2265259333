package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

func parseOne(t *testing.T, text string, conf map[string]string) Statement {
	t.Helper()
	list, err := ParsePipeline("t.sql", text, Settings{Configuration: conf})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 {
		t.Fatalf("%d statements", len(list))
	}
	return list[0]
}

// covers A2, A3, A98, A100, A112, A123, A141
func TestStreamingTableWithEverything(t *testing.T) {
	st := parseOne(t, `-- bronze orders; ${not.read} in a comment
CREATE OR REFRESH PRIVATE STREAMING TABLE dwh.`+"`bronze`"+`.orders (
  order_id STRING NOT NULL COMMENT 'the shop''s key',
  total DECIMAL(18,2),
  tags MAP<STRING, ARRAY<INT>>,
  CONSTRAINT has_id EXPECT (order_id IS NOT NULL),
  CONSTRAINT positive EXPECT (total > 0 AND (total < 1e9)) ON VIOLATION DROP ROW NULL PASS,
  CONSTRAINT known EXPECT (currency IN ('EUR', ')')) ON VIOLATION QUARANTINE NULL VIOLATE,
  CONSTRAINT sane EXPECT (total < 5) ON VIOLATION FAIL UPDATE
)
COMMENT "all orders"
PARTITIONED BY (dt, `+"`region code`"+`)
TBLPROPERTIES ('delta.appendOnly' = 'true', quality.level = 3, "x" = 'y')
AS SELECT *, _metadata.file_path AS src /* ${nor.here} */
FROM STREAM read_files('${landing}/shop', format => 'json', schemaHints => 'total DECIMAL(18,2)',
  cloudFiles.x => true, `+"`maxFilesPerTrigger`"+` => 10)
WHERE qty >= ${min.qty};
`, map[string]string{"landing": "/in/o'neill", "min.qty": "5"})
	for _, c := range []struct{ what, got, want string }{
		{"kind", st.Kind.String(), "streaming_table"},
		{"name", st.Name, "dwh.bronze.orders"},
		{"private", fmt.Sprint(st.Private), "true"},
		{"comment", st.Comment, "all orders"},
		{"partition", fmt.Sprint(st.PartitionBy), "[dt region code]"},
		{"properties", fmt.Sprint(st.Properties), "map[delta.appendOnly:true quality.level:3 x:y]"},
		{"lines", fmt.Sprint(st.Line, st.QueryLine, st.Columns[1].Line, st.Constraints[2].Line), "2 14 4 8"},
		{"query", st.Query, "SELECT *, _metadata.file_path AS src /* ${nor.here} */\nFROM __weir_files_0\nWHERE qty >= 5"},
		{"column", fmt.Sprint(st.Columns[0]), "{order_id utf8 true the shop's key  3}"},
		{"type", fmt.Sprint(st.Columns[2].Type), "map<utf8, list<item: int32, nullable>, items_nullable>"},
		{"source", fmt.Sprint(st.Sources[0].Alias, st.Sources[0].Stream, *st.Sources[0].Files),
			"__weir_files_0true {/in/o'neill/shop map[cloudFiles.x:true format:json maxFilesPerTrigger:10 schemaHints:total DECIMAL(18,2)]}"},
	} {
		if c.got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.what, c.got, c.want)
		}
	}
	var rules []string
	for _, r := range st.Constraints {
		rules = append(rules, fmt.Sprintf("%s|%s|%s|%v", r.Name, r.Condition, r.OnViolation, r.NullPass))
	}
	want := "has_id|order_id IS NOT NULL|warn|false\npositive|total > 0 AND (total < 1e9)|drop|true\nknown|currency IN ('EUR', ')')|quarantine|false\nsane|total < 5|fail|false"
	if got := strings.Join(rules, "\n"); got != want {
		t.Errorf("rules:\n%s", got)
	}
}

func TestSources(t *testing.T) {
	for _, c := range []struct{ query, want, text string }{
		{"SELECT * FROM STREAM(bronze.orders)", "bronze.orders stream", "SELECT * FROM bronze.orders"},
		{"SELECT * FROM STREAM bronze.orders AS o", "bronze.orders stream", "SELECT * FROM bronze.orders AS o"},
		{"SELECT * FROM stream orders", "orders stream", "SELECT * FROM orders"},
		{"SELECT * FROM STREAM(`my cat`.s.`t 1`) x", "my cat.s.t 1 stream", "SELECT * FROM `my cat`.s.`t 1` x"},
		{"SELECT * FROM STREAM(a) JOIN b.c r ON a.id = r.id, d", "a stream,b.c,d", "SELECT * FROM a JOIN b.c r ON a.id = r.id, d"},
		{"WITH x AS (SELECT * FROM STREAM(a)), y AS (SELECT 1 FROM z) SELECT * FROM x, y", "a stream,z", "WITH x AS (SELECT * FROM a), y AS (SELECT 1 FROM z) SELECT * FROM x, y"},
		{"SELECT * FROM (SELECT id FROM STREAM(a)) s WHERE id IN (SELECT id FROM b)", "a stream,b", "SELECT * FROM (SELECT id FROM a) s WHERE id IN (SELECT id FROM b)"},
		{"SELECT stream, extract(year FROM stream) FROM STREAM(a) WHERE stream IS DISTINCT FROM stream", "a stream", "SELECT stream, extract(year FROM stream) FROM a WHERE stream IS DISTINCT FROM stream"},
		{"SELECT * FROM STREAM(a) UNION ALL SELECT * FROM STREAM(a)", "a stream", "SELECT * FROM a UNION ALL SELECT * FROM a"},
		{"SELECT * FROM STREAM read_files('/a', format => 'csv') f, read_files('/b') g", "__weir_files_0 stream /a,__weir_files_1 /b", "SELECT * FROM __weir_files_0 f, __weir_files_1 g"},
		{"SELECT 'FROM STREAM(x)' AS s FROM STREAM(a) -- FROM STREAM(y)", "a stream", "SELECT 'FROM STREAM(x)' AS s FROM a"},
	} {
		t.Run(c.query, func(t *testing.T) {
			st := parseOne(t, "CREATE STREAMING TABLE t AS "+c.query, nil)
			var got []string
			for _, s := range st.Sources {
				text := s.Alias
				if s.Stream {
					text += " stream"
				}
				if s.Files != nil {
					text += " " + s.Files.Path
				}
				got = append(got, text)
			}
			if g := strings.Join(got, ","); g != c.want {
				t.Errorf("sources %s, want %s", g, c.want)
			}
			if st.Query != c.text {
				t.Errorf("query %s\nwant  %s", st.Query, c.text)
			}
		})
	}
}

func TestSeveralStatementsAndViews(t *testing.T) {
	list, err := ParsePipeline("p.sql", `
CREATE TEMPORARY VIEW v COMMENT 'half way' AS SELECT a FROM STREAM(t);;
CREATE OR REPLACE TEMP VIEW w AS SELECT ';' AS x FROM b;
create streaming table if not exists s using delta cluster by (a, b.c) as select * from stream(v)`, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list {
		got = append(got, fmt.Sprintf("%s %s %d %v %s %s", s.Kind, s.Name, s.Line, s.ClusterBy, s.Comment, s.Query))
	}
	want := "temporary_view v 2 [] half way SELECT a FROM t\ntemporary_view w 3 []  SELECT ';' AS x FROM b\nstreaming_table s 4 [a b.c]  select * from v"
	if g := strings.Join(got, "\n"); g != want {
		t.Errorf("got\n%s", g)
	}
}

// covers A2, A3, A99, A100, A103, A123
func TestPipelineErrorsHaveNamesAndPlaces(t *testing.T) {
	for _, c := range []struct{ text, code, says, where string }{
		{"CREATE STREAMING TABLE t AS SELECT * FROM b", "STREAMING_TABLE_QUERY_INVALID", "Cannot create streaming table from batch query", "line 1"},
		{"CREATE STREAMING TABLE t AS\nSELECT * FROM read_files('/x')", "STREAMING_TABLE_QUERY_INVALID", "FROM STREAM read_files", "line 2"},
		{"CREATE STREAMING TABLE t AS SELECT 1 AS a", "STREAMING_TABLE_QUERY_INVALID", "STREAM", "line 1"},
		{"CREATE STREAMING TABLE t AS SELECT * FROM STREAM(read_files('/x'))", "PARSE_SYNTAX_ERROR", "without them", "line 1, column 43"},
		{"CREATE STREAMING TABLE t AS SELECT * FROM STREAM(SELECT 1)", "PARSE_SYNTAX_ERROR", "temporary view", "column 43"},
		{"CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_kafka('x')", "NOT_SUPPORTED", "read_kafka", "column 43"},
		{"CREATE STREAMING TABLE t AS SELECT * FROM STREAM(a) JOIN STREAM(b) USING (id)", "NOT_SUPPORTED", "2 streams", ""},
		{"CREATE STREAMING TABLE t AS SELECT * FROM STREAM(a) JOIN a USING (id)", "NOT_SUPPORTED", "with STREAM and without", ""},
		{"CREATE OR REPLACE STREAMING TABLE t AS SELECT * FROM STREAM(a)", "PARSE_SYNTAX_ERROR", "OR REFRESH", ""},
		{"CREATE STREAMING TABLE a.b.c.d AS SELECT * FROM STREAM(a)", "PARSE_SYNTAX_ERROR", "three parts", ""},
		{"CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (a > 0), CONSTRAINT C EXPECT (b > 0)) AS SELECT * FROM STREAM(a)", "DUPLICATE_EXPECTATION", "twice", "column 56"},
		{"CREATE STREAMING TABLE t (CONSTRAINT c EXPECT ()) AS SELECT * FROM STREAM(a)", "PARSE_SYNTAX_ERROR", "no condition", ""},
		{"CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (a > 0) ON VIOLATION IGNORE) AS SELECT * FROM STREAM(a)", "PARSE_SYNTAX_ERROR", "DROP ROW, FAIL UPDATE or QUARANTINE", "column 68"},
		{"CREATE STREAMING TABLE t (a INT, A STRING) AS SELECT * FROM STREAM(a)", "COLUMN_ALREADY_EXISTS", "twice", ""},
		{"CREATE STREAMING TABLE t (a NOSUCH) AS SELECT * FROM STREAM(a)", "UNSUPPORTED_DATATYPE", "NOSUCH", "column 29"},
		{"CREATE STREAMING TABLE t COMMENT 'a' COMMENT 'b' AS SELECT * FROM STREAM(a)", "PARSE_SYNTAX_ERROR", "twice", ""},
		{"CREATE STREAMING TABLE t PARTITIONED BY (a) CLUSTER BY (b) AS SELECT * FROM STREAM(a)", "SPECIFY_CLUSTER_BY_WITH_PARTITIONED_BY_IS_NOT_ALLOWED", "", ""},
		{"CREATE STREAMING TABLE t CLUSTER BY (a,b,c,d,e) AS SELECT * FROM STREAM(a)", "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS", "4", ""},
		{"CREATE TEMPORARY VIEW v (CONSTRAINT c EXPECT (a > 0)) AS SELECT * FROM STREAM(a)", "NOT_SUPPORTED", "expectation", ""},
		{"CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('/a', format = 'json')", "PARSE_SYNTAX_ERROR", "=>", ""},
		{"CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files(path)", "PARSE_SYNTAX_ERROR", "quotes", ""},
		{"CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('/a', format => 'a', FORMAT => 'b')", "PARSE_SYNTAX_ERROR", "twice", ""},
		{"CREATE STREAMING TABLE t AS\n SELECT '${un.set}' AS a FROM STREAM(a)", "UNDEFINED_CONFIGURATION", "un.set", "line 2, column 10"},
		{"CREATE STREAMING TABLE t AS SELECT 'a FROM STREAM(a)", "PARSE_SYNTAX_ERROR", "quote", "column 36"},
		{"CREATE STREAMING TABLE t AS SELECT a /* FROM STREAM(a)", "PARSE_SYNTAX_ERROR", "comment", "column 38"},
		{"CREATE STREAMING TABLE t AS\n\nSELECT a,, b FROM STREAM(a)", "PARSE_SYNTAX_ERROR", "syntax error", "line 3, column 10"},
	} {
		t.Run(c.text, func(t *testing.T) {
			_, err := ParsePipeline("dir/t.sql", c.text, Settings{Configuration: map[string]string{"other": "x"}})
			if fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.where) {
				t.Fatalf("got %v\nwant [%s] %s (%s)", err, c.code, c.says, c.where)
			}
			if !strings.Contains(err.Error(), "dir/t.sql, line ") {
				t.Errorf("no file and line in %v", err)
			}
		})
	}
}

func TestErrorsOfAStatementsQueryStandInItsFile(t *testing.T) {
	e := openEngine(t)
	in := map[string]*arrow.Schema{"a": stream(t, table(t, "id INT", "[]"), "").Schema()}
	for _, c := range []struct{ text, code, where string }{
		{"CREATE STREAMING TABLE t AS\n  SELECT `id`,\n    '${k}', nope FROM STREAM(a)", "UNRESOLVED_COLUMN", "line 3, column 13"},
		{"CREATE STREAMING TABLE t (\n CONSTRAINT c EXPECT (id > 0 AND\n   nope < 3)) AS SELECT id FROM STREAM(a)", "UNRESOLVED_COLUMN", "line 3, column 4"},
		{"CREATE STREAMING TABLE t (\n CONSTRAINT c EXPECT (id > (SELECT 1))) AS SELECT id FROM STREAM(a)", "INVALID_EXPECTATION", "line 2, column 28"},
		{"CREATE STREAMING TABLE t (\n CONSTRAINT c EXPECT (sum(id) > 1)) AS SELECT id FROM STREAM(a)", "INVALID_EXPECTATION", "line 2, column 23"},
		{"CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (id + 1)) AS SELECT id FROM STREAM(a)", "INVALID_EXPECTATION", "line 1, column 48"},
		{"CREATE STREAMING TABLE t AS\nSELECT id,\n  count(*) AS n FROM STREAM(a)", "UNSUPPORTED_STREAMING_OPERATION", "line 3, column 3"},
	} {
		t.Run(c.text, func(t *testing.T) {
			st := parseOne(t, c.text, map[string]string{"k": "a value that is longer"})
			_, err := e.Describe(t.Context(), st.Select(), in)
			if fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), "t.sql, "+c.where) {
				t.Fatalf("got %v\nwant [%s] (%s)", err, c.code, c.where)
			}
			if strings.Contains(c.text, "CONSTRAINT") && !strings.Contains(err.Error(), "expectation c") {
				t.Errorf("the rule is not named: %v", err)
			}
		})
	}
}
