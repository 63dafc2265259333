package cdc

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// record is what a version of the state notes about the definition that made it,
// and the figures that it does not count itself. All names are lower case.
type record struct {
	Keys        []string `json:"keys"` // with their types
	Sequence    string   `json:"sequence"`
	SCDType     int      `json:"scdType"`
	Technical   bool     `json:"technical,omitempty"`
	Tracked     []string `json:"tracked,omitempty"`
	IgnoreNulls []string `json:"ignoreNulls,omitempty"`
	LastBy      []string `json:"lastBy,omitempty"`
	// Removed counts the keys, in SCD type 2 the changes, that are deletes.
	Removed int64 `json:"removed,omitempty"`
}

func (l *layout) record() record {
	r := record{Sequence: typeText(l.sequence), SCDType: l.SCDType, Technical: l.SCDType == 2 && l.Technical}
	for _, k := range l.keys {
		f := l.values.Field(k)
		r.Keys = append(r.Keys, strings.ToLower(f.Name)+" "+typeText(f.Type))
	}
	for _, c := range l.tracked {
		r.Tracked = append(r.Tracked, strings.ToLower(l.values.Field(c).Name))
	}
	slices.Sort(r.Tracked)
	if l.IgnoreNulls != nil {
		r.IgnoreNulls = l.IgnoreNulls.texts()
	}
	for _, name := range l.LastBy {
		r.LastBy = append(r.LastBy, strings.ToLower(name))
	}
	return r
}

// texts says a choice in words that do not change with the columns there are.
func (c *Choice) texts() []string {
	prefix, list := "", c.Only
	if c.Only == nil {
		prefix, list = "* except ", c.Except
	}
	out := []string{prefix}
	for _, name := range list {
		out = append(out, strings.ToLower(name))
	}
	slices.Sort(out[1:])
	return out
}

// typeText names a type; whether a part of it may be NULL does not count.
func typeText(t arrow.DataType) string {
	switch t := t.(type) {
	case *arrow.StructType:
		var parts []string
		for _, f := range t.Fields() {
			parts = append(parts, strings.ToLower(f.Name)+":"+typeText(f.Type))
		}
		return "struct<" + strings.Join(parts, ",") + ">"
	case *arrow.ListType:
		return "list<" + typeText(t.Elem()) + ">"
	case *arrow.MapType:
		return "map<" + typeText(t.KeyType()) + "," + typeText(t.ItemType()) + ">"
	}
	return t.String()
}

// drift refuses a definition that is not the one whose changes the state has:
// what it makes of them would contradict what the table shows already.
func (d *Definition) drift(text json.RawMessage, now record) (record, error) {
	var was record
	if err := json.Unmarshal(text, &was); err != nil {
		return was, d.fault("CDC_STATE_CORRUPT", "the state does not say what it was made by: %v", err).WithHint("Run a full refresh of the target")
	}
	changed := func(code, what string, from, to any) *fault.Error {
		return d.fault(code, "%s: was %v, is %v", what, from, to).
			WithHint("What the table shows was made by the old definition. Set it back, or run a full refresh of the target")
	}
	show := func(list []string) string { return "(" + strings.Join(list, ", ") + ")" }
	switch {
	case was.SCDType != now.SCDType:
		return was, changed("SCD_TYPE_DRIFT", "the SCD type changed", was.SCDType, now.SCDType)
	case was.Technical != now.Technical:
		return was, changed("INTERVAL_COLUMNS_DRIFT", "the technical columns of intervals", was.Technical, now.Technical)
	case !slices.Equal(was.Keys, now.Keys):
		return was, changed("KEY_SCHEMA_DRIFT", "the keys changed", show(was.Keys), show(now.Keys))
	case was.Sequence != now.Sequence:
		return was, changed("SEQUENCING_TYPE_DRIFT", "the type of the sequence changed", was.Sequence, now.Sequence)
	case !slices.Equal(was.Tracked, now.Tracked):
		err := changed("TRACK_HISTORY_DRIFT", "the columns whose history is tracked changed", show(was.Tracked), show(now.Tracked))
		if !slices.ContainsFunc(was.Tracked, func(name string) bool { return !slices.Contains(now.Tracked, name) }) {
			err = err.WithHint("A column came that the history so far does not tell of. To go on without one for it, track the others by name: TRACK HISTORY ON %s. To have it, run a full refresh of the target", show(was.Tracked))
		}
		return was, err
	case !slices.Equal(was.IgnoreNulls, now.IgnoreNulls):
		return was, changed("IGNORE_NULL_UPDATES_DRIFT", "the columns whose NULLs are ignored changed", show(was.IgnoreNulls), show(now.IgnoreNulls))
	case len(was.LastBy) > 0 && !slices.Equal(was.LastBy, now.LastBy):
		return was, changed("CDC_TIES_DRIFT", "the columns that decide between equal sequences changed", show(was.LastBy), show(now.LastBy))
	}
	return was, nil
}

func (r record) encode() (json.RawMessage, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fault.Wrap(err, "INTERNAL_ERROR", "the definition cannot be noted")
	}
	return text, nil
}

// countText is a number with its word.
func countText(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
