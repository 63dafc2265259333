package rowcode

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// customers is a batch as a dimension has it: numbers, dates, amounts and short texts.
func customers(n int) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "city", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "segment", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "since", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
		{Name: "limit", Type: &arrow.Decimal128Type{Precision: 18, Scale: 2}, Nullable: true},
		{Name: "score", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "changed", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("Customer number %d", i))
		b.Field(2).(*array.StringBuilder).Append([]string{"Oaxaca", "Guadalajara", "Monterrey"}[i%3])
		b.Field(3).(*array.StringBuilder).Append([]string{"A", "B", "C"}[i%3])
		b.Field(4).(*array.Date32Builder).Append(arrow.Date32(i))
		b.Field(5).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(i) * 100))
		if i%10 == 0 {
			b.Field(6).AppendNull()
		} else {
			b.Field(6).(*array.Float64Builder).Append(float64(i) / 3)
		}
		b.Field(7).(*array.TimestampBuilder).Append(arrow.Timestamp(i))
	}
	return b.NewRecordBatch()
}

func perValue(b *testing.B, values int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(values), "ns/value")
}

func BenchmarkRows(b *testing.B) {
	rec := customers(1 << 16)
	defer rec.Release()
	b.ReportAllocs()
	for b.Loop() {
		Rows(rec, []int{0, 1, 2, 3, 4, 5, 6, 7})
	}
	perValue(b, 8<<16)
}

func BenchmarkKeys(b *testing.B) {
	rec := customers(1 << 16)
	defer rec.Release()
	for _, columns := range [][]int{{0}, {1}, {0, 3}} {
		b.Run(fmt.Sprint(columns), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				keys, err := Keys(rec, columns)
				if err != nil {
					b.Fatal(err)
				}
				Hashes(keys)
			}
			perValue(b, 1<<16)
		})
	}
}

func BenchmarkOrder(b *testing.B) {
	rec := customers(1 << 16)
	defer rec.Release()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Order(rec.Column(7)); err != nil {
			b.Fatal(err)
		}
	}
	perValue(b, 1<<16)
}
