package delta

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// fileStats collects the statistics of one data file: a tree like the schema's.
type fileStats struct {
	rows   int64
	prefix int
	root   []*columnStats
}

// columnStats is a struct with children, or a leaf.
type columnStats struct {
	name     string
	children []*columnStats
	index    int // of the column in its struct
	nulls    int64
	bounds   bounds // nil where the type has none
}

// bounds keeps the least and the greatest value of a column.
type bounds interface {
	// observe looks at the rows that are valid.
	observe(arr arrow.Array, valid func(i int) bool)
	// low and high give JSON values, "" where there is none.
	low(prefix int) string
	high(prefix int) string
}

// newFileStats makes a collector for the columns of a file that the properties
// choose, and those of always, which are paths as the file has them.
func newFileStats(l *layout, properties map[string]string, always [][]string) *fileStats {
	s := &fileStats{prefix: defaultStringPrefix}
	if n, err := strconv.Atoi(properties[statsPrefixKey]); err == nil && n > 0 {
		s.prefix = n
	}
	t := &statsTree{mapped: l.mapped, choose: statsChoice(properties, always)}
	s.root = t.grow(l.fields, nil, nil)
	return s
}

// statsTree makes the tree of collectors.
type statsTree struct {
	mapped bool
	choose func(path, stored []string) bool
}

func (t *statsTree) grow(fields []*field, path, stored []string) []*columnStats {
	var out []*columnStats
	index := 0
	for _, f := range fields {
		if isVoid(f.typ) {
			continue // no file has it
		}
		c := &columnStats{name: f.storedName(t.mapped), index: index}
		index++
		at, storedAt := append(path[:len(path):len(path)], f.name), append(stored[:len(stored):len(stored)], c.name)
		if st, ok := f.typ.(*structType); ok {
			if c.children = t.grow(st.fields, at, storedAt); c.children == nil {
				continue
			}
		} else if !t.choose(at, storedAt) {
			continue
		} else if p, ok := f.typ.(*primitive); ok {
			c.bounds = newBounds(p.arrow)
		}
		out = append(out, c)
	}
	return out
}

func newBounds(t arrow.DataType) bounds {
	switch t := t.(type) {
	case *arrow.Int8Type:
		return &ordered[int8, *array.Int8]{values: (*array.Int8).Int8Values}
	case *arrow.Int16Type:
		return &ordered[int16, *array.Int16]{values: (*array.Int16).Int16Values}
	case *arrow.Int32Type:
		return &ordered[int32, *array.Int32]{values: (*array.Int32).Int32Values}
	case *arrow.Int64Type:
		return &ordered[int64, *array.Int64]{values: (*array.Int64).Int64Values}
	case *arrow.Date32Type:
		return &ordered[arrow.Date32, *array.Date32]{values: (*array.Date32).Date32Values, format: dateStat}
	case *arrow.TimestampType:
		zone := ""
		if t.TimeZone != "" {
			zone = "Z"
		}
		return &ordered[arrow.Timestamp, *array.Timestamp]{values: (*array.Timestamp).TimestampValues, format: func(v int64) string { return timestampStat(v, zone) }}
	case *arrow.Float32Type:
		return &floats[float32, *array.Float32]{values: (*array.Float32).Float32Values}
	case *arrow.Float64Type:
		return &floats[float64, *array.Float64]{values: (*array.Float64).Float64Values}
	case *arrow.Decimal128Type:
		return &decimals{scale: t.Scale}
	case *arrow.StringType:
		return &texts{}
	}
	return nil
}

func (s *fileStats) observe(cols []arrow.Array, rows int) {
	s.rows += int64(rows)
	for _, c := range s.root {
		c.observe(cols[c.index], nil)
	}
}

