package weir

import "unsafe"

// bitmap is a validity buffer; nil means that no value is null.
type bitmap []byte

func (b bitmap) null(i int) bool { return b != nil && b[i>>3]>>(i&7)&1 == 0 }

// Number is what a fixed-width column holds.
type Number interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 |
		Date | Decimal128 | Decimal256
}

// Decimal256 is the unscaled integer of a decimal256, least significant word first. It is passed on,
// not calculated with.
type Decimal256 [4]uint64

// Numbers is a view of a fixed-width column.
type Numbers[T Number] struct {
	valid  bitmap
	values []T
}

// Len gives the number of rows.
func (v Numbers[T]) Len() int { return len(v.values) }

// Null reports whether row i is null.
func (v Numbers[T]) Null(i int) bool { return v.valid.null(i) }

// At gives the value of row i; of a null row it means nothing.
func (v Numbers[T]) At(i int) T { return v.values[i] }

// Values gives all values for a tight loop, those of null rows included. It must not be changed.
func (v Numbers[T]) Values() []T { return v.values }

// HasNulls reports whether Null can be true at all.
func (v Numbers[T]) HasNulls() bool { return v.valid != nil }

// Decimals is a view of a decimal column.
type Decimals struct {
	Numbers[Decimal128]
	Precision, Scale int
}

// Timestamps is a view of a timestamp, time or duration column, in its unit.
type Timestamps struct {
	Numbers[int64]
	Unit Unit
	Zone string // "" is without zone
}

// Micros gives row i in microseconds; a finer unit is cut toward the past.
func (v Timestamps) Micros(i int) int64 {
	x := v.values[i]
	switch v.Unit {
	case Second:
		return x * 1_000_000
	case Millisecond:
		return x * 1000
	case Nanosecond:
		return floorDiv(x, 1000)
	}
	return x
}

// Bools is a view of a boolean column.
type Bools struct {
	valid, bits bitmap
	n           int
}

// Len gives the number of rows.
func (v Bools) Len() int { return v.n }

// Null reports whether row i is null.
func (v Bools) Null(i int) bool { return v.valid.null(i) }

// At gives the value of row i.
func (v Bools) At(i int) bool { return v.bits[i>>3]>>(i&7)&1 == 1 }

// Strings is a view of a string or binary column.
type Strings struct {
	valid bitmap
	off32 []int32 // one of the two, with a last one more than rows
	off64 []int64
	width int // fixed binary: neither
	data  []byte
	n     int
}

// Len gives the number of rows.
func (v Strings) Len() int { return v.n }

// Null reports whether row i is null.
func (v Strings) Null(i int) bool { return v.valid.null(i) }

// HasNulls reports whether Null can be true at all.
func (v Strings) HasNulls() bool { return v.valid != nil }

// Bytes gives the bytes of row i in place; they must not be changed and go with the batch.
func (v Strings) Bytes(i int) []byte {
	switch {
	case v.off32 != nil:
		return v.data[v.off32[i]:v.off32[i+1]]
	case v.off64 != nil:
		return v.data[v.off64[i]:v.off64[i+1]]
	}
	return v.data[i*v.width : (i+1)*v.width]
}

// Raw gives the bytes of all rows and, with one more than rows, where each starts: for tight loops over
// a string or binary column. ok is false for the large and the fixed-size layout.
func (v Strings) Raw() (offsets []int32, data []byte, ok bool) {
	return v.off32, v.data, v.off32 != nil
}

// At gives row i in place: the text goes with the batch. Keep it with strings.Clone.
func (v Strings) At(i int) string {
	b := v.Bytes(i)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Lists is a view of a list column.
type Lists struct {
	valid bitmap
	off32 []int32
	off64 []int64
	width int
	n     int
	elem  Column
}

// Len gives the number of rows.
func (v Lists) Len() int { return v.n }

// Null reports whether row i is null.
func (v Lists) Null(i int) bool { return v.valid.null(i) }

// At gives the rows of Elem that list i consists of: from start up to, not including, end.
func (v Lists) At(i int) (start, end int) {
	switch {
	case v.off32 != nil:
		return int(v.off32[i]), int(v.off32[i+1])
	case v.off64 != nil:
		return int(v.off64[i]), int(v.off64[i+1])
	}
	return i * v.width, (i + 1) * v.width
}

// Elem gives the column of all elements of all lists.
func (v Lists) Elem() Column { return v.elem }

// Maps is a view of a map column: At gives the rows of Keys and Values that map i consists of.
type Maps struct{ Lists }

// Keys gives the column of all keys.
func (v Maps) Keys() Column { return v.elem.child(0) }

// Values gives the column of all values.
func (v Maps) Values() Column { return v.elem.child(1) }

// Structs is a view of a struct column.
type Structs struct {
	col Column
}

// Len gives the number of rows.
func (v Structs) Len() int { return v.col.n }

// Null reports whether row i is null; its fields mean nothing then.
func (v Structs) Null(i int) bool { return v.col.valid.null(i) }

// Column gives a field.
func (v Structs) Column(name string) Column {
	for i, f := range v.col.typ.Fields {
		if f.Name == name {
			return v.col.child(i)
		}
	}
	v.col.complain("the struct has no field " + name)
	return Column{n: v.col.n, typ: &nullType, path: v.col.path + "." + name, errs: v.col.errs}
}

// Fields gives the names and types of the fields.
func (v Structs) Fields() []Field { return v.col.typ.Fields }
