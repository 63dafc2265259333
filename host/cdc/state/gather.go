package state

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// span is n rows of a source from a row on.
type span struct {
	src  int32
	from int32
	n    int32
}

var (
	errOffsets = errors.New("offsets of a column point outside of it")
	errLarge   = errors.New("a column of one batch takes more than 2 GiB")
)

// gather copies spans of columns of type t into one. A source may be nil, which
// is a column of NULLs. Every length and offset is checked before it is used.
func gather(mem memory.Allocator, t arrow.DataType, srcs []arrow.ArrayData, spans []span) (arrow.ArrayData, error) {
	g := &gatherer{mem: mem, srcs: srcs, spans: spans}
	for _, s := range spans {
		g.n += int(s.n)
	}
	defer g.release()
	if err := g.validity(); err != nil {
		return nil, err
	}
	return g.values(t)
}

// gatherer builds one column. What it has built so far it owns until data takes it.
type gatherer struct {
	mem   memory.Allocator
	srcs  []arrow.ArrayData
	spans []span
	n     int

	valid    *memory.Buffer
	nulls    int
	buffers  []*memory.Buffer
	children []arrow.ArrayData
}

func (g *gatherer) release() {
	if g.valid != nil {
		g.valid.Release()
	}
	for _, b := range g.buffers {
		b.Release()
	}
	for _, c := range g.children {
		c.Release()
	}
}

func (g *gatherer) buffer(size int) []byte {
	b := memory.NewResizableBuffer(g.mem)
	g.buffers = append(g.buffers, b)
	b.Resize(size)
	return b.Bytes()
}

func (g *gatherer) data(t arrow.DataType) arrow.ArrayData {
	return array.NewData(t, g.n, append([]*memory.Buffer{g.valid}, g.buffers...), g.children, g.nulls, 0)
}

// rows checks that a span lies in its source, and gives the source and its first row there.
func (g *gatherer) rows(s span) (arrow.ArrayData, int, error) {
	src := g.srcs[s.src]
	if src == nil {
		return nil, 0, nil
	}
	if s.from < 0 || s.n < 0 || int64(s.from)+int64(s.n) > int64(src.Len()) || src.Offset() < 0 || src.Offset() > math.MaxInt32 {
		return nil, 0, errOffsets
	}
	return src, src.Offset() + int(s.from), nil
}

// bytesAt gives a buffer of a source, which has to hold size bytes.
func bytesAt(src arrow.ArrayData, i, size int) ([]byte, error) {
	if i >= len(src.Buffers()) {
		return nil, errOffsets
	}
	var b []byte
	if src.Buffers()[i] != nil {
		b = src.Buffers()[i].Bytes()
	}
	if size < 0 || len(b) < size {
		return nil, errOffsets
	}
	return b, nil
}

// fixedBytes gives the values of a column of fixed width, from its first row on.
func fixedBytes(src arrow.ArrayData, width int) ([]byte, error) {
	b, err := bytesAt(src, 1, (src.Offset()+src.Len())*width)
	if err != nil {
		return nil, err
	}
	return b[src.Offset()*width:][:src.Len()*width], nil
}

// validity builds the bitmap, if any row is NULL.
func (g *gatherer) validity() error {
	any := false
	for _, src := range g.srcs {
		any = any || src == nil || len(src.Buffers()) > 0 && src.Buffers()[0] != nil && src.Buffers()[0].Len() > 0
	}
	if !any {
		return nil
	}
	g.valid = memory.NewResizableBuffer(g.mem)
	g.valid.Resize(int(bitutil.BytesForBits(int64(g.n))))
	bits := g.valid.Bytes()
	clear(bits)
	at := 0
	for _, s := range g.spans {
		src, from, err := g.rows(s)
		if err != nil {
			return err
		}
		n := int(s.n)
		switch {
		case src == nil:
			g.nulls += n
		case len(src.Buffers()) == 0 || src.Buffers()[0] == nil || src.Buffers()[0].Len() == 0:
			bitutil.SetBitsTo(bits, int64(at), int64(n), true)
		default:
			b, err := bytesAt(src, 0, int(bitutil.BytesForBits(int64(from+n))))
			if err != nil {
				return err
			}
			for i := range n {
				if bitutil.BitIsSet(b, from+i) {
					bitutil.SetBit(bits, at+i)
				} else {
					g.nulls++
				}
			}
		}
		at += n
	}
	return nil
}

func (g *gatherer) values(t arrow.DataType) (arrow.ArrayData, error) {
	var err error
	switch t := t.(type) {
	case *arrow.NullType:
		if g.valid != nil {
			g.valid.Release()
			g.valid = nil
		}
		g.nulls = g.n
	case *arrow.BooleanType:
		err = g.bits()
	case *arrow.BinaryType, *arrow.StringType:
		err = g.binary32()
	case *arrow.LargeBinaryType, *arrow.LargeStringType:
		err = g.binary64()
	case *arrow.StructType:
		err = g.structs(t)
	case *arrow.ListType, *arrow.MapType:
		err = g.lists32(t.(arrow.NestedType).Fields()[0].Type)
	case *arrow.LargeListType:
		err = g.lists64(t.Elem())
	case *arrow.FixedSizeListType:
		err = g.fixedLists(t.Elem(), int(t.Len()))
	case arrow.FixedWidthDataType:
		err = g.fixed(t.Bytes())
	default:
		err = fmt.Errorf("columns of type %s have no place in a state", t)
	}
	if err != nil {
		return nil, err
	}
	return g.data(t), nil
}

func (g *gatherer) bits() error {
	out := g.buffer(int(bitutil.BytesForBits(int64(g.n))))
	clear(out)
	at := 0
	for _, s := range g.spans {
		src, from, err := g.rows(s)
		if err != nil {
			return err
		}
		if src != nil {
			b, err := bytesAt(src, 1, int(bitutil.BytesForBits(int64(from)+int64(s.n))))
			if err != nil {
				return err
			}
			for i := range int(s.n) {
				if bitutil.BitIsSet(b, from+i) {
					bitutil.SetBit(out, at+i)
				}
			}
		}
		at += int(s.n)
	}
	return nil
}

func (g *gatherer) fixed(width int) error {
	out := g.buffer(g.n * width)
	at := 0
	for _, s := range g.spans {
		src, from, err := g.rows(s)
		if err != nil {
			return err
		}
		size := int(s.n) * width
		if src == nil {
			clear(out[at : at+size])
		} else {
			b, err := bytesAt(src, 1, from*width+size)
			if err != nil {
				return err
			}
			copy(out[at:at+size], b[from*width:])
		}
		at += size
	}
	return nil
}

func (g *gatherer) structs(t *arrow.StructType) error {
	for f := range t.NumFields() {
		srcs := make([]arrow.ArrayData, len(g.srcs))
		for i, src := range g.srcs {
			if src == nil {
				continue
			}
			if f >= len(src.Children()) {
				return errOffsets
			}
			srcs[i] = src.Children()[f]
		}
		spans := make([]span, len(g.spans))
		for i, s := range g.spans {
			_, from, err := g.rows(s)
			if err != nil {
				return err
			}
			spans[i] = span{s.src, int32(from), s.n}
		}
		child, err := gather(g.mem, t.Field(f).Type, srcs, spans)
		if err != nil {
			return err
		}
		g.children = append(g.children, child)
	}
	return nil
}
