package stream

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
)

var (
	fpBeforeOffset  = failpoint.New("stream.before_offset")
	fpOffsetWritten = failpoint.New("stream.offset_written")
)

// Run takes everything the source holds now through the flow, batch by batch,
// and returns when nothing of it is left. What arrives meanwhile waits for the
// next run. obs may be nil. The result is good as far as it goes when there is
// an error, too.
func Run(ctx context.Context, f *Flow, obs Observer) (Result, error) {
	res := Result{TargetVersion: -1}
	err := f.run(ctx, obs, &res)
	return res, fault.Place(err, "FLOW_FAILED", fault.Where{Dataset: f.Dataset, Flow: f.Name})
}

// run is the state of one Run.
type run struct {
	flow     *Flow
	mem      memory.Allocator
	obs      Observer
	res      *Result
	ck       *checkpoint
	versions *schemaVersions // nil when the source's schema is not inferred
	left     backlog
	notices  notices
	upkeep   *upkeep // nil when there is none
}

func (f *Flow) run(ctx context.Context, obs Observer, res *Result) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New("INTERNAL_ERROR", "the batch loop panicked: %v", p)
		}
	}()
	if err := f.check(); err != nil {
		return err
	}
	r := &run{flow: f, mem: f.Alloc, obs: obs, res: res}
	if r.mem == nil {
		r.mem = memory.DefaultAllocator
	}
	defer func() { r.kept(err != nil) }()
	if err := r.open(ctx); err != nil {
		return err
	}
	if r.left, err = r.look(ctx); err != nil {
		return err
	}
	for {
		if r.ck.planned == r.ck.committed {
			more, err := r.planNext(ctx)
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
		r.kept(false)
		if err := r.commitNext(ctx); err != nil {
			return err
		}
		r.keep(ctx)
	}
	return r.ensureTarget(ctx)
}

// check refuses a flow that could not be run to its end.
func (f *Flow) check() error {
	if err := f.checkPolicies(); err != nil {
		return err
	}
	switch {
	case f.Source == nil, f.Target.Table == nil && f.Handler == nil, f.Checkpoint == nil, f.Pipeline == "", f.Dataset == "", f.Name == "":
		return fault.New("INVALID_FLOW", "a flow needs a source, a target, a checkpoint and its names")
	case f.Source.kind() == filesKind && f.Schemas == nil:
		return fault.New("INVALID_FLOW", "a flow of files needs a schema location")
	case f.Apply != nil && (f.Handler != nil || f.Target.External):
		return fault.New("INVALID_FLOW", "changes are applied to the flow's own table only")
	case f.Handler != nil:
		return f.checkHandler()
	}
	return nil
}

// checkPolicies refuses what cannot be done with refused rows.
func (f *Flow) checkPolicies() error {
	switch f.OnRowError {
	case "", FailOnRowError, SkipRowErrors, QuarantineRowErrors:
	default:
		return fault.New("INVALID_FLOW", "on_row_error is %q", f.OnRowError).WithHint("Use fail, skip or quarantine")
	}
	quarantines := f.OnRowError == QuarantineRowErrors ||
		slices.ContainsFunc(f.Rules, func(r expect.Rule) bool { return r.Action == expect.Quarantine })
	if quarantines && f.Quarantine == nil {
		return fault.New("INVALID_FLOW", "the flow quarantines rows and has no table for them")
	}
	return nil
}

