package delta

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
)

const (
	// sortBytes is how much of a bin is held in memory while it is put in order;
	// what is more waits in temporary files.
	sortBytes = 128 << 20
	// partBytes is about how large the parts of the curve are that are sorted one after the other.
	partBytes = 64 << 20
	// expansion is about how much larger rows are in memory than in a file.
	expansion = 4
	// sampleRows is how many rows of a bin the order is learned from.
	sampleRows = 1 << 16
)

// curveSort puts the rows of a bin in the order of a curve, in bounded memory:
// rows are dealt out to parts of the curve, and each part is sorted for itself.
// A part with more rows than expected is sorted in pieces: the order makes
// files easier to skip, and nothing depends on it.
type curveSort struct {
	mem    memory.Allocator
	order  *curveOrder
	schema *arrow.Schema
	dir    string // of temporary files
	parts  []curvePart
	bytes  int64 // held by all parts
	limit  int64
}

// curvePart is the rows between two splits of the curve.
type curvePart struct {
	held  []arrow.RecordBatch
	bytes int64
	spill *spillFile
}

func newCurveSort(mem memory.Allocator, order *curveOrder, schema *arrow.Schema, dir string, limit int64) *curveSort {
	return &curveSort{mem: mem, order: order, schema: schema, dir: dir, limit: limit, parts: make([]curvePart, len(order.splits)+1)}
}

