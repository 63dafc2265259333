package delta

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/weir-data/weir/host/fault"
)

// int96Reader reads timestamps of 96 bits to microseconds. pqarrow goes through
// nanoseconds, which end in the year 2262.
type int96Reader struct {
	file   *file.Reader
	col    int
	groups []int // to come
	rr     file.RecordReader
}

func newInt96Reader(r *file.Reader, sf *pqarrow.SchemaField, groups []int, mem memory.Allocator) *int96Reader {
	descr := r.MetaData().Schema.Column(sf.ColIndex)
	return &int96Reader{file: r, col: sf.ColIndex, groups: groups, rr: file.NewRecordReader(descr, sf.LevelInfo, sf.Field.Type, mem, r.BufferPool())}
}

func (r *int96Reader) Release() { r.rr.Release() }

func (r *int96Reader) NextBatch(n int64) (*arrow.Chunked, error) {
	r.rr.Reset()
	if err := r.rr.Reserve(n); err != nil {
		return nil, err
	}
	for n > 0 {
		if r.rr.HasMore() {
			read, err := r.rr.ReadRecords(n)
			if err != nil {
				return nil, err
			}
			if n -= read; read > 0 {
				continue
			}
		}
		if more, err := r.nextGroup(); err != nil || !more {
			if err != nil {
				return nil, err
			}
			break
		}
	}
	return r.take()
}

func (r *int96Reader) nextGroup() (bool, error) {
	if len(r.groups) == 0 {
		return false, nil
	}
	pages, err := r.file.RowGroup(r.groups[0]).GetColumnPageReader(r.col)
	if err != nil {
		return false, err
	}
	r.groups = r.groups[1:]
	if rr, ok := r.rr.(file.RecordReaderWithError); ok {
		return true, rr.SetPageReaderWithError(pages)
	}
	r.rr.SetPageReader(pages)
	return true, nil
}

// take makes an array of what was read.
func (r *int96Reader) take() (*arrow.Chunked, error) {
	n := r.rr.ValuesWritten()
	values := parquet.Int96Traits.CastFromBytes(r.rr.Values())[:n]
	valid := r.rr.ReleaseValidBits()
	defer releaseBuffer(valid)
	micros := make([]int64, n)
	nulls := int(r.rr.NullCount())
	for i, v := range values {
		if valid != nil && nulls > 0 && valid.Bytes()[i/8]&(1<<(i%8)) == 0 {
			continue
		}
		m, ok := int96Micros(v)
		if !ok {
			return nil, fault.New("DELTA_VALUE_OUT_OF_RANGE", "an INT96 timestamp is outside the range of microseconds")
		}
		micros[i] = m
	}
	data := array.NewData(int96Type, n, []*memory.Buffer{valid, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(micros))}, nil, nulls, 0)
	defer data.Release()
	arr := array.MakeFromData(data)
	defer arr.Release()
	return arrow.NewChunked(int96Type, []arrow.Array{arr}), nil
}

// int96Micros converts nanoseconds of the day and the Julian day number.
func int96Micros(v parquet.Int96) (int64, bool) {
	const epoch, day = 2440588, int64(86_400_000_000)
	nanos := binary.LittleEndian.Uint64(v[:8])
	days := int64(binary.LittleEndian.Uint32(v[8:])) - epoch
	if days > math.MaxInt64/day-1 || days < math.MinInt64/day+1 || nanos > math.MaxInt64 {
		return 0, false
	}
	return days*day + int64(nanos)/1000, true
}

// int96Type is what a timestamp of 96 bits is read to.
var int96Type = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}

// int96Leaf is such a timestamp within a nested column: path counts the children on the way to it.
type int96Leaf struct {
	field *pqarrow.SchemaField
	path  []int
}

// int96Leaves finds them below a field. pqarrow is told that they are null, so
// that it does not read values through nanoseconds; what it gives for them is replaced.
func int96Leaves(r *file.Reader, f *pqarrow.SchemaField, path []int) (out []int96Leaf) {
	if f.IsLeaf() {
		if r.MetaData().Schema.Column(f.ColIndex).PhysicalType() == parquet.Types.Int96 {
			f.Field.Type = arrow.Null
			out = append(out, int96Leaf{f, path})
		}
		return out
	}
	for i := range f.Children {
		out = append(out, int96Leaves(r, &f.Children[i], append(path[:len(path):len(path)], i))...)
	}
	return out
}

// int96Within reads a nested column that holds timestamps of 96 bits.
type int96Within struct {
	outer  columnReader
	leaves []int96Leaf
	inner  []*int96Reader
	mem    memory.Allocator
}

func newInt96Within(outer columnReader, r *file.Reader, leaves []int96Leaf, groups []int, mem memory.Allocator) *int96Within {
	w := &int96Within{outer: outer, leaves: leaves, mem: mem}
	for _, l := range leaves {
		w.inner = append(w.inner, newInt96Reader(r, l.field, groups, mem))
	}
	return w
}

func (w *int96Within) Release() {
	w.outer.Release()
	for _, r := range w.inner {
		r.Release()
	}
}

func (w *int96Within) NextBatch(n int64) (*arrow.Chunked, error) {
	arr, err := nextArray(w.outer, int(n), w.mem)
	if err != nil {
		return nil, err
	}
	defer arr.Release()
	data := arr.Data()
	data.Retain()
	for i, r := range w.inner {
		values, err := nextArray(r, int(n), w.mem)
		if err != nil {
			data.Release()
			return nil, err
		}
		replaced, err := replaceLeaf(data, w.leaves[i].path, values.Data())
		values.Release()
		data.Release()
		if err != nil {
			return nil, err
		}
		data = replaced
	}
	defer data.Release()
	whole := array.MakeFromData(data)
	defer whole.Release()
	return arrow.NewChunked(data.DataType(), []arrow.Array{whole}), nil
}

// replaceLeaf gives nested data with other values in the leaf that a path leads to.
func replaceLeaf(data arrow.ArrayData, path []int, leaf arrow.ArrayData) (arrow.ArrayData, error) {
	if len(path) == 0 {
		if leaf.Len() != data.Len() {
			return nil, fault.New("DELTA_INVALID_DATA_FILE", "a column of timestamps has %d values, not %d", leaf.Len(), data.Len())
		}
		leaf.Retain()
		return leaf, nil
	}
	if path[0] >= len(data.Children()) {
		return nil, fault.New("DELTA_INVALID_DATA_FILE", "a nested column has %d fields, not more than %d", len(data.Children()), path[0])
	}
	child, err := replaceLeaf(data.Children()[path[0]], path[1:], leaf)
	if err != nil {
		return nil, err
	}
	defer child.Release()
	children := append([]arrow.ArrayData(nil), data.Children()...)
	children[path[0]] = child
	return array.NewData(withChild(data.DataType(), path[0], child.DataType()), data.Len(), data.Buffers(), children, data.NullN(), data.Offset()), nil
}

// withChild gives a nested type with another type of one child.
func withChild(t arrow.DataType, i int, child arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case *arrow.StructType:
		fields := append([]arrow.Field(nil), t.Fields()...)
		fields[i].Type = child
		return arrow.StructOf(fields...)
	case *arrow.MapType:
		if entries, ok := child.(*arrow.StructType); ok && entries.NumFields() == 2 {
			return arrow.MapOfFields(entries.Field(0), entries.Field(1))
		}
	case *arrow.ListType:
		f := t.ElemField()
		f.Type = child
		return arrow.ListOfField(f)
	}
	return t
}
