package weir

import (
	"math"
	"unsafe"
)

// builder is what every typed builder is to its column.
type builder interface {
	Len() int
	AppendNull()
	nulls() int
	reset()
	encode(e *encoder)
	// check finds what is wrong with the values, before they are encoded.
	check(path string) error
	dataType() DataType
}

// validity keeps which rows are null. No bits are kept until the first null comes.
type validity struct {
	bits  []byte
	count int // nulls
}

// null makes row i null; rows is how many there are with it.
func (v *validity) null(i, rows int) {
	if v.count == 0 {
		v.bits = v.bits[:0]
	}
	v.cover(rows)
	if v.bits[i>>3]>>(i&7)&1 == 1 {
		v.bits[i>>3] &^= 1 << (i & 7)
		v.count++
	}
}

// cover makes bits for the rows, valid ones.
func (v *validity) cover(rows int) {
	for len(v.bits) < (rows+7)/8 {
		v.bits = append(v.bits, 0xFF)
	}
}

func (v *validity) nulls() int { return v.count }

func (v *validity) reset() { v.bits, v.count = v.bits[:0], 0 }

// encode adds the node and the validity buffer.
func (v *validity) encode(e *encoder, rows int) {
	e.node(rows, v.count)
	if v.count == 0 {
		e.buffer(nil)
		return
	}
	v.cover(rows)
	if tail := rows & 7; tail != 0 {
		v.bits[rows>>3] &= 1<<tail - 1
	}
	e.buffer(v.bits[:(rows+7)/8])
}

// fixedBuilder is a fixed-width column as bytes: what does not depend on the type of the values, so
// that a module holds it once.
type fixedBuilder struct {
	validity
	data  []byte
	width int
	typ   DataType
}

// NumberBuilder builds a fixed-width column.
type NumberBuilder[T Number] struct{ fixedBuilder }

// Append adds a value.
func (b *NumberBuilder[T]) Append(v T) {
	n, w := len(b.data), int(unsafe.Sizeof(v))
	if n+w > cap(b.data) {
		b.grow(w)
	}
	b.data = b.data[:n+w]
	*(*T)(unsafe.Pointer(&b.data[n])) = v
}

// Extend adds n zeros and gives them to be set in place, for tight loops; valid until the next call
// that adds something.
func (b *NumberBuilder[T]) Extend(n int) []T {
	return viewOf[T](b.extend(n), n)
}

// grow makes room for more bytes. A slice this large starts at a multiple of eight, which is what
// values are aligned to.
func (b *fixedBuilder) grow(more int) {
	grown := make([]byte, len(b.data), 2*cap(b.data)+more+bodyAlign)
	copy(grown, b.data)
	b.data = grown
}

func (b *fixedBuilder) extend(n int) []byte {
	start, more := len(b.data), n*b.width
	if start+more > cap(b.data) {
		b.grow(more)
	}
	b.data = b.data[:start+more]
	clear(b.data[start:])
	return b.data[start:]
}

// AppendNull adds a null.
func (b *fixedBuilder) AppendNull() {
	b.extend(1)
	b.SetNull(b.Len() - 1)
}

// SetNull makes row i null, counted from the last Flush.
func (b *fixedBuilder) SetNull(i int) { b.null(i, b.Len()) }

// Len gives the number of rows since the last Flush.
func (b *fixedBuilder) Len() int { return len(b.data) / b.width }

func (b *fixedBuilder) reset() { b.data = b.data[:0]; b.validity.reset() }

func (b *fixedBuilder) encode(e *encoder) {
	b.validity.encode(e, b.Len())
	e.buffer(b.data)
}

// check leaves the precision of decimals to the host, which looks at every value anyway.
func (b *fixedBuilder) check(string) error { return nil }

func (b *fixedBuilder) dataType() DataType { return b.typ }

// BoolBuilder builds a boolean column.
type BoolBuilder struct {
	validity
	values []byte
	n      int
}

// Append adds a value.
func (b *BoolBuilder) Append(v bool) {
	if b.n&7 == 0 {
		b.values = append(b.values, 0)
	}
	if v {
		b.values[b.n>>3] |= 1 << (b.n & 7)
	}
	b.n++
}

