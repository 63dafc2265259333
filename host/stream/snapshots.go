package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// Snapshots is a flow of full snapshots, one a micro-batch: what is no longer in
// the next one was deleted. Its Apply compares them, and is a SnapshotApplier.
//
// Of the embedded Flow, Source and Schemas are not used: a snapshot is read whole,
// from Side tables and Files. The first step gets no reader.
type Snapshots struct {
	Flow
	Files map[string]*FileInput
	// Absent holds the columns of side tables that may be missing: such a one
	// has no rows.
	Absent map[string]*arrow.Schema
	// Fingerprint is of everything that decides what the query gives, beside its inputs.
	Fingerprint string
	// Provider says that the first step names the version of what it gives, through
	// Task.Snapshot, and is asked until it has no more. Else there is one snapshot
	// a run, the source as it is, and its version is the time of the batch.
	Provider bool
	// MaxShrink is the share by which a snapshot may be smaller than the one before.
	MaxShrink float64
	// Accept tells whether a snapshot of that version may pass whatever it has lost.
	Accept func(version string) bool
}

// SnapshotApplier compares snapshots with what the table was made of.
type SnapshotApplier interface {
	Applier
	// Latest gives the snapshot that the table shows, nil when it shows none.
	Latest(ctx context.Context, target *delta.Snapshot) (*LatestSnapshot, error)
}

// SnapshotApplication is an application that a SnapshotApplier begins.
type SnapshotApplication interface {
	Application
	// Keep takes rows that rules refused. They are there, so their keys are no
	// deletes: these keep the row that they have.
	Keep(ctx context.Context, rec arrow.RecordBatch) error
}

// LatestSnapshot is the snapshot that a table shows: its version, and how many
// rows it had before any rule looked at them.
type LatestSnapshot struct {
	Version abi.Version `json:"version"`
	Rows    int64       `json:"rows"`
}

// snapshotPlan is what the record of a snapshot says beside its inputs.
type snapshotPlan struct {
	Version abi.Version  `json:"version"`
	Latest  *abi.Version `json:"latest,omitempty"` // the one before
}

// RunSnapshots takes the snapshots that there are into the target, one by one.
// obs may be nil.
func RunSnapshots(ctx context.Context, s *Snapshots, obs Observer) (Result, error) {
	res := Result{TargetVersion: -1}
	err := s.run(ctx, obs, &res)
	return res, fault.Place(err, "FLOW_FAILED", fault.Where{Dataset: s.Dataset, Flow: s.Name})
}

func (s *Snapshots) run(ctx context.Context, obs Observer, res *Result) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New("INTERNAL_ERROR", "the flow of snapshots panicked: %v", p)
		}
	}()
	c, err := s.open(ctx, obs, res)
	if err != nil {
		return err
	}
	if err := c.recoverCommitted(ctx); err != nil {
		return err
	}
	if err := guardTarget(ctx, s.flowID(), c.ck, c.target); err != nil {
		return err
	}
	for {
		more, err := c.next(ctx)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		beginUpkeep(ctx, s.Apply, s.Target.Table, &c.notices).end(false, &c.notices)
		c.tellNotices(c.ck.planned, 0)
		if !s.Provider {
			return nil
		}
	}
	if c.ck.gen.Replace && c.ck.committed < 0 && c.target != nil {
		return fault.New("FULL_REFRESH_LOSES_DATA", "the full refresh found no snapshot at all; the table stays as it was").
			WithHint("Bring the snapshots back and run again")
	}
	if c.res.Batches == 0 {
		c.notices.add(Notice{Code: "NO_NEW_SNAPSHOT", Text: c.nothing(), Info: true})
		c.tellNotices(c.ck.planned, 0)
	}
	return c.ensureTable(ctx)
}

