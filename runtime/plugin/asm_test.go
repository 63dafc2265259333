package plugin

import (
	"encoding/binary"
	"math"
	"strings"
)

// asm builds small modules by hand, so that tests need no compiler and can be
// as wrong as they like.
type asm struct {
	imports  []asmImport
	pages    uint32
	maxPages uint32 // 0: none declared
	data     []asmData
	code     map[string][]byte // by export
	locals   map[string]int    // i32 locals of a function, beyond its parameters
	exports  map[string]string // name: signature, for odd ones
	noMemory bool

	start    string            // an export that is the start function as well
	more     []asmFunc         // functions that nobody exports
	sections map[byte][][]byte // further items by section: type, table, global, export, element
}

// asmFunc is a function of type () -> () with its declaration of locals.
type asmFunc struct{ locals, body []byte }

type asmImport struct{ module, name, params, results string }

type asmData struct {
	at   uint32
	text string
}

// Where the standard pieces lie in memory.
const (
	atManifest = 1024
	atText     = 16384
	atBuffer   = 65536
)

// weirImport declares an import of the ABI by name; its index is its place.
func (a *asm) weirImport(names ...string) {
	for _, name := range names {
		for _, f := range weirImports {
			if f.name == name {
				a.imports = append(a.imports, asmImport{"weir_v1", f.name, f.params, f.results})
			}
		}
		for _, f := range wasiImports {
			if f.name == name {
				a.imports = append(a.imports, asmImport{"wasi_snapshot_preview1", f.name, f.params, f.results})
			}
		}
	}
}

func (a *asm) index(name string) uint32 {
	for i, f := range a.imports {
		if f.name == name {
			return uint32(i)
		}
	}
	panic("no import " + name)
}

// text puts a text into memory and gives the code that pushes its place and length.
func (a *asm) text(s string) []byte {
	at := uint32(atText)
	for _, d := range a.data {
		if d.at >= atText {
			at = d.at + uint32(len(d.text))
		}
	}
	a.data = append(a.data, asmData{at, s})
	return cat(i32(at), i32(uint32(len(s))))
}

func (a *asm) call(name string) []byte { return append([]byte{0x10}, leb(uint64(a.index(name)))...) }

// guest is a module with a manifest and the code of weir_call. The code may
// use local 0 (the function's number) and locals 1 to 4 (i32).
func guest(manifest string, imports []string, call func(a *asm) []byte) []byte {
	return guestAsm(manifest, imports, call).bytes()
}

func guestAsm(manifest string, imports []string, call func(a *asm) []byte) *asm {
	a := &asm{pages: 16, code: map[string][]byte{}, locals: map[string]int{}}
	a.weirImport("result_write")
	a.weirImport(imports...)
	a.data = append(a.data, asmData{atManifest, manifest})
	a.code["weir_describe"] = cat(i32(atManifest), i32(uint32(len(manifest))), a.call("result_write"))
	a.code["weir_call"] = call(a)
	a.locals["weir_call"] = 4
	return a
}

var exportTypes = map[string][2]string{
	"weir_describe": {"", "i"}, "weir_call": {"i", "i"}, "_initialize": {"", ""}, "_start": {"", ""},
}

