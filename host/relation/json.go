package relation

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// RowJSON gives row i of the batch as one JSON object: the user's columns in
// their order, nothing of the hidden ones. The text depends on nothing but the
// values and their types, so the same row gives the same bytes anywhere:
//
//   - numbers and decimals are JSON numbers, decimals with all digits of their scale;
//     NaN and the infinities are the strings "NaN", "Infinity", "-Infinity",
//   - dates and times are ISO 8601 strings, a timestamp of an instant in UTC with Z,
//     the fraction without trailing zeros,
//   - binary is base64, a string's invalid UTF-8 is U+FFFD,
//   - a map with string keys is an object in stored order, any other map a list
//     of {"key": …, "value": …}.
func RowJSON(rec arrow.RecordBatch, i int) []byte {
	return AppendRowJSON(nil, rec, i)
}

// AppendRowJSON appends what RowJSON gives to dst.
func AppendRowJSON(dst []byte, rec arrow.RecordBatch, i int) []byte {
	dst = append(dst, '{')
	first := true
	for c, f := range rec.Schema().Fields() {
		if Hidden(f.Name) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = AppendString(dst, f.Name)
		dst = append(dst, ':')
		dst = AppendJSON(dst, rec.Column(c), i)
	}
	return append(dst, '}')
}

// AppendJSON appends value i of the array as JSON, in the spelling of RowJSON.
func AppendJSON(dst []byte, arr arrow.Array, i int) []byte {
	if arr.IsNull(i) {
		return append(dst, "null"...)
	}
	switch a := arr.(type) {
	case *array.Null:
		return append(dst, "null"...)
	case *array.Boolean:
		return strconv.AppendBool(dst, a.Value(i))
	case *array.Int8:
		return strconv.AppendInt(dst, int64(a.Value(i)), 10)
	case *array.Int16:
		return strconv.AppendInt(dst, int64(a.Value(i)), 10)
	case *array.Int32:
		return strconv.AppendInt(dst, int64(a.Value(i)), 10)
	case *array.Int64:
		return strconv.AppendInt(dst, a.Value(i), 10)
	case *array.Uint8:
		return strconv.AppendUint(dst, uint64(a.Value(i)), 10)
	case *array.Uint16:
		return strconv.AppendUint(dst, uint64(a.Value(i)), 10)
	case *array.Uint32:
		return strconv.AppendUint(dst, uint64(a.Value(i)), 10)
	case *array.Uint64:
		return strconv.AppendUint(dst, a.Value(i), 10)
	case *array.Float16:
		return appendFloat(dst, float64(a.Value(i).Float32()), 32)
	case *array.Float32:
		return appendFloat(dst, float64(a.Value(i)), 32)
	case *array.Float64:
		return appendFloat(dst, a.Value(i), 64)
	case *array.Decimal32:
		return append(dst, a.Value(i).ToString(a.DataType().(arrow.DecimalType).GetScale())...)
	case *array.Decimal64:
		return append(dst, a.Value(i).ToString(a.DataType().(arrow.DecimalType).GetScale())...)
	case *array.Decimal128:
		return append(dst, a.Value(i).ToString(a.DataType().(arrow.DecimalType).GetScale())...)
	case *array.Decimal256:
		return append(dst, a.Value(i).ToString(a.DataType().(arrow.DecimalType).GetScale())...)
	case *array.String:
		return AppendString(dst, a.Value(i))
	case *array.LargeString:
		return AppendString(dst, a.Value(i))
	case *array.StringView:
		return AppendString(dst, a.Value(i))
	case *array.Binary:
		return appendBinary(dst, a.Value(i))
	case *array.LargeBinary:
		return appendBinary(dst, a.Value(i))
	case *array.BinaryView:
		return appendBinary(dst, a.Value(i))
	case *array.FixedSizeBinary:
		return appendBinary(dst, a.Value(i))
	case *array.Date32:
		return appendTime(dst, a.Value(i).ToTime(), "2006-01-02")
	case *array.Date64:
		return appendTime(dst, a.Value(i).ToTime(), "2006-01-02")
	case *array.Time32:
		return appendTime(dst, a.Value(i).ToTime(a.DataType().(*arrow.Time32Type).Unit), "15:04:05.999999999")
	case *array.Time64:
		return appendTime(dst, a.Value(i).ToTime(a.DataType().(*arrow.Time64Type).Unit), "15:04:05.999999999")
	case *array.Timestamp:
		t := a.DataType().(*arrow.TimestampType)
		layout := "2006-01-02T15:04:05.999999999"
		if t.TimeZone != "" {
			layout += "Z"
		}
		return appendTime(dst, a.Value(i).ToTime(t.Unit), layout)
	case *array.Duration:
		return appendSeconds(dst, int64(a.Value(i)), a.DataType().(*arrow.DurationType).Unit)
	case *array.Struct:
		return appendStruct(dst, a, i)
	case *array.Map:
		return appendMap(dst, a, i)
	case array.ListLike:
		return appendList(dst, a, i)
	case *array.Dictionary:
		return AppendJSON(dst, a.Dictionary(), a.GetValueIndex(i))
	case *array.RunEndEncoded:
		return AppendJSON(dst, a.Values(), a.GetPhysicalIndex(i))
	case array.Union:
		return AppendJSON(dst, a.Field(a.ChildID(i)), unionOffset(a, i))
	case array.ExtensionArray:
		return AppendJSON(dst, a.Storage(), i)
	default:
		return AppendString(dst, arr.ValueStr(i))
	}
}