// open checks the flow and finds its generation.
func (s *Snapshots) open(ctx context.Context, obs Observer, res *Result) (*comparison, error) {
	q := &Refresh{Flow: s.Flow, Files: s.Files, Absent: s.Absent, Fingerprint: s.Fingerprint, snapshots: true}
	if err := q.check(); err != nil {
		return nil, err
	}
	applier, ok := s.Apply.(SnapshotApplier)
	if !ok {
		return nil, fault.New("INVALID_FLOW", "a flow of snapshots needs one who compares them")
	}
	if s.OnRowError == SkipRowErrors || s.OnRowError == QuarantineRowErrors {
		return nil, fault.New("NOT_SUPPORTED", "a flow of snapshots cannot go on without rows that a function refuses: they would be missing, and what is missing was deleted").
			WithHint("Let on_row_error be fail, or attach an expectation: a row that it drops keeps its key")
	}
	c := &comparison{completion: &completion{run: &run{flow: &q.Flow, mem: q.Alloc, obs: obs, res: res}, q: q}, s: s, applier: applier}
	if c.mem == nil {
		c.mem = memory.DefaultAllocator
	}
	return c, c.open(ctx)
}

// comparison is the state of one RunSnapshots.
type comparison struct {
	*completion
	s       *Snapshots
	applier SnapshotApplier
}

func (c *comparison) nothing() string {
	if c.s.Provider {
		return "no new snapshot: the provider has none after the latest"
	}
	return "no new snapshot: the source has not changed since the latest"
}

// next takes one snapshot into the table; false when there is none.
func (c *comparison) next(ctx context.Context) (bool, error) {
	e, err := c.leftOver(ctx)
	if err != nil {
		return false, err
	}
	if e == nil {
		if e, err = c.prepare(ctx); e == nil || err != nil {
			return false, err
		}
	}
	committing := false
	for number := 0; ; number++ {
		w, err := c.compare(ctx, e, number)
		committing = committing || w.committing
		for races := 0; c.overtaken(err) && races < maxRaces && ctx.Err() == nil; races++ {
			w, err = c.compare(ctx, e, number)
			committing = committing || w.committing
		}
		if err == nil {
			return !w.done, nil
		}
		if ctx.Err() != nil {
			return false, err
		}
		if !retryHelps(err) || number >= c.flow.MaxRetries {
			if committing || errors.Is(err, errHeld) {
				return false, err // it may be in the table, whatever went wrong
			}
			// Nobody has seen anything of this snapshot but what it refused. What is
			// wrong with it may be repaired in the source, so the next run looks there again.
			c.log.withdraw(ctx, e.Refresh)
			return false, err
		}
		c.res.Retries++
		c.tell(Progress{Kind: BatchRetried, Batch: e.Refresh, Attempt: number, Err: err})
	}
}

// leftOver gives the record of a snapshot that was begun and is not in the
// table, nil when there is none or another one takes its place.
func (c *comparison) leftOver(ctx context.Context) (*refreshEntry, error) {
	if c.ck.planned <= c.ck.committed {
		return nil, nil
	}
	e, err := c.log.entry(ctx, c.ck.planned)
	if err != nil {
		return nil, err
	}
	if e.Snapshot == nil {
		return nil, brokenLog("record %d says nothing of a snapshot", e.Refresh)
	}
	held, err := c.log.isHeld(ctx, e.Refresh)
	if err != nil || !held {
		return e, err
	}
	// The count gate held it. It waits as it was seen, for somebody to let it
	// pass, as long as its source is the same.
	pins, err := c.pin(ctx, e)
	if err != nil {
		return nil, err
	}
	if why, err := c.sourceChanged(ctx, e, pins); err != nil || why == "" {
		return e, err
	}
	c.log.withdraw(ctx, e.Refresh)
	return nil, nil
}

