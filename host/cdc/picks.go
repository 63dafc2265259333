package cdc

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc/keyindex"
	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/cdc/state"
)

// picks are rows of the target as places in the entries.
type picks struct {
	heads, tails, ends []int32        // heads and ends in SCD type 2 only
	tracked            []rowcode.Hash // with technical columns only
	authors            [][]int32
}

func (p *picks) add(w *work, r row) {
	p.tails = append(p.tails, w.after[r.tail].ref)
	if w.SCDType == 2 {
		p.heads = append(p.heads, w.after[r.head].ref)
		end := int32(never)
		if r.end != never {
			end = w.after[r.end].ref
		}
		p.ends = append(p.ends, end)
		if w.Technical {
			p.tracked = append(p.tracked, w.after[r.tail].tracked)
		}
	}
	if len(w.leaves) > 0 {
		if p.authors == nil {
			p.authors = make([][]int32, len(w.leaves))
		}
		for i := range w.leaves {
			p.authors[i] = append(p.authors[i], w.isBy[i][r.tail])
		}
	}
}

// finish makes batches of what was noted.
func (w *work) finish(ctx context.Context) (err error) {
	if w.out.inserted, err = w.rowsOf(ctx, &w.insert); err != nil {
		return err
	}
	if w.out.updated, err = w.rowsOf(ctx, &w.update); err != nil {
		return err
	}
	if w.out.replaced, err = w.identities(w.replaced); err != nil {
		return err
	}
	if w.out.removed, err = w.identities(w.removed); err != nil {
		return err
	}
	if len(w.kept) > 0 {
		from := w.rec
		if !w.keeps() {
			from = array.NewRecordBatch(state.Schema(), w.rec.Columns()[:state.Values], w.rec.NumRows())
			defer from.Release()
		}
		if w.out.entries, err = takeRows(ctx, from, w.kept, w.mem); err == nil && len(w.hidden) > 0 {
			w.out.entries = hiding(w.out.entries, w.hidden)
		}
	}
	return err
}

// hiding makes some of a batch of entries such that only hide. It takes the batch over.
func hiding(rec arrow.RecordBatch, rows []int) arrow.RecordBatch {
	defer rec.Release()
	kinds := slices.Clone(rec.Column(state.Kind).(*array.Uint8).Uint8Values())
	for _, i := range rows {
		kinds[i] = state.Removed
	}
	cols := slices.Clone(rec.Columns())
	cols[state.Kind] = kindColumn(kinds)
	defer cols[state.Kind].Release()
	return array.NewRecordBatch(rec.Schema(), cols, rec.NumRows())
}

// rowsOf makes rows of the target, nil for none.
func (w *work) rowsOf(ctx context.Context, p *picks) (arrow.RecordBatch, error) {
	if len(p.tails) == 0 {
		return nil, nil
	}
	cols := make([]arrow.Array, w.values.NumFields(), w.values.NumFields()+4)
	defer func() { releaseAll(cols) }()
	at := indexColumn(p.tails)
	defer at.Release()
	for i := range cols {
		var err error
		if w.assembled(i) {
			cols[i], err = w.assemble(ctx, p, i)
		} else {
			cols[i], err = takeArray(ctx, w.rec.Column(state.Values+i), at, w.mem)
		}
		if err != nil {
			return nil, err
		}
	}
	if w.SCDType == 2 {
		for _, refs := range [][]int32{p.heads, p.ends} {
			col, err := w.sequences(refs)
			if err != nil {
				return nil, err
			}
			cols = append(cols, col)
		}
	}
	if w.SCDType == 2 && w.Technical {
		cols = append(cols, currentColumn(p.ends, w.mem), hexColumn(p.tracked, w.mem))
	}
	return array.NewRecordBatch(w.columns(), cols, int64(len(p.tails))), nil
}

// assemble puts a column together of its leaves.
func (w *work) assemble(ctx context.Context, p *picks, column int) (arrow.Array, error) {
	for i, k := range w.leaves {
		if k.path[0] == column {
			col, _, err := w.assembleAt(ctx, p, i)
			return col, err
		}
	}
	return nil, w.fault("INTERNAL_ERROR", "column %d has no leaves", column)
}

// assembleAt builds leaf i and gives the number of the leaf behind it and what it holds.
func (w *work) assembleAt(ctx context.Context, p *picks, i int) (arrow.Array, int, error) {
	k := w.leaves[i]
	if !k.node() {
		at := indexColumn(p.authors[i])
		defer at.Release()
		col, err := takeArray(ctx, k.values, at, w.mem)
		return col, i + 1, err
	}
	var kids []arrow.Array
	defer func() { releaseAll(kids) }()
	next := i + 1
	for range k.is.(*arrow.StructType).Fields() {
		kid, n, err := w.assembleAt(ctx, p, next)
		if err != nil {
			return nil, 0, err
		}
		kids, next = append(kids, kid), n
	}
	valid := array.NewBooleanBuilder(w.mem)
	defer valid.Release()
	valid.Reserve(len(p.authors[i]))
	nulls := 0
	for _, ref := range p.authors[i] {
		if k.values.IsValid(int(ref)) {
			valid.UnsafeAppend(true)
		} else {
			valid.UnsafeAppend(false)
			nulls++
		}
	}
	flags := valid.NewBooleanArray()
	defer flags.Release()
	out := array.NewData(k.is, len(p.authors[i]), []*memory.Buffer{flags.Data().Buffers()[1]}, dataOf(kids), nulls, 0)
	defer out.Release()
	return array.MakeFromData(out), next, nil
}

// sequences gives the sequences of entries; never is NULL.
func (w *work) sequences(refs []int32) (arrow.Array, error) {
	b := array.NewBuilder(w.mem, w.sequence)
	defer b.Release()
	b.Reserve(len(refs))
	for _, ref := range refs {
		if ref == never {
			b.AppendNull()
			continue
		}
		order := w.order(ref)
		if len(order) >= 8 {
			v := int64(binary.BigEndian.Uint64(order) ^ 1<<63) //nolint:gosec // the code of a whole number
			switch b := b.(type) {
			case *array.Int64Builder:
				b.UnsafeAppend(v)
				continue
			case *array.TimestampBuilder:
				b.UnsafeAppend(arrow.Timestamp(v))
				continue
			}
		}
		if err := rowcode.AppendOrder(b, w.sequence, order); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}

// identities gives the hashes by which rows of the target are found: of the key
// and, in SCD type 2, the start.
func (w *work) identities(heads []int32) ([]rowcode.Hash, error) {
	if len(heads) == 0 {
		return nil, nil
	}
	out := make([]rowcode.Hash, len(heads))
	if w.SCDType == 1 {
		for i, ref := range heads {
			out[i] = w.hashes[ref]
		}
		return out, nil
	}
	for i, ref := range heads {
		start, err := w.sequenceOf(w.order(ref))
		if err != nil {
			return nil, err
		}
		out[i] = keyindex.WithStart(w.hashes[ref], start)
	}
	return out, nil
}
