package wire

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
)

// maxDepth bounds the nesting of columns in both directions.
const maxDepth = 32

// Encoder turns the record batches of one schema into IPC messages, in two
// steps: Layout says how large the message is, Put writes it.
type Encoder struct {
	fields  []arrow.Field
	columns []int
	schema  []byte
	b       *flatbuffers.Builder

	rec   arrow.RecordBatch
	nodes []node
	parts []part
	head  []byte // prefix and metadata
	body  int64
}

// node is a FieldNode of a record batch message.
type node struct{ length, nulls int64 }

type partKind uint8

const (
	partBytes     partKind = iota // src as it is
	partBits                      // n bits of src from bit from
	partOffsets32                 // n+1 offsets of src from element from, less base
	partOffsets64
	partZeros // the one offset of a column without rows
)

// part is one buffer of the body: where it comes from and where it goes.
type part struct {
	kind    partKind
	src     []byte
	from, n int64
	base    int64
	at      int64
	size    int64
}

// NewEncoder makes an encoder for the columns (their positions in the schema,
// in the order they shall have; nil is all of them). A column of a type that
// does not cross the boundary is an error that names it.
func NewEncoder(schema *arrow.Schema, columns []int) (*Encoder, error) {
	e := &Encoder{columns: columns, b: flatbuffers.NewBuilder(1024)}
	if columns == nil {
		e.columns = make([]int, schema.NumFields())
		for i := range e.columns {
			e.columns[i] = i
		}
	}
	for _, c := range e.columns {
		if c < 0 || c >= schema.NumFields() {
			return nil, errorf(CodeWrongSchema, nil, "there is no column %d among %d", c, schema.NumFields())
		}
		e.fields = append(e.fields, schema.Field(c))
	}
	for _, f := range e.fields {
		if err := encodable(f.Type, []string{f.Name}, false); err != nil {
			return nil, err
		}
	}
	var err error
	e.schema, err = schemaMessage(e.b, e.fields)
	return e, err
}

// encodable refuses what a dictionary cannot be decoded from.
func encodable(dt arrow.DataType, path []string, inDictionary bool) error {
	if d, ok := dt.(*arrow.DictionaryType); ok {
		if _, nested := d.ValueType.(arrow.NestedType); nested || inDictionary || d.ValueType.ID() == arrow.NULL || d.ValueType.ID() == arrow.DICTIONARY {
			return errorf(CodeType, path, "a dictionary of %s does not cross the boundary", d.ValueType)
		}
		return encodable(d.ValueType, path, true)
	}
	if n, ok := dt.(arrow.NestedType); ok && len(path) <= maxDepth {
		for _, f := range n.Fields() {
			if err := encodable(f.Type, append(path, f.Name), inDictionary); err != nil {
				return err
			}
		}
	}
	return nil
}

// Schema is the whole Schema message. The caller does not change it.
func (e *Encoder) Schema() []byte { return e.schema }

// Layout prepares rows [offset, offset+length) of a batch and gives the size
// of its message. The batch is kept until the next Layout or Release.
func (e *Encoder) Layout(rec arrow.RecordBatch, offset, length int64) (int64, error) {
	e.Release()
	if offset < 0 || length < 0 || offset > rec.NumRows() || length > rec.NumRows()-offset {
		return 0, errorf(CodeData, nil, "rows %d to %d are outside a batch of %d", offset, offset+length, rec.NumRows())
	}
	rec.Retain()
	e.rec = rec
	for i, c := range e.columns {
		if c >= int(rec.NumCols()) {
			return 0, errorf(CodeWrongSchema, []string{e.fields[i].Name}, "the batch has only %d columns", rec.NumCols())
		}
		col := rec.Column(c)
		if dt := col.DataType(); dt != e.fields[i].Type && !arrow.TypeEqual(dt, e.fields[i].Type) {
			return 0, errorf(CodeWrongSchema, []string{e.fields[i].Name}, "the batch has type %s, its schema says %s", dt, e.fields[i].Type)
		}
		data := col.Data()
		if err := e.add(data, int64(data.Offset())+offset, length); err != nil {
			return 0, err
		}
	}
	e.head = e.metadata(length)
	return int64(len(e.head)) + e.body, nil
}

