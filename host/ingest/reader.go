package ingest

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/storage"
)

// ReadOptions tunes Read; the zero value is fine.
type ReadOptions struct {
	// BatchRows bounds the rows of a batch; 0 is 65536.
	BatchRows int
	// Alloc is where batches live; nil is Go's heap.
	Alloc memory.Allocator
	// Parallel is the number of decoding goroutines; 0 is one a processor.
	Parallel int
}

const (
	// largeFile is the size from which a file is cut into pieces that are decoded in
	// parallel; smaller ones are decoded whole, several to a task. Neither depends
	// on the parallelism, so batches are cut in the same places whatever it is.
	largeFile     = 4 << 20
	largeGzip     = 8 << 20
	groupFiles    = 64
	groupBytes    = 4 << 20
	unknownSize   = 64 << 10
	batchBytes    = 32 << 20 // of columns: cuts batches of long records
	coalesceRows  = 8192     // below either of these batches are joined
	coalesceBytes = 4 << 20
)

// Reader is an array.RecordReader over the rows of some files. One goroutine
// may use it; Locate and Stats may be called from others.
type Reader struct {
	refs   atomic.Int64
	src    *Source
	schema *arrow.Schema
	from   *Schema
	opt    ReadOptions

	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	sources []*source
	store   storage.Store
	pending chan *job
	fresh   atomic.Bool

	cur   arrow.RecordBatch
	err   error
	done  bool
	job   *job
	held  []partial // waiting to be joined
	rows  int64
	news  news
	meta  metadata
	stats struct {
		sync.Mutex
		Stats
		places places
	}
}

// job is a unit of decoding: a group of files, or a piece of one.
type job struct {
	files []*source
	chunk *chunk
	skip  FileState // set when the file of the job was passed over
	out   chan result
}

type result struct {
	partial
	bytes int
	news  *news
	state *fileState
	err   error
}

type fileState struct {
	file  int
	state FileState
}

// Read decodes the files. The caller releases the reader.
func (s *Source) Read(ctx context.Context, schema *Schema, files []File, opt ReadOptions) (*Reader, error) {
	if schema == nil || len(schema.Fields) == 0 {
		return nil, fault.New("INVALID_SCHEMA", "a read needs a schema with columns")
	}
	if err := s.checkTypes(schema); err != nil {
		return nil, err
	}
	store, err := s.place.files()
	if err != nil {
		return nil, err
	}
	opt.BatchRows = cmp.Or(opt.BatchRows, 65536)
	opt.Parallel = cmp.Or(opt.Parallel, runtime.GOMAXPROCS(0))
	if opt.BatchRows < 0 || opt.Parallel < 0 {
		return nil, fault.New("INVALID_OPTION_VALUE", "BatchRows and Parallel must be positive")
	}
	if opt.Alloc == nil {
		opt.Alloc = memory.DefaultAllocator
	}
	r := &Reader{src: s, from: schema, schema: s.ArrowSchema(schema), opt: opt, store: store}
	r.refs.Store(1)
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.meta.mem = opt.Alloc
	for i, f := range files {
		r.sources = append(r.sources, &source{File: f, index: i, parts: s.partitionsOf(f.Path)})
		r.stats.PerFile = append(r.stats.PerFile, FileStats{Path: f.Path, State: FileIngested})
	}
	r.start()
	return r, nil
}

func (r *Reader) start() {
	r.pending = make(chan *job, 2*r.opt.Parallel)
	work := make(chan *job, 2*r.opt.Parallel)
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		defer close(r.pending)
		defer close(work)
		r.produce(work)
	}()
	for range r.opt.Parallel {
		r.wg.Add(1)
		go func() {
			defer r.wg.Done()
			r.work(work)
		}()
	}
}

// Retain adds a holder.
func (r *Reader) Retain() { r.refs.Add(1) }

// Release drops a holder; the last one stops the work and waits for it.
func (r *Reader) Release() {
	if r.refs.Add(-1) > 0 {
		return
	}
	r.stop()
	r.drop()
}

func (r *Reader) drop() {
	if r.cur != nil {
		r.cur.Release()
		r.cur = nil
	}
}

// stop ends all goroutines and frees what they had ready.
func (r *Reader) stop() {
	r.cancel()
	for _, p := range r.held {
		p.release()
	}
	r.held = nil
	free := func(j *job) {
		for {
			select {
			case res, ok := <-j.out:
				if !ok {
					return
				}
				res.release()
			default:
				return
			}
		}
	}
	var left []*job
	if r.job != nil {
		left = append(left, r.job)
		r.job = nil
	}
	for j := range r.pending {
		left = append(left, j)
	}
	r.wg.Wait()
	for _, j := range left {
		free(j)
	}
	r.meta.release()
}

// Schema gives the columns.
func (r *Reader) Schema() *arrow.Schema { return r.schema }

// RecordBatch gives the current batch, valid until Next or Release.
func (r *Reader) RecordBatch() arrow.RecordBatch { return r.cur }

// Record is RecordBatch.
func (r *Reader) Record() arrow.RecordBatch { return r.cur }

// Err tells why Next stopped early; a *UnknownFieldError when there are new columns.
func (r *Reader) Err() error { return r.err }

// Next moves to the next batch.
func (r *Reader) Next() bool {
	r.drop()
	if r.done {
		return false
	}
	batch, err := r.advance()
	if err != nil || batch == nil {
		r.err, r.done = err, true
		r.stop()
		return false
	}
	r.cur = batch
	return true
}

