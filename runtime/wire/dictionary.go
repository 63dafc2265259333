package wire

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// addDictionary lays a dictionary-encoded column out as its values, since
// dictionaries do not cross the boundary. The values are gathered into
// buffers of this batch; only such columns cost an allocation.
func (e *Encoder) addDictionary(data arrow.ArrayData, dt *arrow.DictionaryType, off, n int64) error {
	values := data.Dictionary()
	index, err := indexReader(data, dt)
	if err != nil {
		return err
	}
	g := gather{n: n, valid: make([]byte, (n+7)/8), at: make([]int64, n)}
	keyBits, valueBits := bufferBytes(data.Buffers()[0]), bufferBytes(values.Buffers()[0])
	for i := range n {
		if len(keyBits) > 0 && !bitutil.BitIsSet(keyBits, int(off+i)) {
			continue
		}
		k := index(off + i)
		if k < 0 || k >= int64(values.Len()) {
			return errorf(CodeData, nil, "dictionary index %d is outside %d values", k, values.Len())
		}
		k += int64(values.Offset())
		if len(valueBits) > 0 && !bitutil.BitIsSet(valueBits, int(k)) {
			continue
		}
		bitutil.SetBit(g.valid, int(i))
		g.at[i] = k
	}
	nulls := n - int64(bitutil.CountSetBits(g.valid, 0, int(n)))
	e.nodes = append(e.nodes, node{n, nulls})
	if nulls == 0 {
		e.push(part{})
	} else {
		e.push(part{src: g.valid, size: int64(len(g.valid))})
	}
	for _, b := range g.values(values) {
		e.push(part{src: b, size: int64(len(b))})
	}
	return nil
}

func indexReader(data arrow.ArrayData, dt *arrow.DictionaryType) (func(int64) int64, error) {
	b := bufferBytes(data.Buffers()[1])
	le := binary.LittleEndian
	switch dt.IndexType.ID() {
	case arrow.INT8:
		return func(i int64) int64 { return int64(int8(b[i])) }, nil
	case arrow.UINT8:
		return func(i int64) int64 { return int64(b[i]) }, nil
	case arrow.INT16:
		return func(i int64) int64 { return int64(int16(le.Uint16(b[2*i:]))) }, nil
	case arrow.UINT16:
		return func(i int64) int64 { return int64(le.Uint16(b[2*i:])) }, nil
	case arrow.INT32:
		return func(i int64) int64 { return int64(int32(le.Uint32(b[4*i:]))) }, nil
	case arrow.UINT32:
		return func(i int64) int64 { return int64(le.Uint32(b[4*i:])) }, nil
	case arrow.INT64, arrow.UINT64:
		return func(i int64) int64 { return int64(le.Uint64(b[8*i:])) }, nil
	}
	return nil, errorf(CodeType, nil, "a dictionary with indices of type %s", dt.IndexType)
}

// gather takes values of a dictionary by position; a row that is not valid
// takes none.
type gather struct {
	n     int64
	valid []byte
	at    []int64
}

func (g *gather) values(values arrow.ArrayData) [][]byte {
	le := binary.LittleEndian
	switch t := values.DataType().(type) {
	case *arrow.BooleanType:
		src, out := bufferBytes(values.Buffers()[1]), make([]byte, (g.n+7)/8)
		g.each(func(i, k int64) { bitutil.SetBitTo(out, int(i), bitutil.BitIsSet(src, int(k))) })
		return [][]byte{out}
	case *arrow.StringType, *arrow.BinaryType:
		offsets, src := bufferBytes(values.Buffers()[1]), bufferBytes(values.Buffers()[2])
		ends, out := make([]byte, 4*(g.n+1)), []byte(nil)
		for i := range g.n {
			if bitutil.BitIsSet(g.valid, int(i)) {
				k := g.at[i]
				out = append(out, src[le.Uint32(offsets[4*k:]):le.Uint32(offsets[4*k+4:])]...)
			}
			le.PutUint32(ends[4*(i+1):], uint32(len(out)))
		}
		return [][]byte{ends, out}
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		offsets, src := bufferBytes(values.Buffers()[1]), bufferBytes(values.Buffers()[2])
		ends, out := make([]byte, 8*(g.n+1)), []byte(nil)
		for i := range g.n {
			if bitutil.BitIsSet(g.valid, int(i)) {
				k := g.at[i]
				out = append(out, src[le.Uint64(offsets[8*k:]):le.Uint64(offsets[8*k+8:])]...)
			}
			le.PutUint64(ends[8*(i+1):], uint64(len(out)))
		}
		return [][]byte{ends, out}
	case arrow.FixedWidthDataType:
		w := int64(t.Bytes())
		src, out := bufferBytes(values.Buffers()[1]), make([]byte, g.n*w)
		g.each(func(i, k int64) { copy(out[i*w:(i+1)*w], src[k*w:]) })
		return [][]byte{out}
	}
	return nil
}

func (g *gather) each(f func(i, k int64)) {
	for i := range g.n {
		if bitutil.BitIsSet(g.valid, int(i)) {
			f(i, g.at[i])
		}
	}
}
