package stream

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
)

// Refresh is a batch query and the table its rows go to. They replace all that
// the table holds, in one commit, or with Once are appended one time.
//
// Of the embedded Flow, Source and Schemas are not used: the query reads its
// Side tables and Files whole. The first step gets no reader.
type Refresh struct {
	Flow
	Files map[string]*FileInput
	// Absent holds the columns of side tables that may be missing: such a one
	// has no rows.
	Absent map[string]*arrow.Schema
	// Once is a flow that appends its rows one time; only a full refresh lets it
	// run again.
	Once bool
	// Fingerprint is of everything that decides what the query gives, beside its
	// inputs: texts, modules, declarations.
	Fingerprint string
	// Volatile says what makes the query give other rows for the same inputs;
	// "" when nothing does.
	Volatile string
	// Policy is what the definition says about how to refresh, for the decision.
	Policy RefreshPolicy

	snapshots bool // it reads for a flow of snapshots
}

// RefreshPolicy is how a materialized view wants to be refreshed.
type RefreshPolicy string

// The policies. Incremental falls back to a complete refresh, the only technique there is.
const (
	AutoRefresh        RefreshPolicy = "auto" // also what "" means
	IncrementalRefresh RefreshPolicy = "incremental"
	FullRefreshPolicy  RefreshPolicy = "full" // computes anew even when nothing changed
)

// Decision says what a refresh did, or did not, and why.
type Decision struct {
	// Technique is NO_OP, COMPLETE_RECOMPUTE or, of a flow that runs once, APPEND_ONCE.
	Technique Technique
	Reason    Reason
	// Detail says which input, or what in the query.
	Detail string
}

// Technique is how a refresh is done, in the words of the event log.
type Technique string

// The techniques.
const (
	NoOp              Technique = "NO_OP"
	CompleteRecompute Technique = "COMPLETE_RECOMPUTE"
	AppendOnce        Technique = "APPEND_ONCE"
)

// Reason is why that technique was chosen.
type Reason string

// The reasons.
const (
	FirstRefresh        Reason = "FIRST_REFRESH"
	FullRefreshAsked    Reason = "FULL_REFRESH_REQUESTED"
	TargetChanged       Reason = "TARGET_CHANGED"
	FingerprintChanged  Reason = "QUERY_FINGERPRINT_CHANGED"
	SourceDiffers       Reason = "SOURCE_CHANGED"
	NonDeterministic    Reason = "NON_DETERMINISTIC"
	FullPolicy          Reason = "REFRESH_POLICY_FULL"
	NoSourceChanged     Reason = "NO_SOURCE_CHANGED"
	AlreadyRun          Reason = "ALREADY_RUN"
	NotIncrementalizing Reason = "PLAN_NOT_INCREMENTALIZABLE"
)

// FileInput is files that a batch query reads whole. What it reads is settled
// by Complete before the first step is asked for its columns.
type FileInput struct {
	Source *ingest.Source
	schema *ingest.Schema
}

// Schema gives the columns that the running refresh reads, nil outside of one.
func (f *FileInput) Schema() *arrow.Schema {
	if f.schema == nil {
		return nil
	}
	return f.Source.ArrowSchema(f.schema)
}

// Complete refreshes the table, unless it is known to hold what the query would
// give. obs may be nil.
func Complete(ctx context.Context, q *Refresh, obs Observer) (Result, error) {
	res := Result{TargetVersion: -1}
	err := q.complete(ctx, obs, &res)
	return res, fault.Place(err, "FLOW_FAILED", fault.Where{Dataset: q.Dataset, Flow: q.Name})
}

func (q *Refresh) complete(ctx context.Context, obs Observer, res *Result) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New("INTERNAL_ERROR", "the refresh panicked: %v", p)
		}
	}()
	if err := q.check(); err != nil {
		return err
	}
	c := &completion{run: &run{flow: &q.Flow, mem: q.Alloc, obs: obs, res: res}, q: q}
	if c.mem == nil {
		c.mem = memory.DefaultAllocator
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	if err := c.recoverCommitted(ctx); err != nil {
		return err
	}
	if q.Once {
		return c.once(ctx)
	}
	return c.replaceAll(ctx)
}

