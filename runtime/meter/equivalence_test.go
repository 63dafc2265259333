package meter

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// TestRandomModulesComputeTheSame runs generated modules in their original and
// their rewritten form, and holds results, traps, memory and globals together.
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
		// The two must not differ in how far memory may grow.
		out, _, err := Rewrite(wasm, wide)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		h := newHost(t, config)
		for f := 0; ; f++ {
			name := fmt.Sprintf("f%d", f)
			plain, metered := h.start(t, wasm), h.start(t, out)
			if plain.ExportedFunction(name) == nil {
				break
			}
			for _, argument := range []uint64{0, 1, 77} {
				var seen [2]string
				for i, m := range []api.Module{plain, metered} {
					m.ExportedGlobal("gas").(api.MutableGlobal).Set(500)
					got, err := m.ExportedFunction(name).Call(ctx, argument)
					seen[i] = fmt.Sprint(got, trapOf(err), m.ExportedGlobal("g").Get())
					traps[trapOf(err)]++
				}
				if seen[0] != seen[1] {
					t.Fatalf("seed %d: %s(%d): original %s, rewritten %s", seed, name, argument, seen[0], seen[1])
				}
			}
			a, _ := plain.Memory().Read(0, plain.Memory().Size())
			b, _ := metered.Memory().Read(0, metered.Memory().Size())
			if !bytes.Equal(a, b) {
				t.Fatalf("seed %d: %s leaves another memory", seed, name)
			}
			if h.used(metered) <= 0 {
				t.Fatalf("seed %d: %s was free", seed, name)
			}
			_, _ = plain.Close(ctx), metered.Close(ctx)
			h.given = 0
		}
		_ = h.Close(ctx)
	}
	t.Logf("how the calls ended: %v", traps)
}
