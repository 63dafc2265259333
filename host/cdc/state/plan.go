package state

import (
	"math/bits"
	"slices"
)

// Runs are merged as a log is: by levels of four. A level holds runs of about
// the same size, and four of them that follow each other become one of the next.
// So there are a few runs for each level, and an entry is written once for each
// level it climbs. When what came after the oldest run has grown as large as
// that, it is merged into it, so that entries which hide each other take at most
// about twice the room. Small merges go first: they make the most of a little work.
//
// A merge that is more than may be done at once is cut: it covers a range of
// hashes, and later ones go on behind it. From then on the ranges have their own
// runs, and each is looked at by itself. Newer runs that are much smaller take
// no part, so that they stay whole.

const (
	fanIn     = 4
	levelBits = 2 // of a factor four
	levelBase = 1 << 9
)

// merge is a piece of work: the parts of some runs in a range of slices.
type merge struct {
	runs     []int // places in the manifest's list, oldest first
	from, to uint32
	entries  int64 // about
	bottom   bool  // nothing older lies beneath
}

// plan picks the next merge of at most about so many entries; false when nothing is due.
func plan(runs []RunInfo, limit int64) (merge, bool) {
	var best merge
	found := false
	bounds := []uint32{0, hashSlices}
	for _, r := range runs {
		bounds = append(bounds, r.From, r.to())
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	for b := 0; b+1 < len(bounds); b++ {
		m, ok := due(runs, bounds[b], bounds[b+1])
		if !ok {
			continue
		}
		// Neighbours with the same work are one piece.
		for b+2 < len(bounds) && m.entries < limit {
			next, ok := due(runs, bounds[b+1], bounds[b+2])
			if !ok || !slices.Equal(next.runs, m.runs) || next.bottom != m.bottom {
				break
			}
			m.to, m.entries = next.to, m.entries+next.entries
			b++
		}
		if !found || m.entries < best.entries {
			best, found = m, true
		}
	}
	if found && best.entries > limit {
		best.cut(limit)
	}
	return best, found
}

// cut shortens a merge to about so many entries. It ends where a half, quarter,
// eighth … of all hashes does: so the cuts of larger merges fall on those of
// smaller ones, and the ranges with runs of their own stay few.
func (m *merge) cut(limit int64) {
	all := m.to - m.from
	width := uint32(hashSlices)
	for width > 1 && (width >= all || m.from%width != 0 || m.entries/int64(all)*int64(width) > limit) {
		width /= 2
	}
	m.to, m.entries = m.from+width, m.entries*int64(width)/int64(all)
}

// due says what is to be merged in one range, which no run covers in part.
func due(runs []RunInfo, from, to uint32) (merge, bool) {
	var stack []int
	var sizes []int64 // of each run as if it were as dense everywhere
	for i, r := range runs {
		if r.From <= from && to <= r.to() {
			stack = append(stack, i)
			sizes = append(sizes, int64(float64(r.Entries)*hashSlices/float64(r.to()-r.From)))
		}
	}
	first, last, ok := pick(sizes)
	if !ok {
		return merge{}, false
	}
	m := merge{runs: stack[first : last+1], from: from, to: to, bottom: first == 0}
	for _, s := range sizes[first : last+1] {
		m.entries += int64(float64(s) * float64(to-from) / hashSlices)
	}
	return m, true
}

// pick chooses which of runs that lie over one another are merged, the oldest first.
func pick(sizes []int64) (first, last int, ok bool) {
	highest, same := -1, 0
	for i := len(sizes) - 1; i >= 0; i-- {
		switch l := level(sizes[i]); {
		case l > highest:
			highest, same, last = l, 1, i
		case l == highest:
			same++
		}
		// Smaller ones in between go along with them.
		if same == fanIn {
			for i > 0 && level(sizes[i-1]) <= highest {
				i--
			}
			return i, last, true
		}
	}
	if len(sizes) < 2 {
		return 0, 0, false
	}
	sum := int64(0)
	for i := len(sizes) - 1; i > 0; i-- {
		sum += sizes[i]
	}
	if sum < max(sizes[0], levelBase) {
		return 0, 0, false
	}
	for last = len(sizes) - 1; last > 1 && sizes[last] < sum/16; {
		last--
	}
	return 0, last, true
}

func level(size int64) int {
	return bits.Len64(uint64(max(size, 0))/levelBase) / levelBits
}
