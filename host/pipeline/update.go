package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/stream"
)

// update is one run of a pipeline's flows.
type update struct {
	p      *Pipeline
	opt    RunOptions
	chosen *selection
	log    *events.Log
	intent *refreshIntent // the full refreshes that are not begun
	slots  stream.Slots   // where the tasks of all flows run

	mu     sync.Mutex // guards what follows and intent while flows run, and the observer
	result *Result
	lines  map[string]*lineCount // what functions logged, by dataset
	unset  map[*dataset][]string // properties that are declared no longer
	began  map[*flow]bool        // flows whose generation of this update exists
	// accepted are those of RunOptions.AcceptSnapshots that let a snapshot pass.
	accepted map[string]bool

	previous *updateRecord // the update before, nil when this is the first
	order    []*flow       // of all tables, upstream first
	results  map[*flow]*FlowResult
	err      error // why the update could not start
}

// queue makes the result of every flow: those of the selection wait for their turn.
func (u *update) queue() {
	u.order, u.result.Flows = nil, nil
	for _, d := range u.p.graph.order {
		if d.isView() {
			continue
		}
		state := Excluded
		if u.chosen.run[d] {
			state = Queued
		}
		for _, f := range d.flows {
			u.result.Flows = append(u.result.Flows, FlowResult{Dataset: d.id, Flow: f.name, State: state, FullRefresh: u.chosen.full[d]})
			u.order = append(u.order, f)
		}
	}
	u.results = map[*flow]*FlowResult{}
	for i, f := range u.order {
		u.results[f] = &u.result.Flows[i]
	}
}

// run takes the selected flows to their end, again where that may help.
func (u *update) run(ctx context.Context) *Result {
	stop := u.running(ctx)
	u.pass(ctx)
	u.retry(ctx)
	u.warnOfAccepted()
	stop()
	u.ended(ctx)
	return u.result
}

// pass takes every queued flow through its source, each as soon as those it
// reads from are done.
func (u *update) pass(ctx context.Context) {
	results := u.results
	done := map[*dataset]chan struct{}{}
	var tables []*dataset
	for _, d := range u.p.graph.order {
		if u.chosen.run[d] && slices.ContainsFunc(d.flows, func(f *flow) bool { return results[f].State == Queued }) {
			done[d] = make(chan struct{})
			tables = append(tables, d)
		}
	}
	slots := make(chan struct{}, u.p.flowsAtOnce())
	var all sync.WaitGroup
	for _, d := range tables {
		all.Go(func() {
			defer close(done[d])
			if !u.prepare(ctx, d, done, results) {
				u.defined(d, nil)
				return
			}
			var flows sync.WaitGroup
			start := flows.Go
			if d.merges() {
				start = func(run func()) { run() } // one after the other: they share what they have seen
			}
			for _, f := range d.flows {
				if results[f].State != Queued {
					continue // it is done, or its failure will not pass
				}
				start(func() {
					if failed := u.await(f, done, results); failed != nil && ctx.Err() == nil {
						u.skip(results[f], failed)
						return
					}
					slots <- struct{}{}
					defer func() { <-slots }()
					u.runFlow(ctx, f, results[f])
				})
			}
			flows.Wait()
			u.defined(d, u.columns(d, results))
			u.lookAfter(ctx, d, results)
		})
	}
	all.Wait()
}

// await waits for the tables that a flow reads and gives one that was not
// refreshed, if there is one.
func (u *update) await(f *flow, done map[*dataset]chan struct{}, results map[*flow]*FlowResult) (failed *dataset) {
	for _, up := range f.upstreamTables() {
		if ended := done[up]; ended != nil {
			<-ended
		}
		u.mu.Lock()
		for _, of := range up.flows {
			if s := results[of].State; s == Failed || s == Skipped || s == Canceled {
				failed = up
			}
		}
		u.mu.Unlock()
	}
	return failed
}

// columns gives the columns that a table has after its flows ended, nil when it was not made.
func (u *update) columns(d *dataset, results map[*flow]*FlowResult) *arrow.Schema {
	u.mu.Lock()
	defer u.mu.Unlock()
	var newest *FlowResult
	for _, f := range d.flows {
		if r := results[f]; r.columns != nil && (newest == nil || r.Ended.After(newest.Ended)) {
			newest = r
		}
	}
	if newest == nil {
		return nil
	}
	return newest.columns
}

// skip leaves out a flow that reads from one that failed.
func (u *update) skip(f *FlowResult, failed *dataset) {
	u.change(f, Skipped, "skipped: "+failed.id+", which it reads, was not refreshed", nil)
}

