package wire

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// zeroOffsets stands in for the offsets buffer of a column without rows.
var zeroOffsets = memory.NewBufferBytes(make([]byte, 8))

// builder makes array data from checked specs, which stand in the order of a
// walk through the types. It cannot fail.
type builder struct {
	body  *memory.Buffer
	specs []spec
}

func (b *builder) data(dt arrow.DataType) arrow.ArrayData {
	s := b.specs[0]
	b.specs = b.specs[1:]
	buffers := make([]*memory.Buffer, bufferCount(dt))
	for i := range buffers {
		switch {
		case s.spans[i].size > 0:
			buffers[i] = memory.SliceBuffer(b.body, int(s.spans[i].at), int(s.spans[i].size))
		case i == 0 && len(buffers) > 0:
			// no validity: nothing is null
		case s.zeroOffsets && i == 1:
			buffers[i] = zeroOffsets
		default:
			buffers[i] = memory.NewBufferBytes(nil)
		}
	}
	if dt.ID() == arrow.NULL {
		buffers = []*memory.Buffer{nil}
	}
	var children []arrow.ArrayData
	for _, f := range childFields(dt) {
		children = append(children, b.data(f.Type))
	}
	data := array.NewData(dt, int(s.length), buffers, children, int(s.nulls), 0)
	for _, buf := range buffers {
		if buf != nil {
			buf.Release()
		}
	}
	for _, c := range children {
		c.Release()
	}
	return data
}

// bufferCount is how many buffers a message has for a column of the type.
func bufferCount(dt arrow.DataType) int {
	switch dt.ID() {
	case arrow.NULL:
		return 0
	case arrow.STRUCT, arrow.FIXED_SIZE_LIST:
		return 1
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return 3
	}
	return 2
}

func childFields(dt arrow.DataType) []arrow.Field {
	if n, ok := dt.(arrow.NestedType); ok {
		return n.Fields()
	}
	return nil
}
