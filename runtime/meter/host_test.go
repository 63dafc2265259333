package meter

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

var errBudget = errors.New("the budget is used up")

// host gives refuel as the real one does: a quantum a time, up to a budget.
type host struct {
	wazero.Runtime
	quantum int64
	budget  int64 // 0: without end
	given   int64
	calls   int64
}

func newHost(t testing.TB, config wazero.RuntimeConfig) *host {
	t.Helper()
	ctx := context.Background()
	h := &host{Runtime: wazero.NewRuntimeWithConfig(ctx, config), quantum: Quantum}
	t.Cleanup(func() { _ = h.Close(ctx) })
	_, err := h.NewHostModuleBuilder(ImportModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
			h.calls++
			if h.budget > 0 && h.given >= h.budget {
				panic(errBudget)
			}
			// What is below zero is owed: given stays the sum of all quanta.
			owed := -int64(stack[0])
			quanta := owed/h.quantum + 1
			h.given += quanta * h.quantum
			stack[0] = uint64(quanta*h.quantum - owed)
		}), []api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).
		Export(ImportRefuel).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// used is the fuel that an instance of a rewritten module took so far.
func (h *host) used(m api.Module) int64 {
	return h.given - int64(m.ExportedGlobal(ExportFuel).Get())
}

// start instantiates a module without running _start.
func (h *host) start(t testing.TB, wasm []byte) api.Module {
	t.Helper()
	m, err := h.InstantiateWithConfig(context.Background(), wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (h *host) withWASI(t testing.TB) *host {
	t.Helper()
	if _, err := wasi_snapshot_preview1.Instantiate(context.Background(), h); err != nil {
		t.Fatal(err)
	}
	return h
}

func rewritten(t testing.TB, wasm []byte) []byte {
	t.Helper()
	out, _, err := Rewrite(wasm, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// built makes a module with a command that writes to the file $OUT, once for
// all tests; without the tool the test is skipped and says so.
func built(t testing.TB, name, tool, dir string, env []string, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		t.Skipf("%s is not built: there is no %s here", name, tool)
	}
	entry, _ := builds.LoadOrStore(name, &build{})
	b := entry.(*build)
	b.once.Do(func() {
		tmp, err := os.MkdirTemp("", "weir-meter")
		if err != nil {
			b.err = err
			return
		}
		defer func() { _ = os.RemoveAll(tmp) }()
		out := filepath.Join(tmp, "out.wasm")
		for i := range args {
			if args[i] == "$OUT" {
				args[i] = out
			}
		}
		cmd := exec.Command(path, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), env...)
		if text, err := cmd.CombinedOutput(); err != nil {
			b.err = errors.New(string(text) + err.Error())
			return
		}
		b.wasm, b.err = os.ReadFile(out)
	})
	if b.err != nil {
		t.Skipf("%s is not built: %v", name, b.err)
	}
	return b.wasm
}

type build struct {
	once sync.Once
	wasm []byte
	err  error
}

var builds sync.Map

func cKernels(t testing.TB) []byte {
	return built(t, "kernels.c", "clang", "testdata/kernels", nil, "--target=wasm32", "-O2", "-msimd128", "-mbulk-memory",
		"-nostdlib", "-Wl,--no-entry", "-o", "$OUT", "kernels.c")
}

func goModule(t testing.TB, dir string) []byte {
	return built(t, dir, "go", dir, []string{"GOFLAGS=-buildvcs=false", "GOOS=wasip1", "GOARCH=wasm"}, "build", "-trimpath",
		"-buildmode=c-shared", "-ldflags=-s -w", "-o", "$OUT", ".")
}
