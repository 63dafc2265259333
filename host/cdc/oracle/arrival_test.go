package oracle

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
)

// arrival is how the changes of one key or of several reach a target: the
// batches, each in its order. Arrivals of different keys share a table, so that
// one table tells about many of them; the first key column is the arrival's number.
type arrival [][]change

// all gives every change, those that come again included.
func (a arrival) all() []change { return slices.Concat(a...) }

func (a arrival) String() string {
	var b strings.Builder
	for i, batch := range a {
		fmt.Fprintf(&b, "batch %d\n", i)
		for _, c := range batch {
			fmt.Fprintf(&b, "  %s at %s %s %s\n", [...]string{"upsert", "delete", "truncate"}[c.op], text(c.seq), text(c.key), text(c.row))
		}
	}
	return b.String()
}

// numbered gives the changes to keys of arrival n.
func numbered(changes []change, n int) []change {
	out := slices.Clone(changes)
	for i := range out {
		if out[i].op != truncate {
			out[i].key = append([]val{int64(n)}, out[i].key...)
		}
	}
	return out
}

// packed lets arrivals happen at the same time: batch i holds the batch i of each.
func packed(arrivals []arrival) arrival {
	var out arrival
	for n, a := range arrivals {
		for i, batch := range a {
			if i == len(out) {
				out = append(out, nil)
			}
			out[i] = append(out[i], numbered(batch, n)...)
		}
	}
	return out
}

// orders gives every order of n things.
func orders(n int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		p := make([]int, n)
		for i := range p {
			p[i] = i
		}
		var place func(k int) bool
		place = func(k int) bool {
			if k == n {
				return yield(slices.Clone(p))
			}
			for i := k; i < n; i++ {
				p[k], p[i] = p[i], p[k]
				if !place(k + 1) {
					return false
				}
				p[k], p[i] = p[i], p[k]
			}
			return true
		}
		place(0)
	}
}

// cuts gives the changes cut into batches in every way.
func cuts(changes []change) iter.Seq[arrival] {
	return func(yield func(arrival) bool) {
		for mask := range 1 << max(len(changes)-1, 0) {
			a := arrival{nil}
			for i, c := range changes {
				if i > 0 && mask>>(i-1)&1 == 1 {
					a = append(a, nil)
				}
				a[len(a)-1] = append(a[len(a)-1], c)
			}
			if !yield(a) {
				return
			}
		}
	}
}

// everyArrival gives the changes in every order and cut in every way.
func everyArrival(changes []change) []arrival {
	var out []arrival
	for order := range orders(len(changes)) {
		ordered := make([]change, len(order))
		for i, at := range order {
			ordered[i] = changes[at]
		}
		out = slices.AppendSeq(out, cuts(ordered))
	}
	return out
}

// batched deals changes to batches at random, in a random order, some of them
// again later.
func batched(r *rand.Rand, changes []change, batches int, replays float64) arrival {
	a := make(arrival, batches)
	for _, i := range r.Perm(len(changes)) {
		at := r.IntN(batches)
		a[at] = append(a[at], changes[i])
		for r.Float64() < replays {
			again := at + r.IntN(batches-at)
			a[again] = append(a[again], changes[i])
		}
	}
	return a
}

// smaller takes batches, then changes, out of an arrival as long as it still fails.
func smaller(a arrival, fails func(arrival) bool) arrival {
	for again := true; again; {
		again = false
		for i := 0; i < len(a); i++ {
			if without := slices.Delete(slices.Clone(a), i, i+1); fails(without) {
				a, again = without, true
				i--
			}
		}
		for i := range a {
			for size := len(a[i]); size > 0; size /= 2 {
				for from := 0; from+size <= len(a[i]); {
					without := slices.Clone(a)
					without[i] = slices.Delete(slices.Clone(a[i]), from, from+size)
					if fails(without) {
						a, again = without, true
					} else {
						from += size
					}
				}
			}
		}
		for i := 0; i+1 < len(a); i++ {
			joined := slices.Concat(a[:i], arrival{slices.Concat(a[i], a[i+1])}, a[i+2:])
			if fails(joined) {
				a, again = joined, true
				i--
			}
		}
	}
	return a
}
