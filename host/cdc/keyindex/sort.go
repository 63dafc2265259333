package keyindex

import (
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

const (
	// fewEntries are sorted by comparing.
	fewEntries = 48
	// digits is how many bytes of a hash are sorted by; hashes are even, so more
	// are only needed for equal ones.
	digits = 8
)

// sortEntries sorts in place: by the first byte of the hashes into buckets, and
// each bucket, several at once, by the next. Comparing takes several times as long.
func sortEntries(entries []entry) {
	if len(entries) < 1<<14 {
		radixSort(entries, 0)
		return
	}
	ends := intoBuckets(entries, 0)
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	from := 0
	for _, end := range ends {
		bucket := entries[from:end]
		g.Go(func() error {
			radixSort(bucket, 1)
			return nil
		})
		from = end
	}
	_ = g.Wait() // none of them fails
}

// radixSort sorts entries that agree in the bytes before one.
func radixSort(entries []entry, digit int) {
	switch {
	case len(entries) < fewEntries:
		insertionSort(entries)
	case digit == digits:
		slices.SortFunc(entries, compareEntries)
	default:
		from := 0
		for _, end := range intoBuckets(entries, digit) {
			if end-from > 1 {
				radixSort(entries[from:end], digit+1)
			}
			from = end
		}
	}
}

func insertionSort(entries []entry) {
	for i := 1; i < len(entries); i++ {
		e := entries[i]
		j := i
		for ; j > 0 && compareEntries(e, entries[j-1]) < 0; j-- {
			entries[j] = entries[j-1]
		}
		entries[j] = e
	}
}

// intoBuckets moves every entry into the bucket of a byte of its hash, by swaps,
// and gives where each bucket ends.
func intoBuckets(entries []entry, digit int) (ends [256]int) {
	for i := range entries {
		ends[entries[i].hash[digit]]++
	}
	var next [256]int
	sum := 0
	for b, n := range ends {
		next[b] = sum
		sum += n
		ends[b] = sum
	}
	for b := range ends {
		for i := next[b]; i < ends[b]; {
			to := int(entries[i].hash[digit])
			if to == b {
				i++
				continue
			}
			entries[i], entries[next[to]] = entries[next[to]], entries[i]
			next[to]++
		}
	}
	return ends
}
