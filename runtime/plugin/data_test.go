package plugin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/weir-data/weir/abi"
)

// image gives the memory of a module that has run nothing, and the number of
// its data segments.
func image(t testing.TB, wasm []byte) (sum [32]byte, segments uint32) {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer func() { _ = rt.Close(ctx) }()
	for _, m := range []struct {
		name      string
		functions []hostFunc
	}{{abi.ImportModule, weirImports}, {abi.WASIModule, wasiImports}} {
		if err := exportHost(ctx, rt, m.name, m.functions); err != nil {
			t.Fatal(err)
		}
	}
	mod, err := rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	b, _ := mod.Memory().Read(0, mod.Memory().Size())
	r := &sectionReader{b: wasm[8:]}
	for len(r.b) > 0 {
		id := r.byte()
		if s := (&sectionReader{b: r.take(int64(r.u32()))}); id == 11 {
			segments = s.u32()
		}
	}
	return sha256.Sum256(b), segments
}

func TestJoinedDataFillsMemoryAlike(t *testing.T) {
	segments := func(list ...asmData) []byte {
		a := guestAsm(oneFunction, echoImports, echo(nil))
		a.data = append(a.data, list...)
		for i := range 60 { // enough to be worth it
			a.data = append(a.data, asmData{uint32(200_000 + 2*i), "x"})
		}
		return a.bytes()
	}
	for name, wasm := range map[string][]byte{
		"Go":           buildGo(t, "./testdata/go/keeping"),
		"close":        segments(asmData{70000, "abc"}, asmData{70010, "defg"}, asmData{70014, ""}, asmData{70014, "x"}),
		"overlapping":  segments(asmData{70000, "abcdefgh"}, asmData{70004, "x"}, asmData{70005, "yz"}, asmData{70000, "Q"}),
		"from above":   segments(asmData{70010, "abc"}, asmData{70000, "def"}),
		"far apart":    segments(asmData{70000, "abc"}, asmData{80000, "def"}),
		"over a write": segments(asmData{70020, "middle"}, asmData{70000, "abc"}, asmData{70004, "d"}, asmData{70040, "def"}, asmData{70022, "x"}),
	} {
		joined := joinData(wasm)
		before, n := image(t, wasm)
		after, m := image(t, joined)
		t.Logf("%s: %d segments, joined %d", name, n, m)
		if before != after {
			t.Errorf("%s: another memory", name)
		}
		if few := m <= n/2; few == (name == "overlapping" || name == "over a write") {
			t.Errorf("%s: %d segments became %d", name, n, m)
		}
	}
	// numbers of segments are used elsewhere: nothing may change
	a := guestAsm(oneFunction, echoImports, echo(nil))
	for i := range 20 {
		a.data = append(a.data, asmData{uint32(70000 + i), "x"})
	}
	wasm := a.bytes()
	counted := append(bytes.Clone(wasm[:8]), 12, 1, 21)
	counted = append(counted, wasm[8:]...)
	if !bytes.Equal(joinData(counted), counted) {
		t.Error("a module with a count of its segments was changed")
	}
	for n := range wasm {
		joinData(wasm[:max(8, n)]) // does not panic
	}
}

func FuzzJoinData(f *testing.F) {
	f.Add(guest(oneFunction, echoImports, echo(nil)))
	f.Fuzz(func(t *testing.T, content []byte) { joinData(append([]byte("\x00asm\x01\x00\x00\x00"), content...)) })
}
