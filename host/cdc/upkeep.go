package cdc

import (
	"context"
	"errors"

	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/fault"
)

// leastUpkeep and upkeepShare bound what a batch merges of the state's runs
// beside its own work: so many entries, or so many for each of its changes.
const (
	leastUpkeep = 256 << 10
	upkeepShare = 16
)

// upkeep merges runs of the state while a batch is applied. The runs of a version
// do not change, so neither has to wait for the other; the batch's own version
// adopts the result.
type upkeep struct {
	cancel context.CancelFunc
	done   chan struct{}
	result *state.Compaction
	err    error
}

// startUpkeep begins if there is anything to merge. The caller ends it.
func (a *apply) startUpkeep(ctx context.Context, m *merger) *upkeep {
	u := &upkeep{done: make(chan struct{})}
	ctx, u.cancel = context.WithCancel(ctx)
	if m.whole || len(a.was.Runs) < 2 {
		close(u.done)
		return u
	}
	was := a.was
	opt := state.CompactOptions{Entries: max(leastUpkeep, upkeepShare*a.changes.rows), Forget: m.forget}
	go func() {
		defer close(u.done)
		u.result, u.err = a.def.State.Compact(ctx, &was, opt)
	}()
	return u
}

// end stops it.
func (u *upkeep) end() {
	u.cancel()
	<-u.done
}

// adopt takes the result into the next version. Upkeep that fails is tried again
// with the next batch: nothing depends on it.
func (a *apply) adopt(ctx context.Context, u *upkeep, next *state.Manifest) {
	<-u.done
	err := u.err
	if err == nil && u.result != nil {
		_, err = a.def.State.Adopt(ctx, next, u.result)
	}
	a.upkeepFailed(err)
}

// sweep removes what the version that the target now names made superfluous.
func (a *apply) sweep(ctx context.Context, k int64) {
	a.upkeepFailed(a.def.State.Sweep(ctx, k))
}

func (a *apply) upkeepFailed(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		a.warn(fault.Wrap(err, "CDC_UPKEEP_FAILED", "the state of %s could not be tidied up", a.def.Dataset).
			WithHint("The batch is not concerned; it is tried again with the next one"))
	}
}
