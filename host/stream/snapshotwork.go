package stream

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// snapshotWork is one try at a snapshot. It stands for the application, which
// begins only when the version is known.
type snapshotWork struct {
	*refreshAttempt
	c      *comparison
	latest *LatestSnapshot // nil: there is none before

	version *abi.Version // what was said; nil before
	done    bool         // there is no snapshot
	begun   SnapshotApplication
	rows    int64
}

// compare reads the snapshot and takes what it changes into the table.
func (c *comparison) compare(ctx context.Context, e *refreshEntry, number int) (w *snapshotWork, err error) {
	a := c.attempt(e, number)
	a.operation = "STREAMING UPDATE"
	w = &snapshotWork{refreshAttempt: a, c: c}
	if err := e.settle(c.q); err != nil {
		return w, err
	}
	if a.target, err = snapshot(ctx, c.flow.Target.Table); err != nil {
		return w, err
	}
	a.replace = c.ck.gen.Replace && c.ck.committed < 0
	if !a.replace {
		if w.latest, err = c.applier.Latest(ctx, a.target); err != nil {
			return w, err
		}
	}
	if a.output, err = c.flow.planRows(ctx, nil, a.target, a.replace); err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, a.endApply(ctx)) }()
	if !c.s.Provider {
		at := abi.Version{Type: abi.VersionTimestamp, Value: e.Timestamp.UTC().Format(abi.TimeLayout)}
		if err := w.say(ctx, abi.SnapshotResult{Version: &at}); err != nil {
			return w, err
		}
	}
	if err := w.read(ctx); err != nil {
		return w, err
	}
	if w.done {
		return w, nil
	}
	if w.begun == nil {
		return w, fault.New("INTERNAL_ERROR", "nobody said which snapshot this is")
	}
	if err := w.gate(ctx); err != nil {
		return w, err
	}
	fpDataWritten.Hit()
	if err := a.commitQuarantine(ctx); err != nil {
		return w, err
	}
	a.out = a.outcome()
	fpBeforeTargetCommit.Hit()
	version, err := a.commitTarget(ctx)
	var already *delta.AlreadyCommitted
	if errors.As(err, &already) {
		return w, a.attempt.recover(ctx)
	}
	if err != nil {
		return w, err
	}
	fpTargetCommitted.Hit()
	if err := a.finish(ctx, a.out, version, false); err != nil {
		return w, err
	}
	if !c.s.Provider {
		c.log.sweep(ctx) // a provider's records say which versions were taken
	}
	return w, nil
}

// read runs the steps as one task, with this as its application.
func (w *snapshotWork) read(ctx context.Context) error {
	var latest *abi.Version
	if w.latest != nil {
		latest = &w.latest.Version
	}
	return w.compute(ctx, w, &snapshotHooks{latest: latest, say: func(s abi.SnapshotResult) error { return w.say(ctx, s) }})
}

// snapshotHooks is what a provider hears and says.
type snapshotHooks struct {
	latest *abi.Version
	say    func(abi.SnapshotResult) error
}

// say takes what a provider says before its first row, and begins to work on it.
func (w *snapshotWork) say(ctx context.Context, s abi.SnapshotResult) error {
	if w.version != nil || w.done {
		// A call that ran out of memory is made again.
		if w.done == (s.Version == nil) && (w.done || *s.Version == *w.version) {
			return nil
		}
		return w.differs(s)
	}
	planned := w.e.Snapshot
	switch {
	case planned != nil && (s.Version == nil || *s.Version != planned.Version):
		w.version = &planned.Version
		return w.differs(s)
	case s.Version == nil:
		w.done = true
		return nil
	}
	v := *s.Version
	if err := comesAfter(w.latest, v); err != nil {
		return err
	}
	w.version = &v
	if planned == nil {
		w.e.Snapshot = &snapshotPlan{Version: v}
		if w.latest != nil {
			w.e.Snapshot.Latest = &w.latest.Version
		}
		fpBeforeOffset.Hit()
		if err := w.c.log.plan(ctx, w.e); err != nil {
			return err
		}
		fpOffsetWritten.Hit()
	}
	w.tell(Progress{Kind: BatchStarted, Batch: w.e.Refresh, Attempt: w.number, Timestamp: w.e.Timestamp})
	return w.begin(ctx)
}

// comesAfter holds that snapshots come in the order of their versions.
func comesAfter(latest *LatestSnapshot, v abi.Version) error {
	if latest == nil {
		return nil
	}
	was := latest.Version
	if v.Type != was.Type {
		return fault.New("SNAPSHOT_VERSION_TYPE_CHANGED", "the snapshot's version %s is of type %s, that of the latest (%s) of type %s", v, v.Type, was, was.Type).
			WithHint("Versions of different types have no order: give the type of before, or run a full refresh of the target")
	}
	if v.Compare(was) <= 0 {
		return fault.New("SNAPSHOT_VERSION_NOT_ASCENDING", "the snapshot's version is %s, which does not come after the latest, %s", v, was).
			WithHint("Give the snapshots in the order of their versions, each once. An older one cannot be put in between: run a full refresh of the target")
	}
	return nil
}

// differs is the error of a provider that does not say again what it said.
func (w *snapshotWork) differs(s abi.SnapshotResult) error {
	now := "that there is none"
	if s.Version != nil {
		now = s.Version.String()
	}
	was := "that there is none"
	if w.version != nil {
		was = w.version.String()
	}
	return fault.New("SNAPSHOT_NOT_REPEATED", "the provider said %s, and for the same inputs now says %s", was, now).
		WithHint("A provider must give the same snapshot for the same inputs and the same latest version. If it has changed, run again")
}

// begin starts the application of the snapshot, whose version is known.
func (w *snapshotWork) begin(ctx context.Context) error {
	w.snapshot = w.version
	if err := w.beginApply(ctx); err != nil {
		return err
	}
	app, ok := w.application.(SnapshotApplication)
	if !ok {
		return fault.New("INTERNAL_ERROR", "the application compares no snapshots")
	}
	w.begun = app
	return nil
}

// Take implements Application.
func (w *snapshotWork) Take(ctx context.Context, task int, rec arrow.RecordBatch) error {
	w.rows += rec.NumRows()
	return w.begun.Take(ctx, task, rec)
}

// Keep implements SnapshotApplication.
func (w *snapshotWork) Keep(ctx context.Context, rec arrow.RecordBatch) error {
	w.rows += rec.NumRows()
	return w.begun.Keep(ctx, rec)
}

// Commit and Release are the begun application's own; nobody asks this one.
func (w *snapshotWork) Commit(ctx context.Context, c delta.Commit) (delta.Result, Counts, error) {
	return w.begun.Commit(ctx, c)
}

// Release implements Application.
func (w *snapshotWork) Release(context.Context) error { return nil }
