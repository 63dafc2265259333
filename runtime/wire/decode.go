package wire

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Kind says what a message was.
type Kind int

// Kinds of messages.
const (
	KindSchema Kind = iota + 1
	KindBatch
	KindEnd
)

// Message is one decoded message. The batch, if it is one, belongs to the caller.
type Message struct {
	Kind  Kind
	Batch arrow.RecordBatch
	Size  int64 // bytes of the input it took
}

// Limits bounds what Decoder takes. A zero field means its default.
type Limits struct {
	// BatchRows is the most rows of one batch. Without it a batch of no
	// columns, or of void columns, could claim 2^63 rows in 200 bytes.
	// Default 16 Mi.
	BatchRows int64
	// MetadataBytes is the most bytes of a message's metadata. 10,000 columns
	// take 500 kB. Default 16 MiB.
	MetadataBytes int64
}

const (
	defaultBatchRows     = 16 << 20
	defaultMetadataBytes = 16 << 20
)

// Decoder reads the messages of one stream from a guest.
type Decoder struct {
	mem    memory.Allocator
	limits Limits
	schema *arrow.Schema // what the guest said, or what Expect replaced it by
	ended  bool

	meta  []byte // a copy of the metadata of the current message
	specs []spec
	check checker
}

// NewDecoder makes a decoder that takes the memory of batches from mem.
func NewDecoder(mem memory.Allocator, limits Limits) *Decoder {
	if limits.BatchRows <= 0 {
		limits.BatchRows = defaultBatchRows
	}
	if limits.MetadataBytes <= 0 {
		limits.MetadataBytes = defaultMetadataBytes
	}
	return &Decoder{mem: mem, limits: limits}
}

// Schema is the schema of the stream, nil before its message.
func (d *Decoder) Schema() *arrow.Schema { return d.schema }

// Expect compares the stream's schema with the one it shall have, and lets
// batches be built with that one. Names and types must be the same, in order;
// see SameType. Call it after the Schema message.
func (d *Decoder) Expect(want *arrow.Schema) error {
	if err := SameSchema(want, d.schema); err != nil {
		return err
	}
	d.schema = want
	return nil
}

// Next reads the first message of p. Errors are *Error; after one the stream
// is of no more use.
func (d *Decoder) Next(p []byte) (Message, error) {
	if d.ended {
		return Message{}, errorf(CodeMessage, nil, "a message after the end of the stream")
	}
	if len(p) < prefixSize {
		return Message{}, errorf(CodeMessage, nil, "%d bytes are too short for a message", len(p))
	}
	if binary.LittleEndian.Uint32(p) != continuation {
		return Message{}, errorf(CodeMessage, nil, "the message does not begin with FF FF FF FF")
	}
	size := int64(binary.LittleEndian.Uint32(p[4:]))
	rest := int64(len(p)) - prefixSize
	switch {
	case size == 0:
		d.ended = true
		if d.schema == nil {
			return Message{}, errorf(CodeMessage, nil, "the stream ends before its schema")
		}
		return Message{Kind: KindEnd, Size: prefixSize}, nil
	case size%8 != 0:
		return Message{}, errorf(CodeMessage, nil, "metadata of %d bytes is not a multiple of 8", size)
	case size > rest:
		return Message{}, errorf(CodeMessage, nil, "metadata of %d bytes in a message of %d", size, len(p))
	case size > d.limits.MetadataBytes:
		return Message{}, errorf(CodeLimit, nil, "metadata of %d bytes is over the limit of %d", size, d.limits.MetadataBytes)
	}
	d.meta = append(d.meta[:0], p[prefixSize:prefixSize+size]...)
	m, err := d.message(p[prefixSize+size:])
	m.Size += prefixSize + size
	return m, err
}

