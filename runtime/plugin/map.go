package plugin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi"
)

// Call is one run of a function over the inputs of one task.
type Call struct {
	Function string
	Context  abi.CallContext
	// Seed of the guest's random source, made of flow, batch and task.
	Seed uint64
	// Inputs in the order of the manifest; the guest pulls them itself, in any
	// order. Map keeps a reference to each until
	// the call is over; the caller releases its own.
	Inputs []array.RecordReader
	// OnRowError hears of each input row that could not be transformed, once,
	// before the output around it is read; an error from it ends the call and
	// comes out of the reader as it is. Without it a row error is a failure.
	OnRowError func(input int, row int64, code, message string) error
	// OnMetric hears the sum of each user metric when the call succeeded.
	OnMetric func(name string, value float64)
	// OnLog hears the guest's log, standard output and error included.
	OnLog func(level abi.LogLevel, message string)
	// Carry names columns of input 0 that a row-aligned function's output
	// carries after its own, such as the row's number; no function is sent them
	// unless its columns name them.
	Carry []string
	// OnUsage hears what the call took when it is over, also when it failed.
	OnUsage func(Usage)
	// Versions says of each input which version of a table it is, for functions
	// that declared reuse: an instance that has read the same version of a batch input before is
	// told so, and keeps what it made of it. "" is a version unlike any other. nil: the call
	// runs in a fresh instance whatever the function declared.
	Versions []string
	// State is what the last committed micro-batch of a stateful function left;
	// nil at the first.
	State []byte
	// OnState hears the new state of a stateful function when the call succeeded, if it
	// wrote one; it is to be committed with the output. The bytes are the listener's.
	OnState func(state []byte) error
	// OnSnapshot hears what a snapshot provider says before its first output. An
	// error from it ends the call and comes out of the reader as it is. A call that is
	// made again because the guest ran out of memory says it again.
	OnSnapshot func(abi.SnapshotResult) error
	// Querier runs the guest's queries; without it they are refused.
	Querier Querier
	// Mem is where the output's memory comes from; nil is Arrow's default.
	Mem memory.Allocator
}

// Map runs a function of kind map, stateful, query or snapshot. Calls of one stateful function
// follow one another, each with the state of the one before; the rows of a micro-batch are one call. The guest runs inside the reader's Next,
// on the caller's goroutine's behalf, and batches arrive as it writes them. The
// reader's error is nil only when the guest finished and all its output was
// sound; until then nothing read counts. Releasing the reader early ends the
// guest.
//
// The guest runs on a coroutine (iter.Pull), and Go cannot switch to one from
// a thread that C called: a reader must not be read inside a cgo callback, such
// as DuckDB's scan of an Arrow stream. Put a goroutine between the two.
func (m *Module) Map(ctx context.Context, call Call) (array.RecordReader, error) {
	reader, err := m.open(ctx, call)
	if err != nil {
		return nil, m.named(err, call.Function)
	}
	return reader, nil
}

func (m *Module) open(ctx context.Context, call Call) (*reader, error) {
	schemas := schemasOf(call)
	sig, err := m.sign(call.Function, schemas, call.Carry)
	if err != nil {
		return nil, err
	}
	if sig.function.Kind == abi.KindForeachBatch {
		return nil, errorf(CodeInternal, "a function of kind %s is no transformation", sig.function.Kind)
	}
	r, err := m.begin(ctx, sig, schemas, call)
	if err != nil {
		return nil, err
	}
	schema, err := sig.output(r.outputs[0].guest)
	if err != nil {
		r.release()
		return nil, err
	}
	return newReader(ctx, m, r, schema), nil
}

func schemasOf(call Call) []*arrow.Schema {
	schemas := make([]*arrow.Schema, len(call.Inputs))
	for i, in := range call.Inputs {
		schemas[i] = in.Schema()
	}
	return schemas
}

// begin checks a call and makes its state.
func (m *Module) begin(ctx context.Context, sig *signature, schemas []*arrow.Schema, call Call) (*run, error) {
	if call.Versions != nil && len(call.Versions) != len(call.Inputs) {
		return nil, errorf(CodeInternal, "%d versions for %d inputs", len(call.Versions), len(call.Inputs))
	}
	if n := int64(len(call.State)); n > m.limits.StateBytes {
		return nil, overLimit("state_bytes", m.limits.StateBytes, fmt.Sprintf("the state of %d bytes", n))
	}
	if sig.guests == nil {
		var err error
		if sig.guests, err = m.learn(ctx, sig, schemas, call.Querier); err != nil {
			return nil, err
		}
	}
	return m.prepare(sig, call)
}

// prepare makes the state of a call.
func (m *Module) prepare(sig *signature, call Call) (*run, error) {
	text, err := call.Context.JSON()
	if err != nil {
		return nil, because(err, CodeInternal, "the call context")
	}
	encoders, err := sig.encoders()
	if err != nil {
		return nil, err
	}
	r := &run{
		module: m, function: sig.function, sig: sig, call: call, context: text, limits: m.limits,
		outputs: make([]output, max(len(sig.function.Outputs), 1)), mem: call.Mem, errorRows: make([]rowSet, len(call.Inputs)),
		allowance: taskAllowance(m.limits),
	}
	if r.mem == nil {
		r.mem = memory.DefaultAllocator
	}
	for i, guest := range sig.guests {
		r.outputs[i].guest = guest
	}
	if sig.function.RowAligned {
		var schema *arrow.Schema // without one there are no rows either
		if sig.guests != nil {
			if schema, err = sig.output(sig.guests[0]); err != nil {
				return nil, err
			}
		}
		r.aligned = &aligner{schema: schema, before: sig.before, after: sig.after}
	}
	for i, source := range call.Inputs {
		source.Retain()
		in := &input{source: source, encoder: encoders[i], limits: m.limits, maxRows: m.limits.BatchRows, allowance: r.allowance}
		if i == 0 && r.aligned != nil {
			in.onChunk = r.aligned.take
		}
		r.inputs = append(r.inputs, in)
	}
	return r, nil
}

