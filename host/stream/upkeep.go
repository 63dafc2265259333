package stream

import (
	"context"
	"errors"
	"sync"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// Keeper is an Applier that looks after its target between batches, such as by
// packing the small files that they leave.
type Keeper interface {
	// Keep does a bounded piece of work on the table as a batch left it. It runs
	// while the next batch is looked for, and that batch waits for its end: rows
	// must not move under it. A failure costs nothing but the work.
	Keep(ctx context.Context, table *delta.Table, tell func(Notice)) error
}

// upkeep is what a Keeper does beside the batch loop.
type upkeep struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	err    error
}

// keep begins to look after the target.
func (r *run) keep(ctx context.Context) {
	r.upkeep = beginUpkeep(ctx, r.flow.Apply, r.flow.Target.Table, &r.notices)
}

// kept waits for what keep began. After an error of the run it is cut short.
func (r *run) kept(failed bool) {
	if r.upkeep == nil {
		return
	}
	r.upkeep.end(failed, &r.notices)
	r.upkeep = nil
	for _, n := range r.notices.take() {
		r.tell(Progress{Kind: Noticed, Batch: r.ck.planned, Notice: n})
	}
}

// beginUpkeep lets an applier look after its target; nil when it does not.
func beginUpkeep(ctx context.Context, apply any, table *delta.Table, notices *notices) *upkeep {
	keeper, ok := apply.(Keeper)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	u := &upkeep{cancel: cancel}
	u.done.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				u.err = fault.New("INTERNAL_ERROR", "the upkeep panicked: %v", p)
			}
		}()
		u.err = keeper.Keep(ctx, table, notices.add)
	})
	return u
}

// end waits for the work, which is cut short after a failure of what it is beside.
func (u *upkeep) end(failed bool, notices *notices) {
	if u == nil {
		return
	}
	if failed {
		u.cancel()
	}
	u.done.Wait()
	u.cancel()
	if u.err == nil || failed {
		return
	}
	n := Notice{Code: fault.CodeOf(u.err), Text: "the target could not be looked after: " + u.err.Error()}
	var coded *fault.Error
	if errors.As(u.err, &coded) {
		n.Hint = coded.Hint
	}
	notices.add(n)
}
