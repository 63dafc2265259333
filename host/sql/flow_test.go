package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// wantFault holds that a text is refused with a code, a word and a place.
func wantFault(t *testing.T, text string, code, says, where string) {
	t.Helper()
	t.Run(text, func(t *testing.T) {
		_, err := ParsePipeline("dir/t.sql", text, Settings{Configuration: map[string]string{"other": "x"}})
		if fault.CodeOf(err) != code || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), where) {
			t.Fatalf("got %v\nwant [%s] %s (%s)", err, code, says, where)
		}
		if !strings.Contains(err.Error(), "dir/t.sql, line ") {
			t.Errorf("no file and line in %v", err)
		}
	})
}

// covers A56, A58, A60, A66, A74, A116
func TestFlows(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"CREATE FLOW f AS INSERT INTO t BY NAME SELECT a FROM STREAM(s)", "flow f: f into t by name|SELECT a FROM s"},
		{"CREATE FLOW f COMMENT 'why' AS INSERT INTO c.s.t BY NAME SELECT * FROM STREAM read_files('/x')", "flow f: f into c.s.t by name 'why'|SELECT * FROM __weir_files_0"},
		{"CREATE FLOW f AS INSERT INTO ONCE t BY NAME SELECT a FROM s", "flow f: f into t once by name|SELECT a FROM s"},
		{"CREATE FLOW f AS INSERT ONCE INTO t BY NAME SELECT a FROM s", "flow f: f into t once by name|SELECT a FROM s"},
		{"CREATE STREAMING TABLE t FLOW INSERT BY NAME SELECT a FROM STREAM s", "streaming_table t|;flow t:  into t by name|SELECT a FROM s"},
		{"CREATE STREAMING TABLE t (a INT) COMMENT 'x' FLOW INSERT ONCE BY NAME SELECT a FROM s", "streaming_table t|;flow t:  into t once by name|SELECT a FROM s"},
		{"CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(s) KEYS (id) SEQUENCE BY ts", "auto_cdc_flow f: f into t|; s stream keys [id] sequence ts scd 1"},
		{"CREATE FLOW f AS AUTO CDC ONCE INTO t FROM s KEYS (id) SEQUENCE BY ts", "auto_cdc_flow f: f into t once|; s keys [id] sequence ts scd 1"},
		{"CREATE FLOW f AS AUTO CDC INTO ONCE t FROM s KEYS (id) SEQUENCE BY ts", "auto_cdc_flow f: f into t once|; s keys [id] sequence ts scd 1"},
		{"CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM s KEYS (id) SEQUENCE BY ts", "streaming_table t|;auto_cdc_flow t:  into t|; s stream keys [id] sequence ts scd 1"},
		{"APPLY CHANGES INTO LIVE.t FROM STREAM(LIVE.s) KEYS (id) SEQUENCE BY ts STORED AS SCD TYPE 2",
			"auto_cdc_flow t:  into t|; s stream keys [id] sequence ts scd 2 (deprecated APPLY CHANGES INTO, the prefix LIVE., the prefix LIVE.)"},
		{"CREATE FLOW f AS APPLY CHANGES INTO t FROM STREAM s KEYS (id) SEQUENCE BY ts", "auto_cdc_flow f: f into t|; s stream keys [id] sequence ts scd 1 (deprecated APPLY CHANGES)"},
		{"CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(v) WITH (skipChangeCommits) KEYS (a, `b c`, d.e) IGNORE NULL UPDATES APPLY AS DELETE WHEN op = 'DELETE' OR flag = 'X' " +
			"APPLY AS TRUNCATE WHEN op IN ('T', 'columns') SEQUENCE BY STRUCT(ts, n) COLUMNS * EXCEPT (op, flag) STORED AS SCD TYPE '1'",
			"auto_cdc_flow f: f into t|; v stream map[skipChangeCommits:true] keys [a b c d.e] ignore null delete op = 'DELETE' OR flag = 'X' truncate op IN ('T', 'columns') sequence STRUCT(ts, n) except [op flag] scd 1"},
		{"CREATE FLOW f AS AUTO CDC INTO t FROM STREAM v KEYS (a) IGNORE NULL UPDATES ON (b, c) SEQUENCE BY n COLUMNS a, b, c STORED AS SCD TYPE 2 TRACK HISTORY ON b, c",
			"auto_cdc_flow f: f into t|; v stream keys [a] ignore null on [b c] sequence n columns [a b c] scd 2 track [b c]"},
		{"CREATE FLOW f AS AUTO CDC INTO t FROM STREAM v KEYS (a) IGNORE NULL UPDATES ON * EXCEPT (b) SEQUENCE BY n COLUMNS (a, b) STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (c)",
			"auto_cdc_flow f: f into t|; v stream keys [a] ignore null except [b] sequence n columns [a b] scd 2 track except [c]"},
	} {
		t.Run(c.text, func(t *testing.T) {
			list, err := ParsePipeline("t.sql", c.text, Settings{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range list {
				got = append(got, describe(&s))
			}
			if g := strings.Join(got, ";"); g != c.want {
				t.Errorf("got  %s\nwant %s", g, c.want)
			}
		})
	}
}

// describe writes down what a flow or table says.
func describe(s *Statement) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", s.Kind, s.Name)
	if f := s.Flow; f != nil {
		fmt.Fprintf(&b, ": %s into %s", f.Name, f.Target)
		for word, set := range map[string]bool{" once": f.Once} {
			if set {
				b.WriteString(word)
			}
		}
		if f.ByName {
			b.WriteString(" by name")
		}
		if f.Comment != "" {
			fmt.Fprintf(&b, " '%s'", f.Comment)
		}
	}
	b.WriteString("|" + s.Query)
	if c := s.CDC; c != nil {
		fmt.Fprintf(&b, "; %s", c.Source.Table)
		if c.Source.Stream {
			b.WriteString(" stream")
		}
		if c.Source.Options != nil {
			fmt.Fprintf(&b, " %v", c.Source.Options)
		}
		fmt.Fprintf(&b, " keys %v", c.Keys)
		for _, part := range []struct {
			word string
			list []string
		}{{" ignore null on", c.IgnoreNullOn}, {" ignore null except", c.IgnoreNullExcept}} {
			if part.list != nil {
				fmt.Fprintf(&b, "%s %v", part.word, part.list)
			}
		}
		if c.IgnoreNullUpdates && c.IgnoreNullOn == nil && c.IgnoreNullExcept == nil {
			b.WriteString(" ignore null")
		}
		for _, e := range []struct{ word, text string }{{"delete", c.DeleteWhen.Text}, {"truncate", c.TruncateWhen.Text}, {"sequence", c.SequenceBy.Text}} {
			if e.text != "" {
				fmt.Fprintf(&b, " %s %s", e.word, e.text)
			}
		}
		for _, part := range []struct {
			word string
			list []string
		}{{"columns", c.Columns}, {"except", c.Except}} {
			if part.list != nil {
				fmt.Fprintf(&b, " %s %v", part.word, part.list)
			}
		}
		fmt.Fprintf(&b, " scd %d", c.SCDType)
		for _, part := range []struct {
			word string
			list []string
		}{{"track", c.TrackHistory}, {"track except", c.TrackExcept}} {
			if part.list != nil {
				fmt.Fprintf(&b, " %s %v", part.word, part.list)
			}
		}
	}
	if len(s.Deprecated) > 0 {
		var what []string
		for _, d := range s.Deprecated {
			what = append(what, d.What)
		}
		fmt.Fprintf(&b, " (deprecated %s)", strings.Join(what, ", "))
	}
	return b.String()
}

