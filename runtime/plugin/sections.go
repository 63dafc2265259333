package plugin

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// moduleInfo is what the sections of a module say before it is compiled.
type moduleInfo struct {
	imports    []importEntry
	exports    map[string]exportEntry
	memoryMin  int64 // bytes
	hasMemory  bool
	memoryMore bool // shared or 64-bit
}

type importEntry struct {
	module, name string
	kind         byte
	signature    string
}

type exportEntry struct {
	kind      byte
	signature string // of a function
}

// Kinds of imports and exports.
const (
	externFunc   = 0
	externTable  = 1
	externMemory = 2
	externGlobal = 3
	externTag    = 4
)

var externNames = map[byte]string{externFunc: "function", externTable: "table", externMemory: "memory", externGlobal: "global", externTag: "tag"}

var wasmMagic = []byte("\x00asm")

// readSections reads types, imports, functions, memories and exports. It is
// no validator: wazero validates the whole module when it compiles it. Counts are
// held against their limits here, before the meter's turn, since a few bytes of
// each make a far larger thing in memory.
func readSections(wasm []byte, limits Limits) (*moduleInfo, error) {
	switch {
	case len(wasm) < 8 || !bytes.HasPrefix(wasm, wasmMagic):
		return nil, errorf(CodeInvalidModule, "it is not a WebAssembly module: %s", sniff(wasm))
	case wasm[4] == 0x0d && wasm[6] == 1:
		return nil, errorf(CodeInvalidModule, "it is a WebAssembly component; build a core module instead")
	case !bytes.Equal(wasm[4:8], []byte{1, 0, 0, 0}):
		return nil, errorf(CodeInvalidModule, "it is a WebAssembly module of unknown version % x", wasm[4:8])
	}
	info := &moduleInfo{exports: map[string]exportEntry{}}
	var types []string
	var functions []uint32 // type of each function, imported ones first
	r := &sectionReader{b: wasm[8:]}
	for len(r.b) > 0 && r.fault == "" {
		id := r.byte()
		s := &sectionReader{b: r.take(int64(r.u32()))}
		switch id {
		case 1:
			for n := s.count("types", limits.Shape.Types); n > 0 && s.fault == ""; n-- {
				types = append(types, s.functionType(limits.Shape.Values))
			}
		case 2:
			for n := s.count("imports", limits.Shape.Imports); n > 0 && s.fault == ""; n-- {
				e := importEntry{module: s.name(), name: s.name(), kind: s.byte()}
				if e.kind == externFunc {
					t := s.u32()
					functions = append(functions, t)
					e.signature = at(types, t)
				} else {
					s.skipExtern(e.kind)
				}
				info.imports = append(info.imports, e)
			}
		case 3:
			for n := s.count("functions", limits.Shape.Functions); n > 0 && s.fault == ""; n-- {
				functions = append(functions, s.u32())
			}
		case 5:
			for n := s.u32(); n > 0 && s.fault == ""; n-- {
				flags, low, _ := s.limits()
				info.hasMemory, info.memoryMore = true, info.memoryMore || flags > 1
				info.memoryMin += low * 65536
			}
		case 7:
			for n := s.count("exports", limits.Shape.Exports); n > 0 && s.fault == ""; n-- {
				name, kind, index := s.name(), s.byte(), s.u32()
				e := exportEntry{kind: kind}
				if kind == externFunc {
					e.signature = "?"
					if int64(index) < int64(len(functions)) {
						e.signature = at(types, functions[index])
					}
				}
				info.exports[name] = e
			}
		}
		if s.over != nil {
			return nil, s.over
		}
		if s.fault != "" {
			return nil, errorf(CodeInvalidModule, "section %d is damaged: %s", id, s.fault)
		}
	}
	if r.fault != "" {
		return nil, errorf(CodeInvalidModule, "the module is damaged: %s", r.fault)
	}
	return info, nil
}

func at(types []string, i uint32) string {
	if int64(i) < int64(len(types)) {
		return types[i]
	}
	return "?"
}

// sniff says what a file that is no module looks like.
func sniff(b []byte) string {
	for prefix, what := range map[string]string{"\x7fELF": "it looks like a native Linux program (GOOS=wasip1 GOARCH=wasm missing?)",
		"PK": "it looks like a ZIP file", "\x1f\x8b": "it looks like gzip", "\xcf\xfa\xed\xfe": "it looks like a native macOS program", "MZ": "it looks like a Windows program",
		"(module": "it is WebAssembly text, not binary", "!<arch>": "it looks like an archive (is -o missing from a go build of a package that is not main?)", "version https://git-lfs": "it is a Git LFS pointer"} {
		if bytes.HasPrefix(b, []byte(prefix)) {
			return what
		}
	}
	if len(b) == 0 {
		return "it is empty"
	}
	return "it does not begin with \\0asm"
}

type sectionReader struct {
	b     []byte
	fault string
	over  *Error // the limit that a count is over, if that is the fault
}

// count reads a number of things, of which there is a limit.
func (r *sectionReader) count(name string, most int64) uint32 {
	n := r.u32()
	if int64(n) > most && r.fault == "" {
		r.over = overLimit(name, most, fmt.Sprintf("the number of %s, %d,", name, n))
		r.fail("there are too many " + name)
		return 0
	}
	return n
}

func (r *sectionReader) fail(what string) {
	if r.fault == "" {
		r.fault = what
	}
	r.b = nil
}

func (r *sectionReader) byte() byte {
	if len(r.b) == 0 {
		r.fail("it ends early")
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *sectionReader) take(n int64) []byte {
	if n < 0 || n > int64(len(r.b)) {
		r.fail("it ends early")
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *sectionReader) u32() uint32 {
	v := r.leb(5)
	if v > 1<<32-1 {
		r.fail("a number is too large")
	}
	return uint32(v)
}

func (r *sectionReader) leb(most int) uint64 {
	var v uint64
	for i := range most {
		c := r.byte()
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return v
		}
	}
	r.fail("a number is too long")
	return 0
}

func (r *sectionReader) name() string {
	b := r.take(int64(r.u32()))
	if !utf8.Valid(b) {
		r.fail("a name is not UTF-8")
		return ""
	}
	return string(b)
}

func (r *sectionReader) limits() (flags byte, low, high int64) {
	flags = r.byte()
	low = int64(r.leb(10) & (1<<48 - 1))
	if flags&1 != 0 {
		high = int64(r.leb(10) & (1<<48 - 1))
	}
	return flags, low, high
}

func (r *sectionReader) skipExtern(kind byte) {
	switch kind {
	case externTable:
		r.byte()
		r.limits()
	case externMemory:
		r.limits()
	case externGlobal:
		r.byte()
		r.byte()
	case externTag:
		r.byte()
		r.u32()
	default:
		r.fail("an import of unknown kind")
	}
}

var valueNames = map[byte]string{0x7f: "i32", 0x7e: "i64", 0x7d: "f32", 0x7c: "f64", 0x7b: "v128", 0x70: "funcref", 0x6f: "externref"}

func (r *sectionReader) functionType(mostValues int64) string {
	if form := r.byte(); form != 0x60 {
		r.fail("a type that is no function type")
		return "?"
	}
	params := r.values(mostValues)
	return "(" + params + ") -> (" + r.values(mostValues) + ")"
}

func (r *sectionReader) values(most int64) string {
	var out []string
	for n := r.count("values", most); n > 0 && r.fault == ""; n-- {
		c := r.byte()
		name, ok := valueNames[c]
		if !ok {
			r.fail("a value type it does not know")
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}
