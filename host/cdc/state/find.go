package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/fault"
)

// hit is an entry that was found: row of a block of a run.
type hit struct {
	probe int32
	run   int32 // higher is newer
	src   int32
	row   int32
}

// source is a block that entries come from.
type source struct {
	run   int32
	block *block
}

// Find gives every entry of the keys with these hashes, which ascend. The
// entries ascend by (hash, key, order).
func (st *State) Find(ctx context.Context, hashes []rowcode.Hash) (arrow.RecordBatch, error) {
	if !slices.IsSortedFunc(hashes, rowcode.Hash.Compare) {
		return nil, fault.New("INTERNAL_ERROR", "hashes to be found do not ascend")
	}
	hashes = slices.Compact(slices.Clone(hashes))
	var hits []hit
	var sources []source
	for r, run := range st.runs {
		first, last := run.among(hashes)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := run.guard(func() error {
			return run.search(hashes[first:last], func(probe int, b *block, row int) error {
				probe += first
				if len(sources) == 0 || sources[len(sources)-1].block != b {
					sources = append(sources, source{int32(r), b})
				}
				// What the hash is of, or something is damaged.
				if rowcode.HashOf(b.keys.at(row)) != hashes[probe] {
					return errHash
				}
				_ = b.orders.at(row)
				hits = append(hits, hit{int32(probe), int32(r), int32(len(sources) - 1), int32(row)})
				return nil
			})
		})
		if err != nil {
			return nil, err
		}
	}
	if len(st.runs) > 1 {
		slices.SortFunc(hits, func(a, b hit) int {
			x, y := sources[a.src].block, sources[b.src].block
			if a.probe != b.probe {
				return int(a.probe) - int(b.probe)
			}
			if c := bytes.Compare(x.keys.at(int(a.row)), y.keys.at(int(b.row))); c != 0 {
				return c
			}
			if c := bytes.Compare(x.orders.at(int(a.row)), y.orders.at(int(b.row))); c != 0 {
				return c
			}
			return int(b.run) - int(a.run)
		})
	}
	return st.take(sources, st.choose(sources, hits))
}

// among gives which of the hashes can be in the part.
func (v view) among(hashes []rowcode.Hash) (from, to int) {
	less := func(h rowcode.Hash, bound []byte) int { return bytes.Compare(h[:], bound) }
	from, _ = slices.BinarySearchFunc(hashes, v.from, less)
	to = len(hashes)
	if v.to != nil {
		to, _ = slices.BinarySearchFunc(hashes, v.to, less)
	}
	return from, to
}

var errHash = errors.New("a hash is not that of its key")

// choose leaves what counts of sorted entries, as spans.
func (st *State) choose(sources []source, hits []hit) []span {
	var spans []span
	for i := 0; i < len(hits); {
		key := sources[hits[i].src].block.keys.at(int(hits[i].row))
		j, newest := i, hits[i].run
		for ; j < len(hits) && hits[j].probe == hits[i].probe && bytes.Equal(sources[hits[j].src].block.keys.at(int(hits[j].row)), key); j++ {
			newest = max(newest, hits[j].run)
		}
		var last []byte
		for n, h := range hits[i:j] {
			b := sources[h.src].block
			order := b.orders.at(int(h.row))
			repeated := n > 0 && bytes.Equal(order, last)
			last = order
			if repeated || st.manifest.PerKey && h.run != newest || b.kinds[h.row] == Removed {
				continue
			}
			spans = appendSpan(spans, h.src, h.row, 1)
		}
		i = j
	}
	return spans
}

// appendSpan adds rows, to the last span where they follow it.
func appendSpan(spans []span, src, from, n int32) []span {
	if k := len(spans); k > 0 && spans[k-1].src == src && spans[k-1].from+spans[k-1].n == from {
		spans[k-1].n += n
		return spans
	}
	return append(spans, span{src, from, n})
}

