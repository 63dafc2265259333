package stream

import (
	"context"
	"errors"
	"strconv"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// refreshAttempt is one try at a planned refresh.
type refreshAttempt struct {
	*attempt
	c *completion
	e *refreshEntry
}

// refresh computes the query over the pinned inputs and commits what it gives.
func (a *refreshAttempt) refresh(ctx context.Context) (err error) {
	if err := a.e.settle(a.c.q); err != nil {
		return err
	}
	if a.target, err = snapshot(ctx, a.flow.Target.Table); err != nil {
		return err
	}
	a.replace = a.ck.gen.Replace
	a.tell(Progress{Kind: BatchStarted, Batch: a.e.Refresh, Attempt: a.number, Timestamp: a.e.Timestamp})
	if a.output, err = a.flow.planRows(ctx, nil, a.target, a.replace); err != nil {
		return err
	}
	if a.flow.Apply != nil {
		defer func() { err = errors.Join(err, a.endApply(ctx)) }()
		if err := a.beginApply(ctx); err != nil {
			return err
		}
	}
	if err := a.compute(ctx, a.application, nil); err != nil {
		return err
	}
	fpDataWritten.Hit()
	if err := a.commitQuarantine(ctx); err != nil {
		return err
	}
	a.out = a.outcome()
	fpBeforeTargetCommit.Hit()
	version, err := a.commitTarget(ctx)
	var already *delta.AlreadyCommitted
	if errors.As(err, &already) {
		return a.recover(ctx)
	}
	if err != nil {
		return err
	}
	fpTargetCommitted.Hit()
	return a.settled(ctx, a.out, version, false)
}

// recover notes a refresh that the table has already.
func (a *refreshAttempt) recover(ctx context.Context) error {
	if err := a.attempt.recover(ctx); err != nil {
		return err
	}
	a.c.log.sweep(ctx)
	return nil
}

// settled writes the commit entry and removes records of old.
func (a *refreshAttempt) settled(ctx context.Context, out outcome, version int64, recovered bool) error {
	if err := a.finish(ctx, out, version, recovered); err != nil {
		return err
	}
	a.c.log.sweep(ctx)
	return nil
}

// compute runs the query as one task, whose rows go to the application if there is one.
func (a *refreshAttempt) compute(ctx context.Context, app Application, snapshots *snapshotHooks) error {
	runner := &taskRunner{
		flow: a.flow, means: means{a.mem, 0}, output: a.output, target: a.target, application: app, replace: a.replace, snapshots: snapshots,
		query: &queryInputs{refresh: a.c.q, pins: a.e.refreshPins}, writers: a.e.Writers,
	}
	if a.flow.Quarantine != nil {
		var err error
		if runner.quarantine, err = snapshot(ctx, a.flow.Quarantine); err != nil {
			return err
		}
		v, ok := txn(runner.quarantine, a.ck.gen.AppID)
		runner.quarantined = ok && v >= a.e.Refresh
	}
	if err := a.flow.Slots.take(ctx); err != nil {
		return err
	}
	defer a.flow.Slots.giveBack()
	var err error
	a.result, err = runner.run(ctx, a.task(0, Input{}))
	return err
}

// operationOf names a version in a message.
func operationOf(e *delta.Entry) string {
	version := strconv.FormatInt(e.Version, 10)
	if e.CommitInfo != nil && e.CommitInfo.Operation != "" {
		version += " (" + e.CommitInfo.Operation + ")"
	}
	return version
}

// mixedUp is what a step gets that asks for an input the refresh does not have.
func mixedUp(name string) error {
	return fault.New("INTERNAL_ERROR", "the flow has no input %q", name)
}
