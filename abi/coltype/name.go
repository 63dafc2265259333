package coltype

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// Name gives the canonical name of an Arrow type: Spark's simple string where
// Spark has the type, else a name of ours that Parse reads back.
func Name(dt arrow.DataType) (string, error) {
	var b strings.Builder
	if err := writeName(&b, dt, 0); err != nil {
		return "", err
	}
	return b.String(), nil
}

// String is Name for messages: a type outside the subset gives Arrow's own name.
func String(dt arrow.DataType) string {
	if n, err := Name(dt); err == nil {
		return n
	}
	if dt == nil {
		return "nil"
	}
	return dt.String()
}

var plainNames = map[arrow.Type]string{
	arrow.NULL: "void", arrow.BOOL: "boolean",
	arrow.INT8: "tinyint", arrow.INT16: "smallint", arrow.INT32: "int", arrow.INT64: "bigint",
	arrow.UINT8: "uint8", arrow.UINT16: "uint16", arrow.UINT32: "uint32", arrow.UINT64: "uint64",
	arrow.FLOAT32: "float", arrow.FLOAT64: "double",
	arrow.STRING: "string", arrow.LARGE_STRING: "large_string",
	arrow.BINARY: "binary", arrow.LARGE_BINARY: "large_binary",
	arrow.DATE32: "date",
}

func writeName(b *strings.Builder, dt arrow.DataType, depth int) error {
	if depth > maxDepth {
		return errorf(CodeUnsupported, "a type nested deeper than %d", maxDepth)
	}
	if dt == nil {
		return errorf(CodeUnsupported, "no type")
	}
	if n, ok := plainNames[dt.ID()]; ok {
		b.WriteString(n)
		return nil
	}
	switch t := dt.(type) {
	case *arrow.Decimal128Type:
		fmt.Fprintf(b, "decimal(%d,%d)", t.Precision, t.Scale)
	case *arrow.Decimal256Type:
		fmt.Fprintf(b, "decimal256(%d,%d)", t.Precision, t.Scale)
	case *arrow.TimestampType:
		writeTimestamp(b, t)
	case *arrow.Time32Type:
		fmt.Fprintf(b, "time(%s)", t.Unit)
	case *arrow.Time64Type:
		if t.Unit == arrow.Microsecond {
			b.WriteString("time")
		} else {
			fmt.Fprintf(b, "time(%s)", t.Unit)
		}
	case *arrow.DurationType:
		if t.Unit == arrow.Microsecond {
			b.WriteString("duration")
		} else {
			fmt.Fprintf(b, "duration(%s)", t.Unit)
		}
	case *arrow.FixedSizeBinaryType:
		fmt.Fprintf(b, "fixed_size_binary(%d)", t.ByteWidth)
	case *arrow.ListType:
		return writeElem(b, "array<", t.Elem(), depth, ">")
	case *arrow.LargeListType:
		return writeElem(b, "large_array<", t.Elem(), depth, ">")
	case *arrow.FixedSizeListType:
		return writeElem(b, "fixed_size_array<", t.Elem(), depth, fmt.Sprintf(",%d>", t.Len()))
	case *arrow.MapType:
		if err := writeElem(b, "map<", t.KeyType(), depth, ","); err != nil {
			return err
		}
		return writeElem(b, "", t.ItemType(), depth, ">")
	case *arrow.StructType:
		b.WriteString("struct<")
		for i, f := range t.Fields() {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeElem(b, quote(f.Name)+":", f.Type, depth, ""); err != nil {
				return err
			}
			if !f.Nullable {
				b.WriteString(" not null")
			}
		}
		b.WriteByte('>')
	default:
		return errorf(CodeUnsupported, "Arrow type %s is outside the subset that crosses the boundary", dt)
	}
	return nil
}

func writeElem(b *strings.Builder, before string, dt arrow.DataType, depth int, after string) error {
	b.WriteString(before)
	if err := writeName(b, dt, depth+1); err != nil {
		return err
	}
	b.WriteString(after)
	return nil
}

func writeTimestamp(b *strings.Builder, t *arrow.TimestampType) {
	switch {
	case t.Unit == arrow.Microsecond && t.TimeZone == "UTC":
		b.WriteString("timestamp")
	case t.Unit == arrow.Microsecond && t.TimeZone == "":
		b.WriteString("timestamp_ntz")
	case t.TimeZone == "":
		fmt.Fprintf(b, "timestamp_ntz(%s)", t.Unit)
	default:
		fmt.Fprintf(b, "timestamp(%s,'%s')", t.Unit, strings.ReplaceAll(t.TimeZone, "'", "''"))
	}
}

// quote puts a field name in backticks when a bare one would not read back.
func quote(name string) string {
	bare := name != ""
	for _, r := range name {
		if !identRune(r) {
			bare = false
			break
		}
	}
	if bare {
		return name
	}
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}