func (a *asm) bytes() []byte {
	var types, imports, functions, exports, codes [][]byte
	var start []byte
	for i, f := range a.imports {
		types = append(types, funcType(f.params, f.results))
		imports = append(imports, cat(str(f.module), str(f.name), []byte{0}, leb(uint64(i))))
	}
	for _, name := range []string{"_initialize", "weir_describe", "weir_call", "_start"} {
		body, ok := a.code[name]
		if !ok {
			continue
		}
		t := exportTypes[name]
		if odd, ok := a.exports[name]; ok {
			p, r, _ := strings.Cut(odd, ":")
			t = [2]string{p, r}
		}
		types = append(types, funcType(t[0], t[1]))
		functions = append(functions, leb(uint64(len(types)-1)))
		if name == a.start {
			start = leb(uint64(len(types) - 1))
		}
		exports = append(exports, cat(str(name), []byte{0}, leb(uint64(len(types)-1))))
		locals := []byte{0}
		if n := a.locals[name]; n > 0 {
			locals = cat([]byte{1}, leb(uint64(n)), []byte{0x7f})
		}
		f := cat(locals, body, []byte{0x0b})
		codes = append(codes, cat(leb(uint64(len(f))), f))
	}
	if a.more != nil {
		types = append(types, funcType("", ""))
		t := leb(uint64(len(types) - 1))
		for _, f := range a.more {
			functions = append(functions, t)
			locals := f.locals
			if locals == nil {
				locals = []byte{0}
			}
			body := cat(locals, f.body, []byte{0x0b})
			codes = append(codes, cat(leb(uint64(len(body))), body))
		}
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, items [][]byte) {
		items = append(items, a.sections[id]...)
		if len(items) > 0 {
			body := cat(leb(uint64(len(items))), cat(items...))
			out = cat(out, []byte{id}, leb(uint64(len(body))), body)
		}
	}
	section(1, types)
	section(2, imports)
	section(3, functions)
	section(4, nil)
	if !a.noMemory {
		limits := cat([]byte{0}, leb(uint64(a.pages)))
		if a.maxPages > 0 {
			limits = cat([]byte{1}, leb(uint64(a.pages)), leb(uint64(a.maxPages)))
		}
		section(5, [][]byte{limits})
		exports = append(exports, cat(str("memory"), []byte{2, 0}))
	}
	section(6, nil)
	section(7, exports)
	if start != nil {
		out = cat(out, []byte{8}, leb(uint64(len(start))), start)
	}
	section(9, nil)
	section(10, codes)
	var data [][]byte
	for _, d := range a.data {
		data = append(data, cat([]byte{0}, i32(d.at), []byte{0x0b}, str(d.text)))
	}
	section(11, data)
	return out
}

func funcType(params, results string) []byte {
	list := func(s string) []byte {
		out := leb(uint64(len(s)))
		for _, c := range s {
			out = append(out, letters[c].typ)
		}
		return out
	}
	return cat([]byte{0x60}, list(params), list(results))
}

func cat(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func leb(v uint64) []byte { return binary.AppendUvarint(nil, v) }

func sleb(v int64) []byte {
	var out []byte
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

func str(s string) []byte { return cat(leb(uint64(len(s))), []byte(s)) }
func i32(v uint32) []byte { return cat([]byte{0x41}, sleb(int64(int32(v)))) }
func i64(v int64) []byte  { return cat([]byte{0x42}, sleb(v)) }
func f64(v float64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{0x44}, math.Float64bits(v))
}
func get(i byte) []byte          { return []byte{0x20, i} }
func set(i byte) []byte          { return []byte{0x21, i} }
func tee(i byte) []byte          { return []byte{0x22, i} }
func loop(body ...[]byte) []byte { return cat([]byte{0x03, 0x40}, cat(body...), []byte{0x0b}) }
func when(body ...[]byte) []byte { return cat([]byte{0x04, 0x40}, cat(body...), []byte{0x0b}) }

var (
	unreachable = []byte{0x00}
	br0         = []byte{0x0c, 0}
	br1         = []byte{0x0c, 1}
	ret         = []byte{0x0f}
	drop        = []byte{0x1a}
	wrap        = []byte{0xa7} // i32.wrap_i64
	eqz         = []byte{0x45}
	ltS         = []byte{0x48}
	add         = []byte{0x6a}
	load32      = []byte{0x28, 2, 0}
	store32     = []byte{0x36, 2, 0}
	load8       = []byte{0x2d, 0, 0}
	store8      = []byte{0x3a, 0, 0}
	grow        = []byte{0x40, 0}
)

// echo copies the messages of input 0 to output 0; prelude runs for each
// message after it was read, with its size in local 1.
func echo(prelude func(a *asm) []byte) func(a *asm) []byte {
	return func(a *asm) []byte {
		var extra []byte
		if prelude != nil {
			extra = prelude(a)
		}
		return cat(
			loop(
				i32(0), a.call("input_next"), wrap, tee(1), eqz, when(i32(0), ret),
				get(1), i32(0), ltS, when(i32(7), ret),
				i32(0), i32(atBuffer), get(1), a.call("input_read"), drop,
				extra,
				i32(0), i32(atBuffer), get(1), a.call("output_write"), drop,
				br0,
			),
			i32(0),
		)
	}
}

var echoImports = []string{"input_next", "input_read", "output_write"}
