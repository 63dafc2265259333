package pipeline

import (
	"regexp"
	"slices"
	"strings"
)

// Keys gives the columns of a dataset that are said to hold a value in every
// row: those of its primary key, of the keys of its AUTO CDC flows, and those
// of which an expectation says so. It gives none for a name that is no dataset.
func (p *Pipeline) Keys(name string) []string {
	d, _, _, err := p.graph.lookup(name)
	if err != nil || d == nil {
		return nil
	}
	return d.keyColumns()
}

// notNull is an expectation that a column has a value.
var notNull = regexp.MustCompile("(?i)^\\s*\\(?\\s*`?([a-z_][a-z0-9_]*)`?\\s+IS\\s+NOT\\s+NULL\\s*\\)?\\s*$")

func (d *dataset) keyColumns() []string {
	var out []string
	for _, k := range d.keys {
		if k.Primary {
			out = append(out, k.Columns...)
		}
	}
	for _, f := range d.flows {
		if f.cdc != nil {
			out = append(out, f.cdc.keys...)
		}
	}
	for _, r := range d.rules {
		if m := notNull.FindStringSubmatch(r.Condition); m != nil {
			out = append(out, m[1])
		}
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return slices.CompactFunc(out, strings.EqualFold)
}
