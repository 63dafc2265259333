package plugin

import "math/bits"

// rowSet is a set of row numbers, as bits: row errors of a whole task cost
// an eighth of a byte a row.
type rowSet struct{ words []uint64 }

// add reports whether the row is new.
func (s *rowSet) add(row int64) bool {
	w, bit := int(row/64), uint64(1)<<(row%64)
	if w >= len(s.words) {
		s.words = append(s.words, make([]uint64, w+1-len(s.words))...)
	}
	if s.words[w]&bit != 0 {
		return false
	}
	s.words[w] |= bit
	return true
}

// within lists the rows in [from, from+n), counted from from.
func (s *rowSet) within(from, n int64) []int64 {
	var out []int64
	for w := from / 64; w < int64(len(s.words)) && w*64 < from+n; w++ {
		for v := s.words[w]; v != 0; v &= v - 1 {
			row := w*64 + int64(bits.TrailingZeros64(v))
			if row >= from && row < from+n {
				out = append(out, row-from)
			}
		}
	}
	return out
}
