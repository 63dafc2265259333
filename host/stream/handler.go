package stream

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// Handler takes each micro-batch of a flow in place of a target table
// (foreach_batch): it reads the batch whole and writes to the flow's outputs.
type Handler interface {
	// Schemas gives the columns of each output, without any rows.
	Schemas(ctx context.Context, in *arrow.Schema) ([]*arrow.Schema, error)
	// Run reads in to its end. The same rows, task included, must give the same
	// calls of write; a batch that is written stays the handler's.
	Run(ctx context.Context, t *Task, in array.RecordReader, write func(output int, rec arrow.RecordBatch) error) error
}

// Output is a table that a handler writes to. It is not the flow's own: other
// writers may write to it too, and a full refresh takes nothing out of it.
type Output struct {
	Dataset string
	Table   *delta.Table
	// Keys are the columns by which rows are merged: those with the keys of a row
	// in the table replace it, others are added. Without keys all are added.
	Keys []string
}

// checkHandler refuses a flow whose handler could not run.
func (f *Flow) checkHandler() error {
	switch {
	case len(f.Outputs) == 0:
		return fault.New("INVALID_FLOW", "a handler of micro-batches needs an output")
	case f.Target.Table != nil:
		return fault.New("INVALID_FLOW", "a flow has a target or a handler")
	case len(f.Rules) > 0:
		return fault.New("INVALID_FLOW", "a handler of micro-batches has no expectations").
			WithHint("Put them on the dataset that it reads")
	}
	for _, o := range f.Outputs {
		if o.Table == nil || o.Dataset == "" {
			return fault.New("INVALID_FLOW", "an output needs a table and its name")
		}
	}
	return nil
}

// tables gives the tables that the flow writes to.
func (f *Flow) tables() []*delta.Table {
	if f.Handler == nil {
		return []*delta.Table{f.Target.Table}
	}
	var out []*delta.Table
	for _, o := range f.Outputs {
		out = append(out, o.Table)
	}
	return out
}

// kept says that a full refresh leaves the rows that the flow wrote before.
func (f *Flow) kept() bool { return f.Handler != nil || f.Target.External }
