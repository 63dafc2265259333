package meter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// spend calls f0 of a rewritten module in a fresh instance.
func spend(t *testing.T, wasm []byte, limits Limits, budget int64, args ...uint64) (results []uint64, used int64, h *host, err error) {
	t.Helper()
	out, _, err := Rewrite(wasm, limits)
	if err != nil {
		t.Fatal(err)
	}
	h = newHost(t, wazero.NewRuntimeConfigCompiler())
	h.budget = budget
	m := h.start(t, out)
	results, err = m.ExportedFunction("f0").Call(context.Background(), args...)
	return results, h.used(m), h, err
}

func function(params, results string, locals int, code ...[]byte) []byte {
	m := &wasmModule{memory: op(0, 1), tables: [][]byte{op(typeFuncref, 0, 10)}}
	m.fn(params, results, locals, code...)
	return m.bytes()
}

func TestFuelIsTheInstructionsOfTheLongestWay(t *testing.T) {
	work := repeat(10, get(0), drop) // 20 instructions
	for _, c := range []struct {
		rule string
		wasm []byte
		arg  uint64
		want int64
	}{
		{"nothing costs one", function(i32Sig, "", 0), 0, 1},
		{"each instruction costs one", function(i32Sig, "", 0, work), 0, 20},
		{"blocks and ends are free", function(i32Sig, "", 0, block(work)), 0, 20},
		{"an if costs its longer side", function(i32Sig, "", 0, get(0), op(opIf, emptyBlock), work, op(opElse), op(1), op(opEnd)), 0, 22},
		{"a way out costs what lies before it at most", function(i32Sig, "", 0, get(0), when(op(opReturn)), work), 1, 22},
		{"code that nothing reaches is free", function(i32Sig, "", 0, op(opReturn), work), 0, 1},
		{"a loop pays each time round, the last on the way out", function(i32Sig, "", 0, loop(get(0), constI32(1), op(0x6b), op(opLocalTee, 0), brIf(0))), 10, 10 * 5},
		{"and nothing where it never goes round", function(i32Sig, "", 0, loop(work)), 0, 20},
		{"a branch that is always taken pays for its own way", function(i32Sig, "", 0, block(loop(get(0), op(0x45), brIf(1), get(0), constI32(1), op(0x6b), set(0), br(0)))), 10, 10*8 + 3},
		{"a long way pays on the way", function(i32Sig, "", 0, repeat(1000, get(0), drop)), 0, 2000},
		{"a fill pays for 64 bytes one", function(i32Sig, "", 0, constI32(0), constI32(0), get(0), op(opMisc, miscMemoryFill, 0)), 6400, 4 + 1 + 100},
		{"a copy likewise", function(i32Sig, "", 0, constI32(0), constI32(0), get(0), op(opMisc, miscMemoryCopy, 0, 0)), 6463, 4 + 1 + 100},
		{"growing pays for each new byte", function(i32Sig, "", 0, get(0), op(opMemoryGrow, 0), drop), 2, 1 + outside + 1 + 2*1024},
		{"growing over the limit pays nothing for it", function(i32Sig, "", 0, get(0), op(opMemoryGrow, 0), drop), 0xffff_ffff, 1 + outside + 1},
		{"growing a table pays for its entries", function(i32Sig, "", 0, op(opRefNull, typeFuncref), get(0), op(opMisc, miscTableGrow, 0), drop), 80, 2 + outside + 1 + 10},
	} {
		t.Run(c.rule, func(t *testing.T) {
			_, used, _, err := spend(t, c.wasm, Limits{}, 0, c.arg)
			if err != nil {
				t.Fatal(err)
			}
			if used != c.want {
				t.Fatalf("costs %d, want %d", used, c.want)
			}
		})
	}
}