// add deals out the rows of a batch. The keys are not kept: they are made again
// when a part is sorted, which costs less than to carry them through the files.
func (s *curveSort) add(rec arrow.RecordBatch) error {
	if len(s.parts) == 1 {
		rec.Retain()
		return s.hold(0, rec)
	}
	runs := make([][][2]int64, len(s.parts))
	for i, key := range s.order.keys(rec) {
		row := int64(i)
		r := &runs[s.order.part(key)]
		if n := len(*r); n > 0 && (*r)[n-1][1] == row {
			(*r)[n-1][1]++
		} else {
			*r = append(*r, [2]int64{row, row + 1})
		}
	}
	for p, r := range runs {
		if len(r) == 0 {
			continue
		}
		part, err := gather(s.mem, rec, r)
		if err == nil {
			err = s.hold(p, part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hold takes a batch over, and brings the largest part to disk when memory is full.
func (s *curveSort) hold(p int, rec arrow.RecordBatch) error {
	part := &s.parts[p]
	part.held = append(part.held, rec)
	size := batchBytes(rec, 0, rec.NumRows())
	part.bytes += size
	s.bytes += size
	for s.bytes > s.limit {
		largest := 0
		for i := range s.parts {
			if s.parts[i].bytes > s.parts[largest].bytes {
				largest = i
			}
		}
		if err := s.spill(&s.parts[largest]); err != nil {
			return err
		}
	}
	return nil
}

func (s *curveSort) spill(p *curvePart) error {
	if p.spill == nil {
		f, err := newSpillFile(s.dir, s.schema, s.mem)
		if err != nil {
			return err
		}
		p.spill = f
	}
	for len(p.held) > 0 {
		if err := p.spill.write(p.held[0]); err != nil {
			return err
		}
		p.held[0].Release()
		p.held = p.held[1:]
	}
	s.bytes -= p.bytes
	p.bytes = 0
	return nil
}

// each gives the rows in order, part by part, and ends the sort.
func (s *curveSort) each(ctx context.Context, use func(arrow.RecordBatch) error) error {
	for i := range s.parts {
		p := &s.parts[i]
		var piece []arrow.RecordBatch
		bytes := int64(0)
		emit := func() error {
			err := s.sorted(piece, use)
			piece, bytes = nil, 0
			return err
		}
		take := func(rec arrow.RecordBatch) error {
			piece = append(piece, rec)
			if bytes += batchBytes(rec, 0, rec.NumRows()); bytes < s.limit {
				return ctx.Err()
			}
			return emit()
		}
		err := p.spill.each(take)
		for err == nil && len(p.held) > 0 {
			rec := p.held[0]
			p.held = p.held[1:]
			err = take(rec)
		}
		if err == nil {
			err = emit()
		}
		if err != nil {
			releaseBatches(piece)
			return err
		}
	}
	return nil
}

// sorted puts batches in order, takes them over and gives their rows in chunks.
func (s *curveSort) sorted(piece []arrow.RecordBatch, use func(arrow.RecordBatch) error) error {
	if len(piece) == 0 {
		return nil
	}
	all, err := concatBatches(s.mem, s.schema, piece)
	if err != nil {
		return err
	}
	defer all.Release()
	type place struct {
		key uint64
		row int64
	}
	places := make([]place, all.NumRows())
	for i, key := range s.order.keys(all) {
		places[i] = place{key, int64(i)}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.row, b.row)) })
	for from := 0; from < len(places); from += chunkRows {
		chunk := places[from:min(from+chunkRows, len(places))]
		runs := make([][2]int64, 0, len(chunk))
		for _, p := range chunk {
			if n := len(runs); n > 0 && runs[n-1][1] == p.row {
				runs[n-1][1]++
			} else {
				runs = append(runs, [2]int64{p.row, p.row + 1})
			}
		}
		rec, err := gather(s.mem, all, runs)
		if err != nil {
			return err
		}
		err = use(rec)
		rec.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// close gives back memory and files.
func (s *curveSort) close() error {
	var errs []error
	for i := range s.parts {
		releaseBatches(s.parts[i].held)
		s.parts[i].held = nil
		errs = appendError(errs, s.parts[i].spill.close())
	}
	return errors.Join(errs...)
}

// spillFile holds batches on disk. It has no name: it is gone with the process.
type spillFile struct {
	file *os.File
	out  *ipc.Writer
	mem  memory.Allocator
}

func newSpillFile(dir string, schema *arrow.Schema, mem memory.Allocator) (*spillFile, error) {
	f, err := os.CreateTemp(dir, "weir-optimize-*")
	if err == nil {
		err = os.Remove(f.Name())
	}
	if err != nil {
		return nil, fault.Wrap(err, "DELTA_SPILL_FAILED", "no temporary file in %q", dir)
	}
	return &spillFile{f, ipc.NewWriter(f, ipc.WithSchema(schema), ipc.WithAllocator(mem)), mem}, nil
}

func (s *spillFile) write(rec arrow.RecordBatch) error {
	if err := s.out.Write(rec); err != nil {
		return fault.Wrap(err, "DELTA_SPILL_FAILED", "a temporary file cannot be written").
			WithHint("Make room in the folder of temporary files, or set TMPDIR")
	}
	return nil
}

// each gives the batches that were written; use takes them over.
func (s *spillFile) each(use func(arrow.RecordBatch) error) error {
	if s == nil {
		return nil
	}
	err := s.out.Close()
	s.out = nil
	if err == nil {
		_, err = s.file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fault.Wrap(err, "DELTA_SPILL_FAILED", "a temporary file cannot be read")
	}
	r, err := ipc.NewReader(s.file, ipc.WithAllocator(s.mem))
	if err != nil {
		return fault.Wrap(err, "DELTA_SPILL_FAILED", "a temporary file cannot be read")
	}
	defer r.Release()
	for r.Next() {
		rec := r.RecordBatch()
		rec.Retain()
		if err := use(rec); err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil {
		return fault.Wrap(err, "DELTA_SPILL_FAILED", "a temporary file cannot be read")
	}
	return nil
}

func (s *spillFile) close() error {
	if s == nil {
		return nil
	}
	var err error
	if s.out != nil {
		err = s.out.Close()
	}
	if err = errors.Join(err, s.file.Close()); err != nil {
		return fault.Wrap(err, "DELTA_SPILL_FAILED", "a temporary file cannot be closed")
	}
	return nil
}
