package sql

import (
	"fmt"
	"strings"
	"testing"
)

// covers A103, A108, A109, A112, A113, A117, A123
func TestKindsOfDatasets(t *testing.T) {
	q := " AS SELECT a FROM b"
	sq := " AS SELECT a FROM STREAM(b)"
	for _, c := range []struct{ text, want string }{
		{"CREATE STREAMING TABLE t", "streaming_table t"},
		{"CREATE OR REFRESH STREAMING TABLE IF NOT EXISTS c.s.t", "streaming_table c.s.t"},
		{"CREATE OR REFRESH PRIVATE STREAMING TABLE t" + sq, "streaming_table t private"},
		{"CREATE MATERIALIZED VIEW m" + q, "materialized_view m"},
		{"CREATE OR REFRESH PRIVATE MATERIALIZED VIEW m" + q, "materialized_view m private"},
		{"CREATE VIEW v" + q, "view v"},
		{"CREATE OR REPLACE VIEW v COMMENT 'c' TBLPROPERTIES ('a' = 'b')" + q, "view v map[a:b]"},
		{"CREATE TEMPORARY VIEW v" + sq, "temporary_view v"},
		{"CREATE OR REFRESH TEMP VIEW v" + q, "temporary_view v"},
		{"CREATE LIVE VIEW v (CONSTRAINT c EXPECT (a > 0))" + q, "temporary_view v live c (CREATE LIVE VIEW)"},
		{"CREATE TEMPORARY LIVE VIEW v" + q, "temporary_view v live (CREATE LIVE VIEW)"},
		{"CREATE STREAMING LIVE VIEW v" + sq, "temporary_view v live (CREATE LIVE VIEW)"},
		{"CREATE LIVE TABLE t" + q, "materialized_view t (CREATE LIVE TABLE)"},
		{"CREATE OR REFRESH LIVE TABLE LIVE.t" + q, "materialized_view t (CREATE LIVE TABLE, the prefix LIVE.)"},
		{"CREATE OR REFRESH STREAMING LIVE TABLE t" + sq, "streaming_table t (CREATE STREAMING LIVE TABLE)"},
		{"CREATE TEMPORARY STREAMING LIVE TABLE t" + sq, "streaming_table t private (CREATE STREAMING LIVE TABLE)"},
	} {
		t.Run(c.text, func(t *testing.T) {
			st := parseOne(t, c.text, nil)
			got := st.Kind.String() + " " + st.Name
			for word, set := range map[string]bool{" private": st.Private} {
				if set {
					got += word
				}
			}
			if st.Live {
				got += " live"
			}
			for _, r := range st.Constraints {
				got += " " + r.Name
			}
			if st.Properties != nil {
				got += fmt.Sprint(" ", st.Properties)
			}
			var legacy []string
			for _, d := range st.Deprecated {
				legacy = append(legacy, d.What)
				if d.Instead == "" || d.Line != 1 || d.Column == 0 {
					t.Errorf("%+v", d)
				}
			}
			if legacy != nil {
				got += " (" + strings.Join(legacy, ", ") + ")"
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// covers A2, A103, A122, A123
func TestDatasetsThatAreRefused(t *testing.T) {
	for _, c := range []struct{ text, code, says, where string }{
		{"CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT 1 AS a", "PARSE_SYNTAX_ERROR", "OR REFRESH", "column 1"},
		{"CREATE OR REPLACE LIVE TABLE m AS SELECT 1 AS a", "PARSE_SYNTAX_ERROR", "OR REFRESH", "column 1"},
		{"CREATE MATERIALIZED VIEW m", "PARSE_SYNTAX_ERROR", "the statement ends where AS is due", "column 27"},
		{"CREATE MATERIALIZED VIEW m AS SELECT a FROM STREAM(b)", "INVALID_FLOW_QUERY_TYPE", "materialized view", "column 45"},
		{"CREATE MATERIALIZED VIEW m AS\nSELECT a\nFROM STREAM read_files('/b')", "INVALID_FLOW_QUERY_TYPE", "materialized view", "line 3, column 6"},
		{"CREATE LIVE TABLE m AS SELECT a FROM STREAM(LIVE.b)", "INVALID_FLOW_QUERY_TYPE", "materialized view", ""},
		{"CREATE VIEW v AS SELECT a FROM STREAM b", "INVALID_FLOW_QUERY_TYPE", "TEMPORARY VIEW", "column 32"},
		{"CREATE PRIVATE VIEW v AS SELECT 1 AS a", "PARSE_SYNTAX_ERROR", "PRIVATE", "column 1"},
		{"CREATE PRIVATE TEMPORARY VIEW v AS SELECT 1 AS a", "PARSE_SYNTAX_ERROR", "PRIVATE", "column 1"},
		{"CREATE TEMPORARY MATERIALIZED VIEW v AS SELECT 1 AS a", "PARSE_SYNTAX_ERROR", "PRIVATE MATERIALIZED VIEW", ""},
		{"CREATE TEMPORARY STREAMING TABLE v AS SELECT 1 AS a", "PARSE_SYNTAX_ERROR", "PRIVATE STREAMING TABLE", ""},
		{"CREATE TEMPORARY VIEW v (CONSTRAINT c EXPECT (a > 0)) AS SELECT a FROM b", "NOT_SUPPORTED", "CREATE LIVE VIEW", "column 25"},
		{"CREATE VIEW v (CONSTRAINT c EXPECT (a > 0)) AS SELECT a FROM b", "NOT_SUPPORTED", "expectation", "column 15"},
		{"CREATE VIEW v (a, b) AS SELECT a FROM b", "NOT_SUPPORTED", "column list", "column 15"},
		{"CREATE VIEW v COMMENT 'a' COMMENT 'b' AS SELECT a FROM b", "PARSE_SYNTAX_ERROR", "twice", "column 27"},
		{"CREATE MATERIALIZED VIEW m FLOW AUTO CDC FROM STREAM s KEYS (a) SEQUENCE BY n", "PARSE_SYNTAX_ERROR", "no flows", "column 28"},
	} {
		wantFault(t, c.text, c.code, c.says, c.where)
	}
}

// covers A98, A100, A111, A151, A167, A168
func TestColumnsKeysAndClauses(t *testing.T) {
	st := parseOne(t, `CREATE OR REFRESH MATERIALIZED VIEW m (
  id BIGINT NOT NULL COMMENT 'key' PRIMARY KEY RELY,
  line INT NOT NULL,
  customer STRING CONSTRAINT to_customer FOREIGN KEY REFERENCES dim.customers (id) NOT ENFORCED,
  shop STRING REFERENCES shops NORELY,
  day INT GENERATED ALWAYS AS (dayofweek(made, ', )')) COMMENT 'of the week',
  made TIMESTAMP,
  CONSTRAINT positive EXPECT (id > 0) ON VIOLATION FAIL UPDATE,
  CONSTRAINT to_lines FOREIGN KEY (id, line) REFERENCES lines MATCH FULL ON UPDATE NO ACTION ON DELETE NO ACTION
)
USING DELTA CLUSTER BY (AUTO) REFRESH POLICY INCREMENTAL DEFAULT COLLATION UTF8_BINARY
TBLPROPERTIES (a.b = 1.5, 'c' = TRUE, d = -3, e == 'x' || 'y') COMMENT 'rows'
AS SELECT 1 AS id`, nil)
	var keys []string
	for _, k := range st.Keys {
		keys = append(keys, fmt.Sprintf("%s/%v/%v/%s%v/%v/%d", k.Name, k.Primary, k.Columns, k.References, k.RefColumns, k.Rely, k.Line))
	}
	for _, c := range []struct{ what, got, want string }{
		{"keys", strings.Join(keys, " "), "/true/[id]/[]/true/2 to_customer/false/[customer]/dim.customers[id]/false/4 /false/[shop]/shops[]/false/5 to_lines/false/[id line]/lines[]/false/9"},
		{"generated", st.Columns[4].Generated + "|" + st.Columns[4].Comment, "dayofweek(made, ', )')|of the week"},
		{"clustered", fmt.Sprint(st.ClusterBy), "[AUTO]"},
		{"policy", st.RefreshPolicy, "INCREMENTAL"},
		{"properties", fmt.Sprint(st.Properties), "map[a.b:1.5 c:true d:-3 e:xy]"},
		{"comment", st.Comment, "rows"},
		{"rules", fmt.Sprint(len(st.Constraints)), "1"},
	} {
		if c.got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.what, c.got, c.want)
		}
	}
	st = parseOne(t, "CREATE STREAMING TABLE t (a INT NOT NULL, b TIMESTAMP NOT NULL, CONSTRAINT pk PRIMARY KEY (a, b TIMESERIES) NOT ENFORCED RELY)", nil)
	if k := st.Keys[0]; k.Name != "pk" || !k.Primary || fmt.Sprint(k.Columns, k.TimeSeries) != "[a b] [b]" || !k.Rely {
		t.Errorf("%+v", k)
	}
}

// covers A100, A151, A152, A167, A168, A169, A170
func TestColumnsKeysAndClausesThatAreRefused(t *testing.T) {
	mv := func(clause string) string { return "CREATE MATERIALIZED VIEW m " + clause + " AS SELECT 1 AS a" }
	for _, c := range []struct{ text, code, says, where string }{
		{mv("(a INT DEFAULT 1)"), "NOT_SUPPORTED", "DEFAULT", "column 35"},
		{mv("(a BIGINT GENERATED ALWAYS AS IDENTITY)"), "NOT_SUPPORTED", "identity", "column 38"},
		{mv("(a BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 1))"), "NOT_SUPPORTED", "identity", "column 38"},
		{mv("(a GENERATED ALWAYS AS (b + 1))"), "PARSE_SYNTAX_ERROR", "has no type", "column 31"},
		{mv("(a INT GENERATED ALWAYS AS (b +))"), "PARSE_SYNTAX_ERROR", "", "column 60"},
		{mv("(a INT GENERATED ALWAYS AS ())"), "PARSE_SYNTAX_ERROR", "an expression", ""},
		{mv("(a INT MASK c.s.f USING COLUMNS (b))"), "NOT_SUPPORTED", "MASK on column a", "column 35"},
		{mv("(a STRING COLLATE UNICODE)"), "NOT_SUPPORTED", "COLLATE", "column 38"},
		{mv("(a INT COMMENT 'x' COMMENT 'y')"), "PARSE_SYNTAX_ERROR", "COMMENT is given twice", "column 47"},
		{mv("(a INT, CHECK (a > 0))"), "NOT_SUPPORTED", "EXPECT", "column 36"},
		{mv("(a INT, CONSTRAINT c CHECK (a > 0))"), "NOT_SUPPORTED", "CHECK constraint c", "column 36"},
		{mv("(a INT, CONSTRAINT c UNIQUE (a))"), "NOT_SUPPORTED", "UNIQUE", "column 36"},
		{mv("(a INT, CONSTRAINT c SOMETHING (a))"), "PARSE_SYNTAX_ERROR", "EXPECT, PRIMARY KEY or FOREIGN KEY", "column 49"},
		{mv("(a INT, PRIMARY KEY (a))"), "INVALID_KEY_CONSTRAINT", "NOT NULL", ""},
		{mv("(a NOT NULL, PRIMARY KEY (a))"), "INVALID_KEY_CONSTRAINT", "has no type", ""},
		{mv("(a INT NOT NULL, PRIMARY KEY (b))"), "INVALID_KEY_CONSTRAINT", "b, which the column list has not", ""},
		{mv("(a INT NOT NULL, PRIMARY KEY (a, a))"), "INVALID_KEY_CONSTRAINT", "twice", ""},
		{mv("(a INT NOT NULL PRIMARY KEY, PRIMARY KEY (a))"), "INVALID_KEY_CONSTRAINT", "two primary keys", "column 57"},
		{mv("(a INT, FOREIGN KEY (a) REFERENCES t (x, y))"), "INVALID_KEY_CONSTRAINT", "1 columns and refers to 2", "column 36"},
		{mv("(a INT, FOREIGN KEY (a))"), "PARSE_SYNTAX_ERROR", "REFERENCES", ""},
		{mv("(a INT NOT NULL PRIMARY KEY ENFORCED)"), "NOT_SUPPORTED", "enforced", "column 56"},
		{mv("(a INT, FOREIGN KEY (a) REFERENCES t ON DELETE CASCADE)"), "NOT_SUPPORTED", "enforced", "column 65"},
		{mv("(a INT NOT NULL, CONSTRAINT c EXPECT (a > 0), CONSTRAINT C PRIMARY KEY (a))"), "DUPLICATE_EXPECTATION", "twice", "column 74"},
		{mv("WITH ROW FILTER f ON (a)"), "NOT_SUPPORTED", "ROW FILTER", "column 28"},
		{mv("SCHEDULE REFRESH EVERY 1 HOUR"), "NOT_SUPPORTED", "SCHEDULE REFRESH", "column 28"},
		{mv("SCHEDULE CRON '0 0 * * *'"), "NOT_SUPPORTED", "cron", "column 28"},
		{mv("REFRESH EVERY 5 MINUTES"), "NOT_SUPPORTED", "REFRESH EVERY", "column 28"},
		{mv("TRIGGER ON UPDATE"), "NOT_SUPPORTED", "TRIGGER ON", "column 28"},
		{mv("REFRESH POLICY INCREMENTAL STRICT"), "NOT_SUPPORTED", "INCREMENTAL STRICT", "column 28"},
		{mv("REFRESH POLICY SOMETIMES"), "PARSE_SYNTAX_ERROR", "AUTO, INCREMENTAL or FULL", "column 43"},
		{"CREATE STREAMING TABLE t REFRESH POLICY FULL", "PARSE_SYNTAX_ERROR", "materialized view only", "column 26"},
		{mv("DEFAULT COLLATION UNICODE_CI"), "NOT_SUPPORTED", "UNICODE_CI", "column 28"},
		{mv("LOCATION '/x'"), "NOT_SUPPORTED", "LOCATION", "column 28"},
		{mv("USING PARQUET"), "NOT_SUPPORTED", "PARQUET", "column 28"},
		{mv("CLUSTER BY (a, b, c, d, e)"), "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS", "at most 4", ""},
		{mv("CLUSTER BY (a) PARTITIONED BY (b)"), "SPECIFY_CLUSTER_BY_WITH_PARTITIONED_BY_IS_NOT_ALLOWED", "", ""},
		{mv("CLUSTER BY (a) CLUSTER BY (b)"), "PARSE_SYNTAX_ERROR", "twice", "column 43"},
		{mv("PARTITIONED BY (days(a))"), "PARSE_SYNTAX_ERROR", ", or )", "column 48"},
		{mv("TBLPROPERTIES (a = 1, a = 2)"), "PARSE_SYNTAX_ERROR", "twice", "column 50"},
		{mv("NONSENSE"), "PARSE_SYNTAX_ERROR", "NONSENSE stands where", "column 28"},
	} {
		wantFault(t, c.text, c.code, c.says, c.where)
	}
}

func TestStatementsOfAWarehouseAreRefusedWithWhatToDoInstead(t *testing.T) {
	for _, c := range []struct{ text, what, instead string }{
		{"GRANT READ FILES ON EXTERNAL LOCATION l TO `a`", "GRANT", "storage"},
		{"REVOKE SELECT ON TABLE t FROM `a`", "REVOKE", "storage"},
		{"CREATE VOLUME IF NOT EXISTS a.b.c", "CREATE VOLUME", "volumes in the spec"},
		{"CREATE EXTERNAL VOLUME a LOCATION 's3://b'", "CREATE EXTERNAL VOLUME", "volumes in the spec"},
		{"CREATE CATALOG c", "CREATE CATALOG", "catalog in the spec"},
		{"CREATE SCHEMA IF NOT EXISTS c.s", "CREATE SCHEMA", "schema in the spec"},
		{"CREATE DATABASE s", "CREATE DATABASE", "schema in the spec"},
		{"CREATE EXTERNAL LOCATION IF NOT EXISTS l URL 's3://b' WITH (STORAGE CREDENTIAL c)", "CREATE EXTERNAL LOCATION", "docs/storage.md"},
		{"CREATE STORAGE CREDENTIAL c", "CREATE STORAGE CREDENTIAL", "docs/storage.md"},
		{"CREATE CONNECTION c TYPE mysql", "CREATE CONNECTION", "read_files"},
		{"CREATE TABLE t (a INT)", "CREATE TABLE", "MATERIALIZED VIEW"},
		{"CREATE OR REPLACE TABLE t AS SELECT 1", "CREATE TABLE", "MATERIALIZED VIEW"},
		{"CREATE FUNCTION f(x INT) RETURN x + 1", "CREATE FUNCTION", "plugin"},
		{"CREATE SINK s", "CREATE SINK", "plugin"},
		{"MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", "MERGE INTO", "AUTO CDC INTO"},
		{"INSERT INTO t SELECT 1", "INSERT INTO", "CREATE FLOW"},
		{"INSERT OVERWRITE t SELECT 1", "INSERT", "CREATE FLOW"},
		{"UPDATE t SET a = 1", "UPDATE", "weir delta update"},
		{"DELETE FROM t", "DELETE", "weir delta delete"},
		{"TRUNCATE TABLE t", "TRUNCATE", "--full-refresh"},
		{"COPY INTO t FROM '/x' FILEFORMAT = JSON", "COPY INTO", "read_files"},
		{"COPY t TO '/x'", "COPY", "read_files"},
		{"OPTIMIZE t ZORDER BY (a)", "OPTIMIZE", "weir delta optimize"},
		{"VACUUM t RETAIN 1 HOURS", "VACUUM", "weir delta vacuum"},
		{"ALTER TABLE t ADD COLUMN b INT", "ALTER", "CREATE statement"},
		{"DROP TABLE t", "DROP", "CREATE statement"},
		{"REFRESH MATERIALIZED VIEW m", "REFRESH", "--refresh"},
		{"SHOW TABLES", "SHOW", "weir graph"},
		{"DESCRIBE t", "DESCRIBE", "weir dry-run"},
		{"EXPLAIN SELECT 1", "EXPLAIN", "weir dry-run"},
		{"SELECT 1", "SELECT", "weir query"},
		{"WITH x AS (SELECT 1) SELECT * FROM x", "WITH", "weir query"},
		{"ATTACH 'x.db'", "ATTACH", "catalog.schema.table"},
		{"INSTALL httpfs", "INSTALL", "not loaded"},
		{"LOAD httpfs", "LOAD", "not loaded"},
		{"PRAGMA database_list", "PRAGMA", "configuration"},
		{"CREATE MACRO upper(x) AS x", "CREATE MACRO", "plugin"},
		{"CREATE SECRET s (TYPE s3)", "CREATE SECRET", "secrets"},
		{"CALL enable_logging()", "CALL", "declares datasets"},
		{"DECLARE x INT", "DECLARE", "configuration"},
	} {
		wantFault(t, c.text, "UNSUPPORTED_PIPELINE_STATEMENT", c.what+" is no statement of a pipeline", "line 1, column 1")
		wantFault(t, c.text+" ", "UNSUPPORTED_PIPELINE_STATEMENT", c.instead, "column 1")
	}
	wantFault(t, "FROBNICATE t", "PARSE_SYNTAX_ERROR", "no statement begins with FROBNICATE", "column 1")
	wantFault(t, "CREATE", "PARSE_SYNTAX_ERROR", "the statement ends", "")
	wantFault(t, "CREATE TRIGGER x", "PARSE_SYNTAX_ERROR", "TRIGGER stands where", "column 8")
}
