package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
)

var fpOutputCommitted = failpoint.New("stream.output_committed")

// A batch of a handler is one task. Its outputs are committed one after the
// other, each with txn(appId, N); the batch is done when all have it. A run that
// finds some of them committed runs the handler again, which gives the same,
// and commits the others.

// handling is what becomes of one output in an attempt.
type handling struct {
	Output
	snapshot *delta.Snapshot // nil: there is no table yet
	schema   outputSchema
	done     bool // the table has the batch

	writer *delta.FileWriter // of rows that are only added
	rows   *keyedRows        // of rows that are merged
	adds   []delta.AddFile
	count  int64
}

// handle takes the batch to the flow's handler and writes its commit entry.
func (a *attempt) handle(ctx context.Context) error {
	outputs, all, err := a.openOutputs(ctx)
	if err != nil {
		return err
	}
	if all {
		out, err := a.foundOutcome(ctx, outputs)
		if err != nil {
			return err
		}
		return a.finish(ctx, out, -1, true)
	}
	files, bytes := a.entry.Source.size()
	a.tell(Progress{Kind: BatchStarted, Batch: a.entry.Batch, Attempt: a.number, Timestamp: a.entry.Timestamp, Files: files, Bytes: bytes})
	if a.schema, err = a.flow.Source.schema(ctx, a.versions, a.entry.Batch, &a.entry.Source); err != nil {
		return err
	}
	if err := a.planOutputs(ctx, outputs); err != nil {
		return err
	}
	if err := a.loadStates(ctx); err != nil {
		return err
	}
	a.outputs = outputs
	defer func() {
		for _, o := range outputs {
			o.release()
		}
	}()
	if err := a.work(ctx); err != nil {
		return a.evolved(ctx, err)
	}
	fpDataWritten.Hit()
	if err := a.commitQuarantine(ctx); err != nil {
		return err
	}
	out := a.outcome()
	if out.States, err = a.writeStates(ctx); err != nil {
		return err
	}
	for _, o := range outputs {
		if err := a.commitOutput(ctx, o, out); err != nil {
			return fault.Place(err, "FLOW_FAILED", fault.Where{Dataset: o.Dataset})
		}
		fpOutputCommitted.Hit()
	}
	return a.finish(ctx, out, -1, false)
}

// openOutputs looks at the tables; all is true when each has the batch.
func (a *attempt) openOutputs(ctx context.Context) (outputs []*handling, all bool, err error) {
	all = true
	for _, o := range a.flow.Outputs {
		h := &handling{Output: o}
		if h.snapshot, err = snapshot(ctx, o.Table); err != nil {
			return nil, false, fault.Place(err, "FLOW_FAILED", fault.Where{Dataset: o.Dataset})
		}
		v, ok := txn(h.snapshot, a.ck.gen.AppID)
		h.done = ok && v >= a.entry.Batch
		all = all && h.done
		outputs = append(outputs, h)
	}
	return outputs, all, nil
}

// foundOutcome gives what a batch did that every output has. Outputs without
// rows are not committed, so this is seen only when none was empty.
func (a *attempt) foundOutcome(ctx context.Context, outputs []*handling) (outcome, error) {
	first := outputs[0]
	out, _, err := findOutcome(ctx, first.Table, first.snapshot.Version(), a.ck.gen.AppID, a.entry.Batch)
	if err != nil {
		return out, err
	}
	if names := a.flow.stateNames(); out.unknown && len(names) > 0 {
		return out, fault.New("CHECKPOINT_CORRUPT", "the log of %s no longer tells which state of %v batch %d left", first.Dataset, names, a.entry.Batch).
			WithHint("Run a full refresh of this flow")
	}
	return out, nil
}

// planOutputs fits the handler's columns to the tables.
func (a *attempt) planOutputs(ctx context.Context, outputs []*handling) error {
	columns, err := a.flow.outputSchemas(ctx, a.schema.arrow)
	if err != nil {
		return err
	}
	for i, o := range outputs {
		if o.schema, err = fitOutput(o.Output, columns[i], o.snapshot); err != nil {
			return fault.Place(err, "FLOW_FAILED", fault.Where{Dataset: o.Dataset})
		}
	}
	return nil
}

// CheckOutput tells whether rows of these columns can be written to an output,
// whose table is nil when there is none yet.
func CheckOutput(o Output, columns *arrow.Schema, table *delta.Snapshot) error {
	_, err := fitOutput(o, columns, table)
	return err
}

func fitOutput(o Output, columns *arrow.Schema, table *delta.Snapshot) (outputSchema, error) {
	schema, err := planOutput(table, columns, false)
	if err == nil && len(o.Keys) > 0 {
		err = checkKeys(o.Keys, schema.rows, table)
	}
	return schema, err
}

// outputSchemas takes the source's columns through the steps to the outputs.
func (f *Flow) outputSchemas(ctx context.Context, in *arrow.Schema) ([]*arrow.Schema, error) {
	s, err := f.stepSchema(ctx, in)
	if err != nil {
		return nil, err
	}
	columns, err := f.Handler.Schemas(ctx, s)
	if err != nil {
		return nil, err
	}
	if len(columns) != len(f.Outputs) {
		return nil, fault.New("INTERNAL_ERROR", "the handler has %d outputs, the flow %d", len(columns), len(f.Outputs))
	}
	return columns, nil
}