// check refuses a refresh that could not be run to its end.
func (q *Refresh) check() error {
	if q.Target.Table == nil || q.Checkpoint == nil || q.Pipeline == "" || q.Dataset == "" || q.Name == "" || len(q.Steps) == 0 {
		return fault.New("INVALID_FLOW", "a refresh needs a query, a target, a checkpoint and its names")
	}
	if q.Fingerprint == "" {
		return fault.New("INVALID_FLOW", "a refresh needs the fingerprint of its query")
	}
	return q.checkPolicies()
}

// kind is the word for the flow in its generation.
func (q *Refresh) kind() generationKind {
	switch {
	case q.snapshots:
		return snapshotGeneration
	case q.Once:
		return onceGeneration
	}
	return completeGeneration
}

// completion is the state of one Complete.
type completion struct {
	*run
	q      *Refresh
	log    *refreshLog
	target *delta.Snapshot // nil: there is no table
	first  Reason          // why nothing is known of an earlier refresh, "" when something may be
}

// open finds the generation to go on with, or makes one.
func (c *completion) open(ctx context.Context) (err error) {
	f := c.flow
	if c.target, err = snapshot(ctx, f.Target.Table); err != nil {
		return err
	}
	if c.target != nil {
		c.res.Columns = c.target.Schema()
	}
	gen, ok, err := newestGeneration(ctx, f.Checkpoint)
	if err != nil {
		return err
	}
	adds := c.q.kind() != completeGeneration // to what is there
	if ok && gen.Kind != c.q.kind() && !(adds && f.FullRefresh && gen.Kind != completeGeneration) {
		return gen.otherKind(c.q.kind())
	}
	if ok {
		if err := f.guardApplies(gen); err != nil {
			return err
		}
	}
	if !ok || f.FullRefresh {
		traces, err := tracesIn(ctx, f.Target.Table, c.target)
		if err != nil {
			return err
		}
		if adds && !f.FullRefresh {
			if err := guardMissingCheckpoint(f, traces); err != nil {
				return err
			}
		}
		next := newestTrace(traces, f) + 1
		c.first = FirstRefresh
		if f.FullRefresh {
			c.first = FullRefreshAsked
		}
		if ok {
			next = max(next, gen.Generation+1)
		}
		gen = generation{Format: 1, Generation: next, AppID: f.appID(next), Kind: c.q.kind(), Replace: f.FullRefresh || !adds, Applies: f.Apply != nil, Reset: f.seen(c.target), UpdateID: f.UpdateID, Created: f.now()}
		if err := createGeneration(ctx, f.Checkpoint, gen); err != nil {
			return err
		}
	}
	if err := f.guardOwner(gen); err != nil {
		return err
	}
	c.res.Generation, c.res.FlowID = gen.Generation, gen.AppID
	if c.log, err = openRefreshLog(ctx, f.Checkpoint, gen); err != nil {
		return err
	}
	c.ck = c.log.checkpoint
	return nil
}

// recoverCommitted writes the commit entry of a refresh that the table has and
// a crash kept from being noted.
func (c *completion) recoverCommitted(ctx context.Context) error {
	has, ok := txn(c.target, c.ck.gen.AppID)
	if !ok || has != c.ck.planned || c.ck.committed >= has {
		return nil
	}
	e, err := c.log.entry(ctx, has)
	if err != nil {
		return err
	}
	a := c.attempt(e, 0)
	return a.recover(ctx)
}