// covers A57, A59, A60, A66, A67, A116
func TestFlowsThatAreRefused(t *testing.T) {
	cdc := "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(s) KEYS (id) "
	for _, c := range []struct{ text, code, says, where string }{
		{"CREATE FLOW f AS INSERT INTO t BY NAME SELECT a FROM s", "INVALID_FLOW_QUERY_TYPE", "FROM STREAM(s), or INSERT INTO ONCE", "column 54"},
		{"CREATE FLOW f AS INSERT INTO ONCE t BY NAME SELECT a FROM STREAM(s)", "INVALID_FLOW_QUERY_TYPE", "runs once", "column 59"},
		{"CREATE FLOW f AS INSERT INTO t SELECT a FROM STREAM(s)", "NOT_SUPPORTED", "BY NAME", "column 32"},
		{"CREATE FLOW f AS INSERT INTO t (a) SELECT a FROM STREAM(s)", "NOT_SUPPORTED", "BY NAME", "column 32"},
		{"CREATE FLOW a.f AS INSERT INTO t BY NAME SELECT a FROM STREAM(s)", "PARSE_SYNTAX_ERROR", "more than one part", "column 13"},
		{"CREATE FLOW f AS SELECT a FROM STREAM(s)", "PARSE_SYNTAX_ERROR", "INSERT INTO or AUTO CDC INTO", "column 18"},
		{"CREATE FLOW f AS MERGE INTO t USING s ON a = b", "UNSUPPORTED_PIPELINE_STATEMENT", "AUTO CDC INTO", "column 18"},
		{"CREATE FLOW f AS INSERT ONCE INTO ONCE t BY NAME SELECT a FROM s", "PARSE_SYNTAX_ERROR", "twice", "column 35"},
		{"CREATE OR REFRESH FLOW f AS INSERT INTO t BY NAME SELECT a FROM STREAM(s)", "PARSE_SYNTAX_ERROR", "FLOW stands where", "column 19"},
		{"CREATE STREAMING TABLE t FLOW REPLACE WHERE d > 1 BY NAME SELECT 1", "NOT_SUPPORTED", "REPLACE WHERE", "column 31"},
		{"CREATE STREAMING TABLE t FLOW SELECT 1", "PARSE_SYNTAX_ERROR", "AUTO CDC or INSERT", "column 31"},
		{"CREATE FLOW f AS AUTO CDC INTO t FROM s KEYS (id) SEQUENCE BY n", "INVALID_FLOW_QUERY_TYPE", "FROM STREAM(s)", "column 39"},
		{"CREATE FLOW f AS AUTO CDC ONCE INTO t FROM STREAM(s) KEYS (id) SEQUENCE BY n", "INVALID_FLOW_QUERY_TYPE", "FROM s", "column 44"},
		{"CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(SELECT * FROM s) KEYS (id) SEQUENCE BY n", "PARSE_SYNTAX_ERROR", "temporary view", "column 39"},
		{"CREATE FLOW f AS AUTO CDC INTO t FROM (SELECT * FROM s) KEYS (id) SEQUENCE BY n", "PARSE_SYNTAX_ERROR", "temporary view", "column 39"},
		{"CREATE FLOW f AS AUTO CDC INTO t FROM STREAM read_files('/x') KEYS (id) SEQUENCE BY n", "PARSE_SYNTAX_ERROR", "read_files", "column 39"},
		{"CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(s) SEQUENCE BY n", "PARSE_SYNTAX_ERROR", "no KEYS", ""},
		{cdc + "SEQUENCE BY n APPLY AS DELETE WHEN op = 'D'", "PARSE_SYNTAX_ERROR", "APPLY AS DELETE WHEN stands after SEQUENCE BY", "column 73"},
		{cdc + "SEQUENCE BY n APPLY AS TRUNCATE WHEN op = 'T'", "PARSE_SYNTAX_ERROR", "APPLY AS TRUNCATE WHEN stands after SEQUENCE BY", "column 73"},
		{cdc + "SEQUENCE BY n STORED AS SCD TYPE 2 COLUMNS a, id", "PARSE_SYNTAX_ERROR", "COLUMNS stands after STORED AS", ""},
		{cdc + "SEQUENCE BY n SEQUENCE BY m", "PARSE_SYNTAX_ERROR", "SEQUENCE BY is given twice", "column 73"},
		{cdc + "SEQUENCE BY n STORED AS SCD TYPE 3", "PARSE_SYNTAX_ERROR", "1 or 2", "column 92"},
		{cdc + "SEQUENCE BY n STORED AS BITEMPORAL", "NOT_SUPPORTED", "BITEMPORAL", ""},
		{cdc + "SEQUENCE BY n SYSTEM SEQUENCE BY m", "NOT_SUPPORTED", "SYSTEM SEQUENCE BY", ""},
		{cdc + "SEQUENCE BY n COLUMNS TO UPDATE c", "NOT_SUPPORTED", "COLUMNS TO UPDATE", ""},
		{cdc + "APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY n STORED AS SCD TYPE 2", "PARSE_SYNTAX_ERROR", "SCD TYPE 1 only", "column 82"},
		{cdc + "SEQUENCE BY n TRACK HISTORY ON a", "PARSE_SYNTAX_ERROR", "SCD TYPE 2 only", ""},
		{cdc + "SEQUENCE BY n COLUMNS * EXCEPT (ID)", "AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA", "id", ""},
		{cdc + "SEQUENCE BY n COLUMNS a, b", "AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA", "id", ""},
		{cdc + "SEQUENCE BY n COLUMNS *", "PARSE_SYNTAX_ERROR", "EXCEPT", ""},
		{cdc + "SEQUENCE BY n COLUMNS id, a, A", "PARSE_SYNTAX_ERROR", "twice", ""},
		{cdc + "SEQUENCE BY n, m", "PARSE_SYNTAX_ERROR", "second expression", "column 72"},
		{cdc + "SEQUENCE BY", "PARSE_SYNTAX_ERROR", "a column, or STRUCT", ""},
		{cdc + "APPLY AS DELETE WHEN op = = 1 SEQUENCE BY n", "PARSE_SYNTAX_ERROR", "", "column 85"},
		{cdc + "SEQUENCE BY n WHERE a > 1", "PARSE_SYNTAX_ERROR", "", ""},
		{"AUTO CDC INTO t FROM STREAM(s) KEYS (id) SEQUENCE BY n", "UNSUPPORTED_PIPELINE_STATEMENT", "CREATE FLOW", "column 1"},
	} {
		wantFault(t, c.text, c.code, c.says, c.where)
	}
}

func TestTheExpressionsOfAFlowKeepTheirPlace(t *testing.T) {
	list, err := ParsePipeline("t.sql", "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(s) KEYS (id)\n  APPLY AS DELETE WHEN\n    id > nope\n  SEQUENCE BY id", Settings{})
	if err != nil {
		t.Fatal(err)
	}
	e := openEngine(t)
	in := map[string]*arrow.Schema{"s": stream(t, table(t, "id INT", "[]"), "").Schema()}
	if s, err := e.Describe(t.Context(), list[0].CDC.SequenceBy.Select("s"), in); err != nil || s.Field(0).Type != arrow.PrimitiveTypes.Int32 {
		t.Errorf("%v, %v", s, err)
	}
	_, err = e.Describe(t.Context(), list[0].CDC.DeleteWhen.Select("s"), in)
	if fault.CodeOf(err) != "UNRESOLVED_COLUMN" || !strings.Contains(err.Error(), "t.sql, line 3, column 10") {
		t.Error(err)
	}
}
