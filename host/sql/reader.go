package sql

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	bindings "github.com/duckdb/duckdb-go-bindings"
	"github.com/duckdb/duckdb-go/v2/arrowmapping"
	"github.com/duckdb/duckdb-go/v2/mapping"

	"github.com/weir-data/weir/host/fault"
)

// start runs a plan.
func (e *Engine) start(ctx context.Context, p *plan, clock time.Time, inputs map[string]array.RecordReader) (array.RecordReader, error) {
	if p.around != nil {
		return e.startAround(ctx, p, clock, inputs)
	}
	return e.startWhole(ctx, p, clock, inputs, nil)
}

// startAround runs what there is to compute of a plan, beside the columns that
// go around the engine.
func (e *Engine) startAround(ctx context.Context, p *plan, clock time.Time, inputs map[string]array.RecordReader) (array.RecordReader, error) {
	d := &detoured{ctx: ctx, plan: p}
	d.refs.Store(1)
	in := inputs[p.around.input]
	if p.around.rest == nil {
		d.scan = newScan(ctx, e.db, in)
		d.scan.opened = true
		go d.scan.pull()
		return d, nil
	}
	d.tap = &tap{RecordReader: in}
	inputs = maps.Clone(inputs)
	inputs[p.around.input] = d.tap
	rest, err := e.startWhole(ctx, p.around.rest, clock, inputs, d.tap)
	if err != nil {
		d.tap.drain()
		return nil, err
	}
	d.rest = rest
	return d, nil
}

func (e *Engine) startWhole(ctx context.Context, p *plan, clock time.Time, inputs map[string]array.RecordReader, beside *tap) (*result, error) {
	c, err := e.db.connect()
	if err != nil {
		return nil, err
	}
	r := &result{ctx: ctx, engine: e, plan: p, conn: c, beside: beside}
	r.refs.Store(1)
	r.unwatch = c.watch(ctx)
	if err := r.open(clock, inputs); err != nil {
		r.Release()
		return nil, err
	}
	return r, nil
}

// result is the reader of a running query.
type result struct {
	refs    atomic.Int64
	ctx     context.Context
	engine  *Engine
	plan    *plan
	conn    *connection
	unwatch func()
	scans   []*scan
	stmt    *prepared
	res     mapping.Result
	running bool
	opts    arrowmapping.ArrowOptions
	native  *arrow.Schema // as DuckDB exports it
	beside  *tap          // whose batches the result is cut like; nil: by size
	left    arrow.RecordBatch

	mu      sync.Mutex // Next against Release
	current arrow.RecordBatch
	ended   bool
	err     error
}

func (r *result) open(clock time.Time, inputs map[string]array.RecordReader) error {
	text := r.plan.text
	for _, in := range r.plan.inputs {
		s := newScan(r.ctx, r.conn.db, inputs[in.key])
		r.scans = append(r.scans, s)
		text = s.named(text, in.place)
	}
	var err error
	if r.stmt, err = r.conn.prepare(withClock(text, clock), false); err != nil {
		return r.failed(err.Error())
	}
	if bindings.ExecutePreparedStreaming(r.stmt.stmt, &r.res) == mapping.StateError {
		msg := mapping.ResultError(&r.res)
		mapping.DestroyResult(&r.res)
		return r.failed(msg)
	}
	r.running = true
	r.opts = arrowmapping.ResultGetArrowOptions(&r.res)
	return r.nativeSchema()
}

// nativeSchema asks DuckDB how it exports the columns.
func (r *result) nativeSchema() error {
	n := mapping.ColumnCount(&r.res)
	names := make([]string, n)
	types := make([]mapping.LogicalType, n)
	for i := range n {
		names[i] = mapping.ColumnName(&r.res, i)
		types[i] = mapping.ColumnLogicalType(&r.res, i)
	}
	defer func() {
		for i := range types {
			mapping.DestroyLogicalType(&types[i])
		}
	}()
	schema, ed := arrowmapping.NewArrowSchema(r.opts, types, names)
	r.native = schema
	if err := errorOf(ed); err != nil {
		return r.failed(err.Error())
	}
	return nil
}

// failed says why the query stopped: the end of the context, an input that
// failed, or DuckDB's message.
func (r *result) failed(msg string) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if err := r.inputFailure(); err != nil {
		return err
	}
	return runFault(msg, r.plan.where)
}

// inputFailure gives the first failure of an input.
func (r *result) inputFailure() error {
	for _, s := range r.scans {
		if err := s.failure(); err != nil {
			return err
		}
	}
	return nil
}

func (r *result) Schema() *arrow.Schema { return r.plan.schema }