// open finds the generation to go on with, or makes one, and checks that its
// logs fit the target.
func (r *run) open(ctx context.Context) error {
	f := r.flow
	var targets []*delta.Snapshot
	for _, t := range f.tables() {
		target, err := snapshot(ctx, t)
		if err != nil {
			return err
		}
		targets = append(targets, target)
	}
	gen, ok, err := newestGeneration(ctx, f.Checkpoint)
	if err != nil {
		return err
	}
	var own *delta.Snapshot // nil for a handler, whose tables are not the flow's
	if f.Handler == nil {
		if own = targets[0]; own != nil {
			r.res.Columns = own.Schema()
		}
	}
	if ok && gen.Kind != appendGeneration && !(gen.Kind == onceGeneration && f.FullRefresh) {
		return gen.otherKind(appendGeneration)
	}
	if ok {
		if err := f.guardApplies(gen); err != nil {
			return err
		}
	}
	if !ok || f.FullRefresh {
		var traces []trace
		for i, t := range f.tables() {
			more, err := tracesIn(ctx, t, targets[i])
			if err != nil {
				return err
			}
			traces = append(traces, more...)
		}
		if !f.FullRefresh {
			if err := guardMissingCheckpoint(f, traces); err != nil {
				return err
			}
		}
		// Numbers that the table has seen are used up, also when the checkpoint
		// that knew them is gone.
		next := newestTrace(traces, f) + 1
		if ok {
			next = max(next, gen.Generation+1)
		}
		gen = generation{Format: 1, Generation: next, AppID: f.appID(next), Replace: f.FullRefresh && !f.kept(), Applies: f.Apply != nil, Reset: f.seen(own), UpdateID: f.UpdateID, Created: f.now()}
		if err := createGeneration(ctx, f.Checkpoint, gen); err != nil {
			return err
		}
	}
	if err := f.guardOwner(gen); err != nil {
		return err
	}
	r.res.Generation, r.res.FlowID = gen.Generation, gen.AppID
	if r.ck, err = loadCheckpoint(ctx, f.Checkpoint, gen); err != nil {
		return err
	}
	if err := f.guardReset(gen, own, r.ck.committed); err != nil {
		return err
	}
	for _, target := range targets {
		guard := guardTarget
		if f.Handler != nil {
			guard = guardOutput
		}
		if err := guard(ctx, f.flowID(), r.ck, target); err != nil {
			return err
		}
	}
	if f.Source.kind() == filesKind {
		if r.versions, err = openSchemas(ctx, f.Schemas, f.flowID(), gen.Generation); err != nil {
			return err
		}
	}
	return guardSchemas(ctx, r.ck, r.versions)
}

// look captures what the source holds.
func (r *run) look(ctx context.Context) (backlog, error) {
	if r.ck.planned >= 0 {
		last, err := r.ck.offset(ctx, r.ck.planned)
		if err != nil {
			return nil, err
		}
		if kind := r.flow.Source.kind(); last.Source.Kind != kind {
			return nil, sourceKindChanged(last.Source.Kind, kind)
		}
	}
	start := time.Now()
	left, err := r.flow.Source.capture(ctx, r.ck)
	if err != nil {
		return nil, err
	}
	r.tell(Progress{Kind: ListingDone, Backlog: left.left(), Took: time.Since(start)})
	return left, nil
}

// planNext writes the offset entry of the next batch, if there is something
// to read, or if a full refresh still has to replace the old rows.
func (r *run) planNext(ctx context.Context) (bool, error) {
	off, err := r.left.next(ctx)
	if err != nil {
		return false, err
	}
	if off == nil {
		if r.ck.planned >= 0 || !r.ck.gen.Replace {
			return false, nil
		}
		if off, err = r.flow.Source.empty(ctx, r.ck); err != nil {
			return false, err
		}
	}
	e := &offsetEntry{Format: 1, Batch: r.ck.planned + 1, Timestamp: r.flow.now(), UpdateID: r.flow.UpdateID, TaskBytes: cmp.Or(r.flow.TaskBytes, defaultTaskBytes), Source: *off}
	if r.versions != nil {
		if v := r.versions.at(e.Batch); v != nil {
			e.SchemaVersion = &v.Version
		}
	}
	if r.ck.planned >= 0 {
		// Batch timestamps never go back, whatever the clock does.
		last, err := r.ck.offset(ctx, r.ck.planned)
		if err != nil {
			return false, err
		}
		if e.Timestamp.Before(last.Timestamp) {
			e.Timestamp = last.Timestamp
		}
	}
	if e.Side, err = r.pinSide(ctx); err != nil {
		return false, err
	}
	fpBeforeOffset.Hit()
	if err := r.ck.plan(ctx, e); err != nil {
		return false, err
	}
	fpOffsetWritten.Hit()
	return true, nil
}