// take copies spans of sources into a batch.
func (st *State) take(sources []source, spans []span) (rec arrow.RecordBatch, err error) {
	column := func(src, col int) (arrow.ArrayData, bool) {
		p := st.columns[sources[src].run][col]
		if p.at < 0 {
			return nil, false
		}
		return sources[src].block.columns[p.at], p.foreign
	}
	err = guard(someRun, func() (err error) {
		rec, err = gatherRecord(st.store.mem, st.schema, spans, len(sources), column)
		return err
	})
	if err == nil {
		return rec, nil
	}
	// Which file is to blame? The one that fails alone.
	for src := range sources {
		alone := slices.DeleteFunc(slices.Clone(spans), func(s span) bool { return int(s.src) != src })
		blame := st.runs[sources[src].run].guard(func() error {
			rec, err := gatherRecord(st.store.mem, st.schema, alone, len(sources), column)
			if err == nil {
				rec.Release()
			}
			return err
		})
		if blame != nil {
			return nil, blame
		}
	}
	return nil, err
}

// gatherRecord copies spans of several batches into one of the schema. column
// gives the columns, and whether they are of another type than the schema has.
func gatherRecord(mem memory.Allocator, schema *arrow.Schema, spans []span, sources int, column func(src, col int) (arrow.ArrayData, bool)) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, 0, schema.NumFields())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	n := int64(0)
	for _, s := range spans {
		n += int64(s.n)
	}
	srcs, foreign := make([]arrow.ArrayData, sources), make([]bool, sources)
	for f := range schema.NumFields() {
		for i := range srcs {
			srcs[i], foreign[i] = column(i, f)
		}
		data, err := gatherColumn(mem, schema.Field(f).Type, srcs, foreign, spans)
		if err != nil {
			return nil, err
		}
		cols = append(cols, array.MakeFromData(data))
		data.Release()
	}
	return array.NewRecordBatch(schema, cols, n), nil
}

// search finds the rows of each hash; hashes ascend, and so do the rows.
func (r *run) search(hashes []rowcode.Hash, found func(probe int, b *block, row int) error) error {
	at := 0 // the block where the last hash was
	row := 0
	for p := range hashes {
		h := hashes[p][:]
		for at < len(r.index.blocks) {
			b, err := r.block(at, false)
			if err != nil {
				return err
			}
			n := b.rows()
			if bytes.Compare(b.hash(n-1), h) < 0 {
				skip, err := r.blockOf(at+1, h)
				if err != nil {
					return err
				}
				at, row = skip, 0
				continue
			}
			row = b.lowerBound(row, h)
			for ; row < n && bytes.Equal(b.hash(row), h); row++ {
				if err := found(p, b, row); err != nil {
					return err
				}
			}
			if row < n {
				break
			}
			at, row = at+1, 0
		}
	}
	return nil
}

// blockOf gives the first block from one on whose last hash is not less than h.
func (r *run) blockOf(from int, h []byte) (int, error) {
	to := len(r.index.blocks)
	for from < to {
		mid := int(uint(from+to) / 2)
		b, err := r.block(mid, false)
		if err != nil {
			return 0, err
		}
		if bytes.Compare(b.hash(b.rows()-1), h) < 0 {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from, nil
}

func (b *block) hash(row int) []byte { return b.hashes[row*16 : row*16+16] }

// lowerBound gives the first row from one on whose hash is not less than h.
// Hashes are spread evenly, so the first guess is near.
func (b *block) lowerBound(from int, h []byte) int {
	n := b.rows()
	if from >= n || bytes.Compare(b.hash(from), h) >= 0 {
		return from
	}
	lo, hi := from, n // hash(lo) < h; hash(hi) >= h, or hi is the end
	first, last, want := prefix(b.hash(lo)), prefix(b.hash(n-1)), binary.BigEndian.Uint64(h)
	if last > first && want > first {
		guess := lo + int(float64(want-first)/float64(last-first)*float64(n-1-lo))
		guess = min(max(guess, lo+1), n-1)
		step := 8
		if bytes.Compare(b.hash(guess), h) < 0 {
			for lo = guess; lo+step < n && bytes.Compare(b.hash(lo+step), h) < 0; step *= 2 {
				lo += step
			}
			hi = min(lo+step, n)
		} else {
			for hi = guess; hi-step > lo && bytes.Compare(b.hash(hi-step), h) >= 0; step *= 2 {
				hi -= step
			}
			lo = max(lo, hi-step)
		}
	}
	for hi-lo > 1 {
		mid := int(uint(lo+hi) / 2)
		if bytes.Compare(b.hash(mid), h) < 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

func prefix(h []byte) uint64 { return binary.BigEndian.Uint64(h) }
