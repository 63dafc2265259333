package sql

import (
	"strings"
	"testing"
)

// covers A157
func TestEventLogsOfASelectGetNames(t *testing.T) {
	for _, c := range []struct {
		text string
		logs []EventLogRef
	}{
		{"SELECT 1", nil},
		{"SELECT 'event_log(''x'')' AS event_log FROM t -- from event_log('y')", nil},
		{"SELECT * FROM event_log('shop')", []EventLogRef{{Pipeline: "shop"}}},
		{"SELECT * FROM Event_Log ( TABLE(a.b.c) ) e JOIN\n event_log('x')\n ON true", []EventLogRef{{Table: "a.b.c"}, {Pipeline: "x"}}},
		{"SELECT * FROM t, event_log(\n'shop'\n) WHERE a IN (SELECT id FROM event_log(TABLE(`q t`)))", []EventLogRef{{Pipeline: "shop"}, {Table: "q t"}}},
	} {
		got, logs, err := EventLogs(c.text)
		if err != nil || len(got) != len(c.text) || strings.Count(got, "\n") != strings.Count(c.text, "\n") || len(logs) != len(c.logs) {
			t.Fatalf("%q: %q %v %v", c.text, got, logs, err)
		}
		if len(c.logs) == 0 && got != c.text {
			t.Errorf("%q became %q", c.text, got)
		}
		for i, want := range c.logs {
			name := numbered(logPrefix, i+1)
			if logs[name] == nil || *logs[name] != want || !strings.Contains(got, name) {
				t.Errorf("%q: %+v in %q", c.text, logs[name], got)
			}
		}
	}
	for _, bad := range []string{"SELECT * FROM event_log()", "SELECT * FROM event_log(x)", "SELECT * FROM event_log('a', 'b')", "SELECT * FROM event_log(TABLE(", "SELECT * FROM event_log('a'"} {
		if _, _, err := EventLogs(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if _, _, err := EventLogs("SELECT * FROM " + strings.Repeat("event_log(''),", 120) + "t"); err == nil {
		t.Error("a name that does not fit is taken")
	}
}

func FuzzEventLogsKeepPlaces(f *testing.F) {
	f.Add("SELECT * FROM event_log('x') JOIN event_log(TABLE(t))")
	f.Fuzz(func(t *testing.T, text string) {
		got, _, err := EventLogs(text)
		if err == nil && len(got) != len(text) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
