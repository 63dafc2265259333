package stream

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// tidy is an Applier that looks after its target.
type tidy struct {
	newest
	t    *testing.T
	busy *atomic.Bool
	runs *atomic.Int64
	do   func(run int64, ctx context.Context) error
}

func (k tidy) Begin(ctx context.Context, b ApplyBatch) (Application, error) {
	if k.busy.Load() {
		k.t.Error("a batch begins while the target is looked after")
	}
	return k.newest.Begin(ctx, b)
}

func (k tidy) Keep(ctx context.Context, table *delta.Table, tell func(Notice)) error {
	k.busy.Store(true)
	defer k.busy.Store(false)
	if snap, err := table.Snapshot(ctx); err != nil || snap.Version() < k.runs.Load() {
		k.t.Errorf("before the batch: %v, %v", snap, err)
	}
	tell(Notice{Code: "TIDY", Text: "looking"})
	time.Sleep(time.Millisecond)
	return k.do(k.runs.Add(1), ctx)
}

// A target is looked after once a batch, while nothing else changes it, and the
// run waits for it. What goes wrong there is told and costs nothing.
func TestATargetIsLookedAfterBetweenBatches(t *testing.T) {
	l := newLake(t)
	l.options["cloudFiles.maxFilesPerTrigger"] = "1"
	for i, name := range []string{"a.json", "b.json", "c.json"} {
		l.dropChanges(t, name, newestRow{1, int64(i)})
	}
	k := tidy{t: t, busy: &atomic.Bool{}, runs: &atomic.Int64{}, do: func(run int64, _ context.Context) error {
		switch run {
		case 2:
			return fault.New("DISK_IS_FULL", "no room").WithHint("Make room")
		case 3:
			panic("oops")
		}
		return nil
	}}
	f := l.mustBronze(t)
	f.Apply = k
	var told []string
	res, err := Run(context.Background(), f, ObserverFunc(func(p Progress) {
		if p.Kind == Noticed {
			told = append(told, p.Notice.Code)
		}
	}))
	if err != nil || res.Batches != 3 || k.runs.Load() != 3 || k.busy.Load() {
		t.Fatalf("%+v, %v, looked after %d times", res, err, k.runs.Load())
	}
	if got := strings.Join(told, " "); got != "TOY TIDY DISK_IS_FULL INTERNAL_ERROR" {
		t.Error(got)
	}
}

// A run that is cancelled does not wait for the work to end by itself.
func TestACancelledRunCutsTheUpkeepShort(t *testing.T) {
	l := newLake(t)
	l.dropChanges(t, "a.json", newestRow{1, 1})
	ctx, cancel := context.WithCancel(context.Background())
	k := tidy{t: t, busy: &atomic.Bool{}, runs: &atomic.Int64{}, do: func(_ int64, ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}}
	f := l.mustBronze(t)
	f.Apply = k
	if _, err := Run(ctx, f, nil); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if k.runs.Load() != 1 || k.busy.Load() {
		t.Error("it was not looked after, or still is")
	}
}