// AppendNull adds a null.
func (b *BoolBuilder) AppendNull() {
	b.Append(false)
	b.null(b.n-1, b.n)
}

// Len gives the number of rows since the last Flush.
func (b *BoolBuilder) Len() int { return b.n }

func (b *BoolBuilder) reset() { b.values, b.n = b.values[:0], 0; b.validity.reset() }

func (b *BoolBuilder) encode(e *encoder) {
	b.validity.encode(e, b.n)
	e.buffer(b.values)
}

func (b *BoolBuilder) check(string) error { return nil }

func (b *BoolBuilder) dataType() DataType { return DataType{Kind: KindBool} }

// StringBuilder builds a string or binary column.
type StringBuilder struct {
	validity
	typ  DataType
	ends []int64 // where each value ends in data
	data []byte
	off  []int32 // the ends as a batch wants them, made when it is encoded
	big  []int64
}

// Append adds a value.
func (b *StringBuilder) Append(s string) {
	b.data = append(b.data, s...)
	b.ends = append(b.ends, int64(len(b.data)))
}

// AppendBytes adds a value.
func (b *StringBuilder) AppendBytes(s []byte) {
	b.data = append(b.data, s...)
	b.ends = append(b.ends, int64(len(b.data)))
}

// AppendNull adds a null.
func (b *StringBuilder) AppendNull() {
	if b.typ.Kind == KindFixedBinary {
		for range b.typ.Width {
			b.data = append(b.data, 0)
		}
	}
	b.ends = append(b.ends, int64(len(b.data)))
	b.null(len(b.ends)-1, len(b.ends))
}

// Len gives the number of rows since the last Flush.
func (b *StringBuilder) Len() int { return len(b.ends) }

func (b *StringBuilder) reset() { b.ends, b.data = b.ends[:0], b.data[:0]; b.validity.reset() }

func (b *StringBuilder) encode(e *encoder) {
	b.validity.encode(e, len(b.ends))
	switch b.typ.Kind {
	case KindFixedBinary:
	case KindLargeString, KindLargeBinary:
		b.big = append(append(b.big[:0], 0), b.ends...)
		e.buffer(bytesOf(b.big))
	default:
		b.off = appendOffsets(b.off[:0], b.ends)
		e.buffer(bytesOf(b.off))
	}
	e.buffer(b.data)
}

func appendOffsets(off []int32, ends []int64) []int32 {
	off = append(off, 0)
	for _, end := range ends {
		off = append(off, int32(end))
	}
	return off
}

func (b *StringBuilder) check(path string) error {
	switch b.typ.Kind {
	case KindFixedBinary:
		for i, end := range b.ends {
			if end != int64((i+1)*b.typ.Width) {
				return errorf("[OUTPUT_INVALID] column ", path, ": value ", itoa(int64(i)), " has not the ",
					itoa(int64(b.typ.Width)), " bytes of ", b.typ.String())
			}
		}
	case KindString, KindBinary:
		return checkOffset(path, int64(len(b.data)))
	}
	return nil
}

func checkOffset(path string, end int64) error {
	if end > math.MaxInt32 {
		return errorf("[OUTPUT_INVALID] column ", path, ": a batch of more than 2 GiB; flush more often")
	}
	return nil
}

func (b *StringBuilder) dataType() DataType { return b.typ }

// NullBuilder builds a column of type void.
type NullBuilder struct{ n int }

// AppendNull adds a row.
func (b *NullBuilder) AppendNull() { b.n++ }

// Len gives the number of rows since the last Flush.
func (b *NullBuilder) Len() int           { return b.n }
func (b *NullBuilder) nulls() int         { return b.n }
func (b *NullBuilder) reset()             { b.n = 0 }
func (b *NullBuilder) encode(e *encoder)  { e.node(b.n, b.n) }
func (b *NullBuilder) check(string) error { return nil }
func (b *NullBuilder) dataType() DataType { return DataType{Kind: KindNull} }

// DecimalBuilder builds a decimal column.
type DecimalBuilder = NumberBuilder[Decimal128]
