package pipeline

import (
	"context"

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

// ruledViews gives the temporary views with expectations that a flow's stream
// passes, the nearest to the source first.
func (f *flow) ruledViews() []*dataset {
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
