package pipeline

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/google/uuid"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/stream"
)

// maxConcurrentFlows bounds the flows that run at once, as Spark does.
const maxConcurrentFlows = 16

// Run runs one update. The error is set when the update could not start; a
// flow that failed is told by Result.State and its FlowResult.
func (p *Pipeline) Run(ctx context.Context, opt RunOptions) (*Result, error) {
	chosen, err := p.choose(opt)
	if err != nil {
		return nil, err
	}
	if err := p.checkTargets(ctx, chosen.tables(p.graph)); err != nil {
		return nil, err
	}
	if err := checkRunnable(chosen.tables(p.graph)); err != nil {
		return nil, err
	}
	if err := p.checkDependencies(ctx, chosen); err != nil {
		return nil, err
	}
	if err := p.makeStorage(); err != nil {
		return nil, err
	}
	unlock, err := p.lockUpdate(ctx, opt.Wait)
	if err != nil {
		return nil, err
	}
	u, err := p.newUpdate(ctx, chosen, opt)
	if err != nil {
		if unlocking := unlock(); unlocking != nil {
			return nil, errors.Join(err, unlocking)
		}
		return nil, err
	}
	result := u.run(ctx)
	return result, unlock()
}

// lockUpdate lets one update of the pipeline run at a time.
func (p *Pipeline) lockUpdate(ctx context.Context, wait bool) (func() error, error) {
	unlock, err := storage.Lock(ctx, p.folder(), "update.lock", wait)
	if errors.Is(err, storage.ErrLocked) && ctx.Err() == nil {
		return nil, fault.Wrap(err, "UPDATE_ALREADY_RUNNING", "another update of pipeline %s is running", p.spec.Name).
			WithHint("Wait for it, or run with --wait")
	}
	return unlock, err
}

// newUpdate gives the pipeline its identity, takes the tables it fills and
// opens the update's part of the event log.
func (p *Pipeline) newUpdate(ctx context.Context, chosen *selection, opt RunOptions) (*update, error) {
	identity, err := p.catalog().Identify(ctx, p.spec.Name)
	if err != nil {
		return nil, err
	}
	for _, d := range chosen.tables(p.graph) {
		for _, name := range publishedNames(d) {
			if err := p.catalog().Claim(ctx, name, identity.PipelineID); err != nil {
				return nil, fault.Place(err, "CATALOG_UNAVAILABLE", d.place)
			}
		}
	}
	if log := p.spec.EventLog; log != nil {
		if err := p.catalog().Claim(ctx, *log, identity.PipelineID); err != nil {
			return nil, fault.Place(err, "CATALOG_UNAVAILABLE", fault.Where{File: p.spec.Path})
		}
	}
	u := &update{
		p: p, opt: opt, chosen: chosen, slots: stream.NewSlots(p.tasksAtOnce()), lines: map[string]*lineCount{}, began: map[*flow]bool{},
		result: &Result{
			Pipeline: p.spec.Name, PipelineID: identity.PipelineID, UpdateID: uuid.NewString(),
			State: Running, Started: p.now(),
		},
	}
	if err := u.intend(ctx); err != nil {
		return nil, err
	}
	u.openLog(ctx)
	return u, nil
}

func (p *Pipeline) now() time.Time { return p.opts.Clock().UTC().Truncate(time.Microsecond) }

// flowsAtOnce is how many flows run at the same time.
func (p *Pipeline) flowsAtOnce() int { return min(p.tasksAtOnce(), maxConcurrentFlows) }

// tasksAtOnce is how many tasks of all flows run at the same time. Two when
// there is but one processor: one may be waiting for its storage.
func (p *Pipeline) tasksAtOnce() int {
	n := p.opts.Threads
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	return max(n, 2)
}
