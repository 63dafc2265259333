package meter

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// TestKernelsComputeTheSame: C and Go, against their originals.
func TestKernelsComputeTheSame(t *testing.T) {
	for language, c := range map[string]struct {
		build   func(testing.TB) []byte
		kernels []kernel
	}{
		"C":  {cKernels, []kernel{{"xorshift", 1000}, {"collatz", 300}, {"mandelbrot", 20}, {"sieve", 10_000}, {"matmul", 1}, {"crc32", 5000}, {"quicksort", 3000}, {"fibonacci", 15}, {"queens", 6}, {"saxpy", 2}, {"count", 1}, {"copies", 5000}}},
		"Go": {func(t testing.TB) []byte { return goModule(t, "testdata/gokernels") }, []kernel{{"sum", 5}, {"sortstrings", 1000}, {"counts", 5000}, {"fibonacci", 12}}},
	} {
		t.Run(language, func(t *testing.T) {
			wasm := c.build(t)
			h := newHost(t, wazero.NewRuntimeConfigCompiler()).withWASI(t)
			h.quantum = 100 // every way to the host is taken
			plain, metered := h.start(t, wasm), h.start(t, rewritten(t, wasm))
			for _, m := range []api.Module{plain, metered} {
				if init := m.ExportedFunction("_initialize"); init != nil {
					if _, err := init.Call(context.Background()); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, k := range c.kernels {
				var results [2]uint64
				for i, m := range []api.Module{plain, metered} {
					got, err := m.ExportedFunction(k.name).Call(context.Background(), k.size)
					if err != nil {
						t.Fatalf("%s: %v", k.name, err)
					}
					results[i] = got[0]
				}
				if results[0] != results[1] {
					t.Errorf("%s(%d): original %d, rewritten %d", k.name, k.size, results[0], results[1])
				}
			}
		})
	}
}

// TestCommandsPrintTheSame runs whole programs.
func TestCommandsPrintTheSame(t *testing.T) {
	if raceDetector {
		t.Skip("one thread, and slow to compile")
	}
	programs := map[string]func(t testing.TB) []byte{
		"Rust": func(t testing.TB) []byte {
			return built(t, "program.rs", "rustc", "testdata/rust", nil, "--target", "wasm32-wasip1", "-O", "-o", "$OUT", "program.rs")
		},
		"Go": func(t testing.TB) []byte {
			return built(t, "goprogram", "go", "testdata/goprogram", []string{"GOFLAGS=-buildvcs=false", "GOOS=wasip1", "GOARCH=wasm"}, "build", "-trimpath", "-o", "$OUT", ".")
		},
	}
	for name, build := range programs {
		t.Run(name, func(t *testing.T) {
			wasm := build(t)
			var printed [2]bytes.Buffer
			for i, module := range [][]byte{wasm, rewritten(t, wasm)} {
				h := newHost(t, wazero.NewRuntimeConfigCompiler()).withWASI(t)
				h.quantum = 1000
				config := wazero.NewModuleConfig().WithStdout(&printed[i]).WithStderr(&printed[i]).WithArgs("program")
				if _, err := h.InstantiateWithConfig(context.Background(), module, config); err != nil {
					if exit := (*sys.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 0 {
						t.Fatalf("%v: %s", err, printed[i].String())
					}
				}
			}
			if printed[0].Len() < 20 || printed[0].String() != printed[1].String() {
				t.Errorf("original prints\n%s\nrewritten\n%s", printed[0].String(), printed[1].String())
			}
		})
	}
}

// TestRealModulesAreAccepted takes what lies around: the plugins that were
// built, and every module in the engine's own tests.
func TestRealModulesAreAccepted(t *testing.T) {
	plugins, _ := filepath.Glob("../../build/*plugins/*.wasm")
	if len(plugins) == 0 {
		t.Log("no plugins are built; make plugins does")
	}
	if raceDetector && len(plugins) > 1 {
		plugins = plugins[:1]
	}
	dir := wazeroDir(t)
	for _, pattern := range []string{"examples/*/testdata/*.wasm", "examples/*/*/testdata/*.wasm", "imports/*/testdata/*.wasm", "imports/*/testdata/*/*.wasm", "imports/*/example/testdata/*/*.wasm", "internal/integration_test/*/testdata/*.wasm", "cmd/wazero/testdata/*/*.wasm"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		plugins = append(plugins, found...)
	}
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer func() { _ = r.Close(ctx) }()
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	accepted := 0
	for _, file := range plugins {
		wasm, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := Rewrite(wasm, wide)
		before, beforeErr := r.CompileModule(ctx, wasm)
		if beforeErr != nil {
			if err == nil {
				if _, err := r.CompileModule(ctx, out); err == nil {
					t.Errorf("%s: wazero says %v, and accepts what was made of it", file, beforeErr)
				}
			}
			continue
		}
		_ = before.Close(ctx)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		after, err := r.CompileModule(ctx, out)
		if err != nil {
			t.Errorf("%s: rewritten: %v", file, err)
			continue
		}
		_ = after.Close(ctx)
		accepted++
	}
	t.Logf("%d of %d modules accepted; wazero itself refuses the others", accepted, len(plugins))
}

// TestNamesFollowTheirFunctions keeps stack traces readable.
func TestNamesFollowTheirFunctions(t *testing.T) {
	m := &wasmModule{}
	m.fn("", "", 0, call(1))
	m.fn("", "", 0, op(opUnreachable))
	names := cat(str("name"), op(0), u(4), str("mod"), op(1), u(14), vec(cat(u(0), str("outer")), cat(u(1), str("leaf"))), op(9), u(1), op(0))
	out := rewritten(t, m.section(0, names).bytes())
	h := newHost(t, wazero.NewRuntimeConfigCompiler())
	_, err := h.start(t, out).ExportedFunction("f0").Call(context.Background())
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("mod.leaf()\n\tmod.outer()")) {
		t.Fatalf("the trace is %v", err)
	}
}
