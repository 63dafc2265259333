package cdc

import (
	"context"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// pipe hands batches from one goroutine to another.
type pipe struct {
	schema  *arrow.Schema
	batches chan arrow.RecordBatch
}

func newPipe(schema *arrow.Schema) *pipe {
	return &pipe{schema, make(chan arrow.RecordBatch, 1)}
}

// send hands over a batch, which stays the caller's, too; nil is none.
func (p *pipe) send(ctx context.Context, rec arrow.RecordBatch) error {
	if rec == nil {
		return nil
	}
	rec.Retain()
	select {
	case p.batches <- rec:
		return nil
	case <-ctx.Done():
		rec.Release()
		return ctx.Err()
	}
}

func (p *pipe) close() { close(p.batches) }

// drain drops what nobody took; the pipe is closed.
func (p *pipe) drain() {
	for rec := range p.batches {
		rec.Release()
	}
}

func (p *pipe) reader(ctx context.Context) array.RecordReader {
	r := &pipeReader{pipe: p, ctx: ctx}
	r.refs.Store(1)
	return r
}

// pipeReader reads until the pipe is closed.
type pipeReader struct {
	*pipe
	ctx  context.Context
	rec  arrow.RecordBatch
	err  error
	refs atomic.Int64
}

func (r *pipeReader) Schema() *arrow.Schema          { return r.schema }
func (r *pipeReader) RecordBatch() arrow.RecordBatch { return r.rec }
func (r *pipeReader) Record() arrow.RecordBatch      { return r.rec }
func (r *pipeReader) Err() error                     { return r.err }
func (r *pipeReader) Retain()                        { r.refs.Add(1) }

func (r *pipeReader) Release() {
	if r.refs.Add(-1) == 0 {
		r.drop()
	}
}

func (r *pipeReader) drop() {
	if r.rec != nil {
		r.rec.Release()
		r.rec = nil
	}
}

func (r *pipeReader) Next() bool {
	r.drop()
	if r.err != nil {
		return false
	}
	select {
	case rec, ok := <-r.batches:
		if !ok {
			// The pipe is closed after a failure, too, which must not look like the end.
			r.err = r.ctx.Err()
			return false
		}
		r.rec = rec
		return true
	case <-r.ctx.Done():
		r.err = r.ctx.Err()
		return false
	}
}
