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
