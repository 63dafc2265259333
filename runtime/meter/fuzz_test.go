package meter

import (
	"context"
	"encoding/binary"
	"errors"
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
	// found by fuzzing: 22 bytes whose name section makes wazero allocate 7 GB
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\f\x04name\x02\x00\xef\xef\xef\xef\x00"))
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
		_, before := r.CompileModule(ctx, withoutCustom(t, wasm))
		_, after := r.CompileModule(ctx, out)
		if before != nil && after == nil {
			// The interpreter does not know opcodes in more bytes than they need,
			// which Rewrite shortens. The compiler, which runs modules, does.
			c := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
			defer func() { _ = c.Close(ctx) }()
			_, before = c.CompileModule(ctx, withoutCustom(t, wasm))
		}
		if (before == nil) != (after == nil) {
			t.Fatalf("wazero says %v before and %v after", before, after)
		}
	})
}

// withoutCustom leaves out the custom sections of a module that Rewrite takes.
// Rewrite does so, too, and writes the names of functions anew: wazero refuses
// sections that mean nothing, and takes the counts of a name section for sizes
// to allocate.
func withoutCustom(t *testing.T, wasm []byte) []byte {
	t.Helper()
	out := wasm[:8:8]
	for rest := wasm[8:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		end := 1 + n + int(size)
		if n <= 0 || end > len(rest) {
			t.Fatalf("Rewrite took a section of %d bytes, of which %d are there", size, len(rest))
		}
		if rest[0] != 0 {
			out = append(out, rest[:end]...)
		}
		rest = rest[end:]
	}
	return out
}
