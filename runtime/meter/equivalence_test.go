package meter

import (
	"context"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// TestRandomModulesComputeTheSame runs generated modules in their original and
// their rewritten form, and holds results, traps, memory and globals together.
// The rewritten form runs twice: with fuel that lasts, and with so little at a
// time that every way to the host is taken. Both take the same.
func TestRandomModulesComputeTheSame(t *testing.T) {
	modules := 300
	if testing.Short() || raceDetector {
		modules = 30
	}
	ctx := context.Background()
	traps := map[string]int{}
	for seed := range uint64(modules) {
		wasm := generate(seed)
		config := wazero.NewRuntimeConfigCompiler()
		if seed%4 == 0 {
			config = wazero.NewRuntimeConfigInterpreter()
		}
		// The forms must not differ in how far memory may grow.
		out, _, err := Rewrite(wasm, wide)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		h := newHost(t, config)
		forms := []struct {
			wasm    []byte
			quantum int64
		}{{wasm, Quantum}, {out, Quantum}, {out, int64(seed % 40)}}
		for f := 0; ; f++ {
			name := fmt.Sprintf("f%d", f)
			var seen, memory []string
			var used []int64
			for _, form := range forms {
				h.quantum, h.given = max(form.quantum, 1), 0
				m := h.start(t, form.wasm)
				if m.ExportedFunction(name) == nil {
					break
				}
				said := ""
				for _, argument := range []uint64{0, 1, 77} {
					m.ExportedGlobal("gas").(api.MutableGlobal).Set(500)
					got, err := m.ExportedFunction(name).Call(ctx, argument)
					said += fmt.Sprintln(argument, got, trapOf(err), m.ExportedGlobal("g").Get())
					traps[trapOf(err)]++
				}
				bytes, _ := m.Memory().Read(0, m.Memory().Size())
				seen, memory = append(seen, said), append(memory, string(bytes))
				if m.ExportedGlobal(ExportFuel) != nil {
					used = append(used, h.used(m))
				}
				_ = m.Close(ctx)
			}
			if len(seen) == 0 {
				break
			}
			if seen[0] != seen[1] || seen[0] != seen[2] {
				t.Fatalf("seed %d: %s: original %s, rewritten %s, with little fuel %s", seed, name, seen[0], seen[1], seen[2])
			}
			if memory[0] != memory[1] || memory[0] != memory[2] {
				t.Fatalf("seed %d: %s leaves another memory", seed, name)
			}
			if used[0] <= 0 || used[0] != used[1] {
				t.Fatalf("seed %d: %s took %d, and %d with little fuel at a time", seed, name, used[0], used[1])
			}
		}
		_ = h.Close(ctx)
	}
	t.Logf("how the calls ended: %v", traps)
}

// TestBranchesOutOfLoopsGoWhereTheyDid: the blocks put around loops move the
// labels of all that leaves one, also in code that nothing reaches, and beyond
// the depth at which loops stay as they are.
func TestBranchesOutOfLoopsGoWhereTheyDid(t *testing.T) {
	for _, depth := range []int{1, 2, wrapDepth, wrapDepth + 3} {
		for target := range 2*depth + 1 {
			for name, branch := range map[string][]byte{
				"br":               cat(br(target+1), br(target), constI32(1), brIf(2*depth-target)),
				"br_if":            cat(constI32(1), brIf(target+1)),
				"br_table":         cat(get(0), brTable(3, func(i int) int { return min(target+1+i, 2*depth+1) })),
				"br_table to less": cat(get(0), brTable(3, func(i int) int { return max(target+1-i, 1) })),
			} {
				// Each level is a loop in a block and leaves its mark in local 2; the
				// innermost branches as long as local 1 goes down.
				code := cat(get(1), constI32(1), op(0x6b), op(opLocalTee, 1), constI32(0), op(0x4a), when(branch))
				for level := range depth {
					code = block(loop(code, get(2), constI32(7), op(0x6c), constI32(level+1), add, set(2)))
				}
				m := &wasmModule{}
				m.fn(i32Sig, i32Sig, 2, constI32(9), set(1), block(code), get(2))
				wasm := m.bytes()
				for argument := range uint64(4) {
					var seen []string
					for _, quantum := range []int64{0, 1, Quantum} {
						h := newHost(t, wazero.NewRuntimeConfigInterpreter())
						form := wasm
						if quantum > 0 {
							h.quantum, form = quantum, rewritten(t, wasm)
						}
						instance := h.start(t, form)
						got, err := instance.ExportedFunction("f0").Call(context.Background(), argument)
						if err != nil {
							t.Fatal(err)
						}
						used := int64(0)
						if quantum > 0 {
							used = h.used(instance)
						}
						seen = append(seen, fmt.Sprint(got), fmt.Sprint(got, used))
						_ = h.Close(context.Background())
					}
					if seen[0] != seen[2] || seen[3] != seen[5] {
						t.Fatalf("%s of %d levels to label %d with %d: original %s, rewritten %s with a unit at a time, %s with all", name, depth, target, argument, seen[0], seen[3], seen[5])
					}
				}
			}
		}
	}
}
