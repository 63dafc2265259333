package cdc

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/cdc/state"
)

// A column of which any part ignores NULLs is put together of its leaves, each
// from the change that is its author. A struct is a leaf, too: of whether it is there.

// leaf is a part of such a column.
type leaf struct {
	path     []int // in values, then in structs
	name     string
	is       arrow.DataType
	inherits bool // a NULL says nothing
	tracked  bool
}

func (l *leaf) node() bool { return l.is.ID() == arrow.STRUCT }

// leaves adds those of a column, if any of them ignores NULLs.
func (c *Choice) leaves(out []*leaf, f arrow.Field, column int, tracked bool) []*leaf {
	n := len(out)
	out, any := c.parts(out, f, []int{column}, f.Name, tracked)
	if !any {
		return out[:n]
	}
	return out
}

// parts adds the leaves below a field: a struct stands before what it holds.
func (c *Choice) parts(out []*leaf, f arrow.Field, path []int, name string, tracked bool) (_ []*leaf, any bool) {
	st, ok := f.Type.(*arrow.StructType)
	if !ok || st.NumFields() == 0 {
		l := &leaf{path, name, f.Type, c.has(name), tracked}
		return append(out, l), l.inherits
	}
	node := &leaf{path: path, name: name, is: f.Type, tracked: tracked}
	out = append(out, node)
	for i, kid := range st.Fields() {
		var inherits bool
		out, inherits = c.parts(out, kid, append(path[:len(path):len(path)], i), name+"."+kid.Name, tracked)
		node.inherits = node.inherits || inherits
	}
	return out, node.inherits
}

// lookup is a leaf in the entries of a part.
type lookup struct {
	*leaf
	values arrow.Array // NULL also where a struct around it is
	hashes []rowcode.Hash
	factor uint64
}

// prepare finds the leaves, and hashes what is tracked of the rest.
func (w *work) prepare() {
	if len(w.inherited) == 0 {
		return
	}
	for _, l := range w.inherited {
		k := &lookup{leaf: l, values: w.part(l.path), factor: xxh3.HashString(l.name) | 1}
		w.leaves = append(w.leaves, k)
		if w.SCDType != 2 || !l.tracked {
			continue
		}
		if l.node() {
			k.hashes = make([]rowcode.Hash, k.values.Len())
			for i := range k.hashes {
				if k.values.IsValid(i) {
					k.hashes[i] = rowcode.Hash{1}
				}
			}
			continue
		}
		one := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: l.name, Type: l.is, Nullable: true}}, nil), []arrow.Array{k.values}, int64(k.values.Len()))
		k.hashes = rowcode.Rows(one, []int{0})
		one.Release()
	}
	if w.SCDType == 2 {
		var rest []int
		for _, c := range w.layout.tracked {
			if !w.assembled(c) {
				rest = append(rest, state.Values+c)
			}
		}
		w.entries.tracked = rowcode.Rows(w.rec, rest)
	}
	w.wasBy, w.isBy = make([][]int32, len(w.leaves)), make([][]int32, len(w.leaves))
}

// assembled tells whether a column is put together of leaves.
func (l *layout) assembled(column int) bool {
	for _, x := range l.inherited {
		if x.path[0] == column {
			return true
		}
	}
	return false
}

// part gives the array of a leaf. The caller releases it.
func (w *work) part(path []int) arrow.Array {
	at := w.rec.Column(state.Values + path[0])
	at.Retain()
	for _, i := range path[1:] {
		s := at.(*array.Struct)
		kid := masked(s, s.Field(i), w.mem)
		at.Release()
		at = kid
	}
	return at
}

// masked gives a field of a struct, NULL where the struct is.
func masked(s *array.Struct, kid arrow.Array, mem memory.Allocator) arrow.Array {
	if s.NullN() == 0 || kid.DataType().ID() == arrow.NULL {
		kid.Retain()
		return kid
	}
	n := kid.Len()
	data := kid.Data()
	// The buffers of the field stay, so its bitmap has to begin where its values do.
	valid := memory.NewResizableBuffer(mem)
	defer valid.Release()
	valid.Resize(int(bitutil.BytesForBits(int64(data.Offset() + n))))
	nulls := 0
	for i := range n {
		set := s.IsValid(i) && kid.IsValid(i)
		bitutil.SetBitTo(valid.Bytes(), data.Offset()+i, set)
		if !set {
			nulls++
		}
	}
	buffers := append([]*memory.Buffer{valid}, data.Buffers()[1:]...)
	out := array.NewData(kid.DataType(), n, buffers, data.Children(), nulls, data.Offset())
	defer out.Release()
	return array.MakeFromData(out)
}

func (w *work) releaseLeaves() {
	for _, k := range w.leaves {
		k.values.Release()
	}
	w.leaves = nil
}

// inherit finds the authors of the key at hand, and hashes what is tracked of
// the values that show.
func (w *work) inherit() {
	if len(w.leaves) == 0 {
		return
	}
	for _, side := range []struct {
		line []event
		by   [][]int32
	}{{w.before, w.wasBy}, {w.after, w.isBy}} {
		for i, k := range w.leaves {
			null := func(ref int32) bool { return k.inherits && k.values.IsNull(int(ref)) }
			side.by[i] = authors(side.by[i][:0], side.line, null)
		}
		if w.SCDType != 2 {
			continue
		}
		for at := range side.line {
			e := &side.line[at]
			e.tracked = w.entries.tracked[e.ref]
			for i, k := range w.leaves {
				if k.hashes != nil {
					mix(&e.tracked, &k.hashes[side.by[i][at]], k.factor)
				}
			}
		}
	}
}

// mix adds a part to a hash of several.
func mix(h, part *rowcode.Hash, factor uint64) {
	for i := 0; i < 16; i += 8 {
		v := binary.LittleEndian.Uint64(h[i:]) + binary.LittleEndian.Uint64(part[i:])*factor
		binary.LittleEndian.PutUint64(h[i:], v^v>>29)
	}
}
