package weir

import (
	"unsafe"

	"github.com/weir-data/weir/sdk/go/internal/flatbuf"
)

// maxRows bounds what a field node may claim, so that no view of nulls is made for a row count that
// no memory could hold.
const maxRows = 1 << 31

// batchReader walks the nodes and buffers of one record batch in schema order.
type batchReader struct {
	nodes, buffers flatbuf.Vector
	node, buffer   int
	body           []byte
	errs           *stickyError
	err            error
}

// readBatch decodes a record batch in place, into cols' memory.
func readBatch(m message, fields []Field, cols []Column, errs *stickyError) (rows int, out []Column, err error) {
	n := m.table.Int64(0)
	if n < 0 || n > maxRows {
		return 0, cols, errorf("[INPUT_INVALID] a batch of ", itoa(n), " rows")
	}
	if m.table.Table(3).Ok() {
		return 0, cols, errorf("[INPUT_INVALID] a batch is compressed")
	}
	r := batchReader{nodes: m.table.Vector(1), buffers: m.table.Vector(2), body: m.body, errs: errs}
	for i := range fields {
		c := r.column(&fields[i].Type, fields[i].Name)
		if r.err == nil && c.n != int(n) {
			r.fail(fields[i].Name, "has another number of rows than its batch")
		}
		cols = append(cols, c)
	}
	return int(n), cols, r.err
}

func (r *batchReader) fail(path, what string) {
	if r.err == nil {
		r.err = errorf("[INPUT_INVALID] column ", path, " ", what)
	}
}

// next gives the next buffer; it must hold at least size bytes.
func (r *batchReader) next(path string, size int64) []byte {
	if r.buffer >= r.buffers.Len() {
		r.fail(path, "lacks a buffer")
		return nil
	}
	off, n := r.buffers.Pair(r.buffer)
	r.buffer++
	if off < 0 || n < 0 || off > int64(len(r.body)) || n > int64(len(r.body))-off {
		r.fail(path, "has a buffer outside its message")
		return nil
	}
	if n < size {
		r.fail(path, "has a buffer that is too short")
		return nil
	}
	return r.body[off : off+n]
}

func (r *batchReader) column(t *DataType, path string) Column {
	c := Column{typ: t, path: path, errs: r.errs}
	if r.node >= r.nodes.Len() {
		r.fail(path, "lacks its field node")
	}
	if r.err != nil {
		return c
	}
	n, nulls := r.nodes.Pair(r.node)
	r.node++
	if n < 0 || n > maxRows {
		r.fail(path, "has an impossible number of rows")
		return c
	}
	c.n = int(n)
	if t.Kind == KindNull {
		return c
	}
	valid := r.next(path, 0)
	if nulls != 0 && len(valid) > 0 {
		if int64(len(valid)) < (n+7)/8 {
			r.fail(path, "has a validity buffer that is too short")
			return c
		}
		c.valid = valid
	}
	r.layout(&c, t, n)
	if r.err != nil {
		c.n = 0
	}
	return c
}

// layout reads the buffers and children that the type has behind its validity.
func (r *batchReader) layout(c *Column, t *DataType, n int64) {
	switch t.Kind {
	case KindBool:
		c.data = r.next(c.path, (n+7)/8)
	case KindString, KindBinary, KindLargeString, KindLargeBinary:
		c.offsets = r.offsets(c.path, n, t.Kind == KindLargeString || t.Kind == KindLargeBinary)
		c.data = r.next(c.path, 0)
	case KindFixedBinary:
		c.data = r.next(c.path, n*int64(t.Width))
	case KindList, KindMap:
		c.offsets = r.offsets(c.path, n, false)
	case KindLargeList:
		c.offsets = r.offsets(c.path, n, true)
	case KindFixedList, KindStruct:
	default:
		width := fixedWidth(t.Kind)
		c.data = aligned(r.next(c.path, n*int64(width)), min(width, 8))
	}
	r.nested(c, t)
}

func (r *batchReader) nested(c *Column, t *DataType) {
	switch t.Kind {
	case KindStruct:
		for i := range t.Fields {
			c.children = append(c.children, r.column(&t.Fields[i].Type, c.path+"."+t.Fields[i].Name))
		}
	case KindList, KindLargeList, KindFixedList:
		c.children = []Column{r.column(&t.Fields[0].Type, c.path+"[]")}
	case KindMap:
		entries := DataType{Kind: KindStruct, Fields: t.Fields}
		c.children = []Column{r.column(&entries, c.path+"{}")}
	}
	if t.Kind == KindStruct {
		for _, child := range c.children {
			if child.n < c.n {
				r.fail(c.path, "has a field of fewer rows")
			}
		}
	}
}

// offsets reads n+1 offsets. What they point at is checked when it is sliced.
func (r *batchReader) offsets(path string, n int64, large bool) []byte {
	size := int64(4)
	if large {
		size = 8
	}
	b := r.next(path, 0)
	if r.err == nil && n > 0 && int64(len(b)) < (n+1)*size {
		r.fail(path, "has an offsets buffer that is too short")
	}
	if int64(len(b)) < (n+1)*size {
		return nil
	}
	return aligned(b, int(size))
}

// aligned gives the bytes at an address that values of the width may be read from. The host aligns
// its buffers, so this copies only what another writer made.
func aligned(b []byte, width int) []byte {
	if len(b) == 0 || uintptr(unsafe.Pointer(unsafe.SliceData(b)))&uintptr(width-1) == 0 {
		return b
	}
	words := make([]uint64, (len(b)+7)/8)
	out := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(b))
	copy(out, b)
	return out
}

// fixedWidth gives the bytes of a value.
func fixedWidth(k Kind) int {
	switch k {
	case KindInt8, KindUint8:
		return 1
	case KindInt16, KindUint16:
		return 2
	case KindInt32, KindUint32, KindFloat32, KindDate32, KindTime32:
		return 4
	case KindDecimal128:
		return 16
	case KindDecimal256:
		return 32
	}
	return 8
}
