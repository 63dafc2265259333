package weir

// Numerics is a view of a column of any numeric type, or of text: feeds deliver one amount as a
// decimal, a double, an integer or a string, and change their mind.
type Numerics struct {
	kind  Kind
	scale int
	valid bitmap
	n     int
	wide  []Decimal128
	f64   []float64
	f32   []float32
	ints  Column
	texts Strings
}

// Numeric views a decimal, double, float, integer or string column as decimals.
func (c Column) Numeric() Numerics {
	v := Numerics{kind: c.typ.Kind, scale: c.typ.Scale, valid: c.valid, n: c.n, ints: c}
	switch v.kind {
	case KindDecimal128:
		v.wide = c.Decimal128().values
	case KindFloat64:
		v.f64 = c.Float64().values
	case KindFloat32:
		v.f32 = c.Float32().values
	case KindString, KindLargeString:
		v.kind, v.texts = KindString, c.String()
	case KindInt8, KindInt16, KindInt32, KindInt64, KindUint8, KindUint16, KindUint32, KindUint64:
	default:
		c.is("a number or text", KindDecimal128)
		v.kind, v.valid = KindNull, noValues(c.n)
	}
	return v
}

// Len gives the number of rows.
func (v *Numerics) Len() int { return v.n }

// Null reports whether row i is null.
func (v *Numerics) Null(i int) bool { return v.valid.null(i) }

// At gives row i with the decimals that it has: a float's are those of the shortest text that stands
// for it. ok is false for text that is no number, NaN, infinities, and more than 38 digits.
func (v *Numerics) At(i int) (d Decimal128, scale int, ok bool) {
	switch v.kind {
	case KindDecimal128:
		return v.wide[i], v.scale, true
	case KindFloat64:
		return ScanFloat64(v.f64[i])
	case KindFloat32:
		return scanFloat(float64(v.f32[i]), 32)
	case KindString:
		return ScanDecimal(v.texts.At(i))
	case KindNull:
		return d, 0, false
	case KindUint64:
		return Decimal128{Lo: v.ints.Uint64().values[i]}, 0, true
	}
	return DecimalFromInt64(v.ints.integer(i)), 0, true
}

// integer gives row i of a column of integers other than uint64.
func (c Column) integer(i int) int64 {
	switch c.typ.Kind {
	case KindInt8:
		return int64(viewOf[int8](c.data, c.n)[i])
	case KindInt16:
		return int64(viewOf[int16](c.data, c.n)[i])
	case KindInt32:
		return int64(viewOf[int32](c.data, c.n)[i])
	case KindUint8:
		return int64(c.data[i])
	case KindUint16:
		return int64(viewOf[uint16](c.data, c.n)[i])
	case KindUint32:
		return int64(viewOf[uint32](c.data, c.n)[i])
	}
	return viewOf[int64](c.data, c.n)[i]
}

// Integers is a view of an integer column of any width but uint64.
type Integers struct{ col Column }

// Integer views an integer column of any width but uint64, for feeds whose width varies.
func (c Column) Integer() Integers {
	if !c.is("an integer", KindInt8, KindInt16, KindInt32, KindInt64, KindUint8, KindUint16, KindUint32) {
		c = Column{typ: &DataType{Kind: KindInt64}, path: c.path, n: c.n, valid: noValues(c.n), data: make([]byte, 8*c.n), errs: c.errs}
	}
	return Integers{c}
}

// Len gives the number of rows.
func (v Integers) Len() int { return v.col.n }

// Null reports whether row i is null.
func (v Integers) Null(i int) bool { return v.col.valid.null(i) }

// At gives the value of row i.
func (v Integers) At(i int) int64 { return v.col.integer(i) }
