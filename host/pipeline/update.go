package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/weir-data/weir/host/delta"
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
}

// run takes every chosen flow through its source, each as soon as those it
// reads from are done.
func (u *update) run(ctx context.Context) *Result {
	tables := u.chosen.tables(u.p.graph)
	u.started(tables)

	done := map[*dataset]chan struct{}{}
	at := map[*dataset]*FlowResult{}
	u.result.Flows = make([]FlowResult, 0, len(u.p.graph.tables))
	for _, d := range u.p.graph.order {
		if d.isView() {
			continue
		}
		f := FlowResult{Dataset: d.id, Flow: d.flow.name, State: Excluded, FullRefresh: u.chosen.full[d]}
		if u.chosen.run[d] {
			f.State = Queued
			done[d] = make(chan struct{})
		}
		u.result.Flows = append(u.result.Flows, f)
		at[d] = &u.result.Flows[len(u.result.Flows)-1]
	}

	slots := make(chan struct{}, u.p.flowsAtOnce())
	var all sync.WaitGroup
	for _, d := range tables {
		all.Go(func() {
			defer close(done[d])
			var failed *dataset
			for _, up := range u.p.graph.upstreamTables(d) {
				if ended := done[up]; ended != nil {
					<-ended
				}
				if s := u.state(at[up]); s == Failed || s == Skipped || s == Canceled {
					failed = up
				}
			}
			if failed != nil {
				u.defined(d, nil)
				u.skip(at[d], failed)
				return
			}
			slots <- struct{}{}
			defer func() { <-slots }()
			u.runFlow(ctx, d, at[d])
		})
	}
	all.Wait()
	u.ended(ctx)
	return u.result
}

func (u *update) state(f *FlowResult) State {
	u.mu.Lock()
	defer u.mu.Unlock()
	return f.State
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
func (u *update) runFlow(ctx context.Context, d *dataset, f *FlowResult) {
	if ctx.Err() != nil {
		u.change(f, Canceled, "canceled before it started", context.Cause(ctx))
		return
	}
	u.change(f, Running, "running", nil)
	got, err := u.stream(ctx, d, f)
	u.mu.Lock()
	f.finish(d, got)
	u.mu.Unlock()
	u.warnOfInput(f)
	u.defined(d, got.Columns)
	switch {
	case err == nil:
		u.change(f, Completed, "completed", nil)
	case ctx.Err() != nil:
		u.change(f, Canceled, "canceled", u.placed(d, err))
	default:
		err = u.placed(d, err)
		u.change(f, Failed, err.Error(), err)
	}
}

// placed says where the flow that failed is defined.
func (u *update) placed(d *dataset, err error) error {
	return fault.Place(err, "FLOW_FAILED", fault.Where{Dataset: d.id, Flow: d.flow.name})
}

// stream makes the flow ready and runs it. A panic is an error of this flow.
func (u *update) stream(ctx context.Context, d *dataset, f *FlowResult) (_ stream.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New("INTERNAL_ERROR", "the flow panicked: %v\n%s", p, debug.Stack())
		}
	}()
	c := u.p.chainOf(d, u.p.tableSchema, u.functionLine)
	none := stream.Result{TargetVersion: -1}
	flow := &stream.Flow{
		Dataset: d.id, Name: d.flow.name, Pipeline: u.result.PipelineID, UpdateID: u.result.UpdateID,
		Steps: c.steps, Rules: d.rules, OnRowError: d.rowErrorPolicy(),
		Target: stream.Target{
			Table: u.p.tableOf(d), Name: d.id, Comment: d.comment,
			PartitionBy: d.partitionBy, ClusterBy: d.clusterBy, Properties: d.properties,
			Columns: declaredTarget(d.columns),
		},
		Checkpoint:  u.p.checkpoint(d),
		FullRefresh: u.chosen.full[d],
		MaxRetries:  u.p.spec.settings.maxFlowRetries,
		Parallel:    u.p.tasksAtOnce(), Slots: u.slots, TaskBytes: u.p.opts.taskBytes,
		Alloc: u.p.opts.Alloc, Clock: u.p.opts.Clock,
	}
	if d.quarantines() {
		flow.Quarantine = u.p.quarantineOf(d)
	}
	if src := u.p.sources[c.source]; src != nil {
		flow.Source = stream.NewFileSource(src)
		flow.Schemas = u.p.schemas(d)
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
		if flow.Source, err = stream.NewDeltaSource(c.source.id(), table, nil); err != nil {
			return none, err
		}
	}
	if len(c.sides) > 0 {
		flow.Side = map[string]*delta.Table{}
		for id, in := range c.sides {
			flow.Side[id] = u.p.inputTable(in)
		}
	}
	return stream.Run(ctx, flow, stream.ObserverFunc(func(p stream.Progress) { u.observe(ctx, d, f, p) }))
}

// finish takes over the figures of a flow that ended.
func (f *FlowResult) finish(d *dataset, got stream.Result) {
	m := got.Metrics
	f.Metrics = Metrics{
		Batches: got.Batches, Files: m.InputFiles, RowsRead: m.InputRows, RowsWritten: m.OutputRows,
		Dropped: m.DroppedRows, Quarantined: m.QuarantinedRows, Skipped: m.SkippedRows, RowErrors: m.RowErrors,
		Rescued: m.RescuedRows, Malformed: m.MalformedRows, DroppedMalformed: m.DroppedMalformed, LostValues: m.LostValues, Retries: got.Retries,
		Fuel: m.Fuel, GuestMicros: m.GuestTime.Microseconds(), User: m.User,
	}
	f.Expectations = nil
	for i, r := range d.rules {
		c := ExpectationCount{Name: r.Name, Dataset: d.id, Action: actionName(r.Action)}
		if i < len(got.Expectations) {
			c.Passed, c.Failed = got.Expectations[i].Passed, got.Expectations[i].Failed
		}
		f.Expectations = append(f.Expectations, c)
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
		Details: events.FlowProgressDetails{Status: string(f.State)}})
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
