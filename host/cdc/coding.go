package cdc

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/fault"
)

// coder turns the rows of one schema into entries of the state.
type coder struct {
	*layout
	mem  memory.Allocator
	time int64 // of the batch, in µs
	rows *arrow.Schema
	from []int // where a value is in the rows, -1 for nowhere
	// Hidden columns, -1 for none.
	sequence, remove, truncate int
	ties                       []int
	schema                     *arrow.Schema // of what is coded
}

func newCoder(l *layout, rows *arrow.Schema, time int64, mem memory.Allocator) *coder {
	c := &coder{layout: l, mem: mem, time: time, rows: rows, schema: l.entries()}
	c.sequence, c.remove, c.truncate = columnNamed(rows, SequenceColumn), columnNamed(rows, DeleteColumn), columnNamed(rows, TruncateColumn)
	for i := 0; ; i++ {
		at := columnNamed(rows, TieColumn+strconv.Itoa(i))
		if at < 0 {
			break
		}
		c.ties = append(c.ties, at)
	}
	for _, f := range l.values.Fields() {
		c.from = append(c.from, columnNamed(rows, f.Name))
	}
	return c
}

// coded is what comes of some rows.
type coded struct {
	rec      arrow.RecordBatch // nil for none
	truncate []byte            // the latest TRUNCATE, nil for none
	count    int64             // of truncates
	flaws    flaws
}

// code codes rows. Those without a key or a sequence are flaws, and then nothing
// is coded: the batch will fail.
func (c *coder) code(ctx context.Context, rec arrow.RecordBatch) (out coded, err error) {
	ctx = compute.WithAllocator(ctx, c.mem)
	rec.Retain()
	defer func() { rec.Release() }()
	if c.truncate >= 0 {
		rest, err := c.truncates(ctx, rec, &out)
		if err != nil {
			return out, err
		}
		rec.Release()
		rec = rest
	}
	values, err := c.conform(ctx, rec)
	if err != nil {
		return out, err
	}
	defer values.Release()
	sequence := rec.Column(c.sequence)
	if out.flaws.look(c.layout, values, sequence); out.flaws.any() || rec.NumRows() == 0 {
		return out, nil
	}
	keys, err := rowcode.Keys(values, c.keys)
	if err != nil {
		return out, err
	}
	ties := make([]arrow.Array, len(c.ties))
	for i, at := range c.ties {
		ties[i] = rec.Column(at)
	}
	orders, err := rowcode.Sequences(sequence, ties...)
	if err != nil {
		return out, err
	}
	hashes := rowcode.Hashes(keys)
	var kinds []byte
	if c.remove < 0 {
		kinds = bytes.Repeat([]byte{state.Upsert}, len(hashes))
	} else {
		kinds = kindsOf(rec.Column(c.remove).(*array.Boolean))
	}
	counted := rowcode.Rows(values, c.counted)
	tracked := counted
	switch {
	case c.SCDType != 2:
		tracked = make([]rowcode.Hash, len(hashes))
	case !c.exact || len(c.tracked) != len(c.counted):
		tracked = rowcode.Rows(values, c.tracked)
	}
	out.rec = c.assemble(hashes, keys, orders, kinds, counted, tracked, values)
	return out, nil
}

func kindsOf(remove *array.Boolean) []byte {
	kinds := make([]byte, remove.Len())
	for i := range kinds {
		kinds[i] = state.Upsert
		if remove.IsValid(i) && remove.Value(i) {
			kinds[i] = state.Delete
		}
	}
	return kinds
}

// assemble makes a batch of entries. The caller keeps values.
func (c *coder) assemble(hashes []rowcode.Hash, keys, orders rowcode.Bytes, kinds []byte, counted, tracked []rowcode.Hash, values arrow.RecordBatch) arrow.RecordBatch {
	cols := make([]arrow.Array, state.Values)
	defer releaseAll(cols)
	cols[state.Hash], cols[state.Key], cols[state.Order] = hashColumn(hashes), keys.Binary(), orders.Binary()
	cols[state.Kind], cols[state.Row], cols[state.Tracked] = kindColumn(kinds), hashColumn(counted), hashColumn(tracked)
	cols[state.Time] = timeColumn(c.time, len(hashes))
	return array.NewRecordBatch(c.schema, append(cols[:state.Values:state.Values], values.Columns()...), values.NumRows())
}

