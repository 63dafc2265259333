package delta

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// fileSpans tells what the log knows of columns in a file: partition values,
// which are exact, and statistics, which outside writers have cut, rounded, left
// out or written in another shape. Whatever does not fit is taken as not there.
func fileSpans(f *AddFile, columns []prunedColumn) []span {
	out := make([]span, len(columns))
	var stats *statsJSON
	for i := range columns {
		c := &columns[i]
		if c.partition != "" {
			out[i] = partitionSpan(f, c)
			continue
		}
		if c.typ != nil && isVoid(c.typ) {
			out[i] = span{allNulls: true}
			continue
		}
		if stats == nil {
			stats = parseStats(f.Stats)
		}
		out[i] = stats.span(c)
	}
	return out
}

// partitionSpan is exact: it holds the value that a scan would give.
func partitionSpan(f *AddFile, c *prunedColumn) span {
	value := f.PartitionValues[c.partition]
	if value == nil || *value == "" {
		return span{allNulls: true}
	}
	d := partitionDatum(*value, c.typ)
	if d.kind == noKind {
		return span{} // reading the file will say what is wrong
	}
	return span{low: &d, high: &d, exact: true, noNulls: true}
}

// partitionDatum reads a partition value the way a scan does; the usual types without a detour.
func partitionDatum(value string, t *primitive) datum {
	if kindOf(t) == textKind {
		return textDatum(value)
	}
	if w, ok := t.arrow.(arrow.FixedWidthDataType); ok && kindOf(t) == intKind {
		if n, err := strconv.ParseInt(value, 10, w.BitWidth()); err == nil {
			return intDatum(n)
		}
		return datum{}
	}
	b := array.NewBuilder(memory.DefaultAllocator, t.arrow)
	defer b.Release()
	if appendPartition(b, &value, t, 1) != nil {
		return datum{}
	}
	arr := b.NewArray()
	defer arr.Release()
	if arr.IsNull(0) {
		return datum{}
	}
	return datumAt(arr, 0)
}

// datumAt gives a value that is not NULL.
func datumAt(arr arrow.Array, i int) datum {
	switch a := arr.(type) {
	case *array.Boolean:
		return boolDatum(a.Value(i))
	case *array.Int8, *array.Int16, *array.Int32, *array.Int64:
		return intDatum(intValue(arr, i))
	case *array.Float32:
		return floatDatum(float64(a.Value(i)))
	case *array.Float64:
		return floatDatum(a.Value(i))
	case *array.Decimal128:
		return decimalDatum(a.Value(i), a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.String:
		return textDatum(a.Value(i))
	case *array.Binary:
		return bytesDatum(string(a.Value(i)))
	case *array.Date32:
		return datum{kind: dateKind, i: int64(a.Value(i))}
	case *array.Timestamp:
		return datum{kind: timeKind, i: int64(a.Value(i))}
	}
	return datum{}
}

// statsJSON is the statistics of a file as the log has them: JSON that is cut
// into pieces, and decoded only where a column is asked for.
type statsJSON struct {
	records          *int64
	low, high, nulls string // objects of the columns
}

func parseStats(stats string) *statsJSON {
	out := &statsJSON{}
	ok := eachMember(stats, func(key, value string) {
		switch key {
		case "numRecords":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
				out.records = &n
			}
		case "minValues":
			out.low = value
		case "maxValues":
			out.high = value
		case "nullCount":
			out.nulls = value
		}
	})
	if !ok {
		return &statsJSON{}
	}
	return out
}

// memberAt gives the value at a path into objects, "" where there is none.
func memberAt(object string, path []string) string {
	for _, name := range path {
		found := ""
		ok := eachMember(object, func(key, value string) {
			if key == name {
				found = value
			}
		})
		if !ok || found == "null" {
			return ""
		}
		object = found
	}
	return object
}

