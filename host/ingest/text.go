package ingest

import (
	"bytes"
	"math"
	"strings"
)

// nonNumeric reads the words for what is no finite number.
func nonNumeric(s string) (float64, bool) {
	switch s {
	case "NaN":
		return math.NaN(), true
	case "Infinity", "+Infinity", "INF", "+INF":
		return math.Inf(1), true
	case "-Infinity", "-INF":
		return math.Inf(-1), true
	}
	return 0, false
}

// timeOf reads a date or timestamp for a column of that kind.
func (c *config) timeOf(k kind, v []byte) (int64, bool) {
	switch k {
	case kindDate:
		return c.dateOf(v)
	case kindTimestampNTZ:
		return c.timestampNTZOf(v)
	}
	return c.timestampOf(v)
}

// putText reads a value from text (a CSV field, a folder's name) into row i of
// a column; false when it does not fit, and the row is null then.
func (c *config) putText(col *column, i int, v []byte) bool {
	switch col.kind {
	case kindString:
		col.putBytes(i, v)
		return true
	case kindBool:
		if len(v) == 4 && strings.EqualFold(text(v), "true") {
			col.putBool(i, true)
			return true
		}
		if len(v) == 5 && strings.EqualFold(text(v), "false") {
			col.putBool(i, false)
			return true
		}
	case kindInt8, kindInt16, kindInt32, kindInt64:
		if n, ok := parseInt(v); ok {
			return col.putInt(i, n)
		}
	case kindFloat32, kindFloat64:
		bits := 64
		if col.kind == kindFloat32 {
			bits = 32
		}
		if f, ok := c.floatOf(v, bits); ok {
			col.putFloat(i, f)
			return true
		}
	case kindDecimal:
		if n, ok := parseDecimal(withoutCommas(v), col.precision, col.scale); ok {
			col.putDecimal(i, n)
			return true
		}
	case kindDate, kindTimestamp, kindTimestampNTZ:
		if n, ok := c.timeOf(col.kind, v); ok {
			return col.putInt(i, n)
		}
	}
	return false
}

// floatOf reads a floating point number with spaces around it, or one of the
// words for NaN and infinity. Java's suffixes (1d, 1f) and hexadecimal forms
// are no numbers here: in data they are codes.
func (c *config) floatOf(v []byte, bits int) (float64, bool) {
	switch string(v) {
	case c.csv.nan:
		return math.NaN(), true
	case c.csv.posInf:
		return math.Inf(1), true
	case c.csv.negInf:
		return math.Inf(-1), true
	}
	v = bytes.TrimSpace(v)
	if f, ok := nonNumeric(text(v)); ok && len(v) > 0 {
		return f, true
	}
	if !floatGrammar(v) {
		return 0, false
	}
	return parseFloat(v, bits)
}

func floatGrammar(v []byte) bool {
	i, seen := 0, false
	if i < len(v) && (v[i] == '-' || v[i] == '+') {
		i++
	}
	for ; i < len(v) && v[i]-'0' <= 9; i++ {
		seen = true
	}
	if i < len(v) && v[i] == '.' {
		for i++; i < len(v) && v[i]-'0' <= 9; i++ {
			seen = true
		}
	}
	if !seen {
		return false
	}
	if i < len(v) && v[i]|0x20 == 'e' {
		i++
		if i < len(v) && (v[i] == '-' || v[i] == '+') {
			i++
		}
		start := i
		for ; i < len(v) && v[i]-'0' <= 9; i++ {
		}
		if i == start {
			return false
		}
	}
	return i == len(v)
}
