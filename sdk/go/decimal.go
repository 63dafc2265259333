package weir

import "math/bits"

// Decimal128 is the unscaled integer of a decimal: 123.45 with scale 2 is 12345. The scale belongs to
// the column, as in Arrow. It is laid out as Arrow lays it out, so columns of it are views.
//
// Sums and products report overflow of 128 bits by their second result; whether a value fits the
// column's precision is asked with [Decimal128.Fits]. No method panics or allocates.
type Decimal128 struct {
	Lo uint64
	Hi int64
}

// DecimalFromInt64 gives v as an unscaled value.
func DecimalFromInt64(v int64) Decimal128 { return Decimal128{uint64(v), v >> 63} }

// IsInt64 reports whether the unscaled value fits an int64.
func (d Decimal128) IsInt64() bool { return d.Hi == int64(d.Lo)>>63 }

// Int64 gives the low 64 bits; they are the value when IsInt64.
func (d Decimal128) Int64() int64 { return int64(d.Lo) }

// IsZero reports whether d is 0.
func (d Decimal128) IsZero() bool { return d.Lo == 0 && d.Hi == 0 }

// Sign gives -1, 0 or 1.
func (d Decimal128) Sign() int {
	switch {
	case d.Hi < 0:
		return -1
	case d.IsZero():
		return 0
	}
	return 1
}

// Cmp compares unscaled values: -1, 0 or 1.
func (d Decimal128) Cmp(o Decimal128) int {
	switch {
	case d.Hi < o.Hi || d.Hi == o.Hi && d.Lo < o.Lo:
		return -1
	case d == o:
		return 0
	}
	return 1
}

// Neg gives -d; the smallest value has no negative.
func (d Decimal128) Neg() (Decimal128, bool) {
	lo, borrow := bits.Sub64(0, d.Lo, 0)
	hi, _ := bits.Sub64(0, uint64(d.Hi), borrow)
	n := Decimal128{lo, int64(hi)}
	return n, !(d.Hi < 0 && n.Hi < 0)
}

// Abs gives the magnitude; the smallest value has none.
func (d Decimal128) Abs() (Decimal128, bool) {
	if d.Hi < 0 {
		return d.Neg()
	}
	return d, true
}

// Add adds two values of one scale.
func (d Decimal128) Add(o Decimal128) (Decimal128, bool) {
	lo, carry := bits.Add64(d.Lo, o.Lo, 0)
	hi, _ := bits.Add64(uint64(d.Hi), uint64(o.Hi), carry)
	s := Decimal128{lo, int64(hi)}
	return s, (d.Hi < 0) != (o.Hi < 0) || (s.Hi < 0) == (d.Hi < 0)
}

// Sub subtracts two values of one scale.
func (d Decimal128) Sub(o Decimal128) (Decimal128, bool) {
	lo, borrow := bits.Sub64(d.Lo, o.Lo, 0)
	hi, _ := bits.Sub64(uint64(d.Hi), uint64(o.Hi), borrow)
	s := Decimal128{lo, int64(hi)}
	return s, (d.Hi < 0) == (o.Hi < 0) || (s.Hi < 0) == (d.Hi < 0)
}

// Mul multiplies the unscaled values: the scales add up.
func (d Decimal128) Mul(o Decimal128) (Decimal128, bool) {
	a, an := d.magnitude()
	b, bn := o.magnitude()
	p := mul128(a, b)
	if p[2]|p[3] != 0 {
		return Decimal128{}, false
	}
	return fromMagnitude(u128{p[0], p[1]}, an != bn)
}

// Fits reports whether the unscaled value has at most the given number of digits.
func (d Decimal128) Fits(precision int) bool {
	if precision >= len(pow10) {
		return true
	}
	if precision < 0 {
		return d.IsZero()
	}
	m, _ := d.magnitude()
	return m.less(pow10[precision])
}

// MulPow10 multiplies by 10^n, n ≥ 0: the same number at a scale greater by n.
func (d Decimal128) MulPow10(n int) (Decimal128, bool) {
	if d.IsZero() {
		return d, true
	}
	if n < 0 || n >= len(pow10) {
		return Decimal128{}, false
	}
	m, neg := d.magnitude()
	p := mul128(m, pow10[n])
	if p[2]|p[3] != 0 {
		return Decimal128{}, false
	}
	return fromMagnitude(u128{p[0], p[1]}, neg)
}

// DivPow10 divides by 10^n, n ≥ 0, and rounds.
func (d Decimal128) DivPow10(n int, r Rounding) Decimal128 {
	if n <= 0 {
		return d
	}
	m, neg := d.magnitude()
	if n >= len(pow10) { // less than half of 10^n
		if !m.isZero() && r.awayFromZero(neg) {
			m = u128{1, 0}
		} else {
			m = u128{}
		}
	} else {
		m = m.divRound(pow10[n], neg, r)
	}
	q, _ := fromMagnitude(m, neg)
	return q
}

// Quo divides the unscaled values and rounds to an integer. It fails on division by zero, and on the
// smallest value divided by -1.
func (d Decimal128) Quo(o Decimal128, r Rounding) (Decimal128, bool) {
	if o.IsZero() {
		return Decimal128{}, false
	}
	a, an := d.magnitude()
	b, bn := o.magnitude()
	return fromMagnitude(a.divRound(b, an != bn, r), an != bn)
}

// Rescale gives the number at another scale, rounded where digits are lost.
func (d Decimal128) Rescale(from, to int, r Rounding) (Decimal128, bool) {
	if to >= from {
		return d.MulPow10(to - from)
	}
	return d.DivPow10(from-to, r), true
}
