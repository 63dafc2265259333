package flatbuf

// Table is one flatbuffer table inside a buffer. The zero Table has no fields.
type Table struct {
	buf []byte
	pos int
}

// Root gives the table that a finished buffer starts with.
func Root(buf []byte) Table {
	return Table{buf, int(U32(buf))}
}

// Ok reports whether the table is there at all.
func (t Table) Ok() bool { return t.buf != nil }

// field gives the position of field i, or 0 when it has its default value.
//
//go:noinline
func (t Table) field(i int) int {
	if t.buf == nil {
		return 0
	}
	vtable := t.pos - int(int32(U32(t.buf[t.pos:])))
	slot := 4 + 2*i
	if slot >= int(U16(t.buf[vtable:])) {
		return 0
	}
	off := int(U16(t.buf[vtable+slot:]))
	if off == 0 {
		return 0
	}
	return t.pos + off
}

// Bool reads a bool field whose default is false.
func (t Table) Bool(i int) bool {
	p := t.field(i)
	return p != 0 && t.buf[p] != 0
}

// Byte reads a ubyte field whose default is 0.
//
//go:noinline
func (t Table) Byte(i int) byte {
	if p := t.field(i); p != 0 {
		return t.buf[p]
	}
	return 0
}

// Int16 reads a short field.
//
//go:noinline
func (t Table) Int16(i int, def int16) int16 {
	if p := t.field(i); p != 0 {
		return int16(U16(t.buf[p:]))
	}
	return def
}

// Int32 reads an int field.
//
//go:noinline
func (t Table) Int32(i int, def int32) int32 {
	if p := t.field(i); p != 0 {
		return int32(U32(t.buf[p:]))
	}
	return def
}

// Int64 reads a long field whose default is 0.
//
//go:noinline
func (t Table) Int64(i int) int64 {
	if p := t.field(i); p != 0 {
		return int64(U64(t.buf[p:]))
	}
	return 0
}

// Table reads a field that is a table (or a union of tables).
//
//go:noinline
func (t Table) Table(i int) Table {
	p := t.field(i)
	if p == 0 {
		return Table{}
	}
	return Table{t.buf, p + int(U32(t.buf[p:]))}
}

// String reads a string field; it copies, since schemas outlive their message.
func (t Table) String(i int) string {
	p := t.field(i)
	if p == 0 {
		return ""
	}
	p += int(U32(t.buf[p:]))
	n := int(U32(t.buf[p:]))
	return string(t.buf[p+4 : p+4+n])
}

// Vector reads a field that is a vector of tables or of larger elements. A length that its buffer cannot
// hold ends in a bounds check here, before anybody makes room for as many elements.
func (t Table) Vector(i int) Vector {
	p := t.field(i)
	if p == 0 {
		return Vector{}
	}
	p += int(U32(t.buf[p:]))
	n := int(U32(t.buf[p:]))
	_ = t.buf[p+4:][:4*n]
	return Vector{t.buf, p + 4, n}
}

// Vector is a flatbuffer vector.
type Vector struct {
	buf []byte
	pos int
	n   int
}

// Len gives the number of elements.
func (v Vector) Len() int { return v.n }

// Table reads element i of a vector of tables.
//
//go:noinline
func (v Vector) Table(i int) Table {
	p := v.pos + 4*i
	return Table{v.buf, p + int(U32(v.buf[p:]))}
}

// Pair reads element i of a vector of structs of two longs (Arrow's FieldNode and Buffer).
//
//go:noinline
func (v Vector) Pair(i int) (a, b int64) {
	p := v.buf[v.pos+16*i:]
	return int64(U64(p)), int64(U64(p[8:]))
}

// U16 reads a little-endian number.
func U16(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }

// U32 reads a little-endian number.
func U32(b []byte) uint32 {
	_ = b[3]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// U64 reads a little-endian number.
func U64(b []byte) uint64 { return uint64(U32(b)) | uint64(U32(b[4:]))<<32 }
