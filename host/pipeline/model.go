package pipeline

import (
	"errors"
	"iter"
	"slices"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/catalog"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/stream"
)

// The kinds of datasets, in the words of the manifest.
const (
	streamingTable   = "streaming_table"
	temporaryView    = "temporary_view"
	materializedView = "materialized_view"
	persistentView   = "view"
	sink             = "sink"
)

// dataset is a table or view as its definition says.
type dataset struct {
	// id is the three-part name of a table, the bare name of a view.
	id   string
	kind string
	// name is set for what others can read: tables and persistent views.
	name catalog.Name

	comment     string
	private     bool
	properties  map[string]string
	partitionBy []string
	clusterBy   []string
	clusterAuto bool         // CLUSTER BY AUTO, which chooses no columns here
	guest       bool         // a module declares it, so that its SQL is not the operator's
	columns     []sql.Column // declared; nil when the query's own are taken
	keys        []sql.KeyConstraint
	rules       []expect.Rule
	onRowError  stream.RowErrorPolicy
	// refreshPolicy is how a materialized view wants to be refreshed.
	refreshPolicy stream.RefreshPolicy
	// format and options are those of a sink, module and function its handler.
	format   string
	options  map[string]string
	module   *module
	function *abi.Function
	sink     *sinkTable     // where the flows of a delta sink write
	outputs  []catalog.Name // where its handler writes

	// flows fill the table. A view has exactly one, which is its query.
	flows []*flow
	place fault.Where

	// intervalView asks for a view of the table's intervals; versionsOf is the table
	// that such a view shows.
	intervalView bool
	versionsOf   *dataset

	// foreign is set for a persistent view of another pipeline.
	foreign bool
}

// query gives the query of a view.
func (d *dataset) query() *body { return &d.flows[0].body }

// inputs gives what the dataset's flows read, flow by flow.
func (d *dataset) inputs() iter.Seq2[*flow, *input] {
	return func(yield func(*flow, *input) bool) {
		for _, f := range d.flows {
			for _, in := range f.body.inputs {
				if !yield(f, in) {
					return
				}
			}
		}
	}
}

// isView tells whether the dataset is a query that those who read it run.
func (d *dataset) isView() bool { return d.kind == temporaryView || d.kind == persistentView }

// isTable tells whether the dataset is a Delta table of this pipeline.
func (d *dataset) isTable() bool { return d.kind == streamingTable || d.kind == materializedView }

// quarantines tells whether rows of the dataset can end in its quarantine table.
func (d *dataset) quarantines() bool {
	for _, r := range d.rules {
		if r.Action == expect.Quarantine {
			return true
		}
	}
	for _, f := range d.flows {
		if f.rowErrorPolicy() == stream.QuarantineRowErrors {
			return true
		}
		for _, v := range f.ruledViews() {
			if slices.ContainsFunc(v.rules, func(r expect.Rule) bool { return r.Action == expect.Quarantine }) {
				return true
			}
		}
	}
	return false
}

// flowKind says how a flow's rows get into its target.
type flowKind string

// The kinds of flows, in the words of a plan.
const (
	appendFlow   flowKind = "append"                 // micro-batches, appended
	onceFlow     flowKind = "once"                   // a batch query, appended one time
	completeFlow flowKind = "complete"               // a batch query that replaces the rows
	autoCDCFlow  flowKind = "auto_cdc"               // changes, merged by key
	snapshotFlow flowKind = "auto_cdc_from_snapshot" // full snapshots, compared by key
	handlerFlow  flowKind = "foreach_batch"          // micro-batches, given to a function
	viewFlow     flowKind = "view"                   // the query of a view, run by those that read it
)

// flow is a query and the dataset its rows go to.
type flow struct {
	name       string
	kind       flowKind
	target     *dataset
	body       body
	onRowError stream.RowErrorPolicy
	// byName is set for flows of their own: columns of the target that the query
	// does not give are NULL.
	byName  bool
	comment string
	cdc     *changes // of an auto_cdc flow; of one from snapshots keys, type and history
	once    bool     // an auto_cdc flow takes what is there one time
	place   fault.Where
}

// where says which flow it is and where it is defined.
func (f *flow) where() fault.Where {
	return fault.Where{Dataset: f.target.id, Flow: f.name, File: f.place.File, Line: f.place.Line}
}

// rowErrorPolicy is the flow's, else the dataset's, else that of the nearest
// view on the way to the source: a view's author knows best what its rows need.
func (f *flow) rowErrorPolicy() stream.RowErrorPolicy {
	for at := f; at != nil; {
		if at.onRowError != "" {
			return at.onRowError
		}
		if at.target.onRowError != "" {
			return at.target.onRowError
		}
		in := at.body.streamInput()
		if in == nil || in.dataset == nil || !in.dataset.isView() || len(in.dataset.flows) == 0 {
			break
		}
		at = in.dataset.flows[0]
	}
	return stream.FailOnRowError
}

// body is a query: a SELECT, a function of a module, or neither, which passes
// the only input on.
type body struct {
	statement *sql.Statement
	module    *module
	function  *abi.Function
	inputs    []*input
}

// streamInput gives the streaming input, or nil for a batch query.
func (b *body) streamInput() *input {
	for _, in := range b.inputs {
		if in.stream {
			return in
		}
	}
	return nil
}

// input is one relation a body reads.
type input struct {
	// alias is the relation's name within the SELECT.
	alias  string
	stream bool
	// written is the dataset's name as the user wrote it; "" for files.
	written string
	// bare is the name before USE completed it: a temporary view has no other.
	bare    string
	options map[string]string // of a stream of a table
	columns []string          // the projection of a function
	files   *files
	log     *sql.EventLogRef    // an event_log(…)
	changes *stream.ChangeRange // a table_changes(…)
	place   fault.Where

	// Exactly one of these is set once names are resolved, unless files or log is.
	dataset    *dataset     // one of this pipeline's
	quarantine *dataset     // the quarantine table of one of this pipeline's
	external   catalog.Name // a table that is not this pipeline's

	externalKind string // what the external one is, as a dataset's kind; "" when nothing says
}

// files is a file source as written.
type files struct {
	kind    ingest.Kind
	path    string
	options map[string]string
}

// id names what the input reads, as the graph does.
func (in *input) id() string {
	switch {
	case in.files != nil:
		return in.files.path
	case in.log != nil:
		return eventLogID
	case in.dataset != nil:
		return in.dataset.id
	case in.quarantine != nil:
		return in.quarantine.name.Quarantine().String()
	}
	return in.external.String()
}

// upstream gives the dataset of this pipeline that the input waits for, if any.
func (in *input) upstream() *dataset {
	if in.dataset != nil {
		return in.dataset
	}
	return in.quarantine
}

// located fills in where err happened. File and line go together: an error that
// names a file of its own, such as a landing folder, does not get this line.
func located(err error, code string, w fault.Where) error {
	var e *fault.Error
	if errors.As(err, &e) && e.Where.File != "" {
		w.File, w.Line, w.Column = "", 0, 0
	}
	return fault.Place(err, code, w)
}
