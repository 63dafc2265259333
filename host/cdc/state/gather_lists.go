package state

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// extent gives the offsets of n rows from a row on: n+1 numbers that never fall.
func extent[T int32 | int64](src arrow.ArrayData, from, n int, cast func([]byte) []T, width int) ([]T, error) {
	if n == 0 {
		return nil, nil
	}
	b, err := bytesAt(src, 1, (from+n+1)*width)
	if err != nil {
		return nil, err
	}
	offsets := cast(b[:(from+n+1)*width])[from:]
	if offsets[0] < 0 {
		return nil, errOffsets
	}
	for i := range n {
		if offsets[i+1] < offsets[i] {
			return nil, errOffsets
		}
	}
	return offsets, nil
}

func (g *gatherer) binary32() error { return variable(g, arrow.Int32Traits.CastFromBytes, 4) }
func (g *gatherer) binary64() error { return variable(g, arrow.Int64Traits.CastFromBytes, 8) }

func variable[T int32 | int64](g *gatherer, cast func([]byte) []T, width int) error {
	out := cast(g.buffer((g.n + 1) * width))
	parts := make([][]byte, len(g.spans))
	out[0] = 0
	at, total := 0, int64(0)
	for p, s := range g.spans {
		src, from, err := g.rows(s)
		if err != nil {
			return err
		}
		if src == nil {
			for i := range int(s.n) {
				out[at+i+1] = T(total)
			}
			at += int(s.n)
			continue
		}
		offsets, err := extent(src, from, int(s.n), cast, width)
		if err != nil {
			return err
		}
		if len(offsets) == 0 {
			continue
		}
		first, last := int64(offsets[0]), int64(offsets[s.n])
		if last > math.MaxInt {
			return errOffsets
		}
		b, err := bytesAt(src, 2, int(last))
		if err != nil {
			return err
		}
		if width == 4 && total+last-first > math.MaxInt32 {
			return errLarge
		}
		for i := range int(s.n) {
			out[at+i+1] = T(total + int64(offsets[i+1]) - first)
		}
		parts[p] = b[first:last]
		at, total = at+int(s.n), total+last-first
	}
	data := g.buffer(int(total))
	for _, p := range parts {
		data = data[copy(data, p):]
	}
	return nil
}

func (g *gatherer) lists32(element arrow.DataType) error {
	return lists(g, element, arrow.Int32Traits.CastFromBytes, 4)
}

func (g *gatherer) lists64(element arrow.DataType) error {
	return lists(g, element, arrow.Int64Traits.CastFromBytes, 8)
}

func lists[T int32 | int64](g *gatherer, element arrow.DataType, cast func([]byte) []T, width int) error {
	out := cast(g.buffer((g.n + 1) * width))
	out[0] = 0
	at, total := 0, int64(0)
	var inner []span
	for _, s := range g.spans {
		src, from, err := g.rows(s)
		if err != nil {
			return err
		}
		var offsets []T
		if src != nil {
			if offsets, err = extent(src, from, int(s.n), cast, width); err != nil {
				return err
			}
		}
		for i := range int(s.n) {
			if offsets != nil {
				out[at+i+1] = T(total + int64(offsets[i+1]-offsets[0]))
			} else {
				out[at+i+1] = T(total)
			}
		}
		at += int(s.n)
		if len(offsets) == 0 || offsets[s.n] == offsets[0] {
			continue
		}
		if int64(offsets[s.n]) > math.MaxInt32 {
			return errLarge
		}
		inner = append(inner, span{s.src, int32(offsets[0]), int32(offsets[s.n] - offsets[0])})
		if total += int64(offsets[s.n] - offsets[0]); total > math.MaxInt32 {
			return errLarge
		}
	}
	return g.elements(element, inner)
}

func (g *gatherer) fixedLists(element arrow.DataType, length int) error {
	var inner []span
	for _, s := range g.spans {
		src, from, err := g.rows(s)
		if err != nil {
			return err
		}
		first, n := int64(from)*int64(length), int64(s.n)*int64(length)
		if first+n > math.MaxInt32 {
			return errLarge
		}
		if src == nil {
			first = 0
		}
		inner = append(inner, span{s.src, int32(first), int32(n)})
	}
	return g.elements(element, inner)
}

// elements gathers the only child.
func (g *gatherer) elements(t arrow.DataType, spans []span) error {
	srcs := make([]arrow.ArrayData, len(g.srcs))
	for i, src := range g.srcs {
		if src == nil {
			continue
		}
		if len(src.Children()) != 1 {
			return errOffsets
		}
		srcs[i] = src.Children()[0]
	}
	child, err := gather(g.mem, t, srcs, spans)
	if err == nil {
		g.children = append(g.children, child)
	}
	return err
}
