package sql

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/relation"
)

// orderBatches makes order rows in batches, as a source gives them.
func orderBatches(rows, batch int) []arrow.RecordBatch {
	schema := relation.SourceColumns([]arrow.Field{
		{Name: "order_id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "customer", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "qty", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "amount", Type: &arrow.Decimal128Type{Precision: 18, Scale: 2}, Nullable: true},
		{Name: "currency", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "ordered_at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
	}, false)
	currencies := []string{"EUR", "USD", "JPY", "GBP"}
	var out []arrow.RecordBatch
	for start := 0; start < rows; start += batch {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i := start; i < min(start+batch, rows); i++ {
			b.Field(0).(*array.Int64Builder).Append(int64(i))
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("customer number %d", i%5000))
			b.Field(2).(*array.Int32Builder).Append(int32(i % 100))
			b.Field(3).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(i) * 7))
			b.Field(4).(*array.StringBuilder).Append(currencies[i%4])
			b.Field(5).(*array.TimestampBuilder).Append(arrow.Timestamp(1700000000000000 + int64(i)*1000000))
			b.Field(6).(*array.Int64Builder).Append(int64(i))
		}
		out = append(out, b.NewRecordBatch())
		b.Release()
	}
	return out
}

// BenchmarkExpectations projects a million rows and checks five expectations.
func BenchmarkExpectations(b *testing.B) {
	const rows = 1 << 20
	e, err := Open(context.Background(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	batches := orderBatches(rows, 1<<16)
	q := Query{
		Text:   "SELECT order_id, customer, qty * 2 AS double_qty, amount, currency, ordered_at FROM orders",
		Stream: "orders", Clock: batchTime,
		Expectations: []string{"order_id IS NOT NULL", "double_qty > 0", "amount >= 0", "currency IN ('EUR', 'USD', 'GBP')", "ordered_at <= now()"},
	}
	for b.Loop() {
		in, err := array.NewRecordReader(batches[0].Schema(), batches)
		if err != nil {
			b.Fatal(err)
		}
		out, err := e.Run(context.Background(), q, map[string]array.RecordReader{"orders": in})
		if err != nil {
			b.Fatal(err)
		}
		n := int64(0)
		for out.Next() {
			n += out.RecordBatch().NumRows()
		}
		if out.Err() != nil || n != rows {
			b.Fatal(n, out.Err())
		}
		out.Release()
		in.Release()
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

// BenchmarkOneRow is the cost of a query that has nothing to do.
func BenchmarkOneRow(b *testing.B) {
	e, err := Open(context.Background(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	batches := orderBatches(1, 1)
	q := Query{Text: "SELECT order_id, qty FROM orders", Stream: "orders", Clock: batchTime}
	for b.Loop() {
		in, _ := array.NewRecordReader(batches[0].Schema(), batches)
		out, err := e.Run(context.Background(), q, map[string]array.RecordReader{"orders": in})
		if err != nil {
			b.Fatal(err)
		}
		for out.Next() {
		}
		out.Release()
		in.Release()
	}
}
