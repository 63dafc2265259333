package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/runtime/meter"
)

// kernel is an export of a module of runtime/meter/testdata and a size at
// which it takes some milliseconds.
type kernel struct {
	name string
	size uint64
}

var (
	cKernels = []kernel{{"xorshift", 4_000_000}, {"collatz", 50_000}, {"mandelbrot", 300}, {"sieve", 1 << 20}, {"matmul", 10}, {"crc32", 4_000_000},
		{"quicksort", 100_000}, {"fibonacci", 30}, {"queens", 10}, {"saxpy", 500}, {"count", 100}, {"copies", 500_000}}
	goKernels = []kernel{{"sum", 4000}, {"sortstrings", 20_000}, {"counts", 500_000}, {"fibonacci", 28}}
)

// runP3 measures what metering costs: kernels of arithmetic, memory, recursion
// and SIMD, each metered and unmetered. Its two figures are the mean and the
// worst of them.
func runP3(ctx context.Context, dir string, s settings) ([]figure, error) {
	var out, skipped []figure
	sum, worst := 0.0, figure{}
	for _, module := range []struct {
		language string
		build    func(ctx context.Context, dir, source string) ([]byte, error)
		source   string
		kernels  []kernel
	}{
		{"C", buildC, "runtime/meter/testdata/kernels/kernels.c", cKernels},
		{"Go", buildGo, "./runtime/meter/testdata/gokernels", goKernels},
	} {
		wasm, err := module.build(ctx, dir, module.source)
		if errors.Is(err, errNoTool) {
			skipped = append(skipped, figure{Case: "kernels in " + module.language, Better: "lower", Must: 1.6, Aim: 1.6, Skipped: err.Error()})
			continue
		}
		if err != nil {
			return nil, err
		}
		figures, err := meterKernels(ctx, wasm, module.language, module.kernels, s)
		if err != nil {
			return nil, err
		}
		for _, f := range figures {
			sum += math.Log(f.CPU)
			if f.CPU > worst.Value {
				worst = f
				worst.Value = f.CPU
			}
		}
		out = append(out, figures...)
	}
	mean := math.Exp(sum / float64(len(out)))
	worst.Case = "worst: " + worst.Case
	summary := []figure{{
		Case: fmt.Sprintf("geometric mean of %d kernels", len(out)), Value: mean, CPU: mean, Better: "lower", Must: 1.25, Aim: 1.1,
		Ours: mean, Theirs: 1, Unit: "×", Peer: "the same module unmetered",
	}, worst}
	return append(append(summary, skipped...), out...), nil
}

// meterKernels runs the kernels of one module, metered and not, in turn. Both
// run on one thread, so that processor time is the truer of the two times.
func meterKernels(ctx context.Context, wasm []byte, language string, kernels []kernel, s settings) ([]figure, error) {
	metered, _, err := meter.Rewrite(wasm, meter.Limits{})
	if err != nil {
		return nil, err
	}
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	defer rt.Close(ctx)
	if err := exportRefuel(ctx, rt); err != nil {
		return nil, err
	}
	var modules [2]api.Module
	for i, code := range [][]byte{metered, wasm} {
		m, err := rt.InstantiateWithConfig(ctx, code, wazero.NewModuleConfig().WithName("").WithStartFunctions(abi.ExportInitialize))
		if err != nil {
			return nil, err
		}
		modules[i] = m
	}
	var out []figure
	for _, k := range kernels {
		var results [2]uint64
		call := func(i int) side {
			return side{run: func() error {
				got, err := modules[i].ExportedFunction(k.name).Call(ctx, k.size)
				if err == nil {
					results[i] = got[0]
				}
				return err
			}}
		}
		a, b, err := race(2*s.repeats+3, call(0), call(1))
		if err != nil {
			return nil, err
		}
		if results[0] != results[1] {
			return nil, fmt.Errorf("%s gives %d unmetered and %d metered", k.name, results[1], results[0])
		}
		f := figure{Case: language + " " + k.name, Must: 1.6, Aim: 1.6, Peer: "the same module unmetered"}.slower(a, b)
		f.Value = f.CPU
		out = append(out, f)
	}
	return out, nil
}

// exportRefuel gives metered code fuel as the runtime does: 10,000 at a time,
// with a look at the clock each time.
func exportRefuel(ctx context.Context, rt wazero.Runtime) error {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		return err
	}
	const quantum = 10_000
	start := time.Now()
	value := []api.ValueType{api.ValueTypeI64}
	_, err := rt.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
			if time.Since(start) > time.Hour {
				panic(errors.New("the time is used up"))
			}
			stack[0] = quantum
		}), value, value).Export(meter.ImportRefuel).Instantiate(ctx)
	return err
}
