package pipeline

import (
	"runtime/debug"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
)

// detached gives a reader that reads r on a goroutine of its own, and takes r
// over. A module's reader is a coroutine, which must not be switched to from a
// goroutine that is bound to a thread; DuckDB reads its inputs from such.
func detached(r array.RecordReader) array.RecordReader {
	d := &detachedReader{schema: r.Schema(), ask: make(chan struct{}), answers: make(chan answer), done: make(chan struct{})}
	d.refs.Store(1)
	go d.serve(r)
	return d
}

type detachedReader struct {
	schema  *arrow.Schema
	ask     chan struct{}
	answers chan answer
	done    chan struct{}
	now     answer
	refs    atomic.Int64
}

// answer is what a call of Next gave; both are nil at the end.
type answer struct {
	rec arrow.RecordBatch
	err error
}

// serve answers calls of Next, one at a time, until the reader is released.
func (d *detachedReader) serve(r array.RecordReader) {
	defer close(d.done)
	defer r.Release()
	for range d.ask {
		d.answers <- next(r)
	}
}

func next(r array.RecordReader) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = answer{err: fault.New("INTERNAL_ERROR", "a step panicked: %v\n%s", p, debug.Stack())}
		}
	}()
	if r.Next() {
		return answer{rec: r.RecordBatch()}
	}
	return answer{err: r.Err()}
}

// Retain adds a holder.
func (d *detachedReader) Retain() { d.refs.Add(1) }

// Release drops a holder; the last one ends the goroutine and what it reads.
func (d *detachedReader) Release() {
	if d.refs.Add(-1) == 0 {
		close(d.ask)
		<-d.done
	}
}

// Schema gives the schema of the batches.
func (d *detachedReader) Schema() *arrow.Schema { return d.schema }

// Next moves to the next batch.
func (d *detachedReader) Next() bool {
	if d.now.err != nil {
		return false
	}
	d.ask <- struct{}{}
	d.now = <-d.answers
	return d.now.rec != nil
}

// RecordBatch gives the current batch, valid until the next call of Next.
func (d *detachedReader) RecordBatch() arrow.RecordBatch { return d.now.rec }

// Record is RecordBatch under its older name.
func (d *detachedReader) Record() arrow.RecordBatch { return d.now.rec }

// Err gives what stopped the reader, if anything did.
func (d *detachedReader) Err() error { return d.now.err }
