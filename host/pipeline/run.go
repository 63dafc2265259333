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
	u := &update{
		p: p, opt: opt, slots: stream.NewSlots(p.tasksAtOnce()), lines: map[string]*lineCount{}, began: map[*flow]bool{}, unset: map[*dataset][]string{},
		result: &Result{Pipeline: p.spec.Name, UpdateID: uuid.NewString(), State: Queued, Started: p.now()},
	}
	var err error
	if u.chosen, err = p.choose(opt); err != nil {
		return nil, err
	}
	if err := u.check(ctx); err != nil {
		return nil, err
	}
	if err := p.makeStorage(); err != nil {
		return nil, err
	}
	unlock, err := u.lock(ctx)
	if err != nil {
		return nil, err
	}
	if err := u.begin(ctx); err != nil {
		return nil, errors.Join(err, unlock())
	}
	result := u.run(ctx)
	return result, unlock()
}

// check refuses what can be known to be wrong before anything is written.
func (u *update) check(ctx context.Context) error {
	targets := append(u.chosen.tables(u.p.graph), u.p.graph.publishedViews()...)
	if err := u.p.checkTargets(ctx, targets); err != nil {
		return err
	}
	if err := u.p.checkDefinitions(ctx, u.chosen); err != nil {
		return err
	}
	if err := u.p.checkDependencies(ctx, u.chosen); err != nil {
		return err
	}
	return u.checkLosses(ctx)
}

// lock lets one update of the pipeline run at a time. Another one is waited
// for, or told of.
func (u *update) lock(ctx context.Context) (unlock func() error, err error) {
	unlock, err = storage.Lock(ctx, u.p.folder(), "update.lock", false)
	if err == nil || !errors.Is(err, storage.ErrLocked) || ctx.Err() != nil {
		return unlock, err
	}
	holder, _ := u.p.lastUpdate(ctx) // what cannot be read cannot be told
	if !u.opt.Wait {
		return nil, fault.Wrap(err, "UPDATE_ALREADY_RUNNING", "%s", holder.running(u.p.spec.Name)).
			WithHint("Wait for it to end, or run with --wait")
	}
	u.enter(Queued, "waiting: "+holder.running(u.p.spec.Name))
	unlock, err = storage.Lock(ctx, u.p.folder(), "update.lock", true)
	if err != nil {
		return nil, err
	}
	// What was true before the wait need not be any more.
	if err := u.check(ctx); err != nil {
		return nil, errors.Join(err, unlock())
	}
	return unlock, nil
}

// begin gives the pipeline its identity, opens the update's part of the event
// log, puts the update on record and takes the tables it fills.
func (u *update) begin(ctx context.Context) (err error) {
	identity, err := u.p.catalog().Identify(ctx, u.p.spec.Name)
	if err != nil {
		return err
	}
	u.result.PipelineID = identity.PipelineID
	if u.previous, err = u.p.lastUpdate(ctx); err != nil {
		return err
	}
	if u.opt.RefreshFailed {
		u.chosen = u.p.chooseFailed(u.previous)
		if err := u.check(ctx); err != nil {
			return err
		}
	}
	u.queue()
	if u.opt.File != "" {
		u.result.Warnings = append(u.result.Warnings, u.p.unchecked(u.opt.File))
	}
	u.openLog(ctx)
	u.created()
	defer func() {
		if err != nil {
			u.err, u.result.State = err, Failed
			if ctx.Err() != nil {
				u.result.State = Canceled
			}
			err = errors.Join(err, u.close(ctx))
		}
	}()
	if err := u.record(ctx); err != nil {
		return err
	}
	if u.chosen.anyFull() {
		u.enter(Resetting, "")
	}
	if err := u.intend(ctx); err != nil {
		return err
	}
	u.enter(SettingUpTables, "")
	for _, d := range u.chosen.tables(u.p.graph) {
		if err := u.agreeOnIntervals(ctx, d); err != nil {
			return err
		}
		for _, name := range publishedNames(d) {
			if err := u.p.catalog().Claim(ctx, name, identity.PipelineID); err != nil {
				return fault.Place(err, "CATALOG_UNAVAILABLE", d.place)
			}
		}
	}
	if err := u.p.publishViews(ctx, identity.PipelineID); err != nil {
		return err
	}
	if log := u.p.spec.EventLog; log != nil {
		if err := u.p.catalog().Claim(ctx, *log, identity.PipelineID); err != nil {
			return fault.Place(err, "CATALOG_UNAVAILABLE", fault.Where{File: u.p.spec.Path})
		}
	}
	u.queue() // with the full refreshes that intend took over
	return nil
}

func (p *Pipeline) now() time.Time { return p.opts.Clock().UTC().Truncate(time.Microsecond) }

// flowsAtOnce is how many flows run at the same time.
func (p *Pipeline) flowsAtOnce() int { return min(p.tasksAtOnce(), maxConcurrentFlows) }

// tasksAtOnce is how many tasks of all flows run at the same time, as far as
// the memory allows. Two when there is but one processor: one may be waiting
// for its storage.
func (p *Pipeline) tasksAtOnce() int {
	n := p.opts.Threads
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	return p.budget.tasks(max(n, 2))
}
