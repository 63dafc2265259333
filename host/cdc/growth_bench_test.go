package cdc_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/cdctest"
)

var benchColumns = []arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "amount", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
}

// benchChanges makes changes of the given keys with one sequence.
func benchChanges(ids []int64, seq int64, deletes func(i int) bool) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, cdctest.Fields(benchColumns, arrow.PrimitiveTypes.Int64, "delete"))
	defer b.Release()
	for i, id := range ids {
		b.Field(0).(*array.Int64Builder).Append(id)
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("customer %d of %d", id*7919%1000003, (id+seq)%97))
		b.Field(2).(*array.Float64Builder).Append(float64(id*31%100000)/100 + float64(seq))
		b.Field(3).(*array.Int64Builder).Append(seq)
		b.Field(4).(*array.BooleanBuilder).Append(deletes != nil && deletes(i))
	}
	return b.NewRecordBatch()
}

// BenchmarkGrowth applies 10,000 random changes to targets of several sizes:
// nine tenths update rows, the others insert and delete.
func BenchmarkGrowth(b *testing.B) {
	for _, scd := range []int{1, 2} {
		for _, n := range []int{100_000, 1_000_000, 10_000_000} {
			var target *cdctest.Target
			seq := int64(1)
			next := int64(n)
			rng := rand.New(rand.NewPCG(1, 1))
			batch := func() arrow.RecordBatch {
				seq++
				seen := map[int64]bool{}
				var ids []int64
				for len(ids) < 10_000 {
					id := rng.Int64N(next)
					if len(ids)%20 == 0 {
						id = next
						next++
					}
					if !seen[id] {
						seen[id] = true
						ids = append(ids, id)
					}
				}
				return benchChanges(ids, seq, func(i int) bool { return i%20 == 1 })
			}
			apply := func(b *testing.B, rec arrow.RecordBatch) {
				b.Helper()
				defer rec.Release()
				if _, err := target.Apply(b.Context(), rec); err != nil {
					b.Fatal(err)
				}
			}
			b.Run(fmt.Sprintf("scd%d/rows=%d", scd, n), func(b *testing.B) {
				if target == nil {
					var err error
					if target, err = cdctest.Open(filepath.Join(b.TempDir(), "t"), cdc.Definition{Keys: []string{"id"}, SCDType: scd}, memory.DefaultAllocator); err != nil {
						b.Fatal(err)
					}
					var recs []arrow.RecordBatch
					ids := make([]int64, 0, 1<<17)
					for from := 0; from < n; from += cap(ids) {
						ids = ids[:0]
						for i := from; i < min(n, from+cap(ids)); i++ {
							ids = append(ids, int64(i))
						}
						recs = append(recs, benchChanges(ids, 1, nil))
					}
					if _, err := target.Apply(b.Context(), recs...); err != nil {
						b.Fatal(err)
					}
					for _, rec := range recs {
						rec.Release()
					}
					apply(b, batch()) // makes the index
				}
				for b.Loop() {
					b.StopTimer()
					rec := batch()
					b.StartTimer()
					apply(b, rec)
				}
			})
			if target != nil {
				if err := target.Close(); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}
