package weir

import "math/bits"

// u128 and u256 are magnitudes, least significant word first.
type (
	u128 [2]uint64
	u256 [4]uint64
)

// pow10[n] is 10^n, up to the largest that fits 128 bits.
var pow10 = func() (p [39]u128) {
	p[0] = u128{1, 0}
	for i := 1; i < len(p); i++ {
		w := mul128(p[i-1], u128{10, 0})
		p[i] = u128{w[0], w[1]}
	}
	return p
}()

func (d Decimal128) magnitude() (m u128, neg bool) {
	if d.Hi >= 0 {
		return u128{d.Lo, uint64(d.Hi)}, false
	}
	lo, borrow := bits.Sub64(0, d.Lo, 0)
	hi, _ := bits.Sub64(0, uint64(d.Hi), borrow)
	return u128{lo, hi}, true
}

// fromMagnitude puts the sign back; false when the result needs more than 128 bits.
func fromMagnitude(m u128, neg bool) (Decimal128, bool) {
	if !neg {
		return Decimal128{m[0], int64(m[1])}, m[1] < 1<<63
	}
	lo, borrow := bits.Sub64(0, m[0], 0)
	hi, _ := bits.Sub64(0, m[1], borrow)
	return Decimal128{lo, int64(hi)}, m[1] < 1<<63 || m[1] == 1<<63 && m[0] == 0
}

func (a u128) isZero() bool { return a[0]|a[1] == 0 }

func (a u128) less(b u128) bool { return a[1] < b[1] || a[1] == b[1] && a[0] < b[0] }

func (a u128) sub(b u128) u128 {
	lo, borrow := bits.Sub64(a[0], b[0], 0)
	hi, _ := bits.Sub64(a[1], b[1], borrow)
	return u128{lo, hi}
}

// inc adds one; the callers' values are below 2^128 - 1.
func (a u128) inc() u128 {
	lo, carry := bits.Add64(a[0], 1, 0)
	return u128{lo, a[1] + carry}
}

// cmpHalf compares a remainder with half its divisor d: r with d - r, so that nothing overflows.
func (r u128) cmpHalf(d u128) int {
	rest := d.sub(r)
	switch {
	case r.less(rest):
		return -1
	case r == rest:
		return 0
	}
	return 1
}

func (a u128) divRound(d u128, neg bool, r Rounding) u128 {
	q, rem, _ := div256(u256{a[0], a[1]}, d)
	return roundQuotient(q, rem, d, neg, r)
}

func roundQuotient(q, rem, d u128, neg bool, r Rounding) u128 {
	if !rem.isZero() && r.up(rem.cmpHalf(d), q[0]&1 == 1, neg) {
		return q.inc()
	}
	return q
}

// mul128 gives the whole product.
func mul128(a, b u128) u256 {
	if a[1]|b[1] == 0 {
		hi, lo := bits.Mul64(a[0], b[0])
		return u256{lo, hi}
	}
	h00, l00 := bits.Mul64(a[0], b[0])
	h01, l01 := bits.Mul64(a[0], b[1])
	h10, l10 := bits.Mul64(a[1], b[0])
	h11, l11 := bits.Mul64(a[1], b[1])
	var p u256
	var c1, c2 uint64
	p[0] = l00
	p[1], c1 = bits.Add64(h00, l01, 0)
	p[1], c2 = bits.Add64(p[1], l10, 0)
	p[2], c1 = bits.Add64(h01, h10, c1)
	p[3] = h11 + c1
	p[2], c2 = bits.Add64(p[2], l11, c2)
	p[3] += c2
	return p
}

// div256 divides n by d, which is not 0. ok is false when the quotient needs more than 128 bits.
func div256(n u256, d u128) (q, rem u128, ok bool) {
	if d[1] == 0 {
		return divByWord(n, d[0])
	}
	if !(u128{n[2], n[3]}).less(d) {
		return q, rem, false
	}
	// Knuth's algorithm D with words of 64 bits and a divisor of two: normalise so that the
	// divisor's highest bit is set, then estimate each word of the quotient from the top.
	s := uint(bits.LeadingZeros64(d[1]))
	v1, v0 := d[1]<<s|d[0]>>(64-s), d[0]<<s // Go shifts by 64 to 0, which s = 0 needs
	u := [4]uint64{n[0] << s, n[1]<<s | n[0]>>(64-s), n[2]<<s | n[1]>>(64-s), n[3]<<s | n[2]>>(64-s)}
	// The quotient has two words since the top two words of n are less than d.
	q[1] = divStep(&u[3], &u[2], &u[1], v1, v0)
	q[0] = divStep(&u[2], &u[1], &u[0], v1, v0)
	rem = u128{u[0]>>s | u[1]<<(64-s), u[1] >> s}
	return q, rem, true
}

// divStep divides the three words (u2,u1,u0), less than the divisor times 2^64, by the normalised
// divisor (v1,v0), leaves the remainder in u1 and u0 and gives the quotient.
func divStep(u2, u1, u0 *uint64, v1, v0 uint64) uint64 {
	var qhat, rhat, carry uint64
	if *u2 >= v1 {
		qhat = ^uint64(0)
		rhat, carry = bits.Add64(*u1, v1, 0)
	} else {
		qhat, rhat = bits.Div64(*u2, *u1, v1)
	}
	for carry == 0 {
		hi, lo := bits.Mul64(qhat, v0)
		if hi < rhat || hi == rhat && lo <= *u0 {
			break
		}
		qhat--
		rhat, carry = bits.Add64(rhat, v1, 0)
	}
	// Subtract qhat times the divisor; qhat is exact or one too large.
	h0, l0 := bits.Mul64(qhat, v0)
	h1, l1 := bits.Mul64(qhat, v1)
	m1, c := bits.Add64(h0, l1, 0)
	m2 := h1 + c
	var b uint64
	*u0, b = bits.Sub64(*u0, l0, 0)
	*u1, b = bits.Sub64(*u1, m1, b)
	*u2, b = bits.Sub64(*u2, m2, b)
	if b != 0 {
		qhat--
		*u0, c = bits.Add64(*u0, v0, 0)
		*u1, c = bits.Add64(*u1, v1, c)
		*u2 += c
	}
	return qhat
}

func divByWord(n u256, d uint64) (q, rem u128, ok bool) {
	if n[3] != 0 || n[2] >= d {
		return q, rem, false
	}
	var r uint64
	if n[2] == 0 {
		q[1], r = n[1]/d, n[1]%d
	} else {
		q[1], r = bits.Div64(n[2], n[1], d)
	}
	if r == 0 {
		q[0], r = n[0]/d, n[0]%d
	} else {
		q[0], r = bits.Div64(r, n[0], d)
	}
	return q, u128{r, 0}, true
}