// observe takes in a column; parent tells which rows have a valid parent, nil is all.
func (c *columnStats) observe(arr arrow.Array, parent func(i int) bool) {
	valid := parent
	if arr.NullN() > 0 {
		valid = arr.IsValid
		if parent != nil {
			valid = func(i int) bool { return parent(i) && arr.IsValid(i) }
		}
	}
	if c.children != nil {
		s := arr.(*array.Struct)
		for _, child := range c.children {
			child.observe(s.Field(child.index), valid)
		}
		return
	}
	switch {
	case parent == nil:
		c.nulls += int64(arr.NullN())
	default:
		for i := range arr.Len() {
			if !valid(i) {
				c.nulls++
			}
		}
	}
	if c.bounds != nil {
		c.bounds.observe(arr, valid)
	}
}

// json writes the statistics as the log holds them, columns in the order of the schema.
func (s *fileStats) json() string {
	var b bytes.Buffer
	b.WriteString(`{"numRecords":` + itoa(s.rows) + `,"minValues":`)
	writeStats(&b, s.root, func(c *columnStats) string {
		if c.bounds == nil {
			return ""
		}
		return c.bounds.low(s.prefix)
	})
	b.WriteString(`,"maxValues":`)
	writeStats(&b, s.root, func(c *columnStats) string {
		if c.bounds == nil {
			return ""
		}
		return c.bounds.high(s.prefix)
	})
	b.WriteString(`,"nullCount":`)
	writeStats(&b, s.root, func(c *columnStats) string { return itoa(c.nulls) })
	b.WriteByte('}')
	return b.String()
}

// writeStats writes a tree of values; an empty value, and a struct of them, is left out below the root.
func writeStats(b *bytes.Buffer, cols []*columnStats, value func(*columnStats) string) bool {
	b.WriteByte('{')
	any := false
	for _, c := range cols {
		mark := b.Len()
		if any {
			b.WriteByte(',')
		}
		writeString(b, c.name)
		b.WriteByte(':')
		ok := false
		if c.children != nil {
			ok = writeStats(b, c.children, value)
		} else if v := value(c); v != "" {
			b.WriteString(v)
			ok = true
		}
		if !ok {
			b.Truncate(mark)
		}
		any = any || ok
	}
	b.WriteByte('}')
	return any
}

// ordered keeps bounds of integers and of what is stored as one.
type ordered[T cmp.Ordered, A arrow.Array] struct {
	values   func(A) []T
	format   func(int64) string // nil: a number
	min, max T
	some     bool
}

