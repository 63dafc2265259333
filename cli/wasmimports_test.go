package cli

import (
	"slices"
	"testing"
)

// imports a function, a table, a memory with a maximum and a global, after a type section.
var wasmWithImports = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x04\x01\x60\x00\x00" +
	"\x02\x26\x04" +
	"\x07weir_v1\x03log\x00\x00" +
	"\x01e\x01t\x01\x70\x00\x00" +
	"\x01e\x01m\x02\x01\x01\x10" +
	"\x01e\x01g\x03\x7f\x00")

func TestImportsAreListedInOrder(t *testing.T) {
	got, err := wasmImports(wasmWithImports)
	if want := []string{"weir_v1.log", "e.t", "e.m", "e.g"}; err != nil || !slices.Equal(got, want) {
		t.Fatalf("%q, %v", got, err)
	}
	if got, err := wasmImports([]byte("\x00asm\x01\x00\x00\x00")); len(got) > 0 || err != nil {
		t.Fatal(got, err)
	}
}

func TestACutModuleIsAnError(t *testing.T) {
	if _, err := wasmImports([]byte("#!/bin/sh\n")); err == nil {
		t.Fatal("not a module")
	}
	for n := len(wasmWithImports) - 1; n > 15; n-- {
		if _, err := wasmImports(wasmWithImports[:n]); err == nil {
			t.Errorf("cut after %d bytes: no error", n)
		}
	}
}

func FuzzWasmImports(f *testing.F) {
	f.Add(wasmWithImports)
	f.Fuzz(func(t *testing.T, wasm []byte) {
		names, err := wasmImports(wasm)
		if err != nil && len(names) > len(wasm) {
			t.Fatal("more names than bytes")
		}
	})
}
