package plugin

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
)

const oneFunction = `{"abi": 1, "module": "m", "functions": [{"name": "f", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}], "output": [{"name": "id", "type": "bigint"}, {"name": "name", "type": "string"}]}]}`

func TestLoadRefusesByName(t *testing.T) {
	e := newEngine(t, Options{Limits: Limits{MemoryBytes: 4 << 20, ModuleBytes: 1 << 20}})
	edit := func(f func(a *asm)) []byte {
		a := guestAsm(oneFunction, echoImports, echo(nil))
		f(a)
		return a.bytes()
	}
	good := edit(func(*asm) {})
	for name, c := range map[string]struct {
		wasm  []byte
		code  string
		parts []string
	}{
		"nothing":              {nil, CodeInvalidModule, []string{"it is empty"}},
		"an ELF file":          {[]byte("\x7fELF\x02\x01\x01\x00 and more"), CodeInvalidModule, []string{"native Linux program"}},
		"text":                 {[]byte("hello, world"), CodeInvalidModule, []string{`does not begin with \0asm`}},
		"a text module":        {[]byte("(module (func))"), CodeInvalidModule, []string{"WebAssembly text"}},
		"a component":          {[]byte("\x00asm\x0d\x00\x01\x00"), CodeInvalidModule, []string{"component"}},
		"an unknown version":   {[]byte("\x00asm\x02\x00\x00\x00"), CodeInvalidModule, []string{"version 02 00 00 00"}},
		"a cut module":         {good[:len(good)-5], CodeInvalidModule, []string{"damaged", "ends early"}},
		"an empty module":      {[]byte("\x00asm\x01\x00\x00\x00"), CodeInvalidModule, []string{"does not export memory, weir_describe, weir_call"}},
		"a module too large":   {append(bytes.Clone(good), make([]byte, 1<<20)...), CodeLimit, []string{"module_bytes = 1048576"}},
		"a memory too large":   {edit(func(a *asm) { a.pages = 65 }), CodeLimit, []string{"memory = 4194304", "4259840 bytes"}},
		"another ABI":          {edit(func(a *asm) { a.imports = append(a.imports, asmImport{"weir_v2", "input_next", "i", "l"}) }), CodeUnknownImport, []string{`function "weir_v2"."input_next"`}},
		"an unknown function":  {edit(func(a *asm) { a.imports = append(a.imports, asmImport{"weir_v1", "shell", "ii", "i"}) }), CodeUnknownImport, []string{`"weir_v1"."shell"`}},
		"an import of env":     {edit(func(a *asm) { a.imports = append(a.imports, asmImport{"env", "abort", "", ""}) }), CodeUnknownImport, []string{`"env"."abort"`}},
		"an unknown WASI call": {edit(func(a *asm) { a.imports = append(a.imports, asmImport{"wasi_snapshot_preview1", "fd_dance", "", ""}) }), CodeUnknownImport, []string{"fd_dance"}},
		"an import's type":     {edit(func(a *asm) { a.imports = append(a.imports, asmImport{"weir_v1", "input_close", "ii", "i"}) }), CodeUnknownImport, []string{"weir_v1.input_close has type (i32, i32) -> (i32) instead of (i32) -> (i32)"}},
		"no memory":            {edit(func(a *asm) { a.noMemory = true }), CodeInvalidModule, []string{"does not export memory"}},
		"no weir_call":         {edit(func(a *asm) { delete(a.code, "weir_call") }), CodeInvalidModule, []string{"does not export weir_call"}},
		"an export's type":     {edit(func(a *asm) { a.exports = map[string]string{"weir_call": "ii:i"} }), CodeInvalidModule, []string{"export weir_call has type (i32, i32) -> (i32) instead of (i32) -> (i32)"}},
		"a command module": {edit(func(a *asm) {
			a.code = map[string][]byte{"_start": {}}
		}), CodeNotSupported, []string{"command module", "-buildmode=c-shared"}},
		"code that is not valid": {edit(func(a *asm) { a.code["weir_call"] = add }), CodeInvalidModule, []string{"does not compile"}},
		"describe that traps":    {edit(func(a *asm) { a.code["weir_describe"] = unreachable }), CodeTrap, []string{"weir_describe: unreachable"}},
		"describe that fails":    {edit(func(a *asm) { a.code["weir_describe"] = i32(3) }), "PLUGIN_MANIFEST", []string{"weir_describe failed: weir_describe returned 3"}},
		"describe of nothing":    {edit(func(a *asm) { a.code["weir_describe"] = i32(0) }), "PLUGIN_MANIFEST", []string{"wrote no manifest"}},
		"_initialize that traps": {edit(func(a *asm) { a.code["_initialize"] = unreachable }), CodeTrap, []string{"_initialize: unreachable"}},
		"a manifest that is no JSON": {guest(`{"abi": 1,`, nil, func(*asm) []byte { return i32(0) }), "INVALID_MANIFEST",
			[]string{"not JSON"}},
		"a manifest with an unknown field": {guest(`{"abi": 1, "module": "m", "functions": [{"name": "f", "kind": "map", "input": []}]}`, nil, func(*asm) []byte { return i32(0) }),
			"INVALID_MANIFEST", []string{"functions[0].input: unknown field"}},
		"a manifest of another ABI": {guest(`{"abi": 9, "module": "m"}`, nil, func(*asm) []byte { return i32(0) }), "UNSUPPORTED_ABI_VERSION", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := e.Load(context.Background(), c.wasm, Config{Name: "evil"})
			wantError(t, err, c.code, append(c.parts, "evil")...)
		})
	}
}