func (o *ordered[T, A]) observe(arr arrow.Array, valid func(int) bool) {
	values := o.values(arr.(A))
	if len(values) == 0 {
		return
	}
	lo, hi, some := o.min, o.max, o.some
	if valid == nil {
		if !some {
			lo, hi, some = values[0], values[0], true
		}
		for _, v := range values {
			lo, hi = min(lo, v), max(hi, v)
		}
	} else {
		for i, v := range values {
			if !valid(i) {
				continue
			}
			if !some {
				lo, hi, some = v, v, true
			}
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	o.min, o.max, o.some = lo, hi, some
}

func (o *ordered[T, A]) low(int) string  { return o.text(o.min) }
func (o *ordered[T, A]) high(int) string { return o.text(o.max) }

func (o *ordered[T, A]) text(v T) string {
	if !o.some {
		return ""
	}
	n := asInt(v)
	if o.format != nil {
		return o.format(n)
	}
	return itoa(n)
}

func asInt[T cmp.Ordered](v T) int64 {
	switch v := any(v).(type) {
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case int64:
		return v
	case arrow.Date32:
		return int64(v)
	case arrow.Timestamp:
		return int64(v)
	}
	return 0
}

// The formats of times hold years of four digits; bounds outside are left out.
var (
	firstMilli = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	lastMilli  = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC).UnixMilli()
)

func dateStat(days int64) string {
	if ms := days * 86_400_000; ms < firstMilli || ms > lastMilli {
		return ""
	}
	return `"` + formatDate(days) + `"`
}

// timestampStat cuts down to milliseconds, the max too: readers know and add one.
func timestampStat(micros int64, zone string) string {
	ms := floorDiv(micros, 1000)
	if ms < firstMilli || ms > lastMilli {
		return ""
	}
	return `"` + time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000") + zone + `"`
}

// floats keeps bounds of floating-point numbers. A column with a NaN has none:
// engines do not agree where it sorts, and a wrong bound skips live rows.
type floats[T float32 | float64, A arrow.Array] struct {
	values   func(A) []T
	min, max T
	some     bool
	nan      bool
}

func (f *floats[T, A]) observe(arr arrow.Array, valid func(int) bool) {
	for i, v := range f.values(arr.(A)) {
		if valid != nil && !valid(i) {
			continue
		}
		if v != v {
			f.nan = true
			return
		}
		if !f.some {
			f.min, f.max, f.some = v, v, true
		}
		f.min, f.max = min(f.min, v), max(f.max, v)
	}
}

func (f *floats[T, A]) low(int) string {
	if f.some && f.min == 0 {
		return "-0.0" // below both zeros
	}
	return f.text(float64(f.min))
}

func (f *floats[T, A]) high(int) string { return f.text(float64(f.max)) }

// text writes a float32 as the equal float64, so that a reader of either width gets a true bound.
func (f *floats[T, A]) text(v float64) string {
	switch {
	case !f.some || f.nan:
		return ""
	case math.IsInf(v, 0):
		return `"` + javaFloat(v, 64) + `"`
	}
	return javaFloat(v, 64)
}

type decimals struct {
	scale    int32
	min, max decimal128.Num
	some     bool
}

func (d *decimals) observe(arr arrow.Array, valid func(int) bool) {
	for i, v := range arr.(*array.Decimal128).Values() {
		if valid != nil && !valid(i) {
			continue
		}
		if !d.some {
			d.min, d.max, d.some = v, v, true
		}
		if v.Less(d.min) {
			d.min = v
		}
		if v.Greater(d.max) {
			d.max = v
		}
	}
}

func (d *decimals) low(int) string  { return d.text(d.min) }
func (d *decimals) high(int) string { return d.text(d.max) }

func (d *decimals) text(v decimal128.Num) string {
	if !d.some {
		return ""
	}
	return v.ToString(d.scale)
}

// texts keeps bounds of strings in the order of their bytes.
type texts struct {
	min, max string
	some     bool
}

func (t *texts) observe(arr arrow.Array, valid func(int) bool) {
	a := arr.(*array.String)
	lo, hi, some := t.min, t.max, t.some
	for i := range a.Len() {
		if valid != nil && !valid(i) {
			continue
		}
		v := a.Value(i)
		switch {
		case !some:
			lo, hi, some = v, v, true
		case v < lo:
			lo = v
		case v > hi:
			hi = v
		}
	}
	// The values die with the array.
	t.min, t.max, t.some = strings.Clone(lo), strings.Clone(hi), some
}

func (t *texts) low(prefix int) string {
	if !t.some || !utf8.ValidString(t.min) {
		return ""
	}
	return jsonString(truncateMin(t.min, prefix))
}

func (t *texts) high(prefix int) string {
	if !t.some || !utf8.ValidString(t.max) {
		return ""
	}
	v, ok := truncateMax(t.max, prefix)
	if !ok {
		return ""
	}
	return jsonString(v)
}

func jsonString(s string) string {
	var b bytes.Buffer
	writeString(&b, s)
	return b.String()
}

// cut splits s after at most n UTF-16 units, which is how Java counts, never within a character.
func cut(s string, n int) (head, tail string) {
	for i, r := range s {
		if n -= utf16.RuneLen(r); n < 0 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

func truncateMin(s string, n int) string {
	head, _ := cut(s, n)
	return head
}

// truncateMax cuts s and appends a character that sorts after the first one cut
// off. Where that one is the last there is, the cut moves on, up to twice the
// length; past that there is no bound.
func truncateMax(s string, n int) (string, bool) {
	head, tail := cut(s, n)
	for tail != "" {
		r, size := utf8.DecodeRuneInString(tail)
		switch {
		case r < 0x7F:
			return head + "\x7f", true
		case r < utf8.MaxRune:
			return head + string(rune(utf8.MaxRune)), true
		}
		if utf16Len(head)+2 > 2*n {
			return "", false
		}
		head, tail = s[:len(head)+size], tail[size:]
	}
	return head, true
}

func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
