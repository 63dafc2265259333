package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-data/weir/host/fault"
)

// The table properties that say how changes are merged into a table. The older
// prefix is that of APPLY CHANGES.
const (
	mergePrefix      = "pipelines.cdc."
	olderMergePrefix = "pipelines.applychanges."

	tiesProperty      = mergePrefix + "ties"
	tombstonesSetting = "tombstoneGCThresholdInSeconds"
	idleTombstones    = "tombstoneGCFrequencyInSeconds"
	tombstoneProperty = mergePrefix + tombstonesSetting
)

// mergeSettings are what the properties of a target say.
type mergeSettings struct {
	lastBy     []string // nil: a tie is an error
	tombstones time.Duration
}

// mergeSettings reads the properties of a target of changes.
func (d *dataset) mergeSettings() (out mergeSettings, err error) {
	for _, key := range slices.Sorted(maps.Keys(d.properties)) {
		name, ours := mergeSetting(key)
		if !ours {
			continue
		}
		value := d.properties[key]
		switch {
		case strings.EqualFold(name, "ties"):
			if out.lastBy, err = parseTies(value); err != nil {
				return out, err
			}
		case strings.EqualFold(name, tombstonesSetting):
			seconds, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			if err != nil || seconds < 0 || seconds > int64(200*365*24*time.Hour/time.Second) {
				return out, fault.New("INVALID_OPTION", "%s is %q", key, value).
					WithHint("Give a number of seconds, longer than a change may be late; 0, and no property, keep the keys of deleted rows for good")
			}
			out.tombstones = time.Duration(seconds) * time.Second
		case strings.EqualFold(name, idleTombstones), strings.EqualFold(key, maxShrinkProperty): // see idleProperties, maxShrink
		default:
			return out, suggest(fault.New("UNKNOWN_OPTION", "there is no table property %q", key), key, []string{tiesProperty, tombstoneProperty, maxShrinkProperty}, "")
		}
	}
	return out, nil
}

// mergeSetting gives the name of a setting of AUTO CDC.
func mergeSetting(property string) (name string, ours bool) {
	for _, prefix := range []string{mergePrefix, olderMergePrefix} {
		if len(property) > len(prefix) && strings.EqualFold(property[:len(prefix)], prefix) {
			return property[len(prefix):], true
		}
	}
	return "", false
}

// parseTies reads error or last_by(column, …).
func parseTies(text string) ([]string, error) {
	wrong := fault.New("INVALID_OPTION", "%s is %q", tiesProperty, text).
		WithHint("Use error, or last_by(column, …): of two changes of a key with one sequence the one with the higher values wins")
	trimmed := strings.TrimSpace(text)
	if strings.EqualFold(trimmed, "error") {
		return nil, nil
	}
	word, rest, ok := strings.Cut(trimmed, "(")
	if !ok || !strings.EqualFold(strings.TrimSpace(word), "last_by") || !strings.HasSuffix(rest, ")") {
		return nil, wrong
	}
	var out []string
	for name := range strings.SplitSeq(strings.TrimSuffix(rest, ")"), ",") {
		name = strings.Trim(strings.TrimSpace(name), "`")
		if name == "" || strings.ContainsAny(name, "()`") || listed(out, name) {
			return nil, wrong
		}
		out = append(out, name)
	}
	return out, nil
}

// lastBy gives the columns by which the last of several changes with one
// sequence is found: the flow's own, else those of its target.
func (f *flow) lastBy() ([]string, error) {
	if f.cdc.lastBy != nil {
		return f.cdc.lastBy, nil
	}
	s, err := f.target.mergeSettings()
	return s.lastBy, err
}

// checkMerges holds the flows that merge into a table together, as far as that
// needs no types: what one of them makes of a key the others go on with.
func (d *dataset) checkMerges() error {
	i := slices.IndexFunc(d.flows, (*flow).merges)
	if i < 0 {
		return nil
	}
	first := d.flows[i]
	if j := slices.IndexFunc(d.flows, func(f *flow) bool { return !f.merges() }); j >= 0 {
		return fault.New("INCOMPATIBLE_FLOWS", "an AUTO CDC flow and the %s flow %s fill one table", d.flows[j].kind, d.flows[j].name).
			At(first.where()).WithHint("What AUTO CDC merges and what is appended cannot share a table: fill two")
	}
	if strings.EqualFold(d.properties["delta.appendOnly"], "true") {
		return fault.New("DELTA_CANNOT_MODIFY_APPEND_ONLY", "AUTO CDC changes rows, which delta.appendOnly forbids").At(first.where()).WithHint("Leave the property out")
	}
	if d.generates() && slices.ContainsFunc(d.flows, func(f *flow) bool { return f.cdc.ignoreNulls != nil }) {
		return fault.New("NOT_SUPPORTED", "generated columns in a table whose changes leave values out: they would be computed of what a change lacks").
			At(first.where()).WithHint("Compute them in a view over the table")
	}
	if _, err := d.mergeSettings(); err != nil {
		return located(err, "INVALID_OPTION", first.where())
	}
	for _, f := range d.flows[1:] {
		if err := first.agrees(f); err != nil {
			return err
		}
	}
	return nil
}

// agrees compares what two flows declare.
func (f *flow) agrees(other *flow) error {
	a, b := f.cdc, other.cdc
	fold := func(names []string) []string {
		out := make([]string, len(names))
		for i, n := range names {
			out[i] = strings.ToLower(n)
		}
		slices.Sort(out)
		return out
	}
	if !slices.Equal(fold(a.keys), fold(b.keys)) {
		return f.disagrees(other, "the keys", names(a.keys), names(b.keys))
	}
	if a.scdType != b.scdType {
		return f.disagrees(other, "the SCD type", fmt.Sprint(a.scdType), fmt.Sprint(b.scdType))
	}
	ofA, err := f.lastBy()
	if err != nil {
		return err
	}
	ofB, err := other.lastBy()
	if err != nil {
		return err
	}
	if !slices.EqualFunc(ofA, ofB, strings.EqualFold) {
		return f.disagrees(other, "what decides between equal sequences", names(ofA), names(ofB))
	}
	if (a.ignoreNulls == nil) != (b.ignoreNulls == nil) ||
		a.ignoreNulls != nil && (!slices.Equal(fold(a.ignoreNulls.Only), fold(b.ignoreNulls.Only)) || !slices.Equal(fold(a.ignoreNulls.Except), fold(b.ignoreNulls.Except))) {
		return f.disagrees(other, "the columns whose NULLs are ignored", nullsText(a), nullsText(b))
	}
	return nil
}

func names(list []string) string { return "(" + strings.Join(list, ", ") + ")" }

func nullsText(c *changes) string {
	switch {
	case c.ignoreNulls == nil:
		return "none"
	case c.ignoreNulls.Only != nil:
		return names(c.ignoreNulls.Only)
	}
	return "all but " + names(c.ignoreNulls.Except)
}

// disagrees refuses two flows into one table. Taking what both have, as others
// do, would cut off values in silence.
func (f *flow) disagrees(other *flow, what, a, b string) error {
	return fault.New("AUTOCDC_FLOWS_DISAGREE", "%s: flow %s has %s, flow %s has %s", what, f.name, a, other.name, b).
		At(other.where()).WithHint("Flows that merge into one table share its rows: declare the same in each, or fill two tables")
}
