package meter

import (
	"context"
	"maps"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// kernel is an exported function and a size at which it takes some milliseconds.
type kernel struct {
	name string
	size uint64
}

var cKernelList = []kernel{
	{"xorshift", 4_000_000}, {"collatz", 50_000}, {"mandelbrot", 300}, {"sieve", 1 << 20}, {"matmul", 10}, {"crc32", 4_000_000},
	{"quicksort", 100_000}, {"fibonacci", 30}, {"queens", 10}, {"saxpy", 500}, {"count", 100}, {"copies", 500_000},
}

var goKernelList = []kernel{{"sum", 4000}, {"sortstrings", 20000}, {"counts", 500_000}, {"fibonacci", 28}}

// BenchmarkMetering is P3: each kernel in its original and in its metered
// form, turn about, and the ratio of their best times.
func BenchmarkMetering(b *testing.B) {
	byKernel := map[string]float64{}
	run := func(b *testing.B, wasm []byte, kernels []kernel) {
		h := newHost(b, wazero.NewRuntimeConfigCompiler()).withWASI(b)
		plain, metered := h.start(b, wasm), h.start(b, rewritten(b, wasm))
		for _, m := range []api.Module{plain, metered} {
			if init := m.ExportedFunction("_initialize"); init != nil {
				if _, err := init.Call(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		}
		for _, k := range kernels {
			b.Run(k.name, func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				best := [2]time.Duration{math.MaxInt64, math.MaxInt64}
				var results [2]uint64
				calls := h.calls
				for range max(b.N, 7) {
					for i, m := range []api.Module{plain, metered} {
						start := threadTime()
						got, err := m.ExportedFunction(k.name).Call(context.Background(), k.size)
						if err != nil {
							b.Fatal(err)
						}
						best[i] = min(best[i], threadTime()-start)
						results[i] = got[0]
					}
				}
				if results[0] != results[1] {
					b.Fatalf("%s gives %d plain and %d metered", k.name, results[0], results[1])
				}
				ratio := float64(best[1]) / float64(best[0])
				byKernel[b.Name()] = ratio
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(best[0])/1e6, "ms-plain")
				b.ReportMetric(ratio, "x-metered")
				b.ReportMetric(float64(h.calls-calls)/float64(max(b.N, 7))/(float64(best[1])/1e6), "refuels/ms")
			})
		}
	}
	b.Run("C", func(b *testing.B) { run(b, cKernels(b), cKernelList) })
	b.Run("Go", func(b *testing.B) { run(b, goModule(b, "testdata/gokernels"), goKernelList) })
	if ratios := slices.Collect(maps.Values(byKernel)); len(ratios) > 0 {
		logs := 0.0
		for _, r := range ratios {
			logs += math.Log(r)
		}
		b.Run("all", func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(len(ratios)), "kernels")
			b.ReportMetric(math.Exp(logs/float64(len(ratios))), "x-mean")
			b.ReportMetric(slices.Max(ratios), "x-worst")
		})
	}
}
