package cdc

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/fault"
)

const (
	// maxParts is how many parts a spilled batch has: by the first byte of the hash.
	maxParts = 256
	// partRows is about how many entries a part is meant to have.
	partRows = 64 << 10
	// severalRows is from how many entries on there are several parts.
	severalRows = 4 << 10
)

// collector gathers entries of a batch, in memory or beyond it in temporary
// files. Its methods but add are for one goroutine.
type collector struct {
	schema *arrow.Schema
	mem    memory.Allocator
	limit  int64
	dir    string

	mu      sync.Mutex
	batches []arrow.RecordBatch
	bytes   int64
	rows    int64
	spilled []*spill

	spilling sync.Mutex
}

// add takes a batch over. While what was full is written to a file, other tasks
// go on.
func (c *collector) add(ctx context.Context, rec arrow.RecordBatch) error {
	full := c.fill(rec)
	if full == nil {
		return nil
	}
	c.spilling.Lock() // what is written is held twice meanwhile, so it is one at a time
	defer c.spilling.Unlock()
	s, err := c.spill(ctx, full)
	if s != nil {
		c.mu.Lock()
		c.spilled = append(c.spilled, s)
		c.mu.Unlock()
	}
	return err
}

// fill takes a batch in, and gives out all there is when it is enough for a file.
func (c *collector) fill(rec arrow.RecordBatch) (full []arrow.RecordBatch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batches = append(c.batches, rec)
	c.bytes += bytesIn(rec)
	c.rows += rec.NumRows()
	if c.bytes < c.limit/2 {
		return nil
	}
	full = c.batches
	c.batches, c.bytes = nil, 0
	return full
}

// cut joins batches, which it takes over, and sorts them into parts: the places
// where each begins.
func (c *collector) cut(ctx context.Context, batches []arrow.RecordBatch, parts int) (arrow.RecordBatch, []int32, error) {
	all, err := joined(c.schema, batches, c.mem)
	releaseBatches(batches)
	if err != nil || parts == 1 {
		return all, nil, err
	}
	defer all.Release()
	hashes := hashesOf(all.Column(state.Hash))
	starts := make([]int32, parts+1)
	for i := range hashes {
		starts[partOf(&hashes[i], parts)+1]++
	}
	for p := range parts {
		starts[p+1] += starts[p]
	}
	next := make([]int32, parts)
	copy(next, starts)
	rows := make([]int32, len(hashes))
	for i := range hashes {
		p := partOf(&hashes[i], parts)
		rows[next[p]] = int32(i) //nolint:gosec // bounded by memory
		next[p]++
	}
	sorted, err := takeRows(ctx, all, rows, c.mem)
	return sorted, starts, err
}

// partOf says in which of a number of parts a hash is, a power of two up to maxParts.
func partOf(h *rowcode.Hash, parts int) int { return int(h[0]) * parts / maxParts }

// spill writes batches to a file and takes them over.
func (c *collector) spill(ctx context.Context, batches []arrow.RecordBatch) (*spill, error) {
	sorted, starts, err := c.cut(ctx, batches, maxParts)
	if err != nil {
		return nil, err
	}
	defer sorted.Release()
	s, err := newSpill(c.dir)
	if err != nil {
		return nil, err
	}
	return s, s.write(sorted, starts, c.mem)
}

// parts seals the collection and says in how many parts it can be had: a power
// of two, so that a part of the state's hashes is one of them.
func (c *collector) parts(entries int64) int {
	if len(c.spilled) > 0 {
		return maxParts
	}
	parts := 1
	if c.rows >= severalRows {
		parts = 4 // so that there is work for several processors
	}
	for parts < maxParts && max(c.rows, entries) > int64(parts)*partRows*2 {
		parts *= 2
	}
	return parts
}

// sealed is a collection whose parts can be read, by several goroutines.
type sealed struct {
	*collector
	count  int
	all    arrow.RecordBatch // in memory
	starts []int32
}

func (c *collector) seal(ctx context.Context, parts int) (*sealed, error) {
	s := &sealed{collector: c, count: parts}
	var err error
	batches := c.batches
	c.batches, c.bytes = nil, 0
	s.all, s.starts, err = c.cut(ctx, batches, parts)
	return s, err
}

// part gives the entries of one part. The caller releases them.
func (s *sealed) part(p int) (arrow.RecordBatch, error) {
	if s.count == 1 {
		s.all.Retain()
		return s.all, nil
	}
	var batches []arrow.RecordBatch
	defer func() { releaseBatches(batches) }()
	for _, f := range s.spilled {
		rec, err := f.read(p, s.mem)
		if err != nil {
			return nil, err
		}
		batches = append(batches, rec)
	}
	batches = append(batches, s.all.NewSlice(int64(s.starts[p]), int64(s.starts[p+1])))
	return joined(s.schema, batches, s.mem)
}

func (s *sealed) release() {
	if s != nil && s.all != nil {
		s.all.Release()
		s.all = nil
	}
}

// release drops everything and removes the files.
func (c *collector) release() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	releaseBatches(c.batches)
	c.batches = nil
	var errs []error
	for _, s := range c.spilled {
		errs = append(errs, s.remove())
	}
	c.spilled = nil
	return errors.Join(errs...)
}

// spill is a temporary file of entries, one batch for each part.
type spill struct {
	file   *os.File
	mu     sync.Mutex
	reader *ipc.FileReader
}

func newSpill(dir string) (*spill, error) {
	f, err := os.CreateTemp(dir, "weir-cdc-*.arrow")
	if err != nil {
		return nil, spillFault(err)
	}
	return &spill{file: f}, nil
}

func spillFault(err error) error {
	return fault.Wrap(err, "CDC_SPILL", "changes that do not fit into memory cannot be kept in a temporary file").
		WithHint("Make room in the folder that TMPDIR names, or make micro-batches smaller with maxFilesPerTrigger or maxBytesPerTrigger")
}

func (s *spill) write(rec arrow.RecordBatch, starts []int32, mem memory.Allocator) (err error) {
	w, err := ipc.NewFileWriter(s.file, ipc.WithSchema(rec.Schema()), ipc.WithAllocator(mem))
	if err != nil {
		return spillFault(err)
	}
	for p := range len(starts) - 1 {
		part := rec.NewSlice(int64(starts[p]), int64(starts[p+1]))
		err = w.Write(part)
		part.Release()
		if err != nil {
			break
		}
	}
	if err = errors.Join(err, w.Close()); err == nil {
		s.reader, err = ipc.NewFileReader(s.file, ipc.WithAllocator(mem))
	}
	if err != nil {
		return spillFault(err)
	}
	return nil
}

func (s *spill) read(p int, mem memory.Allocator) (arrow.RecordBatch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec, err := s.reader.RecordBatchAt(p)
	if err != nil {
		return nil, spillFault(err)
	}
	return rec, nil
}

func (s *spill) remove() error {
	var err error
	if s.reader != nil {
		err = s.reader.Close()
	}
	return errors.Join(err, s.file.Close(), os.Remove(s.file.Name()))
}
