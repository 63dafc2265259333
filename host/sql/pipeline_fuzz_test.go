package sql

import (
	"testing"

	"github.com/weir-data/weir/host/fault"
)

// FuzzParsePipeline holds that a file is read whole or refused with a name and
// a place, and that what is read is complete.
func FuzzParsePipeline(f *testing.F) {
	for _, b := range seedBlocks(f) {
		f.Add(b.text)
	}
	for _, s := range []string{
		"CREATE OR REFRESH STREAMING TABLE t (a INT, CONSTRAINT c EXPECT (a > 0) ON VIOLATION DROP ROW) AS SELECT * FROM STREAM read_files('${p}', format => 'json')",
		"CREATE TEMPORARY VIEW v AS SELECT `a` FROM STREAM(b.c) x, d;", "CREATE STREAMING TABLE t TBLPROPERTIES ('a' = 1) CLUSTER BY AUTO AS SELECT 1",
		"-- x\n/* /* */ */ ${p} '${p}' \"${p}\" `${p}` $$ $$ E'\\''", "CREATE STREAMING TABLE t AS SELECT * FROM STREAM", "CREATE STREAMING TABLE t (a DECIMAL(",
		"SET a = 'b'; CREATE MATERIALIZED VIEW m AS SELECT ${a}, :a FROM IDENTIFIER(:a || '.b')", "USE a.b; CREATE STREAMING TABLE t FLOW INSERT ONCE BY NAME SELECT * FROM sap.f(x => TABLE(y))",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := seedSettings
		in.Configuration = map[string]string{"p": "it's `a` \"value\"", "catalog": "c", "source_catalog": "d", "course.landing": "/in", "course.min_qty": "2"}
		list, err := ParsePipeline("f.sql", text, in)
		if err != nil {
			if fault.CodeOf(err) == "" || fault.CodeOf(err) == "INTERNAL_ERROR" {
				t.Fatalf("an error without a name: %v", err)
			}
			return
		}
		for _, s := range list {
			complete(t, &s)
		}
	})
}

func complete(t *testing.T, s *Statement) {
	t.Helper()
	hasQuery := s.Kind != AutoCDCFlow && s.Kind != StreamingTable
	if s.Line < 1 || s.Name == "" || hasQuery && s.Query == "" || s.Query != "" && s.QueryLine < s.Line {
		t.Fatalf("%+v", s)
	}
	if (s.Kind == Flow || s.Kind == AutoCDCFlow) != (s.Flow != nil) || (s.Kind == AutoCDCFlow) != (s.CDC != nil) {
		t.Fatalf("%+v", s)
	}
	if s.Flow != nil && s.Flow.Target == "" || s.CDC != nil && (len(s.CDC.Keys) == 0 || s.CDC.SequenceBy.Text == "") {
		t.Fatalf("%+v", s)
	}
	for _, src := range s.Sources {
		kinds := 0
		for _, is := range []bool{src.Files != nil, src.Function != nil, src.EventLog != nil, src.Table != ""} {
			if is {
				kinds++
			}
		}
		if kinds != 1 || src.Alias == "" || src.Line < 1 || (src.Table == "") != (src.Written == "") {
			t.Fatalf("%+v in %+v", src, s)
		}
	}
}
