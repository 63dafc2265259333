package pipeline

import (
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// suggest adds the name that word most likely misspells to an error, or says
// otherwise, which may be empty.
func suggest(e *fault.Error, word string, names []string, otherwise string) *fault.Error {
	if near := nearest(word, names); near != "" {
		return e.WithHint("Did you mean %q?", near)
	}
	if otherwise != "" {
		return e.WithHint("%s", otherwise)
	}
	return e
}

// nearest gives the name that word most likely misspells, or "" when none is
// close: at most a third of its letters differ.
func nearest(word string, names []string) string {
	best, bestDistance := "", len(word)/3+1
	for _, name := range names {
		if strings.EqualFold(word, name) {
			return name
		}
		if d := editDistance(strings.ToLower(word), strings.ToLower(name)); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours.
func editDistance(a, b string) int {
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}
