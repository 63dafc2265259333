package pipeline

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/stream"
)

// expectStep applies the expectations of a temporary view where its rows are
// read: the step before has marked them. Counts go by the view's name.
type expectStep struct{ view *dataset }

func (s *expectStep) Schema(_ context.Context, in *arrow.Schema) (*arrow.Schema, error) {
	return expect.Unmarked(in), nil
}

func (s *expectStep) Run(ctx context.Context, t *stream.Task, in array.RecordReader) (array.RecordReader, error) {
	return t.Expect(ctx, s.view.id, s.view.rules, in)
}

// ruled lets a batch view's query be followed by the view's expectations.
func (p *Pipeline) ruled(view *dataset, query stream.Step) stream.Step {
	if len(view.rules) == 0 {
		return query
	}
	steps := steps{query}
	if marks := p.marking(query, view.rules); marks != nil {
		marks.query.Stream = ""
		steps = append(steps, marks)
	}
	return append(steps, &expectStep{view: view})
}

// steps are one after the other, as one.
type steps []stream.Step

func (s steps) Schema(ctx context.Context, in *arrow.Schema) (_ *arrow.Schema, err error) {
	for _, step := range s {
		if in, err = step.Schema(ctx, in); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func (s steps) Run(ctx context.Context, t *stream.Task, in array.RecordReader) (array.RecordReader, error) {
	var before openReaders
	for _, step := range s {
		out, err := step.Run(ctx, t, in)
		if err != nil {
			before.release()
			return nil, err
		}
		before, in = append(before, out), out
	}
	before = before[:len(before)-1] // the last is the caller's
	return releasing(in, before.release), nil
}

// ruledViews gives the temporary views with expectations that a flow passes: of
// a stream's the nearest to the source first, of a batch query's each once.
func (f *flow) ruledViews() []*dataset {
	if f.kind == completeFlow || f.runsOnce() {
		return f.body.ruledBatchViews(nil)
	}
	var out []*dataset
	for b := &f.body; ; {
		in := b.streamInput()
		if in == nil || in.dataset == nil || !in.dataset.isView() || len(in.dataset.flows) == 0 {
			return out
		}
		if len(in.dataset.rules) > 0 {
			out = append([]*dataset{in.dataset}, out...)
		}
		b = in.dataset.query()
	}
}

// ruledBatchViews adds the views with expectations that a query reads whole,
// through views or not.
func (b *body) ruledBatchViews(found []*dataset) []*dataset {
	for _, in := range b.inputs {
		if in.dataset == nil || !in.dataset.isView() || len(in.dataset.flows) == 0 {
			continue
		}
		if !in.stream && len(in.dataset.rules) > 0 && !slices.Contains(found, in.dataset) {
			found = append(found, in.dataset)
		}
		found = in.dataset.query().ruledBatchViews(found)
	}
	return found
}
