package weir

import (
	"strconv"
	"unsafe"
)

// ParseDecimal reads "-123.45" or "1.5e3" as an unscaled value of the given scale, rounded once.
// Spaces, group separators and decimal commas are no part of a number: ok is false for them, for
// empty text, and when the value needs more than 38 digits.
func ParseDecimal(text string, scale int, r Rounding) (d Decimal128, ok bool) {
	n, ok := scanNumber(text)
	if !ok {
		return d, false
	}
	return n.toScale(scale, r)
}

// ScanDecimal reads a number with as many decimals as its text has.
func ScanDecimal(text string) (d Decimal128, scale int, ok bool) {
	n, ok := scanNumber(text)
	if !ok {
		return d, 0, false
	}
	scale = max(0, n.digits-n.point-n.exp)
	d, ok = n.toScale(scale, Down)
	return d, scale, ok
}

// numeral is decimal text taken apart: the digits of mantissa, of which point stand before the
// decimal point, times 10^exp.
type numeral struct {
	mantissa string // digits and at most one point
	digits   int
	point    int
	exp      int
	neg      bool
}

func scanNumber(text string) (n numeral, ok bool) {
	i := 0
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		n.neg = text[i] == '-'
		i++
	}
	start := i
	n.point = -1
	for ; i < len(text); i++ {
		if c := text[i]; c == '.' && n.point < 0 {
			n.point = n.digits
		} else if c >= '0' && c <= '9' {
			n.digits++
		} else {
			break
		}
	}
	n.mantissa = text[start:i]
	if n.point < 0 {
		n.point = n.digits
	}
	if n.digits == 0 {
		return n, false
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		n.exp, ok = scanExponent(text[i+1:])
		return n, ok
	}
	return n, i == len(text)
}

func scanExponent(text string) (exp int, ok bool) {
	sign := 1
	if text != "" && (text[0] == '-' || text[0] == '+') {
		if text[0] == '-' {
			sign = -1
		}
		text = text[1:]
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' || exp > 1<<20 {
			return 0, false
		}
		exp = 10*exp + int(text[i]-'0')
	}
	return sign * exp, text != ""
}

// toScale keeps the digits up to the wanted scale; the digits behind decide the rounding.
func (n numeral) toScale(scale int, r Rounding) (Decimal128, bool) {
	keep := n.point + n.exp + scale
	var m u128
	seen, half, lost := 0, -1, false
	for i := range len(n.mantissa) {
		c := n.mantissa[i]
		if c == '.' {
			continue
		}
		digit := uint64(c - '0')
		switch {
		case seen < keep:
			if !m.less(pow10[37]) {
				return Decimal128{}, false
			}
			m = m.mulAdd(10, digit)
		case seen == keep:
			lost = digit != 0
			half = cmpWord(digit, 5)
		case digit != 0:
			lost = true
			if half == 0 {
				half = 1
			}
		}
		seen++
	}
	for ; seen < keep && !m.isZero(); seen++ {
		if !m.less(pow10[37]) {
			return Decimal128{}, false
		}
		m = m.mulAdd(10, 0)
	}
	if lost && r.up(half, m[0]&1 == 1, n.neg) {
		m = m.inc()
	}
	return fromMagnitude(m, n.neg)
}

// mulAdd gives a·w + c for results below 2^128.
func (a u128) mulAdd(w, c uint64) u128 {
	p := mul128(a, u128{w, 0})
	lo := p[0] + c
	if lo < c {
		p[1]++
	}
	return u128{lo, p[1]}
}

// Text writes the value with its decimals: 12345 at scale 2 is "123.45".
func (d Decimal128) Text(scale int) string { return string(d.Append(nil, scale)) }

// Append appends what Text gives.
func (d Decimal128) Append(dst []byte, scale int) []byte {
	m, neg := d.magnitude()
	var digits [40]byte
	i := len(digits)
	for m[1] != 0 {
		q, rem, _ := divByWord(u256{m[0], m[1]}, wordPow10[18])
		m = q
		for range 18 {
			i--
			digits[i] = byte('0' + rem[0]%10)
			rem[0] /= 10
		}
	}
	for ; m[0] != 0; m[0] /= 10 {
		i--
		digits[i] = byte('0' + m[0]%10)
	}
	whole := digits[i:]
	if neg {
		dst = append(dst, '-')
	}
	if scale <= 0 {
		if len(whole) == 0 {
			return append(dst, '0')
		}
		dst = append(dst, whole...)
		for ; scale < 0; scale++ {
			dst = append(dst, '0')
		}
		return dst
	}
	if len(whole) <= scale {
		dst = append(dst, "0."...)
		for range scale - len(whole) {
			dst = append(dst, '0')
		}
		return append(dst, whole...)
	}
	point := len(whole) - scale
	dst = append(append(dst, whole[:point]...), '.')
	return append(dst, whole[point:]...)
}

// Float64 gives the nearest float64, or one beside it: decimals are not binary fractions.
func (d Decimal128) Float64(scale int) float64 {
	m, neg := d.magnitude()
	f := float64(m[1])*(1<<64) + float64(m[0])
	for ; scale > 22; scale -= 22 {
		f /= 1e22
	}
	if scale > 0 {
		f /= float64(wordPow10[min(scale, 19)]) * float64(wordPow10[max(scale-19, 0)])
	}
	if neg {
		return -f
	}
	return f
}

// DecimalFromFloat64 reads f as the shortest decimal text that stands for it, which is what the file
// said that it came from: 1.005 is 1.005 and not 1.00499999999999989…, and rounds to 1.01. ok is
// false for NaN, infinities and values of more than 38 digits.
func DecimalFromFloat64(f float64, scale int, r Rounding) (Decimal128, bool) {
	if d, s, ok := shortFloat(f); ok {
		return d.Rescale(s, scale, r)
	}
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], f, 'e', -1, 64)
	return ParseDecimal(unsafe.String(&text[0], len(text)), scale, r)
}

// ScanFloat64 reads f as the shortest decimal text that stands for it, with that text's decimals.
// Decimals beyond the 38th are rounded away.
func ScanFloat64(f float64) (d Decimal128, scale int, ok bool) {
	if d, scale, ok = shortFloat(f); ok {
		return d, scale, true
	}
	return scanFloat(f, 64)
}

// scanFloat reads the shortest text that stands for f among the floats of a size in bits.
func scanFloat(f float64, bits int) (d Decimal128, scale int, ok bool) {
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], f, 'e', -1, bits)
	n, ok := scanNumber(unsafe.String(&text[0], len(text)))
	if !ok {
		return d, 0, false
	}
	scale = min(max(0, n.digits-n.point-n.exp), len(pow10)-1)
	d, ok = n.toScale(scale, HalfEven)
	return d, scale, ok
}

// shortFloat finds the shortest decimal text of most amounts without printing it. Both n and 100 are
// exact in float64, so n/100 is the float nearest to the decimal n·10^-2; below 2^53 no other decimal
// as short stands for the same float.
func shortFloat(f float64) (Decimal128, int, bool) {
	if !(f > -1e13 && f < 1e13) {
		return Decimal128{}, 0, false
	}
	half := 0.5
	if f < 0 {
		half = -0.5
	}
	n := int64(f*100 + half)
	if float64(n)/100 != f {
		return Decimal128{}, 0, false
	}
	return DecimalFromInt64(n), 2, true
}