// pinSide gives the versions of the side inputs as they are now.
func (r *run) pinSide(ctx context.Context) (map[string]TableVersion, error) {
	if len(r.flow.Side) == 0 {
		return nil, nil
	}
	pins := map[string]TableVersion{}
	for name, table := range r.flow.Side {
		snap, err := table.Snapshot(ctx)
		if err != nil {
			return nil, fault.Place(err, "DELTA_SOURCE_UNAVAILABLE", fault.Where{Dataset: name})
		}
		pins[name] = TableVersion{TableID: snap.Metadata().ID, Version: snap.Version()}
	}
	return pins, nil
}

// commitNext brings the planned batch into the target, trying again as often
// as the flow allows when another try can help.
func (r *run) commitNext(ctx context.Context) error {
	for number := 0; ; number++ {
		err := r.runBatch(ctx, r.ck.planned, number)
		for races := 0; r.overtaken(err) && races < maxRaces && ctx.Err() == nil; races++ {
			err = r.runBatch(ctx, r.ck.planned, number)
		}
		if err == nil || ctx.Err() != nil || !retryHelps(err) || number >= r.flow.MaxRetries {
			return err
		}
		r.res.Retries++
		r.tell(Progress{Kind: BatchRetried, Batch: r.ck.planned, Attempt: number, Err: err})
		if err := r.pause(ctx, number, err); err != nil {
			return err
		}
	}
}

// maxRaces bounds how often a batch is made anew because another flow into the
// table changed it meanwhile: made it, or added columns.
const maxRaces = 20

// overtaken tells whether a commit lost against a change of the table that the
// batch has to be planned on again. That is no failure of the flow.
func (r *run) overtaken(err error) bool {
	// What an application changes hangs on the rows that are there.
	if r.flow.Apply != nil && strings.HasPrefix(fault.CodeOf(err), "DELTA_CONCURRENT_") {
		return true
	}
	return fault.Is(err, "DELTA_METADATA_CHANGED") || fault.Is(err, "DELTA_TABLE_ALREADY_EXISTS") || fault.Is(err, "DELTA_PROTOCOL_CHANGED")
}

// pause waits before another try. A schema that has just been recorded is there
// at once; what else a retry cures needs time.
func (r *run) pause(ctx context.Context, retry int, cause error) error {
	var recorded *recordedError
	if r.flow.Pause == nil || errors.As(cause, &recorded) {
		return nil
	}
	select {
	case <-time.After(r.flow.Pause(retry)):
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), cause)
	}
}

func retryHelps(err error) bool {
	var recorded *recordedError
	var coded *fault.Error
	return errors.As(err, &recorded) || errors.As(err, &coded) && coded.Retry
}

// ensureTarget makes the table of a flow whose source has had nothing yet, so
// that others can read from it.
func (r *run) ensureTarget(ctx context.Context) error {
	if r.flow.Handler != nil {
		return r.ensureOutputs(ctx)
	}
	target, err := snapshot(ctx, r.flow.Target.Table)
	if err != nil || target != nil {
		return err
	}
	schema, err := r.flow.Source.schema(ctx, r.versions, 0, nil)
	if err != nil {
		return err
	}
	columns, err := r.flow.flowSchema(ctx, schema.arrow)
	if err != nil {
		return err
	}
	res, err := r.flow.Target.create(ctx, columns, r.flow.now())
	if fault.Is(err, "DELTA_TABLE_ALREADY_EXISTS") {
		return nil // another flow into the table was faster
	}
	if err != nil {
		return err
	}
	r.res.TargetVersion, r.res.Columns = res.Version, columns
	r.checkpointed(r.flow.Dataset, res)
	return nil
}

// checkpointed tells of a checkpoint of a table that could not be written. The
// commit stands, so nothing else becomes of it.
func (r *run) checkpointed(table string, res delta.Result) {
	if res.CheckpointError != nil {
		r.tell(Progress{Kind: CheckpointFailed, Batch: r.ck.planned, Table: table, TargetVersion: res.Version, Err: res.CheckpointError})
	}
}

func (r *run) tell(p Progress) {
	if r.obs == nil {
		return
	}
	p.Dataset, p.Flow, p.FlowID = r.flow.Dataset, r.flow.Name, r.res.FlowID
	if r.left != nil && p.Kind != ListingDone {
		p.Backlog = r.left.left()
	}
	r.obs.Observe(p)
}
