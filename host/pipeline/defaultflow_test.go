package pipeline

import (
	"strings"
	"testing"

	"github.com/weir-data/weir/host/sql"
)

// A table's own query is its default flow, under the table's name; others are
// added to it, each with source, query and target.
// covers A211
func TestATableHasADefaultFlow(t *testing.T) {
	g, err := build(other("c.s.a", "c.s.b"), table("t", "STREAM(a)"), insert("f", "t", "STREAM(b)"), target("filled"), insert("g", "filled", "STREAM(b)"), mv("m", "t"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"t": {"t append c.s.a", "f append c.s.b"}, "filled": {"g append c.s.b"}, "m": {"m complete c.s.t"}}
	for name, flows := range want {
		d, _, _, err := g.lookup(name)
		if err != nil || d == nil || len(d.flows) != len(flows) {
			t.Fatalf("%s: %+v, %v", name, d, err)
		}
		for i, f := range d.flows {
			if got := f.name + " " + string(f.kind) + " " + f.body.inputs[0].id(); got != flows[i] || f.target != d {
				t.Errorf("%s has flow %q, want %q", name, got, flows[i])
			}
		}
	}
}

// A row filter, on a table or a column, is refused by name: nothing here would
// hold it, and rows that were to be hidden would be shown.
// covers A156 A169
func TestRowFiltersAreRefusedByName(t *testing.T) {
	for _, clauses := range []string{"WITH ROW FILTER f ON (one)", "(one INT MASK f)", "(one INT MASK f USING COLUMNS (one))"} {
		for _, kind := range []string{"STREAMING TABLE t %s AS SELECT 1 AS one FROM STREAM(a)", "MATERIALIZED VIEW m %s AS SELECT 1 AS one"} {
			text := "CREATE " + strings.Replace(kind, "%s", clauses, 1) + ";"
			_, err := sql.ParsePipeline("a.sql", text, sql.Settings{})
			wantFault(t, err, "NOT_SUPPORTED", "a.sql", "views that others read")
		}
	}
}