// advance collects results until they make a batch.
func (r *Reader) advance() (arrow.RecordBatch, error) {
	rows, bytes := 0, 0
	for _, p := range r.held {
		rows += p.rows
	}
	for {
		if rows > 0 && (rows >= min(coalesceRows, r.opt.BatchRows) || bytes >= coalesceBytes) {
			return r.batch()
		}
		res, ok, err := r.receive()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if r.fresh.Load() {
			// What was read is going to be read again with the new columns.
			res.release()
			for _, p := range r.held {
				p.release()
			}
			r.held, rows, bytes = nil, 0, 0
			continue
		}
		if res.rows == 0 {
			res.release()
			continue
		}
		if rows > 0 && rows+res.rows > r.opt.BatchRows {
			r.held = append(r.held, res.partial)
			return r.batchOf(len(r.held) - 1)
		}
		r.held = append(r.held, res.partial)
		rows += res.rows
		bytes += res.bytes
	}
	if rows > 0 {
		return r.batch()
	}
	return nil, r.newColumns()
}

// receive gives the next result in order; ok is false at the end.
func (r *Reader) receive() (res result, ok bool, err error) {
	for {
		if r.job == nil {
			j, open := <-r.pending
			if !open {
				return result{}, false, r.ctx.Err()
			}
			r.job = j
		}
		select {
		case got, open := <-r.job.out:
			if !open {
				r.job = nil
				continue
			}
			if got.err != nil {
				return result{}, false, got.err
			}
			if got.news != nil {
				r.news.merge(*got.news)
				continue
			}
			r.count(&got)
			if got.state != nil {
				continue
			}
			return got, true, nil
		case <-r.ctx.Done():
			return result{}, false, r.ctx.Err()
		}
	}
}

// count adds a result to the statistics.
func (r *Reader) count(res *result) {
	r.stats.Lock()
	defer r.stats.Unlock()
	if res.state != nil {
		r.stats.PerFile[res.state.file].State = res.state.state
		return
	}
	r.stats.Rescued += res.rescued
	r.stats.Malformed += res.malformed
	r.stats.Dropped += res.dropped
	r.stats.Lost += res.lost
	r.stats.Rows += int64(res.rows)
	for _, sg := range res.segments {
		r.stats.PerFile[sg.file].Rows += int64(sg.rows)
	}
}

func (r *Reader) batch() (arrow.RecordBatch, error) { return r.batchOf(len(r.held)) }

// batchOf joins the first n held pieces to a batch, adding _metadata and the row number.
func (r *Reader) batchOf(n int) (arrow.RecordBatch, error) {
	parts := r.held[:n]
	defer func() {
		for _, p := range parts {
			p.release()
		}
		r.held = append([]partial(nil), r.held[n:]...)
	}()
	rows := 0
	var segments []segment
	for _, p := range parts {
		for _, sg := range p.segments {
			sg.row += rows
			segments = append(segments, sg)
		}
		rows += p.rows
	}
	cols, err := r.join(parts)
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	if err != nil {
		return nil, err
	}
	cols = append(cols, r.meta.column(r.sources, segments, rows), rowNumbers(r.opt.Alloc, r.rows, rows))
	r.stats.Lock()
	r.stats.places.add(r.rows, parts)
	r.stats.Unlock()
	r.rows += int64(rows)
	return array.NewRecordBatch(r.schema, cols, int64(rows)), nil
}

// join makes one array a column of the pieces.
func (r *Reader) join(parts []partial) ([]arrow.Array, error) {
	var cols []arrow.Array
	for i := range parts[0].data {
		if len(parts) == 1 {
			cols = append(cols, array.MakeFromData(parts[0].data[i]))
			continue
		}
		pieces := make([]arrow.Array, len(parts))
		for k := range parts {
			pieces[k] = array.MakeFromData(parts[k].data[i])
		}
		joined, err := array.Concatenate(pieces, r.opt.Alloc)
		for _, p := range pieces {
			p.Release()
		}
		if err != nil {
			return cols, fault.Wrap(err, "INTERNAL_ERROR", "column %s cannot be joined", r.schema.Field(i).Name)
		}
		cols = append(cols, joined)
	}
	return cols, nil
}

// newColumns is the error for columns that the schema lacks, nil when there are none.
func (r *Reader) newColumns() error {
	if !r.news.first.set {
		return nil
	}
	next, added := r.src.evolved(r.from, r.news.top, r.news.below)
	if next == nil {
		return nil
	}
	err := &UnknownFieldError{Fields: added, File: r.sources[r.news.first.file].Path, Line: r.news.first.line, Evolved: next}
	if r.src.config.evolve == failOnNewColumns {
		return err.final()
	}
	if bad := r.src.checkTypes(next); bad != nil {
		return bad
	}
	return err
}

// Stats counts what was read; complete when Next has returned false.
func (r *Reader) Stats() Stats {
	r.stats.Lock()
	defer r.stats.Unlock()
	out := r.stats.Stats
	out.PerFile = append([]FileStats(nil), out.PerFile...)
	return out
}

// Locate tells where row number row (its __weir_row) came from. The byte is
// known for the rows delivered last, about a million of them.
func (r *Reader) Locate(row int64) Position {
	r.stats.Lock()
	defer r.stats.Unlock()
	sg, start := r.stats.places.find(row)
	if sg == nil {
		return Position{Byte: -1}
	}
	return Position{File: r.sources[sg.file].Path, Line: sg.lineOf(row), Byte: start}
}

func rowNumbers(mem memory.Allocator, first int64, rows int) arrow.Array {
	buf := mem.Allocate(8 * rows)
	values := arrow.Int64Traits.CastFromBytes(buf)
	for i := range rows {
		values[i] = first + int64(i)
	}
	b := memory.NewBufferWithAllocator(buf, mem)
	defer b.Release()
	data := array.NewData(relation.RowField().Type, rows, []*memory.Buffer{nil, b}, nil, 0, 0)
	defer data.Release()
	return array.MakeFromData(data)
}