func TestBulkWorkIsPaidBeforeItRuns(t *testing.T) {
	for name, code := range map[string][]byte{
		"memory.fill": op(opMisc, miscMemoryFill, 0),
		"memory.copy": op(opMisc, miscMemoryCopy, 0, 0),
		"table.fill":  op(opMisc, miscTableFill, 0),
		"table.copy":  op(opMisc, miscTableCopy, 0, 0),
	} {
		value := constI32(0)
		if strings.HasPrefix(name, "table.f") {
			value = op(opRefNull, typeFuncref)
		}
		// A length of 2³²−1 traps; the charge, unsigned and in 64 bits, came before.
		_, used, _, err := spend(t, function("", "", 0, constI32(0), value, constI32(-1), code), Limits{}, 0)
		least := int64(1) << 26
		if err == nil || used < least {
			t.Errorf("%s of 2³²−1 cost %d, and ended with %v", name, used, err)
		}
	}
}

func TestMaximaAreLowered(t *testing.T) {
	limits := Limits{MemoryBytes: 4 << 16, TableElements: 50}
	grow := function(i32Sig, i32Sig, 0, get(0), op(opMemoryGrow, 0))
	for pages, want := range map[uint64]uint32{3: 1, 4: 0xffff_ffff, 0xffff_ffff: 0xffff_ffff} {
		if got, _, _, err := spend(t, grow, limits, 0, pages); err != nil || uint32(got[0]) != want {
			t.Errorf("memory.grow(%d) = %v, %v", pages, got, err)
		}
	}
	table := function(i32Sig, i32Sig, 0, op(opRefNull, typeFuncref), get(0), op(opMisc, miscTableGrow, 0))
	for entries, want := range map[uint64]uint32{40: 10, 41: 0xffff_ffff, 1_000_000_000: 0xffff_ffff} {
		if got, _, _, err := spend(t, table, limits, 0, entries); err != nil || uint32(got[0]) != want {
			t.Errorf("table.grow(%d) = %v, %v", entries, got, err)
		}
	}
}

func TestInitialFuelIsUsedFirst(t *testing.T) {
	wasm := function("", "", 0, repeat(500, op(1)))
	for initial, calls := range map[int64]int64{0: 1, 499: 1, 500: 0} {
		if _, _, h, err := spend(t, wasm, Limits{InitialFuel: initial}, 0); err != nil || h.calls != calls {
			t.Errorf("with %d at first the host is asked %d times (%v)", initial, h.calls, err)
		}
	}
}

// evil are functions that never end, or not in a lifetime.
func evil() map[string][]byte {
	recursion := &wasmModule{}
	recursion.fn("", "", 0, call(0), call(0))
	// 2³¹ calls at a depth of 31, without a loop
	exponential := &wasmModule{}
	exponential.fn("", "", 0, call(1), call(1))
	for i := uint32(1); i < 31; i++ {
		exponential.funcs = append(exponential.funcs, wasmFunc{typ: exponential.typ("", ""), code: cat(call(i+1), call(i+1))})
	}
	exponential.funcs = append(exponential.funcs, wasmFunc{typ: exponential.typ("", ""), code: op(1)})
	whole := func(code ...byte) []byte {
		m := &wasmModule{memory: op(0, 0x80, 8)} // 64 MiB
		m.fn("", "", 0, loop(constI32(0), constI32(1), constI32(1<<26-1), op(code...), br(0)))
		return m.bytes()
	}
	params := &wasmModule{}
	t := byte(params.typ(i32Sig, i32Sig))
	params.fn("", "", 0, constI32(1), op(opLoop, t), br(0), op(opEnd), drop)
	long := &wasmModule{}
	long.fn("", "", 1, loop(repeat(300_000, get(0), drop), br(0)))
	return map[string][]byte{
		"an empty loop":                    function("", "", 0, loop(br(0))),
		"a loop on a condition":            function("", "", 0, loop(constI32(1), brIf(0))),
		"a loop by br_table":               function("", "", 0, loop(constI32(1), brTable(1, func(int) int { return 0 }))),
		"a loop with a value on the stack": params.bytes(),
		"a loop that jumps out of a block": function("", "", 0, loop(block(block(constI32(1), brIf(2))), br(0))),
		"a loop of 600,000 instructions":   long.bytes(),
		"loops that go round once each":    function("", "", 1, loop(loop(loop(br(2))))),
		"memory.fill of all in a loop":     whole(opMisc, miscMemoryFill, 0),
		"memory.copy of all in a loop":     whole(opMisc, miscMemoryCopy, 0, 0),
		"table.fill of all in a loop":      function("", "", 0, loop(constI32(0), op(opRefNull, typeFuncref), constI32(10), op(opMisc, miscTableFill, 0), br(0))),
		"growing by nothing in a loop":     function("", "", 0, loop(constI32(0), op(opMemoryGrow, 0), drop, br(0))),
		"exponential recursion, no loop":   exponential.bytes(),
		"a call of itself through a table": indirect(),
		"recursion that ends in its own":   function("", "", 0, loop(call(0), br(0))),
		"recursion":                        recursion.bytes(),
	}
}

