package pipeline

import (
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/sql"
)

// notYet refuses by name what pipeline SQL can say and no update can run yet.
func notYet(st *sql.Statement) error {
	refuse := func(at fault.Where, what, hint string) error {
		return fault.New("NOT_SUPPORTED", "%s cannot be run yet", what).WithHint("%s", hint).At(at)
	}
	sources := st.Sources
	if st.CDC != nil {
		sources = append(sources[:len(sources):len(sources)], st.CDC.Source)
	}
	for _, src := range sources {
		place := fault.Where{File: st.File, Line: int64(src.Line), Column: int64(src.Column)}
		switch {
		case src.Changes != nil:
			return refuse(place, "table_changes(…)", "Use weir delta changes")
		}
	}
	return nil
}
