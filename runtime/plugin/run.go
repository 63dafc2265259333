package plugin

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/runtime/wire"
)

// run is one call of a function while it runs: what the imports work on.
type run struct {
	module   *Module
	function *abi.Function
	sig      *signature
	call     Call
	context  []byte // JSON
	limits   Limits
	mem      memory.Allocator

	inputs  []*input
	outputs []output
	aligned *aligner // nil for a function that is not row-aligned
	metrics metrics

	errorRows  []rowSet // of each input
	errorCount int64
	errorBytes int64
	bytes      int64
	rows       int64
	empty      int64 // output batches without rows
	memory     int64 // of the last instance

	known        []string            // versions of the inputs that the instance had read before
	snapshot     *abi.SnapshotResult // what a snapshot provider said; nil before it did
	state        []byte              // the new one of a stateful function
	stateWritten bool

	allowance *allowance // of both attempts together

	learning bool // the call is made to see the schema of the output

	started bool // something went out that cannot be taken back
	emit    func(output int, batch arrow.RecordBatch) bool
}

// output is what the guest writes to one of its outputs.
type output struct {
	decoder *wire.Decoder
	guest   *arrow.Schema // what it shall write; nil: whatever it says
}

// errReleased ends a guest whose reader was released before its end.
var errReleased = errors.New("the reader was released")

// execute runs the call in an instance, and once more, in a fresh one, with halved
// batches when the guest ran out of memory before anything went out.
func (r *run) execute(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errorf(CodeInternal, "the call panicked: %v\n%s", p, debug.Stack())
		}
	}()
	room := r.limits.MemoryBytes // of host memory; a guest that read more hardly failed for the size of a batch
	for _, i := range r.inputs {
		i.keep, i.room = true, &room
	}
	if r.call.OnUsage != nil {
		defer func() { r.call.OnUsage(r.usage()) }()
	}
	again, err := r.attempt(ctx, true)
	if err == nil || !again || r.started || !r.halve() {
		return err
	}
	if r.call.OnLog != nil {
		r.call.OnLog(abi.LogWarn, fmt.Sprintf("the guest ran out of memory; the call runs again with at most %d rows a batch", r.inputs[0].maxRows))
	}
	_, err = r.attempt(ctx, false)
	return err
}

// halve prepares a second run; false when batches of input 0 are of one row,
// or when an input cannot give again what it gave.
func (r *run) halve() bool {
	r.dropQueries()
	if len(r.inputs) == 0 {
		return false
	}
	first := r.inputs[0]
	if first.largest < 2 {
		return false
	}
	for _, i := range r.inputs {
		if i.lost {
			return false
		}
	}
	first.maxRows = (first.largest + 1) / 2
	for _, i := range r.inputs {
		i.rewind()
	}
	if r.aligned != nil {
		r.aligned.release()
	}
	r.metrics = metrics{}
	r.state, r.stateWritten, r.snapshot = nil, false, nil
	r.bytes, r.rows, r.empty = 0, 0, 0
	return true
}

// usage is what the call took.
func (r *run) usage() Usage {
	a := r.allowance
	return Usage{GuestTime: a.guestTime, HostTime: a.hostTime, Fuel: a.usedFuel, Memory: r.memory, Bytes: r.bytes, Rows: r.rows}
}

// attempt runs the call in an instance, a fresh one unless the function
// declared reuse. A failed one may be made again
// when the guest itself failed with its memory used up; a limit is a limit.
func (r *run) attempt(ctx context.Context, first bool) (again bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	in, err := r.instance(ctx, first)
	if err != nil {
		return false, err
	}
	keep := false
	defer func() {
		r.memory = int64(in.linear.size)
		if !keep || !r.keep(in) {
			in.close()
		}
	}()
	in.call = r
	in.use(r.allowance)
	in.clock.set(r.call.Context.BatchTimestamp)
	in.random = newRandom("call", r.call.Seed)
	in.listen(r.call.OnLog)
	for i := range r.outputs {
		r.outputs[i].decoder = wire.NewDecoder(r.mem, wire.Limits{BatchRows: r.limits.OutputBatchRows})
	}
	err = in.invoke(abi.ExportCall, uint64(uint32(r.sig.number)))
	for _, i := range r.inputs {
		if i.err != nil { // whatever the guest made of it
			return false, i.err
		}
	}
	if err != nil {
		return in.fault == nil && in.linear.exhausted() && !in.overflowed(), err
	}
	if err := r.finish(); err != nil {
		return false, err
	}
	keep = true
	return false, nil
}

// finish checks what only the end can show.
func (r *run) finish() error {
	if first := r.first(); first != nil && !first.finished() {
		return errorf(CodeOutputInvalid, "it returned before the end of input 0 (after %d rows); a function that wants no more calls input_close", first.rows)
	}
	if r.aligned != nil && r.aligned.missing() > 0 {
		return errorf(CodeOutputInvalid, "it took %d rows of input 0 and wrote %d; a row-aligned function writes a row for each", r.aligned.given, r.aligned.done)
	}
	if err := r.checkSnapshot(); err != nil {
		return err
	}
	for i, o := range r.outputs {
		if r.snapshot != nil && r.snapshot.Version == nil && r.sig.guests == nil && o.decoder.Schema() == nil {
			return errorf(CodeOutputInvalid, "it says that there is no snapshot and writes no schema, so that the columns of the snapshots are not known; declare its output in the manifest")
		}
		if o.guest == nil && o.decoder.Schema() == nil {
			return errorf(CodeOutputInvalid, "it wrote no schema to output %d, and its manifest declares none", i)
		}
	}
	if r.stateWritten && r.call.OnState != nil {
		if err := r.call.OnState(r.state); err != nil {
			return err
		}
	}
	r.metrics.tell(r.call.OnMetric)
	return nil
}

