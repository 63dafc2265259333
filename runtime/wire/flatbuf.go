package wire

import "encoding/binary"

// flat reads one flatbuffer of unknown origin. Each offset, vtable and vector
// is checked against the buffer before it is followed, in 64-bit arithmetic;
// the first fault sticks and everything read after it is zero. References
// only point forward, so a walk of bounded depth ends.
type flat struct {
	b     []byte
	fault string
}

// table is one table inside a flat.
type table struct {
	f      *flat
	pos    int64 // of the table
	vt     int64 // of its vtable
	vtSize int64
	size   int64 // of the table's own data
}

func (f *flat) fail(what string) {
	if f.fault == "" {
		f.fault = what
	}
}

func (f *flat) has(pos, n int64) bool {
	return f.fault == "" && pos >= 0 && n >= 0 && pos <= int64(len(f.b)) && n <= int64(len(f.b))-pos
}

func (f *flat) u16(pos int64) int64 { return int64(binary.LittleEndian.Uint16(f.b[pos:])) }
func (f *flat) u32(pos int64) int64 { return int64(binary.LittleEndian.Uint32(f.b[pos:])) }
func (f *flat) i32(pos int64) int64 { return int64(int32(binary.LittleEndian.Uint32(f.b[pos:]))) }
func (f *flat) i64(pos int64) int64 { return int64(binary.LittleEndian.Uint64(f.b[pos:])) }

// root is the table that the first word points at.
func (f *flat) root() table {
	if !f.has(0, 4) {
		f.fail("the metadata is too short for a flatbuffer")
		return table{f: f}
	}
	return f.table(f.u32(0))
}

func (f *flat) table(pos int64) table {
	t := table{f: f, pos: pos}
	if !f.has(pos, 4) {
		f.fail("a table lies outside the metadata")
		return table{f: f}
	}
	t.vt = pos - f.i32(pos)
	if !f.has(t.vt, 4) {
		f.fail("a vtable lies outside the metadata")
		return table{f: f}
	}
	t.vtSize, t.size = f.u16(t.vt), f.u16(t.vt+2)
	if t.vtSize < 4 || t.vtSize%2 != 0 || !f.has(t.vt, t.vtSize) {
		f.fail("a vtable has a wrong size")
		return table{f: f}
	}
	if t.size < 4 || !f.has(pos, t.size) {
		f.fail("a table has a wrong size")
		return table{f: f}
	}
	return t
}

// at gives the position of a field of n bytes, or false when it is absent.
func (t table) at(slot int, n int64) (int64, bool) {
	entry := int64(4 + 2*slot)
	if t.f.fault != "" || entry+2 > t.vtSize {
		return 0, false
	}
	off := t.f.u16(t.vt + entry)
	if off == 0 {
		return 0, false
	}
	if off < 4 || off+n > t.size {
		t.f.fail("a field lies outside its table")
		return 0, false
	}
	return t.pos + off, true
}

func (t table) byte(slot int, def byte) byte {
	if p, ok := t.at(slot, 1); ok {
		return t.f.b[p]
	}
	return def
}

func (t table) int16(slot int, def int64) int64 {
	if p, ok := t.at(slot, 2); ok {
		return int64(int16(t.f.u16(p)))
	}
	return def
}

func (t table) int32(slot int, def int64) int64 {
	if p, ok := t.at(slot, 4); ok {
		return t.f.i32(p)
	}
	return def
}

func (t table) int64(slot int, def int64) int64 {
	if p, ok := t.at(slot, 8); ok {
		return t.f.i64(p)
	}
	return def
}

// ref follows the reference in a field.
func (t table) ref(slot int) (int64, bool) {
	p, ok := t.at(slot, 4)
	if !ok {
		return 0, false
	}
	return t.f.follow(p)
}

func (f *flat) follow(p int64) (int64, bool) {
	if !f.has(p, 4) {
		f.fail("a reference lies outside the metadata")
		return 0, false
	}
	off := f.u32(p)
	if off == 0 || !f.has(p+off, 4) {
		f.fail("a reference points outside the metadata")
		return 0, false
	}
	return p + off, true
}

func (t table) sub(slot int) (table, bool) {
	p, ok := t.ref(slot)
	if !ok {
		return table{f: t.f}, false
	}
	s := t.f.table(p)
	return s, t.f.fault == ""
}

// vector gives the start and the number of elements.
func (t table) vector(slot int, elem int64) (start, n int64, ok bool) {
	p, ok := t.ref(slot)
	if !ok {
		return 0, 0, false
	}
	n = t.f.u32(p)
	if !t.f.has(p+4, n*elem) {
		t.f.fail("a vector lies outside the metadata")
		return 0, 0, false
	}
	return p + 4, n, true
}

func (t table) text(slot int) ([]byte, bool) {
	p, n, ok := t.vector(slot, 1)
	if !ok {
		return nil, false
	}
	return t.f.b[p : p+n], true
}
