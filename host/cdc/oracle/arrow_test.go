package oracle

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// put appends a value of the model to a column.
func put(b array.Builder, v val) {
	if v == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int32Builder:
		b.Append(int32(v.(int64))) //nolint:gosec // the tests' own numbers
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.(int64)))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.(int64))) //nolint:gosec // the tests' own numbers
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(v.(int64)))
	case *array.StructBuilder:
		b.Append(true)
		for i, f := range v.([]val) {
			put(b.FieldBuilder(i), f)
		}
	default:
		panic(fmt.Sprintf("no value goes into a %T", b))
	}
}

// get reads a value as the model has it.
func get(col arrow.Array, i int) val {
	if col.IsNull(i) {
		return nil
	}
	switch c := col.(type) {
	case *array.Boolean:
		return c.Value(i)
	case *array.Int32:
		return int64(c.Value(i))
	case *array.Int64:
		return c.Value(i)
	case *array.Float64:
		return c.Value(i)
	case *array.String:
		return c.Value(i)
	case *array.Timestamp:
		return int64(c.Value(i))
	case *array.Date32:
		return int64(c.Value(i))
	case *array.Decimal128:
		return int64(c.Value(i).LowBits()) //nolint:gosec // the tests' own numbers
	case *array.Struct:
		out := make([]val, c.NumField())
		for f := range out {
			out[f] = get(c.Field(f), i)
		}
		return out
	}
	panic(fmt.Sprintf("no value is read from a %T", col))
}
