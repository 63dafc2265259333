package meter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// installed is a file of an npm package that make wasm-tools installs.
func installed(t testing.TB, path ...string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(append([]string{"..", "..", "build", "wasm-tools", "node_modules"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Skipf("%s is not here: make wasm-tools installs it", filepath.Join(path...))
	}
	return file
}

// TestAssemblyScriptComputesTheSame calls the exports of a program in its
// original and its rewritten form, with so little fuel at a time that it waits often.
func TestAssemblyScriptComputesTheSame(t *testing.T) {
	asc := installed(t, "assemblyscript", "bin", "asc.js")
	wasm := built(t, "program.ts", "node", "testdata/assemblyscript", nil, asc, "program.ts", "-O", "--outFile", "$OUT")
	ctx := context.Background()
	h := newHost(t, wazero.NewRuntimeConfigCompiler())
	h.quantum = 100
	if _, err := supply(ctx, h, wasm); err != nil {
		t.Fatal(err)
	}
	plain, metered := h.start(t, wasm), h.start(t, rewritten(t, wasm))
	for _, k := range []kernel{{"tree", 2000}, {"words", 2000}, {"interpret", 20_000}, {"matrix", 24}, {"outside", 3}} {
		var seen [2]string
		for i, m := range []api.Module{plain, metered} {
			got, err := m.ExportedFunction(k.name).Call(ctx, k.size)
			seen[i] = fmt.Sprint(got, trapOf(err))
		}
		if seen[0] != seen[1] {
			t.Errorf("%s(%d): original %s, rewritten %s", k.name, k.size, seen[0], seen[1])
		}
		t.Logf("%s(%d): %s", k.name, k.size, seen[0])
	}
}

// TestCPythonPrintsTheSame runs an interpreter of 26 MB under the default
// limits, its standard library included.
func TestCPythonPrintsTheSame(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("it takes long to compile")
	}
	wasm, err := os.ReadFile(installed(t, "@antonz", "python-wasi", "dist", "python.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	const program = `
import collections, hashlib, json, re
def fib(n): return n if n < 2 else fib(n-1) + fib(n-2)
words = re.findall(r'\w+', ' '.join(f'w{i*i%97:x}' for i in range(2000)))
print(json.dumps(collections.Counter(words).most_common(5)), fib(15), 2**200 % 10**9+7)
print(hashlib.sha256(repr(sorted(words)).encode()).hexdigest(), sum(1/i for i in range(1, 5000)))
def deep(n): return deep(n+1)
try: deep(0)
except RecursionError as e: print(e)
`
	var printed [2]bytes.Buffer
	for i, module := range [][]byte{wasm, rewritten(t, wasm)} {
		h := newHost(t, wazero.NewRuntimeConfigCompiler()).withWASI(t)
		h.quantum = 1000
		config := wazero.NewModuleConfig().WithStdout(&printed[i]).WithStderr(&printed[i]).WithArgs("python", "-c", program).WithEnv("PYTHONHASHSEED", "1")
		if _, err := h.InstantiateWithConfig(context.Background(), module, config); err != nil {
			if exit := (*sys.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 0 {
				t.Fatalf("%v: %s", err, printed[i].String())
			}
		}
	}
	if printed[0].Len() < 100 || printed[0].String() != printed[1].String() {
		t.Errorf("original prints\n%s\nrewritten\n%s", printed[0].String(), printed[1].String())
	}
	t.Log(printed[1].String())
}

// TestModulesOfBinaryensFuzzerComputeTheSame has wasm-opt make modules of
// random bytes. WEIR_SOAK_MODULES sets how many, from a seed that is printed and
// that WEIR_SOAK_SEED sets.
func TestModulesOfBinaryensFuzzerComputeTheSame(t *testing.T) {
	opt := installed(t, "binaryen", "bin", "wasm-opt")
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node here")
	}
	first, count := uint64(1), uint64(8)
	if text := os.Getenv("WEIR_SOAK_MODULES"); text != "" {
		if count, err = strconv.ParseUint(text, 10, 32); err != nil {
			t.Fatal(err)
		}
		first = rand.Uint64() >> 12
		if text := os.Getenv("WEIR_SOAK_SEED"); text != "" {
			if first, err = strconv.ParseUint(text, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("seeds from %d on", first)
	} else if testing.Short() || raceDetector {
		count = 2
	}
	dir := t.TempDir()
	lines, traps, refused := 0, 0, 0
	for seed := first; seed < first+count; seed++ {
		random := rand.New(rand.NewPCG(seed, 2))
		input := make([]byte, 2000+random.IntN(20_000))
		for i := range input {
			input[i] = byte(random.Uint32())
		}
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out.wasm")
		if err := os.WriteFile(in, input, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(node, opt, in, "--translate-to-fuzz", "--denan", "-o", out, "--mvp-features", "--enable-simd", "--enable-bulk-memory",
			"--enable-multivalue", "--enable-reference-types", "--enable-sign-ext", "--enable-nontrapping-float-to-int", "--enable-mutable-globals")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("wasm-opt: %v: %s", err, text)
		}
		wasm, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		metered, _, err := Rewrite(wasm, wide)
		if err != nil { // wasm-opt uses now and then what it was told not to
			r := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter())
			if _, theirs := r.CompileModule(context.Background(), wasm); theirs == nil {
				t.Fatalf("seed %d: wazero takes it, and here: %v", seed, err)
			}
			_ = r.Close(context.Background())
			refused++
			continue
		}
		var seen [3][]string
		var used [3]int64
		for i, form := range [][]byte{wasm, metered, metered} {
			h := newHost(t, wazero.NewRuntimeConfigCompiler())
			if i == 2 {
				h.quantum = int64(seed%50) + 1
			}
			if seen[i], used[i], err = observe(h, wasm, form); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			_ = h.Close(context.Background())
		}
		if len(seen[0]) != len(seen[1]) || len(seen[0]) != len(seen[2]) {
			t.Fatalf("seed %d: original %q, rewritten %q, with little fuel %q", seed, seen[0], seen[1], seen[2])
		}
		for i, line := range seen[0] {
			if line != seen[1][i] || line != seen[2][i] {
				t.Fatalf("seed %d: original %q, rewritten %q, with little fuel %q", seed, line, seen[1][i], seen[2][i])
			}
			lines++
			if strings.Contains(line, "wasm error") {
				traps++
			}
		}
		if used[1] <= 0 || used[1] != used[2] {
			t.Fatalf("seed %d took %d, and %d with little fuel at a time", seed, used[1], used[2])
		}
	}
	t.Logf("%d modules, %d lines compared, %d of them traps; wazero, too, refuses %d modules", count, lines, traps, refused)
}

// observe calls every exported function of a form of a module, in order, and
// gives a line for each result, each global, and what the imports were told.
func observe(h *host, original, form []byte) (lines []string, used int64, err error) {
	ctx := context.Background()
	supplied, err := supply(ctx, h, original)
	if err != nil {
		return nil, 0, err
	}
	m, err := h.InstantiateWithConfig(ctx, form, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil { // its start function traps, or a segment, and what is told names the function by its index
		if _, reason, ok := strings.Cut(trapOf(err), " failed: "); ok {
			return []string{reason}, 1, nil
		}
		return []string{trapOf(err)}, 1, nil
	}
	sections, _, fault := split(original)
	if fault != nil {
		return nil, 0, fault
	}
	r := &reader{b: sections[sectionExport]}
	for range r.count() {
		name := r.name()
		switch kind := r.byte(); kind {
		case 0:
			f := m.ExportedFunction(name)
			results := f.Definition().ResultTypes()
			stack := make([]uint64, 2*max(len(f.Definition().ParamTypes()), len(results), 1))
			for i := range stack {
				stack[i] = uint64(i % 2) // any references are null
				if slices.ContainsFunc(f.Definition().ParamTypes(), isRefType) {
					stack[i] = 0
				}
			}
			line := name
			if err := f.CallWithStack(ctx, stack); err != nil {
				line += ": " + trapOf(err)
			} else {
				for _, typ := range results {
					value := stack[0]
					if stack = stack[1:]; typ == typeV128 {
						line += fmt.Sprintf(" %x", stack[0])
						stack = stack[1:]
					} else if isRefType(typ) {
						value = min(value, 1) // an address
					}
					line += fmt.Sprintf(" %x", value)
				}
			}
			lines = append(lines, line)
		case 3:
			if g := m.ExportedGlobal(name); !isRefType(g.Type()) {
				lines = append(lines, fmt.Sprintf("%s = %x", name, g.Get()))
			}
		}
		r.u32()
	}
	for _, s := range supplied {
		lines = append(lines, fmt.Sprintf("imports were told %x", s.ExportedGlobal("told").Get()))
	}
	if m.ExportedGlobal(ExportFuel) != nil {
		used = h.used(m)
	}
	return lines, used, nil
}

// supply instantiates what a module imports: functions that add what they are
// given to the global told, and return zeros; globals that are zero.
func supply(ctx context.Context, h *host, wasm []byte) (supplied []api.Module, err error) {
	sections, _, fault := split(wasm)
	if fault != nil {
		return nil, fault
	}
	type signature struct{ params, results []byte }
	var types []signature
	r := &reader{b: sections[sectionType]}
	for range r.count() {
		r.byte()
		types = append(types, signature{r.take(uint64(r.u32())), r.take(uint64(r.u32()))})
	}
	zero := func(typ byte) []byte {
		switch typ {
		case typeI32:
			return constI32(0)
		case typeI64:
			return constI64(0)
		case api.ValueTypeF32:
			return op(opF32Const, 0, 0, 0, 0)
		case api.ValueTypeF64:
			return op(opF64Const, 0, 0, 0, 0, 0, 0, 0, 0)
		case typeV128:
			return cat(op(opSIMD, simdConst), make([]byte, 16))
		}
		return op(opRefNull, typ)
	}
	number := map[byte][]byte{typeI32: op(0xad), api.ValueTypeF32: op(0xbc, 0xad), api.ValueTypeF64: op(0xbd), typeV128: op(opSIMD, 29, 0), typeFuncref: op(0xd1, 0xad), typeExternref: op(0xd1, 0xad)}
	modules := map[string]*wasmModule{}
	exported := map[string]bool{}
	r = &reader{b: append([]byte(nil), sections[sectionImport]...)}
	if len(r.b) == 0 {
		return nil, nil
	}
	for range r.count() {
		from, name, kind := r.name(), r.name(), r.byte()
		m := modules[from]
		if m == nil {
			m = &wasmModule{globals: [][]byte{cat(op(typeI64, 1), constI64(0), op(opEnd))}}
			m.export("told", 3, 0)
			modules[from] = m
		}
		if kind != 0 && kind != 3 {
			return nil, fmt.Errorf("%s.%s is of kind %d", from, name, kind)
		}
		if kind == 3 {
			typ, mutable := r.byte(), r.byte()
			m.globals = append(m.globals, cat(op(typ, mutable), zero(typ), op(opEnd)))
			m.export(name, 3, len(m.globals)-1)
			continue
		}
		s := types[r.u32()]
		if exported[from+" "+name] {
			continue
		}
		exported[from+" "+name] = true
		var code []byte
		for i, typ := range s.params {
			code = cat(code, op(opGlobalGet, 0), constI64(31), op(opI64Mul), get(i), number[typ], op(opI64Add, opGlobalSet, 0))
		}
		for _, typ := range s.results {
			code = append(code, zero(typ)...)
		}
		m.funcs = append(m.funcs, wasmFunc{typ: m.typ(string(s.params), string(s.results)), code: code})
		m.export(name, 0, len(m.funcs)-1)
	}
	if r.fault != nil {
		return nil, r.fault
	}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		m, err := h.InstantiateWithConfig(ctx, modules[name].bytes(), wazero.NewModuleConfig().WithName(name))
		if err != nil {
			return nil, fmt.Errorf("what it imports from %s: %w", name, err)
		}
		supplied = append(supplied, m)
	}
	return supplied, nil
}
