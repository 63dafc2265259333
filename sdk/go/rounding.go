package weir

// Rounding says what becomes of the digits that do not fit.
type Rounding uint8

// The roundings. For 2.5 and -2.5, then 2.4 and -2.4:
const (
	HalfAwayFromZero Rounding = iota // 3, -3, 2, -2: what SQL's ROUND does
	HalfEven                         // 2, -2, 2, -2: banker's rounding
	Down                             // 2, -2, 2, -2: toward zero
	Up                               // 3, -3, 3, -3: away from zero
	Floor                            // 2, -3, 2, -3
	Ceil                             // 3, -2, 3, -2
)

// HalfUp is the other name of HalfAwayFromZero.
const HalfUp = HalfAwayFromZero

// awayFromZero says whether a remainder below one half moves the magnitude up.
func (r Rounding) awayFromZero(neg bool) bool {
	return r == Up || r == Floor && neg || r == Ceil && !neg
}

// up says whether the magnitude of a quotient moves up. half compares the remainder, which is not 0,
// with half the divisor.
func (r Rounding) up(half int, odd, neg bool) bool {
	switch r {
	case HalfAwayFromZero:
		return half >= 0
	case HalfEven:
		return half > 0 || half == 0 && odd
	}
	return r.awayFromZero(neg)
}
