package plugins

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/runtime/plugin"
)

const (
	benchRows    = 64 << 10
	benchBatches = 16
)

var benchCurrencies = []string{"USD", "JPY", "GBP", "CHF", "SEK", "NOK", "EUR", "CZK"}

// benchInput makes items of 64k-row batches and 27 years of rates.
func benchInput(b *testing.B) (items, rates *arrow.Schema, itemBatches, rateBatches []arrow.RecordBatch) {
	mem, r := memory.DefaultAllocator, rand.New(rand.NewPCG(1, 2))
	rateTable := newTable(mem, schemaOf(b, "currency string, rate decimal(18,6), rate_date date"))
	for _, c := range benchCurrencies {
		for day := 10595; day < 20500; day++ {
			if day%7 < 5 && c != "EUR" {
				rateTable.add(c, decimal128.FromI64(500_000+r.Int64N(2e8)), arrow.Date32(day))
			}
		}
	}
	rateTable.cut()
	table := newTable(mem, schemaOf(b, "VBELN string, POSNR int, NETWR decimal(15,2), WAERK string, ERDAT date, change_type string, change_seq bigint"))
	for range benchBatches {
		for i := range benchRows {
			table.add("4711", int32(i), decimal128.FromI64(r.Int64N(1e8)), benchCurrencies[r.IntN(len(benchCurrencies))], arrow.Date32(10600+r.IntN(9800)), "I", int64(i))
		}
		table.cut()
	}
	return table.schema, rateTable.schema, table.batches, rateTable.batches
}

func reader(b *testing.B, schema *arrow.Schema, batches []arrow.RecordBatch) array.RecordReader {
	r, err := array.NewRecordReader(schema, batches)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func perRow(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows/benchBatches, "ns/row")
}

// BenchmarkConversionInTheSandbox is a whole task, the loading of the rates in it.
func BenchmarkConversionInTheSandbox(b *testing.B) {
	m := load(b, "sap", nil)
	itemSchema, rateSchema, items, rates := benchInput(b)
	for b.Loop() {
		in, side := reader(b, itemSchema, items), reader(b, rateSchema, rates)
		out, err := m.Map(context.Background(), plugin.Call{Function: "vbap_typed", Inputs: []array.RecordReader{in, side}})
		if err != nil {
			b.Fatal(err)
		}
		n := int64(0)
		for out.Next() {
			n += out.RecordBatch().NumRows()
		}
		if out.Err() != nil || n != benchRows*benchBatches {
			b.Fatal(n, out.Err())
		}
		out.Release()
		in.Release()
		side.Release()
	}
	perRow(b)
}

// BenchmarkConversionNative is the loop that a Go program would write over the same Arrow arrays.
func BenchmarkConversionNative(b *testing.B) {
	_, _, items, rates := benchInput(b)
	type series struct {
		days  []arrow.Date32
		rates []int64
	}
	for b.Loop() {
		table := map[string]*series{}
		for _, batch := range rates {
			currency, rate, day := batch.Column(0).(*array.String), batch.Column(1).(*array.Decimal128), batch.Column(2).(*array.Date32)
			for i := range int(batch.NumRows()) {
				s := table[currency.Value(i)]
				if s == nil {
					s = &series{}
					table[currency.Value(i)] = s
				}
				s.days, s.rates = append(s.days, day.Value(i)), append(s.rates, int64(rate.Value(i).LowBits()))
			}
		}
		for _, batch := range items {
			amount, currency, day := batch.Column(2).(*array.Decimal128), batch.Column(3).(*array.String), batch.Column(4).(*array.Date32)
			out := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 18, Scale: 2})
			out.Reserve(int(batch.NumRows()))
			for i := range int(batch.NumRows()) {
				if currency.Value(i) == "EUR" {
					out.UnsafeAppend(amount.Value(i))
					continue
				}
				s := table[currency.Value(i)]
				at := sort.Search(len(s.days), func(k int) bool { return s.days[k] > day.Value(i) }) - 1
				hi, lo := bits.Mul64(amount.Value(i).LowBits(), 1_000_000)
				q, rem := bits.Div64(hi, lo, uint64(s.rates[at]))
				if rem >= uint64(s.rates[at])-rem {
					q++
				}
				out.UnsafeAppend(decimal128.FromU64(q))
			}
			out.NewArray().Release()
			out.Release()
		}
	}
	perRow(b)
}
