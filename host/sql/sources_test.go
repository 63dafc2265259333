package sql

import (
	"fmt"
	"strings"
	"testing"
)

// covers A2, A3, A73, A75, A118, A157, A202
func TestSourcesThatAreNoTables(t *testing.T) {
	for _, c := range []struct{ query, want, text string }{
		{"SELECT * FROM STREAM t WITH (skipChangeCommits = true, startingVersion = 0) AS x", "t stream map[skipChangeCommits:true startingVersion:0]", "SELECT * FROM t AS x"},
		{"SELECT * FROM STREAM(t) WITH (SKIPCHANGECOMMITS)", "t stream map[SKIPCHANGECOMMITS:true]", "SELECT * FROM t"},
		{"SELECT * FROM STREAM t WITH ('readChangeFeed' = 'true') JOIN u USING (a)", "t stream map[readChangeFeed:true],u", "SELECT * FROM t JOIN u USING (a)"},
		{"SELECT * FROM sap.vbap_typed(STREAM bronze.sap_vbap) v", "sap.vbap_typed(bronze.sap_vbap stream) stream", "SELECT * FROM __weir_function_0 v"},
		{"SELECT * FROM STREAM sap.vbap_typed(STREAM(a), rates => b.c, TABLE(d))", "sap.vbap_typed(a stream,rates=b.c,d) stream", "SELECT * FROM __weir_function_0"},
		{"SELECT * FROM sap.f(STREAM read_files('/x', format => 'csv')) JOIN c USING (id)", "sap.f(files /x stream) stream,c", "SELECT * FROM __weir_function_0 JOIN c USING (id)"},
		{"SELECT * FROM a.f(), STREAM(b)", "a.f(),b stream", "SELECT * FROM __weir_function_0, b"},
		{"SELECT * FROM event_log('shop') l, STREAM(b)", "log shop,b stream", "SELECT * FROM __weir_log_0 l, b"},
		{"SELECT * FROM event_log(TABLE(a.b.c)), STREAM(b)", "log of a.b.c,b stream", "SELECT * FROM __weir_log_0, b"},
		{"SELECT * FROM table_changes('a.b', 1), STREAM(b)", "changes of a.b 1..,b stream", "SELECT * FROM __weir_changes_0, b"},
		{"SELECT * FROM table_changes('`a b`.c', 1, 5), STREAM(b)", "changes of a b.c 1..5,b stream", "SELECT * FROM __weir_changes_0, b"},
		{"SELECT * FROM table_changes('a', '2026-01-01', '2026-02-01'), STREAM(b)", "changes of a 2026-01-01..2026-02-01 by time,b stream", "SELECT * FROM __weir_changes_0, b"},
		{"SELECT * FROM STREAM(LIVE.a) x JOIN live.b USING (id) JOIN LIVE.`c d` USING (id)", "a stream,b,c d", "SELECT * FROM a x JOIN b USING (id) JOIN `c d` USING (id)"},
		{"SELECT extract(year FROM a.f(b)), trim('x' FROM c.d(e)) FROM STREAM(b)", "b stream", "SELECT extract(year FROM a.f(b)), trim('x' FROM c.d(e)) FROM b"},
		{"SELECT * FROM STREAM(b), range(3) r(n), unnest([1, 2]) AS u(m)", "b stream", "SELECT * FROM b, range(3) r(n), unnest([1, 2]) AS u(m)"},
	} {
		t.Run(c.query, func(t *testing.T) {
			st := parseOne(t, "CREATE STREAMING TABLE t AS "+c.query, nil)
			var got []string
			for _, s := range st.Sources {
				got = append(got, describeSource(s))
			}
			if g := strings.Join(got, ","); g != c.want {
				t.Errorf("sources %s\nwant    %s", g, c.want)
			}
			if st.Query != c.text {
				t.Errorf("query %s\nwant  %s", st.Query, c.text)
			}
		})
	}
}

func describeSource(s SourceRef) string {
	text := s.Table
	switch {
	case s.Files != nil:
		text = "files " + s.Files.Path
	case s.EventLog != nil && s.EventLog.Table != "":
		text = "log of " + s.EventLog.Table
	case s.EventLog != nil:
		text = "log " + s.EventLog.Pipeline
	case s.Changes != nil:
		text = fmt.Sprintf("changes of %s %s..%s", s.Table, s.Changes.From, s.Changes.To)
		if s.Changes.ByTime {
			text += " by time"
		}
	case s.Function != nil:
		var args []string
		for _, a := range s.Function.Args {
			arg := describeSource(a)
			if a.Alias != "" {
				arg = a.Alias + "=" + arg
			}
			args = append(args, arg)
		}
		text = s.Function.Name + "(" + strings.Join(args, ",") + ")"
	}
	if s.Stream {
		text += " stream"
	}
	if s.Options != nil {
		text += fmt.Sprint(" ", s.Options)
	}
	return text
}