// counter counts how often a module is compiled.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) Rewrite(wasm []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return wasm, nil
}

func (c *counter) Version() string { return "counter" }

func TestTwoLoadsAtOnceCompileOnce(t *testing.T) {
	c := &counter{}
	e := newEngine(t, Options{Meter: c})
	wasm := guest(echoManifest, echoImports, echo(nil))
	var wg, loading sync.WaitGroup
	loading.Add(8) // one that was closed before the next is loaded would be compiled again
	for range 8 {
		wg.Go(func() {
			m, err := e.Load(context.Background(), wasm, Config{Name: "m"})
			loading.Done()
			loading.Wait()
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := mapRows(t, m, Call{Function: "echo"}, numbered(t, checked(t), 3)); err != nil {
				t.Error(err)
			}
			defer func() { _ = m.Close(context.Background()) }()
		})
	}
	keep := load(t, e, wasm, nil)
	wg.Wait()
	if c.n != 1 {
		t.Errorf("compiled %d times", c.n)
	}
	if keep.SHA256() != hash(wasm) {
		t.Errorf("hash %s", keep.SHA256())
	}
}

func TestTheCacheServesAndHeals(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	wasm := guest(echoManifest, echoImports, echo(nil))
	run := func(conf map[string]string) (compiled int, files []string) {
		t.Helper()
		c := &counter{}
		e, err := NewEngine(context.Background(), Options{CacheDir: dir, Meter: c})
		if err != nil {
			t.Fatal(err)
		}
		m, err := e.Load(context.Background(), wasm, Config{Name: "m", Conf: conf})
		if err != nil {
			t.Fatal(err)
		}
		compiled = c.n
		if got, err := mapRows(t, m, Call{Function: "echo"}, numbered(t, checked(t), 1)); err != nil || got != "id=0 name=n0\n" {
			t.Fatalf("%q, %v", got, err)
		}
		if err := m.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		_ = filepath.WalkDir(filepath.Join(dir, "code"), func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && !strings.HasSuffix(path, "SHA256SUMS") {
				files = append(files, path)
			}
			return nil
		})
		return compiled, files
	}
	if n, files := run(nil); n != 1 || len(files) != 1 {
		t.Fatalf("the first load compiled %d times and left %v", n, files)
	}
	n, files := run(nil)
	if n != 0 {
		t.Errorf("loading with the manifest in the cache compiled %d times", n)
	}
	if n, _ := run(map[string]string{"k": "v"}); n != 1 {
		t.Errorf("a manifest made under one configuration was used for another")
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 0x10
	for name, data := range map[string][]byte{"a flipped bit": damaged, "cut off": whole[:100], "empty": nil} {
		if err := os.WriteFile(files[0], data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, again := run(nil); len(again) != 1 {
			t.Errorf("%s: %v", name, again)
		}
		healed, err := os.ReadFile(files[0])
		if err != nil || len(healed) != len(whole) {
			t.Errorf("%s: %d bytes instead of %d, %v", name, len(healed), len(whole), err)
		}
	}
}

// TestAnEntryOfAnotherModuleIsNeverRun: code that wazero itself would take, its
// checksum being right, in the place of another module's.
func TestAnEntryOfAnotherModuleIsNeverRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	good := guest(echoManifest, echoImports, echo(nil))
	evil := guest(echoManifest, append([]string{"fail"}, echoImports...), func(a *asm) []byte { return cat(a.text("the evil code ran"), a.call("fail"), i32(1)) })
	run := func(wasm []byte) (string, error) {
		e := newEngine(t, Options{CacheDir: dir})
		return mapRows(t, load(t, e, wasm, nil), Call{Function: "echo"}, numbered(t, checked(t), 1))
	}
	code := func() (files []string) {
		_ = filepath.WalkDir(filepath.Join(dir, "code"), func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && !strings.HasSuffix(path, "SHA256SUMS") {
				files = append(files, path)
			}
			return nil
		})
		return files
	}
	if _, err := run(good); err != nil {
		t.Fatal(err)
	}
	first := code()
	if _, err := run(evil); err == nil {
		t.Fatal("the evil module ran well")
	}
	both := code()
	if len(first) != 1 || len(both) != 2 {
		t.Fatalf("entries %v and %v", first, both)
	}
	other := both[0]
	if other == first[0] {
		other = both[1]
	}
	text, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(first[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := run(good); err != nil || got != "id=0 name=n0\n" {
		t.Errorf("%q, %v", got, err)
	}
	if healed, err := os.ReadFile(first[0]); err != nil || bytes.Equal(healed, text) {
		t.Errorf("the entry was not made again: %v", err)
	}
}

func TestManyEnginesShareACache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 3 {
				e, err := NewEngine(context.Background(), Options{CacheDir: dir, CacheBytes: 40_000})
				if err != nil {
					t.Error(err)
					return
				}
				a := guestAsm(echoManifest, echoImports, echo(nil))
				a.pages += uint32(i % 3) // three modules
				m, err := e.Load(context.Background(), a.bytes(), Config{Name: "m"})
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := mapRows(t, m, Call{Function: "echo"}, numbered(t, checked(t), 1)); err != nil || got != "id=0 name=n0\n" {
					t.Errorf("%q, %v", got, err)
				}
				_ = m.Close(context.Background())
				_ = e.Close(context.Background())
			}
		})
	}
	wg.Wait()
}

