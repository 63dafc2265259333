package keyindex

import (
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// bucketBits of a hash divide what is sorted: hashes are even, so buckets are, too.
const bucketBits = 10

// sortEntries sorts in place: first into buckets, then each bucket, several at once.
func sortEntries(entries []entry) {
	const few = 1 << 14
	if len(entries) < few {
		slices.SortFunc(entries, compareEntries)
		return
	}
	ends := intoBuckets(entries)
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	const stripe = 64 // buckets for one goroutine
	for first := 0; first < len(ends); first += stripe {
		g.Go(func() error {
			from := 0
			if first > 0 {
				from = ends[first-1]
			}
			for _, end := range ends[first:min(first+stripe, len(ends))] {
				slices.SortFunc(entries[from:end], compareEntries)
				from = end
			}
			return nil
		})
	}
	_ = g.Wait() // none of them fails
}

// intoBuckets moves every entry into the bucket of its first bits, by swaps, and
// gives where each bucket ends.
func intoBuckets(entries []entry) []int {
	bucket := func(e *entry) int { return int(prefix(e.hash[:]) >> (64 - bucketBits)) }
	ends := make([]int, 1<<bucketBits)
	for i := range entries {
		ends[bucket(&entries[i])]++
	}
	next := make([]int, len(ends))
	sum := 0
	for b, n := range ends {
		next[b] = sum
		sum += n
		ends[b] = sum
	}
	for b := range ends {
		for next[b] < ends[b] {
			e := &entries[next[b]]
			at := bucket(e)
			if at == b {
				next[b]++
				continue
			}
			other := &entries[next[at]]
			*e, *other = *other, *e
			next[at]++
		}
	}
	return ends
}
