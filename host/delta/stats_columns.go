package delta

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/weir-data/weir/host/fault"
)

// The properties that say which columns get statistics.

const (
	statsColumnsKey = "delta.dataSkippingStatsColumns"
	statsCountKey   = "delta.dataSkippingNumIndexedCols"
	statsPrefixKey  = "delta.dataSkippingStringPrefixLength"

	defaultStatsColumns = 32
	defaultStringPrefix = 32
)

// parsePaths reads a list of column paths with commas between them. A name with
// a dot or a comma in it stands in backticks, which are doubled within.
func parsePaths(list string) (out [][]string) {
	var path []string
	var name strings.Builder
	some, quoted := false, false
	endName := func() {
		s := name.String()
		if !some {
			s = strings.TrimSpace(s)
		}
		if s != "" {
			path = append(path, s)
		}
		name.Reset()
		some = false
	}
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '`' && quoted && i+1 < len(list) && list[i+1] == '`':
			name.WriteByte('`')
			i++
		case c == '`':
			if !quoted {
				name.Reset()
			}
			quoted, some = !quoted, true
		case quoted:
			name.WriteByte(c)
		case c == '.':
			endName()
		case c == ',':
			endName()
			out, path = append(out, path), nil
		case some && c == ' ':
		default:
			name.WriteByte(c)
		}
	}
	endName()
	return slices.DeleteFunc(append(out, path), func(p []string) bool { return len(p) == 0 })
}

// formatPath spells a path as parsePaths reads it.
func formatPath(path []string) string {
	parts := make([]string, len(path))
	for i, name := range path {
		parts[i] = name
		if strings.ContainsAny(name, ".,`") || strings.ContainsFunc(name, unicode.IsSpace) {
			parts[i] = "`" + strings.ReplaceAll(name, "`", "``") + "`"
		}
	}
	return strings.Join(parts, ".")
}

// statsChoice gives the test which leaf columns get statistics, to be asked in
// the order of the schema. Always has the paths that get them in any case, as
// files name them.
func statsChoice(properties map[string]string, always [][]string) func(path, stored []string) bool {
	named := parsePaths(properties[statsColumnsKey])
	limit, seen := defaultStatsColumns, 0
	if n, err := strconv.Atoi(properties[statsCountKey]); err == nil {
		limit = n
	}
	within := func(path []string, of [][]string, equal func(a, b string) bool) bool {
		return slices.ContainsFunc(of, func(p []string) bool {
			return len(path) >= len(p) && slices.EqualFunc(path[:len(p)], p, equal)
		})
	}
	return func(path, stored []string) bool {
		seen++
		switch {
		case within(stored, always, strings.EqualFold):
			return true
		case len(named) > 0:
			return within(path, named, strings.EqualFold)
		}
		return limit < 0 || seen <= limit
	}
}

// statsPaths remembers which fields the property names, over a change of their names.
type statsPaths struct {
	list   [][]string
	fields []*field // nil for a path that leads nowhere
}

func statsFields(t *structType, properties map[string]string) statsPaths {
	s := statsPaths{list: parsePaths(properties[statsColumnsKey])}
	for _, path := range s.list {
		var f *field
		if p, err := t.locateField(path); err == nil {
			f = p.field
		}
		s.fields = append(s.fields, f)
	}
	return s
}

// follow writes the property anew: fields by their new names, without those that are gone.
func (s statsPaths) follow(t *structType, properties map[string]string) {
	if len(s.list) == 0 {
		return
	}
	now := map[*field][]string{}
	eachField(t, nil, func(f *field, path []string) { now[f] = path })
	var out []string
	for i, f := range s.fields {
		switch path, there := now[f]; {
		case f == nil:
			out = append(out, formatPath(s.list[i]))
		case there:
			out = append(out, formatPath(path))
		}
	}
	if len(out) == 0 {
		delete(properties, statsColumnsKey)
		return
	}
	properties[statsColumnsKey] = strings.Join(out, ",")
}

// ParseColumn reads the path of a column or a struct field, such as address.city.
// A name with a dot, a comma or a space in it stands in backticks, which are doubled within.
func ParseColumn(text string) ([]string, error) {
	paths := parsePaths(text)
	if len(paths) != 1 {
		return nil, fault.New("DELTA_COLUMN_NOT_FOUND", "%q names no column", text)
	}
	return paths[0], nil
}
