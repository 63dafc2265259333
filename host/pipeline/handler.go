package pipeline

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/stream"
)

// batchHandler is a function of kind foreach_batch as the handler of a flow.
type batchHandler struct{ pluginStep }

// handler makes the handler of a flow into a sink that has a function. Its side
// inputs join those of the chain.
func (p *Pipeline) handler(f *flow, c *chain, schemas schemaOf) *batchHandler {
	d := f.target
	sides := make([]batchInput, len(f.body.inputs))
	for i, in := range f.body.inputs {
		if !in.stream {
			sides[i] = p.batchInput(in, c, schemas)
		}
	}
	return &batchHandler{pluginStep{pipeline: p.spec.Name, module: d.module, function: d.function, sides: sides, log: c.log, alloc: p.opts.Alloc}}
}

// Schemas gives the columns of each output.
func (h *batchHandler) Schemas(ctx context.Context, in *arrow.Schema) ([]*arrow.Schema, error) {
	inputs, err := h.inputSchemas(ctx, in)
	if err != nil {
		return nil, err
	}
	return h.module.loaded.OutputsWith(ctx, h.function.Name, inputs, &guestQueries{step: &h.pluginStep})
}

// Run gives the micro-batch to the function.
func (h *batchHandler) Run(ctx context.Context, t *stream.Task, in array.RecordReader, write func(int, arrow.RecordBatch) error) error {
	call, release, err := h.call(ctx, t, in)
	if err != nil {
		return err
	}
	defer release()
	return h.module.loaded.ForeachBatch(ctx, call, write)
}

var _ stream.Handler = (*batchHandler)(nil)