func appendStruct(dst []byte, a *array.Struct, i int) []byte {
	dst = append(dst, '{')
	for c, f := range a.DataType().(*arrow.StructType).Fields() {
		if c > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, f.Name)
		dst = append(dst, ':')
		dst = AppendJSON(dst, a.Field(c), i)
	}
	return append(dst, '}')
}

func appendList(dst []byte, a array.ListLike, i int) []byte {
	start, end := a.ValueOffsets(i)
	values := a.ListValues()
	dst = append(dst, '[')
	for k := start; k < end; k++ {
		if k > start {
			dst = append(dst, ',')
		}
		dst = AppendJSON(dst, values, int(k))
	}
	return append(dst, ']')
}

func appendMap(dst []byte, a *array.Map, i int) []byte {
	start, end := a.ValueOffsets(i)
	keys, items := a.Keys(), a.Items()
	object := arrow.IsBaseBinary(keys.DataType().ID()) && keys.DataType().ID() != arrow.BINARY && keys.DataType().ID() != arrow.LARGE_BINARY
	open, shut := byte('['), byte(']')
	if object {
		open, shut = '{', '}'
	}
	dst = append(dst, open)
	for k := start; k < end; k++ {
		if k > start {
			dst = append(dst, ',')
		}
		if object {
			dst = AppendJSON(dst, keys, int(k))
			dst = append(dst, ':')
			dst = AppendJSON(dst, items, int(k))
			continue
		}
		dst = append(dst, `{"key":`...)
		dst = AppendJSON(dst, keys, int(k))
		dst = append(dst, `,"value":`...)
		dst = AppendJSON(dst, items, int(k))
		dst = append(dst, '}')
	}
	return append(dst, shut)
}

func unionOffset(a array.Union, i int) int {
	if d, ok := a.(*array.DenseUnion); ok {
		return int(d.ValueOffset(i))
	}
	return i
}

func appendFloat(dst []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Infinity"`...)
	}
	// As encoding/json: plain digits in the range people read, else an exponent.
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, v, format, -1, bits)
}

func appendTime(dst []byte, t time.Time, layout string) []byte {
	dst = append(dst, '"')
	dst = t.UTC().AppendFormat(dst, layout)
	return append(dst, '"')
}

// appendSeconds writes a duration as a number of seconds, exactly.
func appendSeconds(dst []byte, v int64, unit arrow.TimeUnit) []byte {
	digits := map[arrow.TimeUnit]int{arrow.Second: 0, arrow.Millisecond: 3, arrow.Microsecond: 6, arrow.Nanosecond: 9}[unit]
	if digits == 0 {
		return strconv.AppendInt(dst, v, 10)
	}
	if v < 0 {
		dst = append(dst, '-')
	}
	// The magnitude as unsigned: the least int64 has no positive twin.
	magnitude := uint64(v)
	if v < 0 {
		magnitude = -magnitude
	}
	per := uint64(math.Pow10(digits))
	dst = strconv.AppendUint(dst, magnitude/per, 10)
	return fmt.Appendf(dst, ".%0*d", digits, magnitude%per)
}

func appendBinary(dst, v []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, v)
	return append(dst, '"')
}

const hex = "0123456789abcdef"

// AppendString writes a text as a JSON string; what is no UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\uFFFD"...)
			start = i + 1
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