// reader is the output of a call.
type reader struct {
	refs   atomic.Int64
	schema *arrow.Schema
	next   func() (arrow.RecordBatch, error, bool)
	stop   func()
	end    func() // gives the call's resources back
	rec    arrow.RecordBatch
	err    error
	done   bool
}

func newReader(ctx context.Context, m *Module, r *run, schema *arrow.Schema) *reader {
	m.unit.retain()
	rd := &reader{schema: schema}
	rd.refs.Store(1)
	rd.end = func() {
		r.release()
		_ = m.unit.release(context.WithoutCancel(ctx))
	}
	rd.next, rd.stop = iter.Pull2(func(yield func(arrow.RecordBatch, error) bool) {
		r.emit = func(_ int, batch arrow.RecordBatch) bool { return yield(batch, nil) }
		err := m.unit.compile(ctx)
		if err == nil {
			err = r.execute(ctx)
		}
		if err != nil && !errors.Is(err, errReleased) {
			yield(nil, m.named(err, r.call.Function))
		}
	})
	return rd
}

// Retain implements array.RecordReader.
func (r *reader) Retain() { r.refs.Add(1) }

// Release implements array.RecordReader; the last one ends the guest.
func (r *reader) Release() {
	if r.refs.Add(-1) == 0 {
		r.finish()
		r.drop()
	}
}

// Schema implements array.RecordReader.
func (r *reader) Schema() *arrow.Schema { return r.schema }

// Next implements array.RecordReader.
func (r *reader) Next() bool {
	r.drop()
	if r.done {
		return false
	}
	rec, err, ok := r.next()
	if !ok || err != nil {
		r.err = err
		r.finish()
		return false
	}
	r.rec = rec
	return true
}

// RecordBatch implements array.RecordReader; the batch is good until the next Next.
func (r *reader) RecordBatch() arrow.RecordBatch { return r.rec }

// Record implements array.RecordReader.
func (r *reader) Record() arrow.RecordBatch { return r.rec }

// Err implements array.RecordReader.
func (r *reader) Err() error { return r.err }

func (r *reader) drop() {
	if r.rec != nil {
		r.rec.Release()
		r.rec = nil
	}
}

// finish ends the coroutine, guest included, and gives everything back, once.
func (r *reader) finish() {
	if r.done {
		return
	}
	r.done = true
	r.stop()
	r.end()
}

// Schema gives the schema of a function's output for inputs of these schemas:
// the declared one, or what the guest writes when every input has no rows.
func (m *Module) Schema(ctx context.Context, function string, inputs []*arrow.Schema) (*arrow.Schema, error) {
	return m.SchemaWith(ctx, function, inputs, nil)
}

// SchemaWith is Schema for a function that runs queries, which the querier is asked for
// over inputs without rows.
func (m *Module) SchemaWith(ctx context.Context, function string, inputs []*arrow.Schema, queries Querier) (*arrow.Schema, error) {
	schema, err := m.outputSchema(ctx, function, inputs, queries)
	return schema, m.named(err, function)
}

func (m *Module) outputSchema(ctx context.Context, function string, inputs []*arrow.Schema, queries Querier) (*arrow.Schema, error) {
	sig, err := m.sign(function, inputs, nil)
	if err != nil {
		return nil, err
	}
	if _, err := sig.encoders(); err != nil {
		return nil, err
	}
	guests := sig.guests
	if guests == nil {
		if guests, err = m.learn(ctx, sig, inputs, queries); err != nil {
			return nil, err
		}
	}
	return sig.output(guests[0])
}

// learn calls a function with inputs of no rows, to see which schema it
// writes to each output. What it learned it keeps.
func (m *Module) learn(ctx context.Context, sig *signature, inputs []*arrow.Schema, queries Querier) ([]*arrow.Schema, error) {
	key := sig.function.Name
	for i, s := range sig.sent {
		for _, c := range sig.columns[i] {
			key += "\x00" + s.Field(c).String()
		}
		key += "\x01"
	}
	m.mu.Lock()
	known := m.schemas[key]
	m.mu.Unlock()
	if known != nil {
		return known, nil
	}
	call := Call{Function: sig.function.Name, Querier: queries}
	for _, s := range inputs {
		empty, err := array.NewRecordReader(s, nil)
		if err != nil {
			return nil, because(err, CodeInternal, "an empty input")
		}
		defer empty.Release()
		call.Inputs = append(call.Inputs, empty)
	}
	blank := *sig
	blank.guests = nil
	r, err := m.prepare(&blank, call)
	if err != nil {
		return nil, err
	}
	defer r.release()
	r.learning = true
	r.allowance = setupAllowance(m.limits) // planning does not wait as long as a task may take
	for _, i := range r.inputs {
		i.allowance = r.allowance
	}
	r.emit = func(_ int, b arrow.RecordBatch) bool { b.Release(); return true }
	if err := m.unit.compile(ctx); err != nil {
		return nil, err
	}
	if err := r.execute(ctx); err != nil {
		return nil, err
	}
	var learned []*arrow.Schema
	for _, o := range r.outputs {
		learned = append(learned, o.decoder.Schema())
	}
	if r.rows > 0 {
		return nil, errorf(CodeOutputInvalid, "it wrote %d rows for inputs of none", r.rows)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.schemas[key] = learned
	return learned, nil
}
