package relation

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// Interval names the columns that say from when until when a version of a row holds: the start
// belongs to it, the end does not, and an end of NULL is still to come.
type Interval struct{ Start, End string }

// Intervals are the contracts that a table can keep: the columns of AUTO CDC, and the technical
// columns of a warehouse.
var Intervals = []Interval{{"__START_AT", "__END_AT"}, {"_tech_valid_from", "_tech_valid_to"}}

// IsCurrentColumn and HashColumn stand beside the technical columns of an interval.
const (
	IsCurrentColumn = "_tech_is_current"
	HashColumn      = "_tech_hash"
)

// IntervalOf finds the interval in the columns of a table.
func IntervalOf(s *arrow.Schema) (Interval, bool) {
	for _, in := range Intervals {
		start, end := foldedName(s, in.Start), foldedName(s, in.End)
		if start != "" && end != "" {
			return Interval{start, end}, true
		}
	}
	return Interval{}, false
}

// IsIntervalColumn tells whether a name is that of the start or the end of an interval.
func IsIntervalColumn(name string) bool {
	for _, in := range Intervals {
		if strings.EqualFold(name, in.Start) || strings.EqualFold(name, in.End) {
			return true
		}
	}
	return false
}

func foldedName(s *arrow.Schema, name string) string {
	for _, f := range s.Fields() {
		if strings.EqualFold(f.Name, name) {
			return f.Name
		}
	}
	return ""
}
