package state

import (
	"math/bits"
	"slices"
)

// Runs are merged as a log is: by levels of four. A level holds runs of about
// the same size, and when four stand at the end of the list they become one of
// the next. So there are a few runs for each level, and an entry is written
// once for each level it climbs. When what came after the oldest run has grown
// as large as that, all of it is merged, so that entries which hide each other
// take at most about twice the room.
//
// A merge is cut to the work it may do: it covers a range of hashes, and the
// next one goes on behind it. From then on the ranges have their own runs, and
// each is looked at by itself.

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
		if !found || len(m.runs) > len(best.runs) || len(m.runs) == len(best.runs) && m.entries < best.entries {
			best, found = m, true
		}
	}
	if found && best.entries > limit {
		width := uint64(best.to-best.from) * uint64(max(limit, 1)) / uint64(best.entries)
		best.to = best.from + uint32(max(width, 1))
		best.entries = limit
	}
	return best, found
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
	start, sum := -1, int64(0)
	same, highest := 0, -1
	for i := len(sizes) - 1; i >= 0; i-- {
		switch l := level(sizes[i]); {
		case l > highest:
			highest, same = l, 1
		case l == highest:
			same++
		default:
			// A small run below larger ones: it goes along with them.
		}
		if same >= fanIn {
			start = i
		}
		if i == 0 && len(sizes) > 1 && sum >= max(sizes[0], levelBase) {
			start = 0
		}
		sum += sizes[i]
	}
	if start < 0 {
		return merge{}, false
	}
	m := merge{runs: stack[start:], from: from, to: to, bottom: start == 0}
	for _, s := range sizes[start:] {
		m.entries += int64(float64(s) * float64(to-from) / hashSlices)
	}
	return m, true
}

func level(size int64) int {
	return bits.Len64(uint64(max(size, 0))/levelBase) / levelBits
}
