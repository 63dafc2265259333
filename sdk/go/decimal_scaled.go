package weir

// Divide divides a (of scale as) by b (of scale bs) and rounds the quotient once, to the given scale.
// The intermediate result has 256 bits, so only the quotient itself can overflow; ok is false then,
// when b is 0, and when the scales lie more than 38 digits apart.
func Divide(a Decimal128, as int, b Decimal128, bs int, scale int, r Rounding) (Decimal128, bool) {
	e := scale + bs - as
	// Most amounts and rates fit 64 bits, even multiplied: one machine division then.
	if uint(e) < uint(len(wordPow10)) && a.IsInt64() && b.IsInt64() {
		n, neg := a.Lo, a.Hi < 0
		if neg {
			n = -n
		}
		d := b.Lo
		if b.Hi < 0 {
			d, neg = -d, !neg
		}
		if n <= wordMax[e] && d != 0 {
			n *= wordPow10[e]
			q := n / d
			if rem := n - q*d; rem != 0 {
				if r == HalfAwayFromZero {
					if rem >= d-rem {
						q++
					}
				} else if r.up(cmpWord(rem, d-rem), q&1 == 1, neg) {
					q++
				}
			}
			if q < 1<<63 {
				if neg {
					return DecimalFromInt64(-int64(q)), true
				}
				return Decimal128{Lo: q}, true
			}
		}
	}
	return divideWide(a, b, e, r)
}

func divideWide(a, b Decimal128, e int, r Rounding) (Decimal128, bool) {
	if b.IsZero() || e >= len(pow10) || e <= -len(pow10) {
		return Decimal128{}, false
	}
	n, an := a.magnitude()
	d, bn := b.magnitude()
	neg := an != bn
	num := u256{n[0], n[1]}
	if e >= 0 {
		num = mul128(n, pow10[e])
	} else {
		wide := mul128(d, pow10[-e])
		if wide[2]|wide[3] != 0 {
			// The divisor is above 2^128, so the quotient is 0 and a remainder of 128 bits decides.
			return tinyQuotient(n, wide, neg, r), true
		}
		d = u128{wide[0], wide[1]}
	}
	q, rem, ok := div256(num, d)
	if !ok {
		return Decimal128{}, false
	}
	return fromMagnitude(roundQuotient(q, rem, d, neg, r), neg)
}

// tinyQuotient rounds n/d for d of more than 128 bits.
func tinyQuotient(n u128, d u256, neg bool, r Rounding) Decimal128 {
	if n.isZero() {
		return Decimal128{}
	}
	half := -1
	if d[3] == 0 && d[2] == 1 { // only then can n reach half of d
		twice := u256{n[0] << 1, n[1]<<1 | n[0]>>63, n[1] >> 63}
		half = cmp256(twice, d)
	}
	if !r.up(half, false, neg) {
		return Decimal128{}
	}
	if neg {
		return DecimalFromInt64(-1)
	}
	return DecimalFromInt64(1)
}

// Multiply multiplies a (of scale as) by b (of scale bs) and rounds the product once, to the given
// scale. The intermediate result has 256 bits.
func Multiply(a Decimal128, as int, b Decimal128, bs int, scale int, r Rounding) (Decimal128, bool) {
	n, an := a.magnitude()
	d, bn := b.magnitude()
	neg := an != bn
	p := mul128(n, d)
	e := as + bs - scale
	if e <= 0 {
		if p[2]|p[3] != 0 {
			return Decimal128{}, false
		}
		whole, ok := fromMagnitude(u128{p[0], p[1]}, neg)
		if !ok {
			return Decimal128{}, false
		}
		return whole.MulPow10(-e)
	}
	for e >= len(pow10) {
		// Beyond 38 digits: drop them in two steps, keeping a sticky digit so that no half is lost.
		p, e = dropDigit(p), e-1
	}
	q, rem, ok := div256(p, pow10[e])
	if !ok {
		return Decimal128{}, false
	}
	return fromMagnitude(roundQuotient(q, rem, pow10[e], neg, r), neg)
}

// dropDigit divides by ten. A digit lost makes an even last bit odd: no later comparison with a half
// or with zero can then mistake the shortened number for an exact one.
func dropDigit(p u256) u256 {
	var rem uint64
	for i := len(p) - 1; i >= 0; i-- {
		q, r, _ := divByWord(u256{p[i], rem}, 10)
		p[i], rem = q[0], r[0]
	}
	if rem != 0 {
		p[0] |= 1
	}
	return p
}

func cmp256(a, b u256) int {
	for i := len(a) - 1; i >= 0; i-- {
		if a[i] != b[i] {
			return cmpWord(a[i], b[i])
		}
	}
	return 0
}

func cmpWord(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// wordPow10[n] is 10^n, and wordMax[n] the largest word that it multiplies within 64 bits.
var wordPow10, wordMax = func() (p, m [20]uint64) {
	p[0] = 1
	for i := range p {
		if i > 0 {
			p[i] = 10 * p[i-1]
		}
		m[i] = ^uint64(0) / p[i]
	}
	return p, m
}()