func (r *result) RecordBatch() arrow.RecordBatch { return r.current }

// Record is RecordBatch under its old name, which the interface still has.
func (r *result) Record() arrow.RecordBatch { return r.current }

func (r *result) Err() error { return r.err }

func (r *result) Next() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current != nil {
		r.current.Release()
		r.current = nil
	}
	if r.ended || r.err != nil {
		return false
	}
	r.current, r.err = r.gather()
	if r.current == nil {
		r.ended = true
	}
	return r.current != nil
}

// guestBatch is about how large a batch of a guest's query becomes, so that its
// bounds are looked at in between.
const guestBatch = 16 << 20

// gather takes chunks of 2,048 rows until they make a batch.
func (r *result) gather() (arrow.RecordBatch, error) {
	var parts []arrow.RecordBatch
	defer func() {
		for _, p := range parts {
			p.Release()
		}
	}()
	for rows, bytes := 0, uint64(0); rows < r.wanted() && (bytes < guestBatch || !r.plan.guest); {
		rec, err := r.fetch()
		if err != nil {
			return nil, err
		}
		if rec == nil {
			break
		}
		if over := rows + int(rec.NumRows()) - r.wanted(); over > 0 && r.beside != nil {
			cut := rec.NumRows() - int64(over)
			r.left = rec.NewSlice(cut, rec.NumRows())
			whole := rec
			rec = whole.NewSlice(0, cut)
			whole.Release()
		}
		parts = append(parts, rec)
		rows += int(rec.NumRows())
		for _, c := range rec.Columns() {
			bytes += c.Data().SizeInBytes()
		}
	}
	if len(parts) == 0 {
		return nil, r.ctx.Err()
	}
	return r.join(parts)
}

// wanted is how many rows the next batch has: as many as the stream's beside it,
// which is known once the engine has read it.
func (r *result) wanted() int {
	if r.beside != nil {
		if rec := r.beside.first(); rec != nil {
			return int(rec.NumRows())
		}
	}
	return r.engine.batchRows
}

// fetch gives the next rows, nil at the end.
func (r *result) fetch() (arrow.RecordBatch, error) {
	if rec := r.left; rec != nil {
		r.left = nil
		return rec, nil
	}
	for {
		chunk := mapping.FetchChunk(r.res)
		if chunk.Ptr == nil {
			// The end and a failure look alike; only the result tells.
			if msg := mapping.ResultError(&r.res); msg != "" {
				return nil, r.failed(msg)
			}
			r.ended = true
			return nil, r.inputFailure()
		}
		if mapping.DataChunkGetSize(chunk) == 0 {
			mapping.DestroyDataChunk(&chunk)
			continue
		}
		rec, ed := arrowmapping.DataChunkToArrowArray(r.opts, r.native, chunk)
		mapping.DestroyDataChunk(&chunk)
		if err := errorOf(ed); err != nil {
			return nil, r.failed(err.Error())
		}
		return rec, nil
	}
}

// join makes one batch of the canonical types out of chunks.
func (r *result) join(parts []arrow.RecordBatch) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, len(r.plan.schema.Fields()))
	defer func() {
		for _, c := range cols {
			if c != nil {
				c.Release()
			}
		}
	}()
	pieces := make([]arrow.Array, len(parts))
	for i, f := range r.plan.schema.Fields() {
		for k, p := range parts {
			pieces[k] = p.Column(i)
		}
		// Concatenate even a single chunk: it copies, and what it copies from
		// is DuckDB's memory, outside the budget of the Go side.
		whole, err := array.Concatenate(pieces, r.engine.alloc)
		if err != nil {
			return nil, fault.Wrap(err, "INTERNAL_ERROR", "column %s cannot be put together", f.Name)
		}
		data := retype(whole.Data(), f.Type)
		cols[i] = array.MakeFromData(data)
		data.Release()
		whole.Release()
	}
	var rows int64
	for _, p := range parts {
		rows += p.NumRows()
	}
	return array.NewRecordBatch(r.plan.schema, cols, rows), nil
}

func (r *result) Retain() { r.refs.Add(1) }

func (r *result) Release() {
	if r.refs.Add(-1) != 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current != nil {
		r.current.Release()
		r.current = nil
	}
	if r.left != nil {
		r.left.Release()
		r.left = nil
	}
	r.ended = true
	if r.running {
		mapping.DestroyResult(&r.res)
		arrowmapping.DestroyArrowOptions(&r.opts)
	}
	if r.stmt != nil {
		r.stmt.close()
	}
	r.unwatch()
	for _, s := range r.scans {
		s.close()
	}
	r.conn.release()
}