// Release lets go of the batch.
func (e *Encoder) Release() {
	if e.rec != nil {
		e.rec.Release()
		e.rec = nil
	}
	for i := range e.parts {
		e.parts[i].src = nil
	}
	e.nodes, e.parts, e.body = e.nodes[:0], e.parts[:0], 0
}

func (e *Encoder) metadata(rows int64) []byte {
	b := e.b
	b.Reset()
	b.StartVector(16, len(e.parts), 8)
	for i := len(e.parts) - 1; i >= 0; i-- {
		b.Prep(8, 16)
		b.PrependInt64(e.parts[i].size)
		b.PrependInt64(e.parts[i].at)
	}
	buffers := b.EndVector(len(e.parts))
	b.StartVector(16, len(e.nodes), 8)
	for i := len(e.nodes) - 1; i >= 0; i-- {
		b.Prep(8, 16)
		b.PrependInt64(e.nodes[i].nulls)
		b.PrependInt64(e.nodes[i].length)
	}
	nodes := b.EndVector(len(e.nodes))
	b.StartObject(5)
	b.PrependInt64Slot(0, rows, 0)
	b.PrependUOffsetTSlot(1, nodes, 0)
	b.PrependUOffsetTSlot(2, buffers, 0)
	batch := b.EndObject()
	e.body = alignUp(e.body, guestAlign)
	finishMessage(b, headerRecordBatch, batch, e.body)
	return frame(e.head[:0], b.FinishedBytes(), hostAlign)
}

// Put writes the message that Layout prepared to the front of dst and gives
// its size. dst is at least that long.
func (e *Encoder) Put(dst []byte) int64 {
	size := int64(len(e.head)) + e.body
	dst = dst[:size]
	copy(dst, e.head)
	body := dst[len(e.head):]
	end := int64(0)
	for i := range e.parts {
		p := &e.parts[i]
		if p.size == 0 {
			continue
		}
		clear(body[end:p.at])
		p.put(body[p.at : p.at+p.size])
		end = p.at + p.size
	}
	clear(body[end:])
	return size
}

func (p *part) put(dst []byte) {
	switch p.kind {
	case partBytes:
		copy(dst, p.src)
	case partBits:
		copyBits(dst, p.src, p.from, p.n)
	case partOffsets32:
		src := p.src[p.from*4 : (p.from+p.n+1)*4]
		if p.base == 0 {
			copy(dst, src)
			return
		}
		base := uint32(p.base)
		for i := 0; i+4 <= len(src); i += 4 {
			binary.LittleEndian.PutUint32(dst[i:], binary.LittleEndian.Uint32(src[i:])-base)
		}
	case partOffsets64:
		src := p.src[p.from*8 : (p.from+p.n+1)*8]
		for i := 0; i+8 <= len(src); i += 8 {
			binary.LittleEndian.PutUint64(dst[i:], binary.LittleEndian.Uint64(src[i:])-uint64(p.base))
		}
	case partZeros:
		clear(dst)
	}
}

func (e *Encoder) push(p part) {
	e.body = alignUp(e.body, hostAlign)
	p.at = e.body
	e.body += p.size
	e.parts = append(e.parts, p)
}

