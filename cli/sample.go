package cli

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// sampleReader gives made-up rows of a schema, the same ones each time: small
// values, repeated ones, and every seventh a null where nulls are allowed.
func sampleReader(mem memory.Allocator, schema *arrow.Schema, rows int) (array.RecordReader, error) {
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	for i := range rows {
		for c, f := range schema.Fields() {
			if f.Nullable && (i+c)%7 == 6 {
				b.Field(c).AppendNull()
				continue
			}
			appendSample(b.Field(c), int64(i+c))
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	return array.NewRecordReader(schema, []arrow.RecordBatch{rec})
}

func appendSample(b array.Builder, n int64) {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(n%2 == 0)
	case *array.Int8Builder:
		b.Append(int8(n % 100))
	case *array.Int16Builder:
		b.Append(int16(n % 1000))
	case *array.Int32Builder:
		b.Append(int32(n))
	case *array.Int64Builder:
		b.Append(n)
	case *array.Float32Builder:
		b.Append(float32(n) / 4)
	case *array.Float64Builder:
		b.Append(float64(n) / 4)
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(n % 100 * 7))
	case *array.StringBuilder:
		b.Append(sampleWords[n%int64(len(sampleWords))])
	case *array.BinaryBuilder:
		b.Append(fmt.Appendf(nil, "%d", n))
	case *array.Date32Builder:
		b.Append(arrow.Date32FromTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(n%400))))
	case *array.TimestampBuilder:
		b.AppendTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * 37 * time.Minute))
	case *array.ListBuilder:
		b.Append(true)
		for k := range n % 3 {
			appendSample(b.ValueBuilder(), n+k)
		}
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			appendSample(b.FieldBuilder(i), n+int64(i))
		}
	default:
		b.AppendEmptyValue()
	}
}

// sampleWords look like what columns of text often hold, so that functions get past their first check.
var sampleWords = []string{"1", "USD", "2026-01-05", "12.50", "EUR", "I", "", "A-100", "XXX", "-7", "grüße", "U"}
