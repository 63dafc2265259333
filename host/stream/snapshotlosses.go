package stream

import (
	"context"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/fault"
)

// MissingSnapshots finds out which snapshots a full refresh would lose: those
// that are in the table and that the provider would not give again. A flow whose
// source is one snapshot loses all but the newest, where the table shows what was before.
// history tells whether it does.
func MissingSnapshots(ctx context.Context, s *Snapshots, history bool) (Loss, error) {
	c := &comparison{
		completion: &completion{run: &run{flow: &s.Flow, mem: s.Alloc, res: &Result{}}, q: &Refresh{Flow: s.Flow, Files: s.Files, Absent: s.Absent, snapshots: true}}, s: s,
	}
	if c.mem == nil {
		c.mem = memory.DefaultAllocator
	}
	numbers, err := generationNumbers(ctx, s.Checkpoint)
	if err != nil {
		return Loss{}, err
	}
	slices.Sort(numbers)
	for _, n := range slices.Backward(numbers) {
		var gen generation
		if err := getRecord(ctx, s.Checkpoint, generationPath(n), &gen); err != nil {
			return Loss{}, err
		}
		if gen.Kind != snapshotGeneration {
			return Loss{}, nil
		}
		if c.log, err = openRefreshLog(ctx, s.Checkpoint, gen); err != nil {
			return Loss{}, err
		}
		c.ck = c.log.checkpoint
		if c.ck.committed >= 0 {
			return c.missing(ctx, history)
		}
		// One that committed nothing has replaced nothing either.
	}
	return Loss{}, nil
}

func (c *comparison) missing(ctx context.Context, history bool) (Loss, error) {
	if !c.s.Provider {
		if !history || c.ck.committed < 1 {
			return Loss{}, nil
		}
		return Loss{Snapshots: c.ck.committed}, nil
	}
	had, err := c.versions(ctx)
	if err != nil {
		return Loss{}, err
	}
	pins, err := c.pin(ctx, nil)
	if err != nil {
		return Loss{}, err
	}
	var loss Loss
	var latest *LatestSnapshot
	for len(had) > 0 {
		v, err := c.peek(ctx, pins, latest)
		if err != nil {
			return Loss{}, err
		}
		for len(had) > 0 && (v == nil || v.Type != had[0].Type || had[0].Compare(*v) < 0) {
			loss.Snapshots++
			if len(loss.Examples) < lossExamples {
				loss.Examples = append(loss.Examples, had[0].String())
			}
			had = had[1:]
		}
		if v == nil {
			break
		}
		if len(had) > 0 && had[0] == *v {
			had = had[1:]
		}
		latest = &LatestSnapshot{Version: *v}
	}
	return loss, nil
}

// errPeeked ends a provider that has said its version.
var errPeeked = errors.New("the version is known")

// peek asks the provider which snapshot comes after one, without its rows.
func (c *comparison) peek(ctx context.Context, pins refreshPins, latest *LatestSnapshot) (_ *abi.Version, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New("INTERNAL_ERROR", "a step panicked: %v", p)
		}
	}()
	e := &refreshEntry{Timestamp: c.flow.now(), UpdateID: c.flow.UpdateID, refreshPins: pins, Writers: 1}
	if err := e.settle(c.q); err != nil {
		return nil, err
	}
	var said *abi.SnapshotResult
	hooks := &snapshotHooks{say: func(s abi.SnapshotResult) error { said = &s; return errPeeked }}
	if latest != nil {
		hooks.latest = &latest.Version
	}
	a := c.attempt(e, 0)
	t := a.task(0, Input{})
	query := &queryInputs{refresh: c.q, pins: pins}
	t.hooks = &taskHooks{side: c.flow.Side, pins: t.Side, policy: FailOnRowError, source: query, query: query, means: means{c.mem, 0}, snapshots: hooks}
	r, err := c.flow.Steps[0].Run(ctx, t, nil)
	if err == nil {
		for said == nil && r.Next() {
		}
		err = r.Err()
		r.Release()
	}
	t.hooks = nil
	switch {
	case said == nil && err == nil:
		return nil, fault.New("INTERNAL_ERROR", "the provider said no version")
	case said == nil:
		return nil, err
	case said.Version == nil:
		return nil, nil
	}
	return said.Version, comesAfter(latest, *said.Version)
}
