package ingest

import (
	"encoding/binary"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/relation"
)

// metadata builds the _metadata column. Its values repeat for all rows of a
// file, so they are written by doubling copies; the columns of the last batch
// are given out again when the next one is of the same file and no longer.
type metadata struct {
	mem  memory.Allocator
	file int
	last arrow.Array
}

func (m *metadata) release() {
	if m.last != nil {
		m.last.Release()
		m.last = nil
	}
}

// column gives the metadata of rows rows in the given segments.
func (m *metadata) column(files []*source, segments []segment, rows int) arrow.Array {
	single := len(segments) > 0
	for _, sg := range segments {
		single = single && sg.file == segments[0].file
	}
	if single && m.last != nil && m.file == segments[0].file && m.last.Len() >= rows {
		return array.NewSlice(m.last, 0, int64(rows))
	}
	t := relation.MetadataType()
	path := m.strings(files, segments, rows, func(f File) string { return f.Path })
	name := m.strings(files, segments, rows, func(f File) string { return f.Path[strings.LastIndexByte(f.Path, '/')+1:] })
	size := m.numbers(t.Field(2).Type, files, segments, rows, func(f File) int64 { return f.Size })
	start := m.numbers(t.Field(3).Type, files, segments, rows, func(File) int64 { return 0 })
	modified := m.numbers(t.Field(5).Type, files, segments, rows, func(f File) int64 { return f.ModTimeMicros })
	size.Retain() // a file is one block: its length is the size
	children := []arrow.ArrayData{path, name, size, start, size, modified}
	data := array.NewData(t, rows, []*memory.Buffer{nil}, children, 0, 0)
	for _, c := range children {
		c.Release()
	}
	defer data.Release()
	out := array.MakeFromData(data)
	if single {
		m.release()
		out.Retain()
		m.file, m.last = segments[0].file, out
	}
	return out
}

func (m *metadata) strings(files []*source, segments []segment, rows int, value func(File) string) arrow.ArrayData {
	total := 0
	for _, sg := range segments {
		total += sg.rows * len(value(files[sg.file].File))
	}
	offs := m.mem.Allocate(4 * (rows + 1))
	data := m.mem.Allocate(max(total, 1))
	at, row := 0, 0
	binary.LittleEndian.PutUint32(offs, 0)
	for _, sg := range segments {
		v := value(files[sg.file].File)
		repeat(data[at:at+sg.rows*len(v)], []byte(v))
		for range sg.rows {
			at += len(v)
			row++
			binary.LittleEndian.PutUint32(offs[4*row:], uint32(at))
		}
	}
	bufs := []*memory.Buffer{nil, memory.NewBufferWithAllocator(offs, m.mem), memory.NewBufferWithAllocator(data, m.mem)}
	bufs[2].ResizeNoShrink(total)
	return m.data(arrow.BinaryTypes.String, rows, bufs)
}

func (m *metadata) numbers(t arrow.DataType, files []*source, segments []segment, rows int, value func(File) int64) arrow.ArrayData {
	data := m.mem.Allocate(8 * max(rows, 1))
	at := 0
	for _, sg := range segments {
		var v [8]byte
		binary.LittleEndian.PutUint64(v[:], uint64(value(files[sg.file].File)))
		repeat(data[at:at+8*sg.rows], v[:])
		at += 8 * sg.rows
	}
	return m.data(t, rows, []*memory.Buffer{nil, memory.NewBufferWithAllocator(data, m.mem)})
}

func (m *metadata) data(t arrow.DataType, rows int, bufs []*memory.Buffer) arrow.ArrayData {
	out := array.NewData(t, rows, bufs, nil, 0, 0)
	for _, b := range bufs {
		if b != nil {
			b.Release()
		}
	}
	return out
}

// repeat fills dst with copies of v, each copy twice as long as the one before.
func repeat(dst, v []byte) {
	if len(v) == 0 {
		return
	}
	for n := copy(dst, v); n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}