func (d *Decoder) message(rest []byte) (Message, error) {
	f := &flat{b: d.meta}
	t := f.root()
	version, kind, bodySize := t.int16(0, 0), t.byte(1, 0), t.int64(3, 0)
	header, ok := t.sub(2)
	switch {
	case f.fault != "":
		return Message{}, errorf(CodeMessage, nil, "%s", f.fault)
	case version != metadataV5:
		return Message{}, errorf(CodeMessage, nil, "metadata version V%d instead of V5", version+1)
	case !ok:
		return Message{}, errorf(CodeMessage, nil, "a message without a header")
	case bodySize < 0 || bodySize > int64(len(rest)):
		return Message{}, errorf(CodeMessage, nil, "a body of %d bytes in a message with %d left", bodySize, len(rest))
	case bodySize%guestAlign != 0:
		return Message{}, errorf(CodeMessage, nil, "a body of %d bytes is not a multiple of %d", bodySize, guestAlign)
	}
	switch kind {
	case headerSchema:
		if d.schema != nil {
			return Message{}, errorf(CodeMessage, nil, "a second schema in one stream")
		}
		if bodySize != 0 {
			return Message{}, errorf(CodeMessage, nil, "a schema with a body")
		}
		schema, err := readSchema(header)
		if err != nil {
			return Message{}, err
		}
		d.schema = schema
		return Message{Kind: KindSchema}, nil
	case headerRecordBatch:
		if d.schema == nil {
			return Message{}, errorf(CodeMessage, nil, "a batch before the schema")
		}
		batch, err := d.batch(header, rest[:bodySize])
		if err != nil {
			return Message{}, err
		}
		return Message{Kind: KindBatch, Batch: batch, Size: bodySize}, nil
	case headerDictionaryBatch:
		return Message{}, errorf(CodeType, nil, "dictionary batches do not cross the boundary")
	}
	return Message{}, errorf(CodeMessage, nil, "a message of unknown kind %d", kind)
}

// batch copies the body, checks the copy and builds the arrays on it.
func (d *Decoder) batch(t table, guestBody []byte) (arrow.RecordBatch, error) {
	f := t.f
	rows := t.int64(0, 0)
	nodesAt, nodes, _ := t.vector(1, 16)
	buffersAt, buffers, _ := t.vector(2, 16)
	_, compressed := t.sub(3)
	_, variadic, _ := t.vector(4, 8)
	switch {
	case f.fault != "":
		return nil, errorf(CodeMessage, nil, "%s", f.fault)
	case compressed:
		return nil, errorf(CodeType, nil, "compressed bodies do not cross the boundary")
	case variadic != 0:
		return nil, errorf(CodeType, nil, "views do not cross the boundary")
	case rows < 0:
		return nil, errorf(CodeMessage, nil, "a batch of %d rows", rows)
	case rows > d.limits.BatchRows:
		return nil, errorf(CodeLimit, nil, "a batch of %d rows is over the limit of %d", rows, d.limits.BatchRows)
	}
	body := memory.NewResizableBuffer(d.mem)
	defer body.Release()
	body.Resize(len(guestBody))
	copy(body.Bytes(), guestBody)

	c := &d.check
	*c = checker{
		body: body.Bytes(), maxEmpty: d.limits.BatchRows,
		nodes: f.b[nodesAt : nodesAt+16*nodes], buffers: f.b[buffersAt : buffersAt+16*buffers],
		specs: d.specs[:0], path: c.path[:0],
	}
	for _, field := range d.schema.Fields() {
		if err := c.column(field, rows, nil); err != nil {
			return nil, err
		}
	}
	d.specs = c.specs
	if len(c.nodes) != 0 || len(c.buffers) != 0 {
		return nil, errorf(CodeMessage, nil, "%d nodes and %d buffers more than the schema has", len(c.nodes)/16, len(c.buffers)/16)
	}
	b := builder{body: body, specs: d.specs}
	columns := make([]arrow.Array, d.schema.NumFields())
	for i, field := range d.schema.Fields() {
		data := b.data(field.Type)
		columns[i] = array.MakeFromData(data)
		data.Release()
	}
	rec := array.NewRecordBatch(d.schema, columns, rows)
	for _, col := range columns {
		col.Release()
	}
	return rec, nil
}
