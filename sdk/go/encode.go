package weir

import (
	"unsafe"

	"github.com/weir-data/weir/sdk/go/internal/flatbuf"
)

// bodyAlign is what each buffer of a body starts on.
const bodyAlign = 64

// encoder collects the nodes and buffers of one record batch and lays the message out. Its memory is
// kept between batches.
type encoder struct {
	fb      flatbuf.Builder
	nodes   [][2]int64
	places  [][2]int64
	buffers [][]byte
	out     []byte
}

func (e *encoder) node(rows, nulls int) {
	e.nodes = append(e.nodes, [2]int64{int64(rows), int64(nulls)})
}

func (e *encoder) buffer(b []byte) { e.buffers = append(e.buffers, b) }

// bytesOf sees values as their bytes.
func bytesOf[T any](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(v[0])))
}

func (e *encoder) reset() {
	e.nodes, e.places, e.buffers, e.out = e.nodes[:0], e.places[:0], e.buffers[:0], e.out[:0]
}

// schema appends a Schema message.
func (e *encoder) schema(fields []Field) { e.frame(encodeSchema(&e.fb, fields)) }

// batch appends a RecordBatch message of what was collected.
func (e *encoder) batch(rows int) {
	var at int64
	for _, b := range e.buffers {
		e.places = append(e.places, [2]int64{at, int64(len(b))})
		at += int64(len(b)+bodyAlign-1) &^ (bodyAlign - 1)
	}
	b := &e.fb
	b.Reset()
	buffers := b.Pairs(e.places)
	nodes := b.Pairs(e.nodes)
	b.Start(3)
	b.Scalar(0, uint64(rows), 8)
	b.Ref(1, nodes)
	b.Ref(2, buffers)
	e.frame(finishMessage(b, headerRecordBatch, b.End(), at))
	e.grow(int(at))
	for _, b := range e.buffers {
		e.out = append(e.out, b...)
		e.pad(bodyAlign, len(b))
	}
}

// frame appends a message's marker, size and metadata.
func (e *encoder) frame(metadata []byte) {
	size := (len(metadata) + 7) &^ 7
	e.out = append(e.out, 0xFF, 0xFF, 0xFF, 0xFF, byte(size), byte(size>>8), byte(size>>16), byte(size>>24))
	e.out = append(e.out, metadata...)
	e.pad(8, len(metadata))
}

var padding [bodyAlign]byte

func (e *encoder) pad(align, written int) {
	e.out = append(e.out, padding[:-written&(align-1)]...)
}

// grow makes room at once, so that a large body is not copied while it grows.
func (e *encoder) grow(n int) {
	if cap(e.out)-len(e.out) < n {
		grown := make([]byte, len(e.out), len(e.out)+n+n/8)
		copy(grown, e.out)
		e.out = grown
	}
}

// endOfStream is the marker that may close a stream.
var endOfStream = []byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}