// change moves a flow to a state and tells about it.
func (u *update) change(f *FlowResult, s State, message string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f.State = s
	switch s {
	case Queued:
		f.Err, f.Error, f.Started, f.Ended = nil, nil, time.Time{}, time.Time{}
	case Running:
		f.Started = u.p.now()
	case Completed, Failed, Canceled, Skipped:
		f.Ended = u.p.now()
	}
	if err != nil {
		f.Err, f.Error = err, errorInfo(err)
	}
	u.logFlow(f, message)
	told := Progress{Dataset: f.Dataset, Flow: f.Flow, State: s, Batch: -1, Metrics: f.Metrics, Err: err}
	if s == Skipped {
		told.Message = message // nothing else says why
	}
	u.tell(told)
}

// tell calls the observer; u.mu is held.
func (u *update) tell(p Progress) {
	if u.opt.Observer != nil {
		p.UpdateID = u.result.UpdateID
		u.opt.Observer(p)
	}
}

// runFlow runs one flow to the end of its source.
func (u *update) runFlow(ctx context.Context, fl *flow, f *FlowResult) {
	if ctx.Err() != nil {
		u.change(f, Canceled, "canceled before it started", placed(fl, fault.New("CANCELED", "the update was canceled before the flow started")))
		return
	}
	if fl.merges() {
		f.Changes = &stream.Counts{}
	}
	u.change(f, Running, "", nil)
	got, err := u.execute(ctx, fl, f)
	u.mu.Lock()
	f.finish(fl, got)
	f.columns = got.Columns
	u.mu.Unlock()
	u.warnOfInput(f)
	if err == nil {
		u.mu.Lock()
		u.logRunning(f)
		u.mu.Unlock()
	}
	switch {
	case err == nil:
		u.change(f, Completed, "completed", nil)
	case ctx.Err() != nil:
		// What a canceled flow complains of is that it was canceled.
		u.change(f, Canceled, "canceled", placed(fl, fault.New("CANCELED", "the update was canceled while the flow ran")))
	default:
		err = placed(fl, err)
		u.change(f, Failed, err.Error(), err)
	}
}

// placed says where the flow that failed is defined.
func placed(f *flow, err error) error {
	return fault.Place(err, "FLOW_FAILED", fault.Where{Dataset: f.target.id, Flow: f.name})
}

// execute runs a flow as its kind asks for. A panic is an error of this flow.
func (u *update) execute(ctx context.Context, fl *flow, f *FlowResult) (_ stream.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New("INTERNAL_ERROR", "the flow panicked: %v\n%s", p, debug.Stack())
		}
	}()
	switch {
	case fl.kind == completeFlow || fl.runsOnce():
		return u.complete(ctx, fl, f)
	case fl.kind == snapshotFlow:
		return u.snapshots(ctx, fl, f)
	}
	return u.stream(ctx, fl, f)
}

