package state

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/zeebo/xxh3"

	"github.com/weir-data/weir/host/fault"
)

// run is an open run: its bytes, and the blocks that were asked for.
type run struct {
	name   string
	index  *index
	starts []int64 // row at which each block starts
	schema *arrow.Schema

	data   []byte
	unmap  func() error
	store  *Store
	copied bool // the bytes are a local copy's
	broken atomic.Bool
	reader *ipc.FileReader
	refs   atomic.Int64

	mu     sync.Mutex
	blocks []*block
}

// block is one record batch of a run, its columns as raw data.
type block struct {
	columns []arrow.ArrayData
	hashes  []byte
	keys    texts
	orders  texts
	kinds   []byte
	times   []int64
	rec     arrow.RecordBatch
	checked bool // the sum of its rows was
}

// openRun opens a run of the store and checks its ends.
func openRun(ctx context.Context, s *Store, info RunInfo) (*run, error) {
	x, ok := decodeIndex(info.Index, info)
	if !ok {
		return nil, corrupt(info.Name, "its index in the manifest is wrong")
	}
	data, unmap, copied, err := s.bytesOf(ctx, info)
	if err != nil {
		return nil, err
	}
	r := &run{name: info.Name, index: x, data: data, unmap: unmap, store: s, copied: copied, blocks: make([]*block, len(x.blocks))}
	r.refs.Store(1)
	row := int64(0)
	for _, b := range x.blocks {
		r.starts = append(r.starts, row)
		row += b.rows
	}
	err = r.guard(func() error {
		if int64(len(data)) != info.Bytes || x.sumEnds(data[:x.head], data[x.tail():]) != x.sum {
			return r.damaged("its head or its footer is not what was written")
		}
		if r.reader, err = ipc.NewMappedFileReader(data, ipc.WithAllocator(s.mem)); err != nil {
			return err
		}
		r.schema = r.reader.Schema()
		if r.reader.NumRecords() != len(x.blocks) || !hasEntries(r.schema) {
			return r.damaged("it holds something else")
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, r.release())
	}
	return r, nil
}

func (r *run) retain() { r.refs.Add(1) }

func (r *run) release() error {
	if r.refs.Add(-1) > 0 {
		return nil
	}
	for _, b := range r.blocks {
		if b != nil {
			b.rec.Release()
		}
	}
	var err error
	if r.reader != nil {
		err = r.reader.Close()
	}
	return errors.Join(err, r.unmap())
}

// damaged says that the run is. Of a copy only that is known: it is removed, and
// doing the same again reads the run itself.
func (r *run) damaged(format string, args ...any) error {
	if !r.copied {
		return corrupt(r.name, format, args...)
	}
	r.broken.Store(true)
	r.store.uncopy(r.name)
	return fault.New("CDC_STATE_CORRUPT", "the local copy of a run is damaged: %s", fmt.Sprintf(format, args...)).
		At(fault.Where{File: r.name}).WithHint("The copy was removed: run it again").Retryable()
}

// someRun says that one of several runs is damaged.
func someRun(format string, args ...any) error { return corrupt(runFolder, format, args...) }

// guard turns what reading damaged or vanished bytes can end in (a panic of the
// Arrow library, a fault of a mapped page) into an error that names the file.
func (r *run) guard(read func() error) error { return guard(r.damaged, read) }

func guard(damaged func(format string, args ...any) error, read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = damaged("%v", p)
		}
	}()
	err = read()
	if err != nil && fault.CodeOf(err) == "" && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		err = damaged("%v", err)
	}
	return err
}

// block opens a block; whole also checks the sum of its rows.
func (r *run) block(i int, whole bool) (*block, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.index.blocks[i]
	if r.blocks[i] == nil {
		if xxh3.Hash(r.data[at.from:at.body]) != at.headerSum {
			return nil, r.damaged("the header of block %d is not what was written", i)
		}
		rec, err := r.reader.RecordBatchAt(i)
		if err != nil {
			return nil, err
		}
		if rec.NumRows() != at.rows {
			rec.Release()
			return nil, r.damaged("block %d has %d rows, not %d", i, rec.NumRows(), at.rows)
		}
		b := &block{rec: rec}
		for _, col := range rec.Columns() {
			b.columns = append(b.columns, col.Data())
		}
		if err := b.look(); err != nil {
			rec.Release()
			return nil, err
		}
		r.blocks[i] = b
	}
	b := r.blocks[i]
	if whole && !b.checked {
		if xxh3.Hash(r.data[at.body:at.to]) != at.contentSum {
			return nil, r.damaged("block %d is not what was written", i)
		}
		b.checked = true
	}
	return b, nil
}

func (b *block) rows() int { return len(b.kinds) }

// look finds the columns that searching and merging compare.
func (b *block) look() (err error) {
	if b.hashes, err = fixedBytes(b.columns[Hash], 16); err != nil {
		return err
	}
	if b.kinds, err = fixedBytes(b.columns[Kind], 1); err != nil {
		return err
	}
	times, err := fixedBytes(b.columns[Time], 8)
	if err != nil {
		return err
	}
	b.times = arrow.Int64Traits.CastFromBytes(times)
	if b.keys, err = textsOf(b.columns[Key]); err != nil {
		return err
	}
	b.orders, err = textsOf(b.columns[Order])
	return err
}

// texts is a column of byte strings. Its offsets are checked as they are used:
// those that point outside end in the guard.
type texts struct {
	offsets []int32
	data    []byte
}

func textsOf(src arrow.ArrayData) (texts, error) {
	offsets, err := bytesAt(src, 1, 4*(src.Offset()+src.Len()+1))
	if err != nil {
		return texts{}, err
	}
	data, err := bytesAt(src, 2, 0)
	return texts{arrow.Int32Traits.CastFromBytes(offsets)[src.Offset():], data}, err
}

func (t texts) at(i int) []byte { return t.data[t.offsets[i]:t.offsets[i+1]] }
