package cdc_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/cdctest"
	"github.com/weir-data/weir/host/delta"
)

// TestATargetThatIsPackedBetweenBatchesIsTheSame: table and state agree after the
// target's files were packed and purged, whatever comes then.
func TestATargetThatIsPackedBetweenBatchesIsTheSame(t *testing.T) {
	for _, scd := range []int{1, 2} {
		for _, off := range []bool{false, true} {
			t.Run(fmt.Sprintf("scd%d/off=%v", scd, off), func(t *testing.T) {
				ctx := t.Context()
				// Two keys: their order in the definition is not that of their names.
				def := cdc.Definition{Keys: []string{"part", "id"}, SCDType: scd}
				packed, plain := cdctest.New(t, def), cdctest.New(t, def)
				packed.Properties = map[string]string{"delta.enableChangeDataFeed": "true"}
				if off {
					packed.Properties["delta.autoOptimize.autoCompact"] = "False"
				}
				s := cdctest.Fields([]arrow.Field{field("id", int64Type), field("part", stringType), field("v", int64Type)}, int64Type, "delete")
				rng := rand.New(rand.NewPCG(7, uint64(scd)))
				for batch := range 12 {
					var rows []string
					for i := range 40 {
						id := rng.IntN(60)
						rows = append(rows, fmt.Sprintf(`{"id":%d,"part":"p%d","v":%d,"__weir_cdc_sequence":%d,"__weir_cdc_delete":%v}`,
							id, id%3, rng.IntN(5), batch*100+i-rng.IntN(2)*150, rng.IntN(6) == 0))
					}
					for _, x := range []*cdctest.Target{packed, plain} {
						if _, err := x.Apply(ctx, cdctest.Changes(t, s, rows...)); err != nil {
							t.Fatal(err)
						}
					}
					auto := delta.AutoCompact{SmallRatio: []float64{0, 1}[rng.IntN(2)], Least: 2, Bytes: 1 << 30}
					if err := cdc.KeepWith(ctx, packed.Definition, packed.Table, auto); err != nil {
						t.Fatal(err)
					}
					got, err := packed.Rows(ctx)
					if err != nil {
						t.Fatal(err)
					}
					want, err := plain.Rows(ctx)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(got, want) {
						t.Fatalf("batch %d: %v\nwant %v", batch, got, want)
					}
				}
				history, err := packed.Table.History(ctx, 0)
				if err != nil {
					t.Fatal(err)
				}
				runs := 0
				for _, h := range history {
					if h.Operation == "OPTIMIZE" {
						runs++
					}
				}
				if (runs == 0) != off {
					t.Errorf("packed %d times", runs)
				}
				if n := packed.Notices(); len(n) > 0 {
					t.Errorf("%v", n)
				}
			})
		}
	}
}