// stream takes an append flow through what its source has to give.
func (u *update) stream(ctx context.Context, fl *flow, f *FlowResult) (_ stream.Result, err error) {
	c := u.p.chainOf(fl, u.p.tableSchema, u.functionLine)
	none := stream.Result{TargetVersion: -1}
	flow, err := u.streamFlow(ctx, fl, c)
	if err != nil {
		return none, err
	}
	release, err := u.merge(fl, flow)
	if err != nil {
		return none, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if u.chosen.full[fl.target] && fl.target.kind == sink {
		u.warn(f, "a full refresh takes nothing out of what a sink writes to: its rows are written again")
	}
	if src := u.p.sources[c.source]; src != nil {
		flow.Source = stream.NewFileSource(src)
		flow.Schemas = u.p.schemas(fl)
		for _, w := range src.Warnings() {
			u.warn(f, w)
		}
	} else {
		table := u.p.inputTable(c.source)
		if snapshot, err := snapshotOf(ctx, table); err != nil {
			return none, err
		} else if snapshot == nil && c.source.upstream() != nil {
			u.warn(f, c.source.id()+" has no rows yet; there is nothing to read")
			return none, nil
		}
		if flow.Source, err = u.p.tableSource(c.source, table); err != nil {
			return none, err
		}
	}
	return stream.Run(ctx, flow, stream.ObserverFunc(func(p stream.Progress) { u.observe(ctx, fl, f, p) }))
}

// streamFlow makes a flow of micro-batches with what it ends in: a table of the
// pipeline, a sink's, or a handler.
func (u *update) streamFlow(ctx context.Context, fl *flow, c *chain) (*stream.Flow, error) {
	d := fl.target
	switch {
	case d.kind != sink:
	case d.function != nil:
		// It adds its side inputs to the chain's before they are looked at.
		h := u.p.handler(fl, c, u.p.tableSchema)
		flow := u.flow(fl, c)
		flow.Target, flow.Handler, flow.Outputs = stream.Target{}, h, u.p.outputs(d)
		return flow, nil
	default:
		table, err := u.p.openSink(ctx, d.sink, true)
		if err != nil {
			return nil, err
		}
		flow := u.flow(fl, c)
		flow.Target = stream.Target{Table: table, External: true, Evolve: d.sink.mergeSchema}
		return flow, nil
	}
	return u.flow(fl, c), nil
}

// flow is what all kinds of flows have in common.
func (u *update) flow(fl *flow, c *chain) *stream.Flow {
	d := fl.target
	flow := &stream.Flow{
		Dataset: d.id, Name: fl.name, Pipeline: u.result.PipelineID, UpdateID: u.result.UpdateID,
		Steps: c.steps, Rules: d.rules, OnRowError: fl.rowErrorPolicy(), Side: u.p.sideTables(c),
		Target:      u.target(d),
		Checkpoint:  u.p.checkpoint(fl),
		FullRefresh: u.chosen.full[d] && !u.hasBegun(fl),
		MaxRetries:  u.p.spec.settings.maxFlowRetries, Pause: u.p.flowPause,
		Parallel: u.p.tasksAtOnce(), Slots: u.slots, TaskBytes: u.p.opts.taskBytes,
		Alloc: u.p.opts.Alloc, Clock: u.p.opts.Clock,
	}
	if d.quarantines() {
		flow.Quarantine = u.p.quarantineOf(d)
	}
	return flow
}

// finish takes over the figures of a flow that ended.
func (f *FlowResult) finish(fl *flow, got stream.Result) {
	m := got.Metrics
	f.Metrics = Metrics{
		Batches: got.Batches, Files: m.InputFiles, RowsRead: m.InputRows, RowsWritten: m.OutputRows,
		Dropped: m.DroppedRows, Quarantined: m.QuarantinedRows, Skipped: m.SkippedRows, RowErrors: m.RowErrors,
		Rescued: m.RescuedRows, Malformed: m.MalformedRows, DroppedMalformed: m.DroppedMalformed, LostValues: m.LostValues, OldImages: m.OldImages, Retries: got.Retries,
		Fuel: m.Fuel, GuestMicros: m.GuestTime.Microseconds(), User: m.User,
	}
	if fl.merges() {
		f.Changes = &m.Applied
	}
	f.Expectations = nil
	for _, v := range append(fl.ruledViews(), fl.target) {
		for _, r := range v.rules {
			c := ExpectationCount{Name: r.Name, Dataset: v.id, Action: actionName(r.Action)}
			for _, g := range got.Expectations {
				if g.Name == r.Name && (g.Dataset == v.id || g.Dataset == "" && v == fl.target) {
					c.Passed, c.Failed = g.Passed, g.Failed
				}
			}
			f.Expectations = append(f.Expectations, c)
		}
	}
	f.NewColumns = got.NewColumns
}

// warnOfInput tells of input that did not fit, and what became of it: somebody
// should look at it.
func (u *update) warnOfInput(f *FlowResult) {
	switch {
	case f.Malformed == 0:
	case f.Rescued >= f.Malformed:
		u.warn(f, fmt.Sprintf("records that could not be read: %d; their text is in the rescued data column under _corrupt_record", f.Malformed))
	default:
		u.warn(f, fmt.Sprintf("records that could not be read: %d", f.Malformed))
	}
	if f.DroppedMalformed > 0 {
		u.warn(f, fmt.Sprintf("records that could not be read and are LEFT OUT, as mode DROPMALFORMED says: %d", f.DroppedMalformed))
	}
	if f.LostValues > 0 {
		u.warn(f, fmt.Sprintf("values that have no column and are LOST: %d; set rescuedDataColumn to keep such values", f.LostValues))
	}
	if f.OldImages > 0 {
		u.warn(f, fmt.Sprintf("rows that are old images of updates, which nothing in the table tells from the new ones: %d; filter them by _change_type, or keep that column", f.OldImages))
	}
	if n := f.Rescued - f.Malformed; n > 0 {
		u.warn(f, fmt.Sprintf("rows with values that did not fit their columns: %d; the values are in the rescued data column", n))
	}
}

func (u *update) warn(f *FlowResult, message string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f.Warnings = append(f.Warnings, message)
	u.log.Emit(events.Event{Type: events.FlowProgress, Level: events.Warn, Message: message,
		Origin:  events.Origin{DatasetName: f.Dataset, FlowName: f.Flow, FlowID: f.flowID},
		Details: events.FlowProgressDetails{Status: f.status()}})
	u.tell(Progress{Dataset: f.Dataset, Flow: f.Flow, State: f.State, Batch: -1, Metrics: f.Metrics, Message: message})
}

// errorInfo gives a failure as JSON tells it.
func errorInfo(err error) *ErrorInfo {
	info := &ErrorInfo{Code: codeOr(err, "FLOW_FAILED"), Message: err.Error()}
	var e *fault.Error
	if errors.As(err, &e) {
		info.Dataset, info.Flow, info.File, info.Line, info.Row = e.Where.Dataset, e.Where.Flow, e.Where.File, e.Where.Line, e.Where.Row
	}
	return info
}
