package delta

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/weir-data/weir/host/fault"
)

const hiveNull = "__HIVE_DEFAULT_PARTITION__"

// partitionValue gives row i of a column as partitionValues holds it; nil is null.
func partitionValue(arr arrow.Array, i int) (*string, error) {
	if arr.IsNull(i) {
		return nil, nil
	}
	var s string
	switch a := arr.(type) {
	case *array.String:
		s = a.Value(i)
	case *array.Binary:
		if !utf8.Valid(a.Value(i)) {
			return nil, fault.New("DELTA_INVALID_PARTITION_VALUE", "bytes that are not UTF-8 cannot be a partition value")
		}
		s = string(a.Value(i))
	case *array.Boolean:
		s = strconv.FormatBool(a.Value(i))
	case *array.Int8, *array.Int16, *array.Int32, *array.Int64:
		s = itoa(intValue(arr, i))
	case *array.Float32:
		s = javaFloat(float64(a.Value(i)), 32)
	case *array.Float64:
		s = javaFloat(a.Value(i), 64)
	case *array.Decimal128:
		s = a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Date32:
		s = formatDate(int64(a.Value(i)))
	case *array.Timestamp:
		t := time.UnixMicro(int64(a.Value(i))).UTC()
		if a.DataType().(*arrow.TimestampType).TimeZone != "" {
			s = t.Format("2006-01-02T15:04:05.000000Z")
		} else {
			s = t.Format("2006-01-02 15:04:05.000000")
		}
	default:
		return nil, fault.New("DELTA_INVALID_PARTITION_COLUMN_TYPE", "type %s cannot partition a table", arr.DataType())
	}
	if s == "" {
		return nil, nil // the empty string has no directory: it is null
	}
	if strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		return nil, fault.New("DELTA_INVALID_PARTITION_VALUE", "value %q cannot be part of a path", s)
	}
	return &s, nil
}

func formatDate(days int64) string {
	return time.Unix(days*86400, 0).UTC().Format("2006-01-02")
}

// javaFloat writes a number as Java's toString does, which is how Spark spells it.
func javaFloat(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0:
		return "0.0"
	}
	if a := math.Abs(f); a >= 1e-3 && a < 1e7 {
		s := strconv.FormatFloat(f, 'f', -1, bits)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	mantissa, exp, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, bits), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exp) // FormatFloat writes a number there
	return mantissa + "E" + strconv.Itoa(n)
}

// partitionDir gives the directory of a partition, decoded: Hive's escapes are part of the name.
func partitionDir(columns []string, values map[string]*string) string {
	var b strings.Builder
	for _, c := range columns {
		v := hiveNull
		if p := values[c]; p != nil {
			v = hiveEscape(*p)
		}
		b.WriteString(shortElement(hiveEscape(c) + "=" + v))
		b.WriteByte('/')
	}
	return b.String()
}

// appendPartition appends a value of partitionValues n times.
func appendPartition(b array.Builder, value *string, t *primitive, n int) error {
	if value == nil || *value == "" || t.arrow.ID() == arrow.NULL {
		b.AppendNulls(n)
		return nil
	}
	s := *value
	var err error
	switch b := b.(type) {
	case *array.StringBuilder:
		repeat(n, func() { b.Append(s) })
	case *array.BinaryBuilder:
		repeat(n, func() { b.AppendString(s) })
	case *array.BooleanBuilder:
		var v bool
		if v, err = strconv.ParseBool(strings.ToLower(s)); err == nil {
			repeat(n, func() { b.Append(v) })
		}
	case *array.Int8Builder:
		err = appendInt(s, 8, n, func(v int64) { b.Append(int8(v)) })
	case *array.Int16Builder:
		err = appendInt(s, 16, n, func(v int64) { b.Append(int16(v)) })
	case *array.Int32Builder:
		err = appendInt(s, 32, n, func(v int64) { b.Append(int32(v)) })
	case *array.Int64Builder:
		err = appendInt(s, 64, n, b.Append)
	case *array.Float32Builder:
		var v float64
		if v, err = strconv.ParseFloat(s, 32); err == nil {
			repeat(n, func() { b.Append(float32(v)) })
		}
	case *array.Float64Builder:
		var v float64
		if v, err = strconv.ParseFloat(s, 64); err == nil {
			repeat(n, func() { b.Append(v) })
		}
	case *array.Decimal128Builder:
		var v decimal128.Num
		if v, err = parseDecimal(s, t.arrow.(*arrow.Decimal128Type)); err == nil {
			repeat(n, func() { b.Append(v) })
		}
	case *array.Date32Builder:
		var v time.Time
		if v, err = time.Parse("2006-01-02", s); err == nil {
			repeat(n, func() { b.Append(arrow.Date32(floorDiv(v.Unix(), 86400))) })
		}
	case *array.TimestampBuilder:
		var v time.Time
		if v, err = parseTimestamp(s); err == nil {
			repeat(n, func() { b.Append(arrow.Timestamp(v.UnixMicro())) })
		}
	default:
		return fault.New("DELTA_INVALID_PARTITION_COLUMN_TYPE", "type %s cannot partition a table", t.sparkName())
	}
	if err != nil {
		return fault.Wrap(err, "DELTA_INVALID_PARTITION_VALUE", "value %q is no %s", s, t.sparkName())
	}
	return nil
}

func repeat(n int, f func()) {
	for range n {
		f()
	}
}

func appendInt(s string, bits, n int, add func(int64)) error {
	v, err := strconv.ParseInt(s, 10, bits)
	if err == nil {
		repeat(n, func() { add(v) })
	}
	return err
}

// parseTimestamp reads the spellings that writers use. One without a zone is taken as UTC.
func parseTimestamp(s string) (time.Time, error) {
	var first error
	for _, layout := range []string{"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02"} {
		t, err := time.Parse(layout, s)
		if err == nil {
			return t, nil
		}
		if first == nil {
			first = err
		}
	}
	return time.Time{}, first
}

// parseDecimal reads a decimal exactly; one that does not fit the type is an error.
func parseDecimal(s string, t *arrow.Decimal128Type) (decimal128.Num, error) {
	r, ok := parseRat(s)
	if !ok {
		return decimal128.Num{}, strconv.ErrSyntax
	}
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Scale)), nil)))
	if !r.IsInt() {
		return decimal128.Num{}, strconv.ErrRange
	}
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Precision)), nil)
	if r.Num().CmpAbs(limit) >= 0 {
		return decimal128.Num{}, strconv.ErrRange
	}
	return decimal128.FromBigInt(r.Num()), nil
}

// parseRat reads a decimal number of a sane size.
func parseRat(s string) (*big.Rat, bool) {
	if strings.ContainsAny(s, "/_xXpP") || len(s) > 100 {
		return nil, false
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if exp, err := strconv.Atoi(s[i+1:]); err != nil || exp < -100 || exp > 100 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(s)
}
