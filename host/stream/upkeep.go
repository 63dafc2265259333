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
	keeper, ok := r.flow.Apply.(Keeper)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	u := &upkeep{cancel: cancel}
	r.upkeep = u
	u.done.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				u.err = fault.New("INTERNAL_ERROR", "the upkeep panicked: %v", p)
			}
		}()
		u.err = keeper.Keep(ctx, r.flow.Target.Table, r.notices.add)
	})
}

// kept waits for what keep began. After an error of the run it is cut short.
func (r *run) kept(failed bool) {
	u := r.upkeep
	if u == nil {
		return
	}
	r.upkeep = nil
	if failed {
		u.cancel()
	}
	u.done.Wait()
	u.cancel()
	if u.err != nil && !failed {
		var coded *fault.Error
		n := Notice{Code: fault.CodeOf(u.err), Text: "the target could not be looked after: " + u.err.Error()}
		if errors.As(u.err, &coded) {
			n.Hint = coded.Hint
		}
		r.notices.add(n)
	}
	for _, n := range r.notices.take() {
		r.tell(Progress{Kind: Noticed, Batch: r.ck.planned, Notice: n})
	}
}
