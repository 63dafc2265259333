package pipeline

import (
	"slices"

	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
)

// checkDataset refuses a dataset whose parts do not go together.
func (g *graph) checkDataset(d *dataset) error {
	refuse := func(code, format string, args ...any) *fault.Error {
		return fault.New(code, format, args...).At(fault.Where{Dataset: d.id}).At(d.place)
	}
	if len(d.rules) > 0 && d.kind == persistentView {
		return refuse("NOT_SUPPORTED", "expectations on a persistent view").WithHint("Put them on what it reads")
	}
	setsAside := func(r expect.Rule) bool { return r.Action == expect.Quarantine }
	if d.kind == temporaryView && slices.ContainsFunc(d.rules, setsAside) && d.query().streamInput() == nil {
		return refuse("NOT_SUPPORTED", "a quarantine for a view that streams nothing: its rows come from no single source row").
			WithHint("Drop them, or put the rule on the materialized view that reads it")
	}
	if d.isTable() && d.quarantines() {
		if other := g.tables[d.name.Quarantine()]; other != nil {
			return fault.New("PIPELINE_DUPLICATE_IDENTIFIERS", "the dataset has the name of the quarantine table of %s", d.id).
				At(fault.Where{Dataset: other.id}).At(other.place).WithHint("Rename it")
		}
	}
	if i := slices.IndexFunc(d.flows, func(f *flow) bool { return f.kind == snapshotFlow }); i >= 0 && len(d.flows) > 1 {
		return fault.New("INCOMPATIBLE_FLOWS", "a flow of snapshots and others fill one table").At(d.flows[i].where()).
			WithHint("What the next snapshot lacks was deleted, so nothing else can fill its table: fill two")
	}
	return d.checkMerges()
}

// checkFlow holds streams and batches apart: what is appended batch by batch
// needs one stream, what is computed as a whole has none, and a view is read
// as what it is.
func checkFlow(f *flow) error {
	var streams []*input
	for _, in := range f.body.inputs {
		if in.stream {
			streams = append(streams, in)
		}
		if err := checkInput(f, in); err != nil {
			return err
		}
	}
	refuse := func(code, format string, args ...any) *fault.Error {
		return fault.New(code, format, args...).At(f.where())
	}
	if len(streams) > 1 {
		return refuse("NOT_SUPPORTED", "a join of two streams (%s and %s)", streams[0].id(), streams[1].id()).
			WithHint("Read one of them without STREAM")
	}
	if f.kind == autoCDCFlow && f.cdc.sequenceBy.Text == "" && !f.readsFeed() {
		return refuse("PARSE_SYNTAX_ERROR", "the AUTO CDC flow has no SEQUENCE BY").
			WithHint("Write SEQUENCE BY column, or SEQUENCE BY STRUCT(time, counter) when times can be equal. Only a change feed needs none: its commits have versions")
	}
	streaming := len(streams) == 1
	switch {
	case f.kind == completeFlow:
		if streaming {
			return refuse("INVALID_FLOW_QUERY_TYPE", "Cannot create materialized view from streaming query: %s is read as a stream", streams[0].id()).At(streams[0].place).
				WithHint("Read it without STREAM, or make a streaming table")
		}
		if st := f.body.statement; st != nil && st.Query != "" {
			return st.CheckAliases()
		}
	case f.runsOnce():
		if streaming {
			return refuse("INVALID_FLOW_QUERY_TYPE", "a flow that runs once reads %s as a stream", streams[0].id()).At(streams[0].place).
				WithHint("Read it without STREAM: everything that is there is taken one time")
		}
	case f.kind == snapshotFlow:
		if streaming {
			return refuse("INVALID_FLOW_QUERY_TYPE", "a flow of snapshots reads %s as a stream", streams[0].id()).At(streams[0].place).
				WithHint("Read it without STREAM: a snapshot is all that is there")
		}
		if f.body.function == nil {
			if ruled := f.body.ruledBatchViews(nil); len(ruled) > 0 {
				return refuse("NOT_SUPPORTED", "the snapshots come from %s, which has expectations: a row that it drops would be missing, and what is missing was deleted", ruled[0].id).
					WithHint("Put the expectations on %s: a row that they drop there keeps its key", f.target.id)
			}
		}
	case f.kind == viewFlow:
		if f.target.kind == persistentView {
			return checkPersistent(f, streaming)
		}
	default:
		if !streaming {
			return refuse("INVALID_FLOW_QUERY_TYPE", "Cannot create streaming table from batch query: no input is read as a stream").
				WithHint("Write STREAM before the input whose new rows are to be appended, or make a materialized view")
		}
		if ruled := f.body.ruledBatchViews(nil); len(ruled) > 0 {
			return refuse("NOT_SUPPORTED", "beside a stream, the expectations of %s would be counted anew in every batch", ruled[0].id).
				WithHint("Make it a materialized view and read that")
		}
		if path := batchFiles(&f.body); path != "" {
			return refuse("NOT_SUPPORTED", "beside a stream, files are read as a stream only, not as a batch input").
				WithHint("Load %s into a materialized view or a streaming table and read that", path)
		}
	}
	return nil
}

