package plugin

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// CodeInvalidLimit is the code of a limit that cannot be read.
const CodeInvalidLimit = "INVALID_PLUGIN_LIMIT"

// LimitNames lists the limits that an operator can set, by their names in a spec.
func LimitNames() []string {
	out := make([]string, len(limitTable))
	for i, l := range limitTable {
		out[i] = l.name
	}
	return out
}

// LimitValue is one limit as it is shown.
type LimitValue struct {
	Name  string
	Value int64  // times in nanoseconds
	Text  string // as ParseLimits reads it
}

// List gives all limits in the order of LimitNames.
func (l Limits) List() []LimitValue {
	out := make([]LimitValue, len(limitTable))
	for i, d := range limitTable {
		v := *d.field(&l)
		out[i] = LimitValue{d.name, v, d.text(v)}
	}
	return out
}

// ParseLimits reads the limits of a module from a spec: numbers or texts by
// name. Sizes take a unit (kB, MB, GB are decimal, KiB, MiB, GiB binary), times are
// written as in 90s or 1h30m. Limits that are not named stay zero, which
// means the engine's.
func ParseLimits[V any](settings map[string]V) (Limits, error) {
	var out Limits
	for name, setting := range settings {
		d := limitNamed(name)
		if d == nil {
			return Limits{}, errorf(CodeInvalidLimit, "there is no limit %q; there are %s", name, strings.Join(LimitNames(), ", "))
		}
		v, err := d.parse(strings.TrimSpace(fmt.Sprint(setting)))
		if err != nil {
			return Limits{}, err
		}
		*d.field(&out) = v
	}
	return out, nil
}

var sizeUnits = []struct {
	suffix string
	factor float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1},
}

func (d *limit) parse(text string) (int64, error) {
	value, ok := int64(0), false
	switch d.unit {
	case unitTime:
		t, err := time.ParseDuration(text)
		value, ok = int64(t), err == nil
	case unitBytes:
		value, ok = ParseSize(text)
	default:
		value, ok = parseCount(text, 1)
	}
	if !ok {
		return 0, errorf(CodeInvalidLimit, "the limit %s cannot be %q: %s", d.name, text, d.unit.form())
	}
	if value < d.least || value > d.most {
		return 0, errorf(CodeInvalidLimit, "the limit %s cannot be %q: it lies between %s and %s", d.name, text, d.text(d.least), d.text(d.most))
	}
	return value, nil
}

// ParseSize reads a number of bytes, with a unit or without.
func ParseSize(text string) (int64, bool) {
	number, factor := strings.ToLower(strings.TrimSpace(text)), 1.0
	for _, u := range sizeUnits {
		if n, found := strings.CutSuffix(number, u.suffix); found {
			number, factor = strings.TrimSpace(n), u.factor
			break
		}
	}
	return parseCount(number, factor)
}

func parseCount(text string, factor float64) (int64, bool) {
	text = strings.ReplaceAll(text, "_", "")
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && factor == 1 {
		return n, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) {
		return 0, false
	}
	if f *= factor; f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

func (u limitUnit) form() string {
	switch u {
	case unitTime:
		return "a time is written as in 90s or 1h30m"
	case unitBytes:
		return "a size is a number of bytes, or has a unit as in 256MiB"
	}
	return "a number is wanted"
}

func (d *limit) text(v int64) string {
	switch {
	case d.unit == unitTime:
		return time.Duration(v).String()
	case d.unit == unitBytes && v > 0:
		for _, u := range []struct {
			suffix string
			size   int64
		}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
			if v%u.size == 0 {
				return fmt.Sprint(v/u.size) + u.suffix
			}
		}
	}
	return fmt.Sprint(v)
}
