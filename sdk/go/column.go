package weir

import "unsafe"

var nullType = DataType{Kind: KindNull}

// Column is a column of a batch, or a part of a nested one, before its type is settled. Asking for
// another type than it has gives a view of nulls and records the error: the call fails with it.
type Column struct {
	typ      *DataType
	path     string
	n        int
	valid    bitmap
	data     []byte // values, or bytes of strings
	offsets  []byte
	children []Column
	errs     *stickyError
}

// stickyError keeps the first error.
type stickyError struct{ err error }

func (s *stickyError) set(err error) {
	if s != nil && s.err == nil {
		s.err = err
	}
}

// Type gives the column's type.
func (c Column) Type() DataType { return *c.typ }

// Len gives the number of rows.
func (c Column) Len() int { return c.n }

// Null reports whether row i is null.
func (c Column) Null(i int) bool { return c.typ.Kind == KindNull || c.valid.null(i) }

func (c Column) child(i int) Column {
	if i < len(c.children) {
		return c.children[i]
	}
	return Column{n: c.n, typ: &nullType, path: c.path, errs: c.errs}
}

func (c Column) complain(what string) {
	c.errs.set(errorf("[COLUMN_TYPE] column ", c.path, ": ", what))
}

// is reports whether the column has one of the kinds; when not, it records what was expected, unless
// the column is of type void, whose every view is null.
func (c Column) is(want string, kinds ...Kind) bool {
	for _, k := range kinds {
		if c.typ.Kind == k {
			return true
		}
	}
	if c.typ.Kind != KindNull {
		c.complain("is " + c.typ.String() + ", not " + want)
	}
	return false
}

// noValues is a validity buffer of n nulls.
func noValues(n int) bitmap { return make(bitmap, (n+7)/8+1) }

func numbers[T Number](c Column, want string, kinds ...Kind) Numbers[T] {
	if !c.is(want, kinds...) {
		return Numbers[T]{noValues(c.n), make([]T, c.n)}
	}
	return Numbers[T]{c.valid, viewOf[T](c.data, c.n)}
}

// viewOf reads bytes as values in place. The decoder has checked length and alignment.
func viewOf[T any](data []byte, n int) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), n)
}

// Int8 views a tinyint column.
func (c Column) Int8() Numbers[int8] { return numbers[int8](c, "tinyint", KindInt8) }

// Int16 views a smallint column.
func (c Column) Int16() Numbers[int16] { return numbers[int16](c, "smallint", KindInt16) }

// Int32 views an int column.
func (c Column) Int32() Numbers[int32] { return numbers[int32](c, "int", KindInt32) }

// Int64 views a bigint column.
func (c Column) Int64() Numbers[int64] { return numbers[int64](c, "bigint", KindInt64) }

// Uint8 views a uint8 column.
func (c Column) Uint8() Numbers[uint8] { return numbers[uint8](c, "uint8", KindUint8) }

// Uint16 views a uint16 column.
func (c Column) Uint16() Numbers[uint16] { return numbers[uint16](c, "uint16", KindUint16) }

// Uint32 views a uint32 column.
func (c Column) Uint32() Numbers[uint32] { return numbers[uint32](c, "uint32", KindUint32) }

// Uint64 views a uint64 column.
func (c Column) Uint64() Numbers[uint64] { return numbers[uint64](c, "uint64", KindUint64) }

// Float32 views a float column.
func (c Column) Float32() Numbers[float32] { return numbers[float32](c, "float", KindFloat32) }

// Float64 views a double column.
func (c Column) Float64() Numbers[float64] { return numbers[float64](c, "double", KindFloat64) }

// Date views a date column.
func (c Column) Date() Numbers[Date] { return numbers[Date](c, "date", KindDate32) }

// Decimal128 views a decimal column.
func (c Column) Decimal128() Decimals {
	return Decimals{numbers[Decimal128](c, "decimal", KindDecimal128), c.typ.Precision, c.typ.Scale}
}

// Decimal256 views a decimal256 column.
func (c Column) Decimal256() Numbers[Decimal256] {
	return numbers[Decimal256](c, "decimal256", KindDecimal256)
}

// Timestamp views a timestamp column, with zone or without.
func (c Column) Timestamp() Timestamps {
	return Timestamps{numbers[int64](c, "timestamp", KindTimestamp), c.typ.Unit, c.typ.Zone}
}

// Time views a time of day column in micro- or nanoseconds; Int32-sized times are [Column.Time32].
func (c Column) Time() Timestamps {
	return Timestamps{numbers[int64](c, "time", KindTime64), c.typ.Unit, ""}
}

// Time32 views a time of day column in seconds or milliseconds.
func (c Column) Time32() Numbers[int32] { return numbers[int32](c, "time(s) or time(ms)", KindTime32) }

// Duration views a duration column.
func (c Column) Duration() Timestamps {
	return Timestamps{numbers[int64](c, "duration", KindDuration), c.typ.Unit, ""}
}

// Bool views a boolean column.
func (c Column) Bool() Bools {
	if !c.is("boolean", KindBool) {
		return Bools{noValues(c.n), noValues(c.n), c.n}
	}
	return Bools{c.valid, c.data, c.n}
}

// String views a string or large_string column.
func (c Column) String() Strings { return c.strings("string", KindString, KindLargeString) }

// Binary views a binary, large_binary or fixed_size_binary column.
func (c Column) Binary() Strings {
	return c.strings("binary", KindBinary, KindLargeBinary, KindFixedBinary)
}

func (c Column) strings(want string, kinds ...Kind) Strings {
	if !c.is(want, kinds...) {
		return Strings{valid: noValues(c.n), n: c.n}
	}
	v := Strings{valid: c.valid, data: c.data, n: c.n}
	switch c.typ.Kind {
	case KindFixedBinary:
		v.width = c.typ.Width
	case KindLargeString, KindLargeBinary:
		v.off64 = viewOf[int64](c.offsets, c.offsetCount())
	default:
		v.off32 = viewOf[int32](c.offsets, c.offsetCount())
	}
	return v
}

// offsetCount is one more than the rows; a column without rows may come without any offset.
func (c Column) offsetCount() int {
	if len(c.offsets) == 0 {
		return 0
	}
	return c.n + 1
}

// List views an array column of any of the three layouts.
func (c Column) List() Lists {
	if !c.is("an array", KindList, KindLargeList, KindFixedList) {
		return Lists{valid: noValues(c.n), n: c.n, elem: Column{typ: &nullType, path: c.path, errs: c.errs}}
	}
	return c.lists()
}

func (c Column) lists() Lists {
	v := Lists{valid: c.valid, n: c.n, elem: c.child(0)}
	switch c.typ.Kind {
	case KindFixedList:
		v.width = c.typ.Width
	case KindLargeList:
		v.off64 = viewOf[int64](c.offsets, c.offsetCount())
	default:
		v.off32 = viewOf[int32](c.offsets, c.offsetCount())
	}
	return v
}

// Map views a map column.
func (c Column) Map() Maps {
	if !c.is("a map", KindMap) {
		return Maps{Lists{valid: noValues(c.n), n: c.n, elem: Column{typ: &nullType, path: c.path, errs: c.errs}}}
	}
	return Maps{c.lists()}
}

// Struct views a struct column.
func (c Column) Struct() Structs {
	if !c.is("a struct", KindStruct) {
		empty := Column{typ: &nullType, path: c.path, n: c.n, valid: noValues(c.n), errs: c.errs}
		return Structs{empty}
	}
	return Structs{c}
}