func indirect() []byte {
	m := &wasmModule{tables: [][]byte{op(typeFuncref, 0, 1)}}
	m.fn("", "", 0, loop(constI32(0), op(0x11, 0, 0), br(0)))
	m.section(9, vec(cat(op(0), constI32(0), op(opEnd), u(1), u(0))))
	return m.bytes()
}

// TestWhatNeverEndsAsksTheHost gives each evil function a budget: it must come
// back to the host after a bounded amount of work, and the host's panic must
// unwind it. The time is a safety net, far from what is expected.
func TestWhatNeverEndsAsksTheHost(t *testing.T) {
	for name, wasm := range evil() {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, used, h, err := spend(t, wasm, Limits{}, 30*Quantum)
			overflow := err != nil && strings.Contains(err.Error(), "stack overflow")
			if !errors.Is(err, errBudget) && !overflow {
				t.Fatalf("ends with %v", err)
			}
			if !overflow && h.calls < 2 {
				t.Fatalf("the host was asked %d times", h.calls)
			}
			t.Logf("%d units, %d questions, %v", used, h.calls, time.Since(start))
		})
	}
}

func TestStartFunctionsAreMetered(t *testing.T) {
	m := &wasmModule{}
	m.fn("", "", 0, loop(br(0)))
	out := rewritten(t, m.section(8, u(0)).bytes())
	h := newHost(t, wazero.NewRuntimeConfigCompiler())
	h.budget = 10 * Quantum
	if _, err := h.Instantiate(context.Background(), out); !errors.Is(err, errBudget) {
		t.Fatalf("a start function without end gives %v", err)
	}
}

// TestFuelDependsOnTheInputAlone: neither the engine, nor how much a refill
// gives, changes what a call costs.
func TestFuelDependsOnTheInputAlone(t *testing.T) {
	wasm := rewritten(t, cKernels(t))
	if raceDetector {
		t.Skip("one thread, and slow in the interpreter")
	}
	for _, k := range []kernel{{"collatz", 500}, {"quicksort", 2000}, {"queens", 6}, {"copies", 500}, {"sieve", 5000}} {
		seen := map[int64]bool{}
		for _, config := range []wazero.RuntimeConfig{wazero.NewRuntimeConfigCompiler(), wazero.NewRuntimeConfigInterpreter()} {
			for _, refill := range []int64{7, 1000, Quantum} {
				h := newHost(t, config)
				h.quantum = refill
				m := h.start(t, wasm)
				if _, err := m.ExportedFunction(k.name).Call(context.Background(), k.size); err != nil {
					t.Fatal(err)
				}
				seen[h.used(m)] = true
			}
		}
		if len(seen) != 1 {
			t.Errorf("%s costs %v", k.name, seen)
		}
	}
}

// TestTheHostReadsAndSetsFuel is how a host takes over what is left.
func TestTheHostReadsAndSetsFuel(t *testing.T) {
	h := newHost(t, wazero.NewRuntimeConfigCompiler())
	m := h.start(t, rewritten(t, function("", "", 0, repeat(50, op(1)))))
	fuel := m.ExportedGlobal(ExportFuel).(api.MutableGlobal)
	fuel.Set(120)
	for range 2 {
		if _, err := m.ExportedFunction("f0").Call(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if got := int64(fuel.Get()); got != 20 || h.calls != 0 {
		t.Fatalf("120 less two calls of 50 is %d, with %d questions", got, h.calls)
	}
}