// prepare pins what the next snapshot is read from. It is nil when a source
// that is one snapshot has not changed since the last one.
func (c *comparison) prepare(ctx context.Context) (*refreshEntry, error) {
	var last *refreshEntry
	if c.ck.committed >= 0 {
		var err error
		if last, err = c.log.entry(ctx, c.ck.committed); err != nil {
			return nil, err
		}
	}
	pins, err := c.pin(ctx, last)
	if err != nil {
		return nil, err
	}
	if !c.s.Provider && last != nil && last.Fingerprint == c.q.Fingerprint {
		if why, err := c.sourceChanged(ctx, last, pins); err != nil || why == "" {
			return nil, err
		}
	}
	next := max(c.ck.planned, c.ck.committed) + 1
	tables := []*delta.Snapshot{c.target}
	if c.flow.Quarantine != nil {
		refused, err := snapshot(ctx, c.flow.Quarantine)
		if err != nil {
			return nil, err
		}
		tables = append(tables, refused)
	}
	for _, t := range tables {
		if has, ok := txn(t, c.ck.gen.AppID); ok {
			next = max(next, has+1)
		}
	}
	return &refreshEntry{
		Format: 1, Refresh: next, Timestamp: c.flow.now(), UpdateID: c.flow.UpdateID, Fingerprint: c.q.Fingerprint, Writers: 1, refreshPins: pins,
	}, nil
}

// ensureTable makes the table of a flow that has had no snapshot yet, so that
// others can read from it.
func (c *comparison) ensureTable(ctx context.Context) error {
	target, err := snapshot(ctx, c.flow.Target.Table)
	if err != nil || target != nil {
		return err
	}
	for _, in := range c.q.Files {
		if in.schema == nil {
			return nil // its columns come from a file
		}
	}
	columns, err := c.flow.flowSchema(ctx, nil)
	if err != nil {
		return err
	}
	res, err := c.flow.Target.create(ctx, columns, c.flow.now())
	if err != nil {
		return err
	}
	c.res.TargetVersion, c.res.Columns = res.Version, columns
	c.checkpointed(c.flow.Dataset, res)
	return nil
}

// errHeld is below the error of a snapshot that the count gate holds.
var errHeld = errors.New("the count gate holds the snapshot")

// gate stops a snapshot that has lost more rows than it may. The whole of it
// waits: it is not processed, and not passed over either.
func (w *snapshotWork) gate(ctx context.Context) error {
	if w.latest == nil || w.rows >= w.latest.Rows {
		return nil
	}
	lost := w.latest.Rows - w.rows
	share := float64(lost) / float64(w.latest.Rows)
	if share <= w.c.s.MaxShrink {
		return nil
	}
	v := w.e.Snapshot.Version
	if accept := w.c.s.Accept; accept != nil && accept(v.String()) {
		w.c.notices.add(Notice{Code: "SNAPSHOT_ACCEPTED", Text: fmt.Sprintf("snapshot %s is let through: it has %s, %s before it had %d", v, rowsText(w.rows), w.latest.Version, w.latest.Rows)})
		return nil
	}
	e := fault.Wrap(errHeld, "SNAPSHOT_SHRANK", "snapshot %s has %s, %s before it had %d: %.1f %% fewer, and %.4g %% is the most. It is held: nothing of it is in the table, and nothing after it",
		v, rowsText(w.rows), w.latest.Version, w.latest.Rows, 100*share, 100*w.c.s.MaxShrink).
		WithHint("Deliver it again, or let it pass with --accept-snapshot %s:%s", w.c.flow.Dataset, v)
	return errors.Join(e, w.c.log.hold(ctx, w.e.Refresh))
}

func rowsText(n int64) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}

// versions gives the versions that are in the table, oldest first.
func (c *comparison) versions(ctx context.Context) ([]abi.Version, error) {
	numbers, err := c.log.numbers(ctx, "commits")
	if err != nil {
		return nil, err
	}
	var out []abi.Version
	for _, n := range numbers {
		e, err := c.log.entry(ctx, n)
		if err != nil {
			return nil, err
		}
		if e.Snapshot != nil {
			out = append(out, e.Snapshot.Version)
		}
		delete(c.log.entries, n)
	}
	slices.SortFunc(out, abi.Version.Compare)
	return out, nil
}