// add lays out rows [off, off+n) of an array; off counts from the start of
// the array's buffers.
func (e *Encoder) add(data arrow.ArrayData, off, n int64) error {
	dt := data.DataType()
	switch t := dt.(type) {
	case *arrow.NullType:
		e.nodes = append(e.nodes, node{n, n})
		return nil
	case *arrow.DictionaryType:
		return e.addDictionary(data, t, off, n)
	case *arrow.StructType:
		e.addValidity(data, off, n)
		for _, c := range data.Children() {
			if err := e.add(c, int64(c.Offset())+off, n); err != nil {
				return err
			}
		}
		return nil
	case *arrow.FixedSizeListType:
		e.addValidity(data, off, n)
		c, k := data.Children()[0], int64(t.Len())
		return e.add(c, int64(c.Offset())+off*k, n*k)
	case *arrow.ListType, *arrow.MapType:
		e.addValidity(data, off, n)
		first, last := e.addOffsets32(data, off, n)
		c := data.Children()[0]
		return e.add(c, int64(c.Offset())+first, last-first)
	case *arrow.LargeListType:
		e.addValidity(data, off, n)
		first, last := e.addOffsets64(data, off, n)
		c := data.Children()[0]
		return e.add(c, int64(c.Offset())+first, last-first)
	case *arrow.StringType, *arrow.BinaryType:
		e.addValidity(data, off, n)
		first, last := e.addOffsets32(data, off, n)
		e.addBytes(data.Buffers()[2], first, last)
		return nil
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		e.addValidity(data, off, n)
		first, last := e.addOffsets64(data, off, n)
		e.addBytes(data.Buffers()[2], first, last)
		return nil
	case *arrow.BooleanType:
		e.addValidity(data, off, n)
		if n == 0 {
			e.push(part{})
			return nil
		}
		e.push(part{kind: partBits, src: data.Buffers()[1].Bytes(), from: off, n: n, size: (n + 7) / 8})
		return nil
	case arrow.FixedWidthDataType:
		e.addValidity(data, off, n)
		w := int64(t.Bytes())
		e.addBytes(data.Buffers()[1], off*w, (off+n)*w)
		return nil
	}
	return errorf(CodeType, nil, "Arrow type %s does not cross the boundary", dt)
}

func (e *Encoder) addValidity(data arrow.ArrayData, off, n int64) {
	var bits []byte
	if b := data.Buffers()[0]; b != nil {
		bits = b.Bytes()
	}
	nulls := int64(0)
	if len(bits) > 0 && data.NullN() != 0 {
		nulls = n - int64(bitutil.CountSetBits(bits, int(off), int(n)))
	}
	e.nodes = append(e.nodes, node{n, nulls})
	if nulls == 0 {
		e.push(part{})
		return
	}
	e.push(part{kind: partBits, src: bits, from: off, n: n, size: (n + 7) / 8})
}

func (e *Encoder) addOffsets32(data arrow.ArrayData, off, n int64) (first, last int64) {
	src := bufferBytes(data.Buffers()[1])
	if n == 0 || len(src) == 0 {
		e.push(part{kind: partZeros, size: 4})
		return 0, 0
	}
	first = int64(int32(binary.LittleEndian.Uint32(src[off*4:])))
	last = int64(int32(binary.LittleEndian.Uint32(src[(off+n)*4:])))
	e.push(part{kind: partOffsets32, src: src, from: off, n: n, base: first, size: (n + 1) * 4})
	return first, last
}

func (e *Encoder) addOffsets64(data arrow.ArrayData, off, n int64) (first, last int64) {
	src := bufferBytes(data.Buffers()[1])
	if n == 0 || len(src) == 0 {
		e.push(part{kind: partZeros, size: 8})
		return 0, 0
	}
	first = int64(binary.LittleEndian.Uint64(src[off*8:]))
	last = int64(binary.LittleEndian.Uint64(src[(off+n)*8:]))
	e.push(part{kind: partOffsets64, src: src, from: off, n: n, base: first, size: (n + 1) * 8})
	return first, last
}

func (e *Encoder) addBytes(b *memory.Buffer, from, to int64) {
	if from == to {
		e.push(part{})
		return
	}
	e.push(part{src: b.Bytes()[from:to], size: to - from})
}

func bufferBytes(b *memory.Buffer) []byte {
	if b == nil {
		return nil
	}
	return b.Bytes()
}

// copyBits copies n bits from bit from on, and clears the rest of the last byte.
func copyBits(dst, src []byte, from, n int64) {
	src = src[from/8:]
	shift := uint(from % 8)
	size := int((n + 7) / 8)
	if shift == 0 {
		copy(dst[:size], src)
	} else {
		i := 0
		for ; i+8 <= size && i+9 <= len(src); i += 8 {
			w := binary.LittleEndian.Uint64(src[i:])>>shift | uint64(src[i+8])<<(64-shift)
			binary.LittleEndian.PutUint64(dst[i:], w)
		}
		for ; i < size; i++ {
			v := src[i] >> shift
			if i+1 < len(src) {
				v |= src[i+1] << (8 - shift)
			}
			dst[i] = v
		}
	}
	if r := uint(n % 8); r != 0 {
		dst[size-1] &= 1<<r - 1
	}
}
