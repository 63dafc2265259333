package pipeline

import (
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/sql"
)

// notYet refuses by name what pipeline SQL can say and no update can run yet.
func notYet(st *sql.Statement) error {
	at := fault.Where{Dataset: st.Name, File: st.File, Line: int64(st.Line)}
	refuse := func(at fault.Where, what, hint string) error {
		return fault.New("NOT_SUPPORTED", "%s cannot be run yet", what).WithHint("%s", hint).At(at)
	}
	switch st.Kind {
	case sql.StreamingTable, sql.TemporaryView, sql.MaterializedView:
	case sql.View:
		return refuse(at, "CREATE VIEW", "Declare a temporary view")
	case sql.AutoCDCFlow:
		return refuse(at, "CREATE FLOW … AUTO CDC", "Keep the changes in a streaming table")
	default:
		return refuse(at, "CREATE FLOW", "Give the table its query with AS SELECT")
	}
	if st.Query == "" && len(st.Sources) == 0 {
		return refuse(at, "a streaming table without AS SELECT", "Give it its query with AS SELECT")
	}
	for _, c := range st.Columns {
		if c.Generated != "" {
			return refuse(fault.Where{File: st.File, Line: int64(c.Line)}, "the generated column "+c.Name, "Compute it in the query")
		}
	}
	for _, src := range st.Sources {
		place := fault.Where{File: st.File, Line: int64(src.Line), Column: int64(src.Column)}
		switch {
		case src.Function != nil:
			return refuse(place, src.Function.Name+"(…) in SQL", "Declare a dataset with this function in the plugin's manifest")
		case src.EventLog != nil:
			return refuse(place, "event_log(…)", "Read the log's table by its name")
		case src.Changes != nil:
			return refuse(place, "table_changes(…)", "Use weir delta changes")
		case len(src.Options) > 0:
			return refuse(place, "STREAM … WITH (…)", "Leave the options out")
		}
	}
	return nil
}
