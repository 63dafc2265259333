package plugin

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi"
)

// ForeachBatch runs a function of kind foreach_batch over a micro-batch, whose
// inputs are read to their end, and hands the batches of its outputs over as it
// writes them, with the number of the output. What was handed over counts only
// when ForeachBatch returns nil. The batch is released after write returns.
//
// It runs on the caller's goroutine; the limits, the context and the hooks are
// those of Map.
func (m *Module) ForeachBatch(ctx context.Context, call Call, write func(output int, batch arrow.RecordBatch) error) error {
	return m.named(m.foreachBatch(ctx, call, write), call.Function)
}

func (m *Module) foreachBatch(ctx context.Context, call Call, write func(int, arrow.RecordBatch) error) error {
	schemas := schemasOf(call)
	sig, err := m.signHandler(call.Function, schemas)
	if err != nil {
		return err
	}
	r, err := m.begin(ctx, sig, schemas, call)
	if err != nil {
		return err
	}
	defer r.release()
	m.unit.retain()
	defer func() { _ = m.unit.release(context.WithoutCancel(ctx)) }()
	if err := m.unit.compile(ctx); err != nil {
		return err
	}
	var refused error
	r.emit = func(number int, batch arrow.RecordBatch) bool {
		defer batch.Release()
		refused = write(number, batch)
		return refused == nil
	}
	err = r.execute(ctx)
	if refused != nil {
		return refused
	}
	return err
}

// Outputs gives the schema of each output of a function of kind foreach_batch
// for inputs of these schemas: what it writes when every input has no rows.
func (m *Module) Outputs(ctx context.Context, function string, inputs []*arrow.Schema) ([]*arrow.Schema, error) {
	return m.OutputsWith(ctx, function, inputs, nil)
}

// OutputsWith is Outputs for a handler that runs queries.
func (m *Module) OutputsWith(ctx context.Context, function string, inputs []*arrow.Schema, queries Querier) ([]*arrow.Schema, error) {
	sig, err := m.signHandler(function, inputs)
	if err == nil {
		var outputs []*arrow.Schema
		if outputs, err = m.learn(ctx, sig, inputs, queries); err == nil {
			return outputs, nil
		}
	}
	return nil, m.named(err, function)
}

func (m *Module) signHandler(function string, inputs []*arrow.Schema) (*signature, error) {
	sig, err := m.sign(function, inputs, nil)
	if err == nil && sig.function.Kind != abi.KindForeachBatch {
		err = errorf(CodeInternal, "a function of kind %s is no handler of batches", sig.function.Kind)
	}
	return sig, err
}