// truncates notes the truncates among rows, and gives the others. A truncate
// needs no key, only a sequence.
func (c *coder) truncates(ctx context.Context, rec arrow.RecordBatch, out *coded) (arrow.RecordBatch, error) {
	flags := rec.Column(c.truncate).(*array.Boolean)
	var rows, rest []int32
	for i := range flags.Len() {
		if flags.IsValid(i) && flags.Value(i) {
			rows = append(rows, int32(i)) //nolint:gosec // a batch is not that large
		} else {
			rest = append(rest, int32(i)) //nolint:gosec // as above
		}
	}
	if len(rows) == 0 {
		rec.Retain()
		return rec, nil
	}
	sequence := rec.Column(c.sequence)
	orders, err := rowcode.Order(sequence)
	if err != nil {
		return nil, err
	}
	for _, i := range rows {
		if sequence.IsNull(int(i)) {
			out.flaws.nullSequence(1, "a TRUNCATE")
			continue
		}
		if out.count++; bytes.Compare(orders.At(int(i)), out.truncate) > 0 {
			out.truncate = bytes.Clone(orders.At(int(i)))
		}
	}
	return takeRows(ctx, rec, rest, c.mem)
}

// conform gives the values of rows in the target's columns.
func (c *coder) conform(ctx context.Context, rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, len(c.from))
	defer func() { releaseAll(cols) }()
	for i, at := range c.from {
		f := c.values.Field(i)
		if at < 0 {
			cols[i] = array.MakeArrayOfNull(c.mem, f.Type, int(rec.NumRows()))
			continue
		}
		var err error
		if cols[i], err = conformed(ctx, rec.Column(at), f.Type); err != nil {
			return nil, fault.Wrap(err, "STEP_SCHEMA_MISMATCH", "column %s is %s, the target has %s", f.Name, rec.Column(at).DataType(), f.Type)
		}
	}
	return array.NewRecordBatch(c.values, cols, rec.NumRows()), nil
}

// conformed gives a column the target's type, which may be wider. The caller releases it.
func conformed(ctx context.Context, col arrow.Array, to arrow.DataType) (arrow.Array, error) {
	switch {
	case arrow.TypeEqual(col.DataType(), to):
		col.Retain()
		return col, nil
	case col.DataType().Layout().HasDict || !arrow.IsNested(to.ID()) || col.DataType().ID() != to.ID():
		return compute.CastArray(ctx, col, compute.SafeCastOptions(to))
	}
	return conformedNested(ctx, col, to)
}

// conformedNested does so for the parts of a nested column. Parts that it lacks are NULL.
func conformedNested(ctx context.Context, col arrow.Array, to arrow.DataType) (arrow.Array, error) {
	var kids []arrow.Array
	defer func() { releaseAll(kids) }()
	data := col.Data()
	switch t := to.(type) {
	case *arrow.StructType:
		s := col.(*array.Struct)
		have := s.DataType().(*arrow.StructType)
		for _, f := range t.Fields() {
			at := -1
			for i, h := range have.Fields() {
				if strings.EqualFold(h.Name, f.Name) {
					at = i
				}
			}
			if at < 0 {
				kids = append(kids, array.MakeArrayOfNull(compute.GetAllocator(ctx), f.Type, col.Len()))
				continue
			}
			kid, err := conformed(ctx, s.Field(at), f.Type)
			if err != nil {
				return nil, err
			}
			kids = append(kids, kid)
		}
		valid := validity(s, compute.GetAllocator(ctx))
		defer releaseBuffer(valid)
		out := array.NewData(to, col.Len(), []*memory.Buffer{valid}, dataOf(kids), col.NullN(), 0)
		defer out.Release()
		return array.MakeFromData(out), nil
	case *arrow.ListType, *arrow.MapType:
		child := array.MakeFromData(data.Children()[0])
		defer child.Release()
		kid, err := conformed(ctx, child, t.(arrow.NestedType).Fields()[0].Type)
		if err != nil {
			return nil, err
		}
		kids = append(kids, kid)
		out := array.NewData(to, col.Len(), data.Buffers(), dataOf(kids), col.NullN(), data.Offset())
		defer out.Release()
		return array.MakeFromData(out), nil
	}
	return nil, fault.New("STEP_SCHEMA_MISMATCH", "%s cannot become %s", col.DataType(), to)
}
