package pipeline

import (
	"fmt"
	"path/filepath"

	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/sql"
)

// deprecation is a spelling of older releases in an SQL file.
type deprecation struct {
	what, instead, file string
	line                int
}

func deprecations(statements []sql.Statement) []deprecation {
	var out []deprecation
	for _, st := range statements {
		for _, d := range st.Deprecated {
			out = append(out, deprecation{d.What, d.Instead, st.File, d.Line})
		}
	}
	return out
}

// automatic gives a notice of each dataset that leaves to Lakeflow's service a
// choice which nothing here makes.
func (g *graph) automatic() []Notice {
	var out []Notice
	for _, d := range g.sorted() {
		if d.clusterAuto {
			out = append(out, Notice{
				Code: "IGNORED_SETTING", Setting: "CLUSTER BY AUTO", Line: int(d.place.Line),
				Message: fmt.Sprintf("CLUSTER BY AUTO of %s has no effect here: nothing chooses keys. Name the columns that queries filter by", d.id),
			})
		}
	}
	return out
}

// String tells it to a person.
func (d deprecation) String() string {
	return fmt.Sprintf("%s, line %d: %s is deprecated. %s", filepath.Base(d.file), d.line, d.what, d.instead)
}

func (u *update) logDeprecations() {
	for _, d := range u.p.deprecated {
		u.log.Emit(events.Event{Type: events.Deprecation, Message: d.String(), Details: events.DeprecationDetails{
			Feature: d.what, Instead: d.instead, File: d.file, Line: int64(d.line),
		}})
	}
}
