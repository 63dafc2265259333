package cdc_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/cdctest"
)

// changeStream makes batches of changes of random keys, in the order of their sequence.
func changeStream(rows, keys, from int) []arrow.RecordBatch {
	s := cdctest.Fields([]arrow.Field{field("id", int64Type), field("name", stringType), field("city", stringType), field("amount", int64Type)}, int64Type, "delete")
	rng := rand.New(rand.NewPCG(1, uint64(from)))
	var out []arrow.RecordBatch
	const batch = 32 << 10
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for i := range rows {
		id := rng.IntN(keys)
		b.Field(0).(*array.Int64Builder).Append(int64(id))
		b.Field(1).(*array.StringBuilder).Append("customer " + strconv.Itoa(id))
		b.Field(2).(*array.StringBuilder).Append("city " + strconv.Itoa(rng.IntN(500)))
		b.Field(3).(*array.Int64Builder).Append(int64(rng.IntN(1000)))
		b.Field(4).(*array.Int64Builder).Append(int64(from + i))
		b.Field(5).(*array.BooleanBuilder).Append(rng.IntN(100) == 0)
		if i%batch == batch-1 || i == rows-1 {
			out = append(out, b.NewRecordBatch())
		}
	}
	return out
}

// BenchmarkBulk is the first load of SCD type 2. WEIR_BENCH_ROWS sets its size.
func BenchmarkBulk(b *testing.B) {
	rows, err := strconv.Atoi(os.Getenv("WEIR_BENCH_ROWS"))
	if err != nil {
		rows = 500_000
	}
	recs := changeStream(rows, rows/10, 0)
	for b.Loop() {
		x, err := cdctest.Open(b.TempDir(), cdc.Definition{Keys: []string{"id"}, SCDType: 2}, memory.DefaultAllocator)
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		if _, err := x.ApplyTasks(background, 2, recs...); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(rows)/time.Since(start).Seconds()/1e6, "Mrows/s")
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
