package meter

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// FuzzRewrite: arbitrary bytes never panic, and what is accepted is no less
// valid to wazero afterwards than it was before, nor more.
func FuzzRewrite(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(generate(seed))
	}
	for _, wasm := range evil() {
		if len(wasm) < 10_000 {
			f.Add(wasm)
		}
	}
	f.Add(withSection(2, vec(cat(str("a"), str("b"), op(0, 0)))))
	f.Add((&wasmModule{}).section(0, str("name"), op(0, 2, 1, 'm', 1, 1, 0)).bytes())
	// found by fuzzing: wazero does not take an empty custom section at the end
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\x02\x01r"))
	ctx := context.Background()
	limits := Limits{ModuleBytes: 1 << 20, CompileWork: 200_000_000}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		out, _, err := Rewrite(wasm, limits)
		if err != nil {
			if e := (*Error)(nil); !errors.As(err, &e) {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		again, _, err := Rewrite(wasm, limits)
		if err != nil || string(again) != string(out) {
			t.Fatal("the same module gives other bytes the second time")
		}
		if _, _, err := Rewrite(out, limits); err == nil {
			t.Fatal("a rewritten module is rewritten once more")
		}
		r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
		defer func() { _ = r.Close(ctx) }()
		_, before := r.CompileModule(ctx, wasm)
		_, after := r.CompileModule(ctx, out)
		if (before == nil) != (after == nil) && !onlyNames(before) {
			t.Fatalf("wazero says %v before and %v after", before, after)
		}
	})
}

// onlyNames knows the errors of wazero about what the rewriter leaves out.
func onlyNames(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "section custom") || strings.Contains(err.Error(), "custom section"))
}
