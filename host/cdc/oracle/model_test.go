package oracle

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// What an AUTO CDC target holds, written from the rules (semantics.md B2) and
// from nothing else: every key's changes are sorted and walked through. It
// knows no batches, no state and no files, which is the point: whatever the
// order of arrival, the table must be this one.

// val is a value: nil, bool, int64, float64, string, or []val for a struct.
type val = any

// op is what a change does.
type op int

const (
	upsert op = iota
	remove
	truncate
)

// change is one event. row has the values of the columns that are no keys.
type change struct {
	key []val
	seq val
	op  op
	row []val
}

// rules are what a flow declares.
type rules struct {
	scd           int
	keys, columns []arrow.Field
	sequence      arrow.DataType
	tracked       []string // nil: every column
	ignoreNull    []string // the columns, or fields (a.b), in which a NULL says nothing
	last          []string // columns that decide between equal sequences
}

// table gives the rows that the changes make, as texts, sorted.
func (m *rules) table(changes []change) []string {
	var cut val
	keys := map[string][]change{}
	for _, c := range changes {
		if c.op == truncate {
			if compare(c.seq, cut) > 0 {
				cut = c.seq
			}
			continue
		}
		k := text(c.key)
		keys[k] = append(keys[k], c)
	}
	var out []string
	for _, timeline := range keys {
		m.sort(timeline)
		if m.scd == 1 {
			if row := m.newest(timeline, cut); row != nil {
				out = append(out, m.rowText(timeline[0].key, row, nil, nil))
			}
			continue
		}
		for _, s := range m.history(timeline) {
			out = append(out, m.rowText(timeline[0].key, s.row, s.start, s.end))
		}
	}
	slices.Sort(out)
	return out
}

// sort orders the changes of one key in time.
func (m *rules) sort(timeline []change) {
	slices.SortStableFunc(timeline, func(a, b change) int {
		if c := compare(a.seq, b.seq); c != 0 {
			return c
		}
		for _, name := range m.last {
			if c := compare(a.row[m.column(name)], b.row[m.column(name)]); c != 0 {
				return c
			}
		}
		return 0
	})
}

func (m *rules) column(name string) int {
	return slices.IndexFunc(m.columns, func(f arrow.Field) bool { return f.Name == name })
}

// newest is the row that a key has in the end, nil for none. What is older than
// the table's last TRUNCATE is dead, whenever it arrives.
func (m *rules) newest(timeline []change, cut val) []val {
	var row []val
	for _, c := range timeline {
		switch {
		case compare(c.seq, cut) < 0:
		case c.op == remove:
			row = nil
		default:
			row = m.authored(row, c.row)
		}
	}
	return row
}

// span is a row of a history: valid from start, and before end when it has one.
type span struct {
	start, end val
	row        []val
}

// history is what a key looked like over time: equal neighbours are one row
// with the start of the first and the values of the last, a removal ends a row,
// and what was valid for no time is left out.
func (m *rules) history(timeline []change) []span {
	var spans []span
	var row []val // what is valid now
	end := func(at val) {
		if row != nil {
			spans[len(spans)-1].end = at
		}
	}
	for _, c := range timeline {
		if c.op == remove {
			end(c.seq)
			row = nil
			continue
		}
		next := m.authored(row, c.row)
		if row != nil && m.sameTracked(row, next) {
			spans[len(spans)-1].row = next
		} else {
			end(c.seq)
			spans = append(spans, span{start: c.seq, row: next})
		}
		row = next
	}
	return slices.DeleteFunc(spans, func(s span) bool { return s.end != nil && compare(s.start, s.end) == 0 })
}

// authored is now, where a NULL of a column that ignores them is what stood there before.
func (m *rules) authored(before, now []val) []val {
	out := slices.Clone(now)
	for i, f := range m.columns {
		var old val
		if before != nil {
			old = before[i]
		}
		out[i] = m.inherit(f.Name, f.Type, old, now[i])
	}
	return out
}

// inherit takes NULLs of now from before, in a struct by each of its leaves. A
// struct of which some leaf ignores NULLs and which is NULL is one of NULLs.
func (m *rules) inherit(path string, t arrow.DataType, before, now val) val {
	st, ok := t.(*arrow.StructType)
	if !ok {
		if now == nil && m.ignores(path) {
			return before
		}
		return now
	}
	if !m.ignores(path) && !slices.ContainsFunc(m.ignoreNull, func(name string) bool { return strings.HasPrefix(name, path+".") }) ||
		before == nil && now == nil {
		return now
	}
	out := make([]val, st.NumFields())
	for i, f := range st.Fields() {
		var a, b val
		if before != nil {
			a = before.([]val)[i]
		}
		if now != nil {
			b = now.([]val)[i]
		}
		out[i] = m.inherit(path+"."+f.Name, f.Type, a, b)
	}
	return out
}

// ignores tells whether a column or a field is named, or what holds it.
func (m *rules) ignores(path string) bool {
	return slices.ContainsFunc(m.ignoreNull, func(name string) bool { return name == path || strings.HasPrefix(path, name+".") })
}

func (m *rules) sameTracked(a, b []val) bool {
	for i, f := range m.columns {
		if (m.tracked == nil || slices.Contains(m.tracked, f.Name)) && text(a[i]) != text(b[i]) {
			return false
		}
	}
	return true
}

// tied tells whether the changes have two of one key and sequence that are not
// the same and that nothing decides between.
func (m *rules) tied(changes []change) bool {
	seen := map[string]string{}
	for _, c := range changes {
		if c.op == truncate {
			continue
		}
		at, what := text(c.key)+text(c.seq), fmt.Sprint(c.op)
		for _, name := range m.last {
			at += text(c.row[m.column(name)])
		}
		if c.op == upsert {
			what += text(c.row)
		}
		if before, ok := seen[at]; ok && before != what {
			return true
		}
		seen[at] = what
	}
	return false
}

// rowText is a row of the target.
func (m *rules) rowText(key, row []val, start, end val) string {
	var b strings.Builder
	for i, f := range m.keys {
		fmt.Fprintf(&b, "%s=%s ", f.Name, text(key[i]))
	}
	for i, f := range m.columns {
		if row[i] != nil {
			fmt.Fprintf(&b, "%s=%s ", f.Name, text(row[i]))
		}
	}
	if m.scd == 2 {
		fmt.Fprintf(&b, "[%s,%s)", text(start), text(end))
	}
	return b.String()
}

// compare orders values of one type. NULL is the least, and NaN the greatest.
func compare(a, b val) int {
	if a == nil || b == nil {
		return cmp.Compare(truth(a != nil), truth(b != nil))
	}
	switch a := a.(type) {
	case bool:
		return cmp.Compare(truth(a), truth(b.(bool)))
	case int64:
		return cmp.Compare(a, b.(int64))
	case string:
		return strings.Compare(a, b.(string))
	case float64:
		b := b.(float64)
		if math.IsNaN(a) || math.IsNaN(b) {
			return cmp.Compare(truth(math.IsNaN(a)), truth(math.IsNaN(b)))
		}
		return cmp.Compare(a, b)
	case []val:
		return slices.CompareFunc(a, b.([]val), compare)
	}
	panic(fmt.Sprintf("a value of type %T", a))
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// text writes a value so that equal values have equal texts.
func text(v val) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case float64:
		return fmt.Sprint(v + 0) // a negative zero is zero
	case string:
		return fmt.Sprintf("%q", v)
	case []val:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = text(v[i])
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return fmt.Sprint(v)
}