// covers A2, A3, A25, A121, A125, A127, A136
func TestSourcesThatAreRefused(t *testing.T) {
	st := func(from string) string { return "CREATE STREAMING TABLE t AS SELECT * FROM " + from }
	for _, c := range []struct{ text, code, says, where string }{
		{st("read_kafka(bootstrapServers => 'x', subscribe => 'y')"), "NOT_SUPPORTED", "read_kafka(…)", "column 43"},
		{st("STREAM read_kinesis(streamName => 'x')"), "NOT_SUPPORTED", "read_kinesis(…)", "column 43"},
		{st("STREAM read_pubsub(topicId => 'x')"), "NOT_SUPPORTED", "read_pubsub(…)", "column 43"},
		{st("STREAM read_pulsar(topics => 'x')"), "NOT_SUPPORTED", "read_pulsar(…)", "column 43"},
		{st("cloud_files_state('/x'), STREAM(b)"), "NOT_SUPPORTED", "weir files", "column 43"},
		{st("cloud_files('/x', 'json')"), "NOT_SUPPORTED", "read_files", "column 43"},
		{st("STREAM (event_log('x'))"), "PARSE_SYNTAX_ERROR", "STREAM event_log(…), without", "column 43"},
		{st("STREAM event_log('x')"), "PARSE_SYNTAX_ERROR", "not read with STREAM", "column 43"},
		{st("STREAM table_changes('x', 1)"), "PARSE_SYNTAX_ERROR", "readChangeFeed", "column 43"},
		{st("event_log(x), STREAM(b)"), "PARSE_SYNTAX_ERROR", "in quotes", "column 53"},
		{st("table_changes('x'), STREAM(b)"), "PARSE_SYNTAX_ERROR", "the version to begin with", "column 60"},
		{st("table_changes('x y', 1), STREAM(b)"), "PARSE_SYNTAX_ERROR", "not the name of a table", "column 57"},
		{st("table_changes('x', 1, '2026-01-01'), STREAM(b)"), "PARSE_SYNTAX_ERROR", "one of each", "column 65"},
		{st("table_changes('x', 1, 2, 3), STREAM(b)"), "PARSE_SYNTAX_ERROR", "three arguments", "column 68"},
		{st("STREAM f(x)"), "UNRESOLVABLE_TABLE_VALUED_FUNCTION", "module.function", "column 43"},
		{st("vbap_typed(STREAM x)"), "UNRESOLVABLE_TABLE_VALUED_FUNCTION", "module.function(STREAM …)", "column 43"},
		{st("a.b.c(STREAM x)"), "UNRESOLVABLE_TABLE_VALUED_FUNCTION", "a.b.c", "column 43"},
		{st("sap.f(STREAM x, STREAM y)"), "NOT_SUPPORTED", "two streams", "column 59"},
		{st("sap.f(STREAM x, 3)"), "PARSE_SYNTAX_ERROR", "relations, not values", "column 59"},
		{st("sap.f(sap.g(STREAM x))"), "NOT_SUPPORTED", "temporary view", "column 49"},
		{st("STREAM(x) WATERMARK ts DELAY OF INTERVAL 10 MINUTES"), "NOT_SUPPORTED", "WATERMARK", "column 53"},
		{st("STREAM x AS y WATERMARK ts DELAY OF INTERVAL 10 MINUTES AS z"), "NOT_SUPPORTED", "WATERMARK", ""},
		{st("a PIVOT (sum(y) FOR x IN (1, 2)), STREAM(b)"), "NOT_SUPPORTED", "PIVOT", "column 45"},
		{st("STREAM(b) GROUP BY window(ts, '1 hour')"), "NOT_SUPPORTED", "window(…)", "column 62"},
		{st("STREAM x WITH (a = 1, A = 2)"), "PARSE_SYNTAX_ERROR", "twice", "column 65"},
		{st("STREAM x WITH (a = 1) UNION ALL SELECT * FROM STREAM x"), "NOT_SUPPORTED", "different options", "column 89"},
		{st("STREAM(o) JOIN STREAM(p) ON o.id = p.id AND p.t BETWEEN o.t AND o.t + INTERVAL 1 HOUR"), "NOT_SUPPORTED", "joins of two streams come later", ""},
	} {
		wantFault(t, c.text, c.code, c.says, c.where)
	}
}
