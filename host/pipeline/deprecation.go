package pipeline

import (
	"fmt"
	"path/filepath"

	"github.com/weir-data/weir/host/catalog"
	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/sql"
)

// deprecation is a spelling of older releases in an SQL file.
type deprecation struct {
	dataset, what, instead, file string
	line                         int
}

func (g *graph) deprecations(statements []sql.Statement) []deprecation {
	var out []deprecation
	for _, st := range statements {
		dataset := st.Name
		if st.Flow != nil {
			dataset = st.Flow.Target
		}
		if name, err := catalog.ParseName(dataset, g.defaults); err == nil && st.Kind != sql.TemporaryView {
			dataset = name.String()
		}
		for _, d := range st.Deprecated {
			out = append(out, deprecation{dataset, d.What, d.Instead, st.File, d.Line})
		}
	}
	return out
}

// String tells it to a person.
func (d deprecation) String() string {
	return fmt.Sprintf("%s, line %d: %s is deprecated. %s", filepath.Base(d.file), d.line, d.what, d.instead)
}

// logDeprecations tells what is accepted and better written another way.
func (u *update) logDeprecations() {
	for _, d := range u.p.deprecated {
		u.log.Emit(events.Event{
			Type: events.Deprecation, Level: events.Warn, Message: d.what + " is deprecated. " + d.instead,
			Origin:  events.Origin{DatasetName: d.dataset},
			Details: events.DeprecationDetails{Feature: d.what, Instead: d.instead, File: d.file, Line: int64(d.line)},
		})
	}
}
