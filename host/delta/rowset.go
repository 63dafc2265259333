package delta

import (
	"iter"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// RowSet is a set of physical row positions of one data file, such as those
// that a deletion vector marks. Positions count from 0 across row groups and
// include rows that are deleted. A nil set is empty and may be read.
type RowSet struct {
	buckets []rowBucket // ascending by high
}

// rowBucket holds the positions that share their upper 32 bits.
type rowBucket struct {
	high uint32
	low  *roaring.Bitmap
}

// NewRowSet makes a set of the given rows.
func NewRowSet(rows ...int64) *RowSet {
	s := &RowSet{}
	for _, r := range rows {
		s.Add(r)
	}
	return s
}

// Add puts a row in. A negative one is no row of a file and is left out.
func (s *RowSet) Add(row int64) {
	if row >= 0 {
		s.bucket(uint32(row >> 32)).Add(uint32(row))
	}
}

// AddRange puts the rows [from, to) in.
func (s *RowSet) AddRange(from, to int64) {
	for from = max(from, 0); from < to; {
		high := uint32(from >> 32)
		end := min(to, (int64(high)+1)<<32)
		base := int64(high) << 32
		s.bucket(high).AddRange(uint64(from-base), uint64(end-base))
		from = end
	}
}

// bucket gives the bitmap of the upper bits, a new one when there is none.
func (s *RowSet) bucket(high uint32) *roaring.Bitmap {
	if n := len(s.buckets); n > 0 && s.buckets[n-1].high == high {
		return s.buckets[n-1].low // the usual case: one bucket, or ascending rows
	}
	i, ok := s.find(high)
	if !ok {
		s.buckets = slices.Insert(s.buckets, i, rowBucket{high, roaring.New()})
	}
	return s.buckets[i].low
}

func (s *RowSet) find(high uint32) (int, bool) {
	return slices.BinarySearchFunc(s.buckets, high, func(b rowBucket, high uint32) int { return int(int64(b.high) - int64(high)) })
}

// Contains tells whether a row is in the set.
func (s *RowSet) Contains(row int64) bool {
	if s == nil || row < 0 {
		return false
	}
	i, ok := s.find(uint32(row >> 32))
	return ok && s.buckets[i].low.Contains(uint32(row))
}

// Len counts the rows.
func (s *RowSet) Len() int64 {
	n := int64(0)
	if s != nil {
		for _, b := range s.buckets {
			n += int64(b.low.GetCardinality())
		}
	}
	return n
}

// Last gives the greatest row, or -1.
func (s *RowSet) Last() int64 {
	if s != nil {
		for _, b := range slices.Backward(s.buckets) {
			if !b.low.IsEmpty() {
				return int64(b.high)<<32 | int64(b.low.Maximum())
			}
		}
	}
	return -1
}

// All gives the rows, ascending.
func (s *RowSet) All() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		if s == nil {
			return
		}
		for _, b := range s.buckets {
			for it := b.low.Iterator(); it.HasNext(); {
				if !yield(int64(b.high)<<32 | int64(it.Next())) {
					return
				}
			}
		}
	}
}

// Union gives a new set of the rows that are in s or in o.
func (s *RowSet) Union(o *RowSet) *RowSet {
	out := s.clone()
	if o != nil {
		for _, b := range o.buckets {
			out.bucket(b.high).Or(b.low)
		}
	}
	return out
}

// Minus gives a new set of the rows that are in s but not in o.
func (s *RowSet) Minus(o *RowSet) *RowSet {
	out := s.clone()
	if o != nil {
		for _, b := range out.buckets {
			if i, ok := o.find(b.high); ok {
				b.low.AndNot(o.buckets[i].low)
			}
		}
	}
	out.buckets = slices.DeleteFunc(out.buckets, func(b rowBucket) bool { return b.low.IsEmpty() })
	return out
}

// Intersects tells whether the sets share a row.
func (s *RowSet) Intersects(o *RowSet) bool {
	if s == nil || o == nil {
		return false
	}
	for _, b := range s.buckets {
		if i, ok := o.find(b.high); ok && b.low.Intersects(o.buckets[i].low) {
			return true
		}
	}
	return false
}

func (s *RowSet) clone() *RowSet {
	out := &RowSet{}
	if s != nil {
		out.buckets = make([]rowBucket, len(s.buckets))
		for i, b := range s.buckets {
			out.buckets[i] = rowBucket{b.high, b.low.Clone()}
		}
	}
	return out
}

// live gives the runs of rows of [from, to) that are not in the set, relative to from.
func (s *RowSet) live(from, to int64) [][2]int64 {
	var runs [][2]int64
	next := from
	for _, b := range s.buckets {
		base := int64(b.high) << 32
		if base >= to || base+math.MaxUint32 < from {
			continue
		}
		it := b.low.Iterator()
		if from > base {
			it.AdvanceIfNeeded(uint32(from - base))
		}
		for it.HasNext() {
			pos := base + int64(it.Next())
			if pos >= to {
				break
			}
			if pos > next {
				runs = append(runs, [2]int64{next - from, pos - from})
			}
			next = pos + 1
		}
	}
	if next < to {
		runs = append(runs, [2]int64{next - from, to - from})
	}
	return runs
}

// runs gives the runs of rows of [from, to) that are in the set, relative to from.
func (s *RowSet) runs(from, to int64) [][2]int64 {
	var runs [][2]int64
	for _, b := range s.buckets {
		base := int64(b.high) << 32
		if base >= to || base+math.MaxUint32 < from {
			continue
		}
		it := b.low.Iterator()
		if from > base {
			it.AdvanceIfNeeded(uint32(from - base))
		}
		for it.HasNext() {
			pos := base + int64(it.Next())
			if pos >= to {
				break
			}
			if n := len(runs); n > 0 && runs[n-1][1] == pos-from {
				runs[n-1][1]++
			} else {
				runs = append(runs, [2]int64{pos - from, pos - from + 1})
			}
		}
	}
	return runs
}