// checkInput refuses to read what cannot be read in that way.
func checkInput(f *flow, in *input) error {
	refuse := func(code, format string, args ...any) *fault.Error {
		return fault.New(code, format, args...).At(fault.Where{Dataset: f.target.id, Flow: f.name}).At(in.place).At(f.place)
	}
	if err := in.checkOptions(); err != nil {
		return located(err, "INVALID_OPTION", fault.Where{Dataset: f.target.id, Flow: f.name, File: in.place.File, Line: in.place.Line})
	}
	kind := in.externalKind
	if in.dataset != nil {
		kind = in.dataset.kind
	}
	if in.stream && kind == materializedView {
		return refuse("STREAMING_FROM_MATERIALIZED_VIEW", "Cannot stream from materialized view %s: its rows are replaced, not added to", in.id()).
			WithHint("Read it without STREAM, or stream from what it reads")
	}
	if in.stream && kind == persistentView {
		return refuse("INCOMPATIBLE_BATCH_VIEW_READ", "%s is a view and cannot be read as a stream", in.id()).
			WithHint("Write %s without STREAM, or make it a temporary view", in.id())
	}
	if in.dataset == nil || !in.dataset.isView() {
		return nil
	}
	streaming := in.dataset.query().streamInput() != nil
	if streaming && !in.stream {
		return refuse("INCOMPATIBLE_STREAMING_VIEW_READ", "%s is a streaming view and must be read as a stream", in.dataset.id).
			WithHint("Write STREAM(%s)", in.dataset.id)
	}
	if !streaming && in.stream {
		return refuse("INCOMPATIBLE_BATCH_VIEW_READ", "%s is a batch view and cannot be read as a stream", in.dataset.id).
			WithHint("Write %s without STREAM", in.dataset.id)
	}
	return nil
}

// checkPersistent holds that others can compute a persistent view: from tables
// and views that they see.
func checkPersistent(f *flow, streaming bool) error {
	refuse := func(code, format string, args ...any) *fault.Error {
		return fault.New(code, format, args...).At(f.where())
	}
	if streaming {
		return refuse("INVALID_FLOW_QUERY_TYPE", "a persistent view cannot hold a streaming query").
			WithHint("Make it a temporary view, or read without STREAM")
	}
	for _, in := range f.body.inputs {
		switch {
		case in.files != nil:
			return refuse("NOT_SUPPORTED", "a persistent view over files").At(in.place).WithHint("Load %s into a table and read that", in.files.path)
		case in.quarantine != nil && in.quarantine.private, in.dataset != nil && in.dataset.private:
			return refuse("INVALID_TEMP_OBJ_REFERENCE", "the view is for others to read, and %s is private", in.id()).At(in.place).
				WithHint("Publish what it reads")
		case in.dataset != nil && in.dataset.kind == temporaryView:
			return refuse("INVALID_TEMP_OBJ_REFERENCE", "the view is for others to read, and %s is temporary", in.id()).At(in.place).
				WithHint("Make it a view of its own")
		}
	}
	return nil
}

// batchFiles gives the path of files that a query reads whole, through views or
// not, "" when there are none.
func batchFiles(b *body) string {
	for _, in := range b.inputs {
		if in.files != nil && !in.stream {
			return in.files.path
		}
		if in.dataset != nil && in.dataset.isView() {
			if path := batchFiles(in.dataset.query()); path != "" {
				return path
			}
		}
	}
	return ""
}