// first is the input that a function must have read: one that reads its inputs
// as tables may leave any of them.
func (r *run) first() *input {
	if r.function.Kind == abi.KindQuery || r.function.Kind == abi.KindSnapshot {
		return nil
	}
	return r.inputs[0]
}

// write takes what the guest hands to output_write.
func (r *run) write(number int, p []byte) error {
	o := &r.outputs[number]
	if r.function.Kind == abi.KindSnapshot && r.snapshot == nil {
		return errorf(CodeOutputInvalid, "it wrote output before it said which version it gives")
	}
	if r.bytes += int64(len(p)); r.bytes > r.limits.OutputBytes {
		return overLimit("output_bytes", r.limits.OutputBytes, "the output")
	}
	for len(p) > 0 {
		m, err := o.decoder.Next(p)
		if err != nil {
			return o.error(err, r.limits)
		}
		switch m.Kind {
		case wire.KindSchema:
			if o.guest != nil {
				if err := o.decoder.Expect(o.guest); err != nil {
					return o.error(err, r.limits)
				}
			}
		case wire.KindBatch:
			if err := r.batch(number, m.Batch); err != nil {
				return err
			}
		}
		p = p[m.Size:]
	}
	return nil
}

func (o *output) error(err error, limits Limits) error {
	code := CodeOutputInvalid
	var e *wire.Error
	if errors.As(err, &e) {
		switch e.Code {
		case wire.CodeLimit:
			if o.decoder.Schema() != nil { // else it is one of the ABI's own, on schemas
				over := overLimit("output_batch_rows", limits.OutputBatchRows, "a batch of its output")
				over.Err = err
				return over
			}
			code = CodeLimit
		case wire.CodeWrongSchema:
			code = CodeSchemaMismatch
		}
	}
	return because(err, code, "its output is refused")
}

// batch passes a checked batch on.
func (r *run) batch(number int, batch arrow.RecordBatch) error {
	if r.rows += batch.NumRows(); r.rows > r.limits.OutputRows {
		batch.Release()
		return overLimit("output_rows", r.limits.OutputRows, "the number of output rows")
	}
	if batch.NumRows() > 0 && r.snapshot != nil && r.snapshot.Version == nil {
		batch.Release()
		return errorf(CodeOutputInvalid, "it wrote rows after it said that there is no snapshot")
	}
	if batch.NumRows() == 0 {
		batch.Release()
		if r.empty++; r.empty > r.limits.EmptyBatches {
			return overLimit("empty_batches", r.limits.EmptyBatches, "the number of output batches without rows")
		}
		return nil
	}
	if r.aligned == nil {
		return r.send(number, batch)
	}
	return r.aligned.join(batch, func(piece arrow.RecordBatch, firstRow int64) error {
		kept, err := without(r.mem, piece, r.errorRows[0].within(firstRow, piece.NumRows()))
		if err != nil || kept == nil {
			return err
		}
		return r.send(number, kept)
	})
}

// send hands a batch to the reader and waits until it wants the next one.
func (r *run) send(number int, batch arrow.RecordBatch) error {
	r.commitTo()
	r.allowance.leave()
	wanted := r.emit(number, batch)
	if err := r.allowance.back(); err != nil {
		return err
	}
	if !wanted {
		return errReleased
	}
	return nil
}

// commitTo gives up running the call again: something is about to go out.
func (r *run) commitTo() {
	if r.started {
		return
	}
	r.started = true
	for _, i := range r.inputs {
		i.forget()
	}
}

// rowError takes what the guest hands to row_error.
func (r *run) rowError(number int, row int64, text []byte) error {
	if number >= r.declared() {
		return errorf(CodeOutputInvalid, "a row error for input %d, which is a query's", number)
	}
	in := r.inputs[number]
	if row < 0 || row >= in.rows {
		return errorf(CodeOutputInvalid, "a row error for row %d of input %d, of which it was given %d rows", row, number, in.rows)
	}
	if r.aligned != nil && number == 0 && row < r.aligned.done {
		return errorf(CodeOutputInvalid, "a row error for row %d of input 0, which was written already; it comes before output_write", row)
	}
	e, err := abi.ParseRowError(text)
	if err != nil {
		return because(err, CodeOutputInvalid, "a row error is refused")
	}
	if !r.errorRows[number].add(row) {
		return nil
	}
	if r.errorCount++; r.errorCount > r.limits.RowErrors {
		return overLimit("row_errors", r.limits.RowErrors, "the number of row errors")
	}
	if r.errorBytes += int64(len(text)); r.errorBytes > r.limits.RowErrorBytes {
		return overLimit("row_error_bytes", r.limits.RowErrorBytes, "the size of all row errors")
	}
	if r.call.OnRowError == nil {
		return errorf(CodeFailed, "row %d of input %d: [%s] %s", row, number, e.Code, e.Message)
	}
	r.commitTo()
	r.allowance.leave()
	if err := r.call.OnRowError(number, row, e.Code, clip(e.Message, int(r.limits.TextBytes))); err != nil {
		return err
	}
	return r.allowance.back()
}

// release lets go of everything the call held.
func (r *run) release() {
	for _, i := range r.inputs {
		i.release()
	}
	if r.aligned != nil {
		r.aligned.release()
	}
}