// once runs a flow that appends one time.
func (c *completion) once(ctx context.Context) error {
	if err := guardTarget(ctx, c.flow.flowID(), c.ck, c.target); err != nil {
		return err
	}
	if has, ok := txn(c.target, c.ck.gen.AppID); ok && has > c.ck.planned {
		return fault.New("CHECKPOINT_MISSING", "the table has the rows of this flow, but the checkpoint does not know of it").
			WithHint("Restore the checkpoint, or run a full refresh of this table")
	}
	if c.ck.committed >= 0 {
		if c.res.Batches == 0 {
			c.decide(Decision{NoOp, AlreadyRun, "the flow runs once; a full refresh lets it run again"})
		}
		return nil
	}
	reason := c.first
	if reason == "" {
		reason = FirstRefresh
	}
	c.decide(Decision{Technique: AppendOnce, Reason: reason})
	if c.ck.planned < 0 {
		pins, err := c.pin(ctx, nil)
		if err != nil {
			return err
		}
		if _, err := c.plan(ctx, pins, reason); err != nil {
			return err
		}
	}
	e, err := c.log.entry(ctx, c.ck.planned)
	if err != nil {
		return err
	}
	return c.bring(ctx, e)
}

// replaceAll runs a complete refresh, if there is a reason to.
func (c *completion) replaceAll(ctx context.Context) error {
	var last *refreshEntry
	if c.ck.committed >= 0 {
		var err error
		if last, err = c.log.entry(ctx, c.ck.committed); err != nil {
			return err
		}
	}
	pins, err := c.pin(ctx, last)
	if err != nil {
		return err
	}
	d, err := c.choose(ctx, last, pins)
	if err != nil {
		return err
	}
	c.decide(d)
	if d.Technique == NoOp {
		return nil
	}
	e, err := c.plan(ctx, pins, d.Reason)
	if err != nil {
		return err
	}
	return c.bring(ctx, e)
}

// decide takes down what is done and tells of it.
func (c *completion) decide(d Decision) {
	c.res.Decision = d
	c.tell(Progress{Kind: RefreshDecided, Batch: c.ck.planned, Decision: d})
}

// plan records the refresh before any work. A record that a crash left, and that
// says the same, is taken up: its files are written over.
func (c *completion) plan(ctx context.Context, pins refreshPins, reason Reason) (*refreshEntry, error) {
	f := c.flow
	if c.ck.planned > c.ck.committed {
		left, err := c.log.entry(ctx, c.ck.planned)
		if err != nil {
			return nil, err
		}
		if left.Fingerprint == c.q.Fingerprint && left.refreshPins.equal(pins) {
			return left, nil
		}
	}
	next := max(c.ck.planned, c.ck.committed) + 1
	if has, ok := txn(c.target, c.ck.gen.AppID); ok {
		next = max(next, has+1)
	}
	e := &refreshEntry{
		Format: 1, Refresh: next, Timestamp: f.now(), UpdateID: f.UpdateID, Reason: reason, Fingerprint: c.q.Fingerprint,
		Writers: min(max(f.Parallel, 1), maxWriters), refreshPins: pins,
	}
	fpBeforeOffset.Hit()
	if err := c.log.plan(ctx, e); err != nil {
		return nil, err
	}
	fpOffsetWritten.Hit()
	return e, nil
}

// bring takes a planned refresh into the table, trying again as often as the
// flow allows when another try can help.
func (c *completion) bring(ctx context.Context, e *refreshEntry) error {
	for number := 0; ; number++ {
		err := c.attempt(e, number).refresh(ctx)
		for races := 0; c.q.Once && c.overtaken(err) && races < maxRaces && ctx.Err() == nil; races++ {
			err = c.attempt(e, number).refresh(ctx)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		var fields *ingest.UnknownFieldError
		if errors.As(err, &fields) {
			// The sample that the columns were inferred from did not show all of them.
			grown, gerr := c.grow(ctx, e)
			if gerr != nil {
				return gerr
			}
			if grown != nil {
				e = grown
				continue
			}
		}
		if !retryHelps(err) || number >= c.flow.MaxRetries {
			return err
		}
		c.res.Retries++
		c.tell(Progress{Kind: BatchRetried, Batch: e.Refresh, Attempt: number, Err: err})
	}
}

func (c *completion) attempt(e *refreshEntry, number int) *refreshAttempt {
	return &refreshAttempt{
		attempt: &attempt{
			run: c.run, number: number, target: c.target, operation: "REFRESH",
			entry: &offsetEntry{Format: 1, Batch: e.Refresh, Timestamp: e.Timestamp, UpdateID: e.UpdateID, Side: e.Tables},
		},
		c: c, e: e,
	}
}
