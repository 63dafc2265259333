package delta

import (
	"bytes"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// statsFromStruct writes the JSON of statistics that a checkpoint holds as a
// struct. Values of types that have no bounds are left out.
func statsFromStruct(s *array.Struct, i int) string {
	var b bytes.Buffer
	writeStatsStruct(&b, s, i, 0)
	return b.String()
}

func writeStatsStruct(b *bytes.Buffer, s *array.Struct, i, depth int) {
	b.WriteByte('{')
	first := true
	for j, f := range s.DataType().(*arrow.StructType).Fields() {
		child := s.Field(j)
		if child.IsNull(i) {
			continue
		}
		mark := b.Len()
		if !first {
			b.WriteByte(',')
		}
		writeString(b, f.Name)
		b.WriteByte(':')
		if inner, ok := child.(*array.Struct); ok {
			from := b.Len()
			writeStatsStruct(b, inner, i, depth+1)
			if depth > 0 && b.Len() == from+len("{}") {
				b.Truncate(mark) // a column of structs without any value
				continue
			}
		} else if v := statJSON(child, i); v != "" {
			b.WriteString(v)
		} else {
			b.Truncate(mark)
			continue
		}
		first = false
	}
	b.WriteByte('}')
}

// statJSON gives one value in the form that statistics have, "" for none.
func statJSON(arr arrow.Array, i int) string {
	switch a := arr.(type) {
	case *array.Int8, *array.Int16, *array.Int32, *array.Int64:
		return itoa(intValue(arr, i))
	case *array.Boolean:
		return strconv.FormatBool(a.Value(i))
	case *array.Float32:
		return (&floats[float32, *array.Float32]{some: true}).text(float64(a.Value(i)))
	case *array.Float64:
		return (&floats[float64, *array.Float64]{some: true, nan: a.Value(i) != a.Value(i)}).text(a.Value(i))
	case *array.String:
		return jsonString(a.Value(i))
	case *array.Date32:
		return dateStat(int64(a.Value(i)))
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Timestamp:
		t := a.DataType().(*arrow.TimestampType)
		zone := ""
		if t.TimeZone != "" {
			zone = "Z"
		}
		switch v := int64(a.Value(i)); t.Unit {
		case arrow.Microsecond:
			return timestampStat(v, zone)
		case arrow.Millisecond:
			return timestampStat(v*1000, zone)
		case arrow.Nanosecond:
			return timestampStat(floorDiv(v, 1000), zone)
		}
	}
	return ""
}