// span gives what statistics tell of a column. With a deletion vector the
// counts are still those of all physical rows, or say nothing between none and
// all of them; the bounds then only get wider than need be.
func (s *statsJSON) span(c *prunedColumn) span {
	var out span
	if n, err := strconv.ParseInt(memberAt(s.nulls, c.physical), 10, 64); err == nil {
		out.noNulls = n == 0
		out.allNulls = s.records != nil && n == *s.records
	}
	if c.typ == nil {
		return out
	}
	if raw := memberAt(s.low, c.physical); raw != "" {
		out.low = bound(raw, c.typ, -1)
	}
	if raw := memberAt(s.high, c.physical); raw != "" {
		out.high = bound(raw, c.typ, 1)
	}
	return out
}

// bound reads a bound and moves it outwards (side -1 is down) by what writers
// are known to lose. nil says nothing.
func bound(raw string, t *primitive, side int) *datum {
	switch kindOf(t) {
	case intKind:
		if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
			return &datum{kind: intKind, i: n}
		}
	case floatKind:
		return floatBound(raw, side)
	case decimalKind:
		return decimalBound(raw, t, side)
	}
	var s string
	if json.Unmarshal([]byte(raw), &s) != nil {
		return nil
	}
	switch kindOf(t) {
	case textKind:
		// What is no text in UTF-8 came through JSON as U+FFFD: what stands before it bounds, too.
		s, _, _ = strings.Cut(s, "\uFFFD")
		return &datum{kind: textKind, s: s}
	case dateKind:
		if at, err := time.Parse("2006-01-02", s); err == nil {
			return &datum{kind: dateKind, i: floorDiv(at.Unix(), 86400)}
		}
	case timeKind:
		return timeBound(s, t, side)
	}
	return nil
}

// floatBound reads numbers, and the infinities as texts. A bound of a column that
// is double now and was float then was written as the shortest text of a float,
// which as a double is another number: the bound takes in both.
func floatBound(raw string, side int) *datum {
	v, err := strconv.ParseFloat(unquoted(raw), 64)
	if err != nil || math.IsNaN(v) {
		return nil // NaN has no place that all writers agree on
	}
	if narrow := float64(float32(v)); side < 0 {
		v = min(v, narrow)
	} else {
		v = max(v, narrow)
	}
	return &datum{kind: floatKind, f: v}
}

// decimalBound reads a decimal. Some writers go through a double, which keeps 15
// digits: the bound of a type with more gives way by one part in 10^15.
func decimalBound(raw string, t *primitive, side int) *datum {
	r, ok := parseRat(unquoted(raw))
	if !ok {
		return nil
	}
	if t.arrow.(*arrow.Decimal128Type).Precision <= 15 {
		return &datum{kind: decimalKind, r: r}
	}
	slack := new(big.Rat).Abs(r)
	slack.Mul(slack, big.NewRat(int64(side), 1e15))
	return &datum{kind: decimalKind, r: r.Add(r, slack)}
}

// unquoted gives a number that may stand in quotes.
func unquoted(raw string) string {
	var s string
	if json.Unmarshal([]byte(raw), &s) == nil {
		return s
	}
	return raw
}

// timeBound reads a time. Writers cut to milliseconds, some down and some
// towards 1970, so a bound gives way by one.
func timeBound(s string, t *primitive, side int) *datum {
	const milli = 1000
	for _, layout := range []struct {
		text  string
		zoned bool
	}{
		{"2006-01-02T15:04:05.999999999Z07:00", true},
		{"2006-01-02 15:04:05.999999999Z07:00", true},
		{"2006-01-02T15:04:05.999999999", false},
		{"2006-01-02 15:04:05.999999999", false},
		{"2006-01-02", false}, // of a column that was date
	} {
		at, err := time.Parse(layout.text, s)
		if err != nil {
			continue
		}
		_, offset := at.Zone()
		if instant := t.name == "timestamp"; instant && !layout.zoned || !instant && offset != 0 {
			return nil // whose zone is meant is not told
		}
		return &datum{kind: timeKind, i: at.UnixMicro() + int64(side)*milli}
	}
	return nil
}
