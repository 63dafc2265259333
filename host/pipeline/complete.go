package pipeline

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/stream"
)

// batchChainOf makes the chain of a flow that streams nothing: its first step
// reads tables, files and views whole.
func (p *Pipeline) batchChainOf(f *flow, schemas schemaOf, log functionLog) *chain {
	c := newChain(log)
	step := p.step(&f.body, c, schemas)
	if step == nil { // the flow takes its only input as it is
		in := f.body.inputs[0]
		step = &sqlStep{engine: p.engine, query: sql.Query{Text: "SELECT * FROM source"}, sides: map[string]batchInput{"source": p.batchInput(in, c, schemas)}}
	}
	c.steps, c.labels = []stream.Step{step}, []string{f.body.label()}
	c.end(p, f)
	return c
}

// anyChainOf makes the chain of a flow, stream or batch.
func (p *Pipeline) anyChainOf(f *flow, schemas schemaOf, log functionLog) *chain {
	if f.body.streamInput() == nil {
		return p.batchChainOf(f, schemas, log)
	}
	return p.chainOf(f, schemas, log)
}

// complete computes a batch query and lets its rows replace those of the table,
// or appends them once.
func (u *update) complete(ctx context.Context, fl *flow, f *FlowResult) (_ stream.Result, err error) {
	d := fl.target
	none := stream.Result{TargetVersion: -1}
	c := u.p.batchChainOf(fl, u.p.tableSchema, u.functionLine)
	q := &stream.Refresh{Flow: *u.flow(fl, c), Once: fl.runsOnce(), Policy: d.refreshPolicy}
	missing, err := u.p.wholeInputs(ctx, c, &q.Files, &q.Absent)
	if err != nil {
		return none, err
	}
	if missing != "" {
		u.warn(f, missing+" has not been made yet; there is nothing to compute from")
		return none, nil
	}
	u.warnOfFiles(f, q.Files)
	release, err := u.merge(fl, &q.Flow)
	if err != nil {
		return none, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if q.Fingerprint, err = u.p.fingerprint(fl); err != nil {
		return none, err
	}
	if q.Volatile, err = u.p.volatile(ctx, c); err != nil {
		return none, err
	}
	return stream.Complete(ctx, q, stream.ObserverFunc(func(p stream.Progress) { u.observe(ctx, fl, f, p) }))
}

// wholeInputs gives what a batch query reads beside tables that are there, and
// the first table of this pipeline that is not there yet.
func (p *Pipeline) wholeInputs(ctx context.Context, c *chain, files *map[string]*stream.FileInput, absent *map[string]*arrow.Schema) (missing string, err error) {
	*files, *absent = map[string]*stream.FileInput{}, map[string]*arrow.Schema{}
	for id, in := range c.sides {
		if in.log != nil {
			(*absent)[id] = events.Schema
		}
		if in.quarantine != nil {
			(*absent)[id] = expect.QuarantineSchema() // made at the first refused row
		}
		if in.dataset == nil {
			continue
		}
		if snapshot, err := snapshotOf(ctx, p.inputTable(in)); err != nil {
			return "", err
		} else if snapshot == nil {
			missing = id
		}
	}
	for key, in := range c.files {
		(*files)[key] = in.files
	}
	return missing, nil
}

func (u *update) warnOfFiles(f *FlowResult, files map[string]*stream.FileInput) {
	for _, in := range files {
		for _, w := range in.Source.Warnings() {
			u.warn(f, w)
		}
	}
}

// volatile says what makes the chain give other rows for the same inputs, ""
// when nothing does. A function of a module counts as one that does not: its
// clock is the refresh's and its random source is seeded.
func (p *Pipeline) volatile(ctx context.Context, c *chain) (string, error) {
	var in *arrow.Schema
	for _, step := range c.steps {
		if s, ok := step.(*sqlStep); ok {
			if why, err := s.volatile(ctx, in); err != nil || why != "" {
				return why, err
			}
		}
		var err error
		if in, err = step.Schema(ctx, in); err != nil {
			return "", err
		}
	}
	for _, v := range c.views {
		s, ok := v.step.(*sqlStep)
		if !ok {
			continue
		}
		if why, err := s.volatile(ctx, nil); err != nil || why != "" {
			return why, err
		}
	}
	return "", nil
}

// volatile says whether this SELECT alone gives other rows for the same inputs.
func (s *sqlStep) volatile(ctx context.Context, in *arrow.Schema) (string, error) {
	inputs, err := s.schemas(ctx, in)
	if err != nil {
		return "", err
	}
	return s.engine.volatile(ctx, s.query, inputs)
}

// sideTables opens the tables that a chain reads whole.
func (p *Pipeline) sideTables(c *chain) map[string]*delta.Table {
	if len(c.sides) == 0 {
		return nil
	}
	tables := map[string]*delta.Table{}
	for id, in := range c.sides {
		tables[id] = p.inputTable(in)
	}
	return tables
}