// handOver takes the rows through the steps to the handler, whose rows go to
// files or, where they are merged, are kept until the commit.
func (r *taskRunner) handOver(ctx context.Context, t *Task, source sourceReader, m *Metrics) (err error) {
	defer func() {
		if err != nil {
			for _, o := range r.outputs {
				err = errors.Join(err, o.abort(ctx))
			}
		}
	}()
	for i, o := range r.outputs {
		if err := o.begin(ctx, fmt.Sprintf("%s-%d", t.Name(), i)); err != nil {
			return fault.Place(err, "FLOW_FAILED", fault.Where{Dataset: o.Dataset})
		}
	}
	err = r.through(ctx, t, source, func(in array.RecordReader) error {
		return r.flow.Handler.Run(ctx, t, in, func(output int, rec arrow.RecordBatch) error {
			if output < 0 || output >= len(r.outputs) {
				return fault.New("INTERNAL_ERROR", "the handler wrote to output %d of %d", output, len(r.outputs))
			}
			o := r.outputs[output]
			return fault.Place(o.take(ctx, rec), "FLOW_FAILED", fault.Where{Dataset: o.Dataset})
		})
	})
	if err != nil {
		return err
	}
	for _, o := range r.outputs {
		m.OutputRows += o.count
		if o.writer == nil {
			continue
		}
		w := o.writer
		o.writer = nil
		if o.adds, err = w.Close(ctx); err != nil {
			return fault.Place(err, "FLOW_FAILED", fault.Where{Dataset: o.Dataset})
		}
		for _, f := range o.adds {
			m.OutputFiles++
			m.OutputBytes += f.Size
		}
	}
	return nil
}

// begin makes ready for rows.
func (o *handling) begin(ctx context.Context, name string) (err error) {
	switch {
	case o.done:
	case len(o.Keys) > 0:
		o.rows = newKeyedRows(o.Keys, o.schema.rows, name)
	default:
		o.writer, err = o.Table.Write(ctx, delta.WriteOptions{Schema: o.schema.table, Snapshot: o.snapshot, Name: name})
	}
	return err
}

// take takes a batch of the handler's.
func (o *handling) take(ctx context.Context, rec arrow.RecordBatch) error {
	o.count += rec.NumRows()
	if o.done {
		return nil
	}
	out, err := project(rec, o.schema.rows)
	if err != nil {
		return err
	}
	defer out.Release()
	if o.rows != nil {
		return o.rows.add(out)
	}
	return o.writer.Write(ctx, out)
}

func (o *handling) abort(ctx context.Context) error {
	if o.writer == nil {
		return nil
	}
	w := o.writer
	o.writer = nil
	return w.Abort(context.WithoutCancel(ctx))
}

func (o *handling) release() {
	if o.rows != nil {
		o.rows.release()
		o.rows = nil
	}
}

// commitOutput brings an output's rows into its table. One without rows is
// left alone, once there is a table.
func (a *attempt) commitOutput(ctx context.Context, o *handling, out outcome) error {
	if o.done || o.snapshot != nil && o.count == 0 {
		return nil
	}
	text, err := out.encode()
	if err != nil {
		return fault.Wrap(err, "INTERNAL_ERROR", "cannot encode the outcome of batch %d", a.entry.Batch)
	}
	var res delta.Result
	if o.rows != nil {
		res, err = a.merge(ctx, o, text)
	} else {
		c := a.commit(o.snapshot, o.adds)
		c.Parameters[outcomeKey] = text
		c.Schema = o.schema.table
		res, err = o.Table.Commit(ctx, c)
	}
	var already *delta.AlreadyCommitted
	if err != nil && !errors.As(err, &already) {
		return err
	}
	a.checkpointed(o.Dataset, res)
	return nil
}

// ensureOutputs makes the tables that no batch has made yet, so that others can read them.
func (r *run) ensureOutputs(ctx context.Context) error {
	var columns []*arrow.Schema
	for i, o := range r.flow.Outputs {
		snap, err := snapshot(ctx, o.Table)
		if err != nil || snap != nil {
			if err != nil {
				return err
			}
			continue
		}
		if columns == nil {
			schema, err := r.flow.Source.schema(ctx, r.versions, 0, nil)
			if err != nil {
				return err
			}
			if columns, err = r.flow.outputSchemas(ctx, schema.arrow); err != nil {
				return err
			}
		}
		if len(o.Keys) > 0 {
			if err := checkKeys(o.Keys, columns[i], nil); err != nil {
				return fault.Place(err, "FLOW_FAILED", fault.Where{Dataset: o.Dataset})
			}
		}
		res, err := o.Table.Commit(ctx, delta.Commit{Operation: "CREATE TABLE", Parameters: map[string]any{}, EngineInfo: engineInfo,
			Schema: columns[i], Name: o.Dataset, Timestamp: r.flow.now()})
		if err != nil {
			return fault.Place(err, "FLOW_FAILED", fault.Where{Dataset: o.Dataset})
		}
		r.checkpointed(o.Dataset, res)
	}
	return nil
}