func TestAnEngineWithoutAPlaceForItsCacheSaysSo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := NewEngine(context.Background(), Options{CacheDir: filepath.Join(file, "cache")})
	wantError(t, err, CodeInternal, "cache")
}

func FuzzReadSections(f *testing.F) {
	f.Add(guest(echoManifest, echoImports, echo(nil)))
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x01\x05\x01\x60\x00\x01\x7f"))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		if info, err := readSections(wasm, DefaultLimits()); err == nil {
			_ = info.verify(DefaultLimits())
		}
	})
}

func TestAllOfPreview1Links(t *testing.T) {
	if n := len(wasiImports); n != 46 {
		t.Errorf("%d functions, abi/README.md says 46", n)
	}
	a := guestAsm(oneFunction, echoImports, echo(nil))
	for _, f := range wasiImports {
		a.weirImport(f.name)
	}
	for _, f := range weirImports {
		a.weirImport(f.name)
	}
	load(t, newEngine(t, Options{}), a.bytes(), nil)
}

func TestAReaderOutlivesItsModule(t *testing.T) {
	e := newEngine(t, Options{})
	m, err := e.Load(context.Background(), guest(echoManifest, echoImports, echo(nil)), Config{Name: "m"})
	if err != nil {
		t.Fatal(err)
	}
	mem := checked(t)
	in := numbered(t, mem, 1, 1)
	r, err := m.Map(context.Background(), Call{Function: "echo", Inputs: []array.RecordReader{in}, Mem: mem})
	in.Release()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if got, err := read(r); err != nil || got != "id=0 name=n0\nid=1 name=n1\n" {
		t.Errorf("%q, %v", got, err)
	}
	_, err = mapRows(t, m, Call{Function: "echo", Mem: mem}, numbered(t, mem, 1))
	wantError(t, err, CodeInternal, "closed")
}
