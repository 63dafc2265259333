package ingest

import (
	"math"
	"math/bits"
	"strconv"
)

var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// parseFloat reads a number whose grammar was checked, as Java's
// Double.parseDouble does: the nearest value, infinity when too large.
func parseFloat(b []byte, bits int) (float64, bool) {
	var mant uint64
	digits, exp, i := 0, 0, 0
	neg := false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		neg = b[i] == '-'
		i++
	}
	point := false
	for ; i < len(b); i++ {
		c := b[i]
		switch {
		case c >= '0' && c <= '9':
			if digits++; digits > 19 {
				return slowFloat(b, bits)
			}
			mant = mant*10 + uint64(c-'0')
			if mant == 0 {
				digits = 0
			}
			if point {
				exp--
			}
		case c == '.':
			point = true
		default:
			return slowFloat(b, bits)
		}
	}
	// Both operands are exact, so one rounding: the nearest double (Clinger).
	if bits == 64 && mant < 1<<53 && exp >= -22 {
		f := float64(mant) / pow10[-exp]
		if neg {
			f = -f
		}
		return f, true
	}
	return slowFloat(b, bits)
}

func slowFloat(b []byte, bits int) (float64, bool) {
	f, err := strconv.ParseFloat(text(b), bits)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// parseInt reads an optional sign and digits, nothing else.
func parseInt(b []byte) (int64, bool) {
	i, neg := 0, false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		i = 1
	}
	if i == len(b) {
		return 0, false
	}
	if len(b)-i > 18 {
		v, err := strconv.ParseInt(text(b), 10, 64)
		return v, err == nil
	}
	var v int64
	for ; i < len(b); i++ {
		c := b[i] - '0'
		if c > 9 {
			return 0, false
		}
		v = v*10 + int64(c)
	}
	if neg {
		v = -v
	}
	return v, true
}

// decimalShape is a decimal number taken apart: its digits are those of b
// without point, sign, exponent and leading zeros.
type decimalShape struct {
	neg    bool
	digits int // significant digits
	scale  int // digits behind the point after the exponent was applied; may be negative
	first  int // index in b of the first significant digit, or len(b)
}

// shapeDecimal takes a number apart; false when b is none. A point needs no
// digits on one of its sides, as in Java's BigDecimal.
func shapeDecimal(b []byte) (d decimalShape, ok bool) {
	i := 0
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		d.neg = b[i] == '-'
		i++
	}
	d.first = len(b)
	seen, point := false, false
	for ; i < len(b); i++ {
		c := b[i]
		if c >= '0' && c <= '9' {
			seen = true
			if d.digits > 0 || c != '0' {
				if d.digits == 0 {
					d.first = i
				}
				d.digits++
			}
			if point {
				d.scale++
			}
			continue
		}
		if c == '.' && !point {
			point = true
			continue
		}
		if (c == 'e' || c == 'E') && seen {
			exp, good := parseInt(b[i+1:])
			if !good || exp > 1<<20 || exp < -1<<20 {
				return d, false
			}
			d.scale -= int(exp)
			return d, true
		}
		return d, false
	}
	return d, seen
}

// parseDecimal reads a number exactly and brings it to the scale: digits beyond
// it are rounded half away from zero, as Spark's Decimal does (BigDecimal.setScale
// with ROUND_HALF_UP). False when b is no number or does not fit the precision.
func parseDecimal(b []byte, precision, scale int32) (decimal, bool) {
	s, ok := shapeDecimal(b)
	if !ok {
		return decimal{}, false
	}
	shift := int(scale) - s.scale
	keep := s.digits // digits to take before scaling up
	if shift < 0 {
		keep += shift
	}
	if s.digits == 0 || keep < 0 {
		return decimal{}, true
	}
	if keep > 38 || shift > 0 && s.digits+shift > 38 {
		return decimal{}, false
	}
	var hi, lo uint64
	i := s.first
	for left := keep; left > 0; i++ {
		if b[i] == '.' {
			continue
		}
		hi, lo = mul10(hi, lo, uint64(b[i]-'0'))
		left--
	}
	if shift < 0 {
		if i < len(b) && b[i] == '.' {
			i++
		}
		if i < len(b) && b[i] >= '5' && b[i] <= '9' {
			var carry uint64
			lo, carry = bits.Add64(lo, 1, 0)
			hi += carry
		}
	}
	for ; shift > 0; shift-- {
		hi, lo = mul10(hi, lo, 0)
	}
	if limit := maxDecimal[precision]; hi > limit.hi || hi == limit.hi && lo > limit.lo {
		return decimal{}, false
	}
	v := decimal{hi, lo}
	if s.neg {
		v = v.neg()
	}
	return v, true
}

// mul10 gives v*10 + d.
func mul10(hi, lo, d uint64) (uint64, uint64) {
	h, l := bits.Mul64(lo, 10)
	l, carry := bits.Add64(l, d, 0)
	return hi*10 + h + carry, l
}

// maxDecimal[p] is 10^p - 1.
var maxDecimal = func() (out [39]decimal) {
	var hi, lo uint64
	for p := 1; p < len(out); p++ {
		hi, lo = mul10(hi, lo, 9)
		out[p] = decimal{hi, lo}
	}
	return out
}()
