package meter

import (
	"errors"
	"strings"
	"testing"
)

// body is a module with one function of this code and two i32 locals.
func withBody(code ...[]byte) []byte {
	m := &wasmModule{memory: op(0, 1)}
	m.fn("", "", 2, code...)
	return m.bytes()
}

// withSection is a small module with one section replaced or added.
func withSection(id byte, content ...[]byte) []byte {
	m := &wasmModule{memory: op(0, 1)}
	m.fn("", "", 0, op(1))
	return m.section(id, content...).bytes()
}

func TestRefusesByName(t *testing.T) {
	for _, c := range []struct {
		rule    string
		wasm    []byte
		code    string
		message string // a part of it
	}{
		{"not a module", []byte("\x7fELF...."), CodeInvalidModule, "not a WebAssembly module"},
		{"empty", nil, CodeInvalidModule, "not a WebAssembly module"},
		{"a component", []byte("\x00asm\x0d\x00\x01\x00"), CodeInvalidModule, "version"},
		{"a cut section", []byte("\x00asm\x01\x00\x00\x00\x01\x05\x01"), CodeInvalidModule, "ends in the middle"},
		{"an unknown section", []byte("\x00asm\x01\x00\x00\x00\x0e\x00"), CodeInvalidModule, "unknown kind 14"},
		{"sections twice", []byte("\x00asm\x01\x00\x00\x00\x01\x01\x00\x01\x01\x00"), CodeInvalidModule, "twice"},
		{"sections out of order", []byte("\x00asm\x01\x00\x00\x00\x03\x01\x00\x01\x01\x00"), CodeInvalidModule, "too late"},
		{"bytes behind a section's items", withSection(8, op(0, 0)), CodeInvalidModule, "follow its last item"},
		{"functions without code", []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00"), CodeInvalidModule, "0 bodies for 1 functions"},
		{"a number of more than 32 bits", withBody(op(opBr, 0x80, 0x80, 0x80, 0x80, 0x10)), CodeInvalidModule, "more than 32 bits"},
		{"a constant of more than 32 bits", withBody(op(opI32Const, 0xff, 0xff, 0xff, 0xff, 0x0f)), CodeInvalidModule, "more than 32 bits"},
		{"a count beyond the section", withSection(7, op(0xff, 0xff, 0x03)), CodeInvalidModule, "announces 65535 items"},
		{"a name that is not UTF-8", withSection(7, op(1, 1, 0xff, 0, 0)), CodeInvalidModule, "UTF-8"},

		{"a tag section", withSection(13, op(0)), CodeUnsupportedFeature, "exception-handling"},
		{"a tag import", withSection(2, op(1), str("a"), str("b"), op(4, 0, 0)), CodeUnsupportedFeature, "exception-handling"},
		{"try", withBody(op(0x06, 0x40, 0x0b)), CodeUnsupportedFeature, "exception-handling"},
		{"throw", withBody(op(0x08, 0)), CodeUnsupportedFeature, "exception-handling"},
		{"try_table", withBody(op(0x1f, 0x40, 0, 0x0b)), CodeUnsupportedFeature, "exception-handling"},
		{"a tail call", withBody(op(0x12, 0)), CodeUnsupportedFeature, "tail-call"},
		{"an indirect tail call", withBody(op(0x13, 0, 0)), CodeUnsupportedFeature, "tail-call"},
		{"call_ref", withBody(op(0x14, 0)), CodeUnsupportedFeature, "typed-function-references"},
		{"a typed reference", withSection(1, op(1, 0x60, 1, 0x64, 0)), CodeUnsupportedFeature, "typed-function-references"},
		{"a table with an initialiser", withSection(4, op(1, 0x40, 0, 0x70, 0, 1, 0xd0, 0x70, 0x0b)), CodeUnsupportedFeature, "typed-function-references"},
		{"a structure type", withSection(1, op(1, 0x5f, 0)), CodeUnsupportedFeature, "gc"},
		{"anyref", withSection(1, op(1, 0x60, 1, 0x6e, 0)), CodeUnsupportedFeature, "gc"},
		{"struct.new", withBody(op(0xfb, 0, 0)), CodeUnsupportedFeature, "gc"},
		{"an atomic", withBody(op(0xfe, 0, 2, 0)), CodeUnsupportedFeature, "threads"},
		{"a shared memory", withSection(5, op(1, 3, 1, 1)), CodeUnsupportedFeature, "threads"},
		{"a 64-bit memory", withSection(5, op(1, 4, 1)), CodeUnsupportedFeature, "memory64"},
		{"a second memory", withSection(5, op(2, 0, 1, 0, 1)), CodeUnsupportedFeature, "multi-memory"},
		{"an access to a second memory", withBody(op(0x28, 0x42, 1, 0)), CodeUnsupportedFeature, "multi-memory"},
		{"memory.size of a second memory", withBody(op(0x3f, 1)), CodeUnsupportedFeature, "multi-memory"},
		{"relaxed SIMD", withBody(op(0xfd, 0x80, 0x02)), CodeUnsupportedFeature, "relaxed-simd"},
		{"wide arithmetic", withBody(op(0xfc, 19)), CodeUnsupportedFeature, "wide-arithmetic"},
		{"computing constants", withSection(6, op(1, i32, 0, opI32Const, 1, opI32Const, 1, 0x6a, opEnd)), CodeUnsupportedFeature, "extended-const"},

		{"an opcode that does not exist", withBody(op(0x27)), CodeInvalidModule, "0x27 does not exist"},
		{"a vector opcode that does not exist", withBody(op(0xfd, 0x9a, 0x01)), CodeInvalidModule, "does not exist"},
		{"a vector opcode in a long form", withBody(op(0xfd, 0x80, 0x00)), CodeInvalidModule, "longer than it is"},
		{"else without if", withBody(op(opBlock, 0x40, opElse, opEnd)), CodeInvalidModule, "else without an if"},
		{"a second else", withBody(get(0), op(opIf, 0x40, opElse, opElse, opEnd)), CodeInvalidModule, "else without an if"},
		{"a body without its end", withBody(op(opBlock, 0x40)), CodeInvalidModule, "ends in the middle"},
		{"code behind the end", withBody(op(opEnd, 1)), CodeInvalidModule, "follow its end"},
		{"a label that is not there", withBody(br(1)), CodeInvalidModule, "label 1"},
		{"a local that is not there, though the meter adds one", withBody(get(0), get(0), get(0), op(0xfc, 11, 0), get(2), drop), CodeInvalidModule, "local 2"},
		{"the meter's global", withBody(constI64(9), op(opGlobalSet, 0)), CodeInvalidModule, "global 0"},
		{"the meter's import", withBody(call(1)), CodeInvalidModule, "function 1"},
		{"the meter's type", withBody(op(opBlock, 1, opEnd)), CodeInvalidModule, "type 1"},
		{"exporting the meter's global", withSection(7, op(1), str("g"), op(3, 0)), CodeInvalidModule, "global 0"},
		{"a table that is not there", withBody(get(0), op(0x11, 0, 0)), CodeInvalidModule, "table 0"},
		{"a data segment without a count", withBody(get(0), get(0), get(0), op(0xfc, 8, 0, 0)), CodeInvalidModule, "no data count"},
		{"a memory access without memory", (func() []byte { m := &wasmModule{}; m.fn("", "", 1, get(0), op(0x28, 2, 0), drop); return m.bytes() })(), CodeInvalidModule, "needs a memory"},
		{"a maximum under the minimum", withSection(5, op(1, 1, 2, 1)), CodeInvalidModule, "limits from 2 to 1"},
		{"another data count", (&wasmModule{memory: op(0, 1)}).section(12, op(2)).section(11, op(1, 1, 0)).bytes(), CodeInvalidModule, "announces 2 data segments"},

		{"importing what the meter imports", withSection(2, op(1), str(ImportModule), str(ImportRefuel), op(0, 0)), CodeReservedName, ImportModule},
		{"importing anything from there", withSection(2, op(1), str(ImportModule), str("x"), op(3, i32, 0)), CodeReservedName, ImportModule},
		{"exporting the meter's name", withSection(7, op(1), str(ExportFuel), op(0, 0)), CodeReservedName, ExportFuel},
		{"exporting one like it", withSection(7, op(1), str("weir_meter"), op(0, 0)), CodeReservedName, "weir_meter"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			refused(t, c.wasm, Limits{}, c.code, c.message)
		})
	}
}

func refused(t *testing.T, wasm []byte, limits Limits, code, message string) *Error {
	t.Helper()
	out, report, err := Rewrite(wasm, limits)
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("accepted: %v", err)
	}
	if e.CodeName() != code || !strings.Contains(e.Error(), message) {
		t.Fatalf("refused by %v, want %s with %q", e, code, message)
	}
	if out != nil || report != (Report{}) {
		t.Fatal("a refused module has a result")
	}
	return e
}

func TestLimitsAreNamed(t *testing.T) {
	many := func(n int, make func(m *wasmModule)) []byte {
		m := &wasmModule{memory: op(0, 1)}
		for range n {
			make(m)
		}
		return m.bytes()
	}
	for _, c := range []struct {
		limit  string
		limits Limits
		fits   []byte
		over   []byte
	}{
		{"ModuleBytes", Limits{ModuleBytes: 50}, withBody(), withBody(repeat(50, op(1)))},
		{"CodeBytes", Limits{CodeBytes: 50}, withBody(repeat(40, op(1))), withBody(repeat(50, op(1)))},
		{"BodyBytes", Limits{BodyBytes: 53}, withBody(repeat(49, op(1))), withBody(repeat(50, op(1)))},
		{"Types", Limits{Types: 2}, withSection(1, vec(op(0x60, 0, 0), op(0x60, 0, 0))), withSection(1, vec(op(0x60, 0, 0), op(0x60, 0, 0), op(0x60, 0, 0)))},
		{"Imports", Limits{Imports: 1}, withSection(2, vec(cat(str("a"), str("b"), op(3, i32, 0)))), withSection(2, vec(cat(str("a"), str("b"), op(3, i32, 0)), cat(str("a"), str("b"), op(3, i32, 0))))},
		{"Functions", Limits{Functions: 3}, many(3, func(m *wasmModule) { m.fn("", "", 0) }), many(4, func(m *wasmModule) { m.fn("", "", 0) })},
		{"Tables", Limits{Tables: 2}, withSection(4, vec(op(0x70, 0, 1), op(0x70, 0, 1))), withSection(4, vec(op(0x70, 0, 1), op(0x70, 0, 1), op(0x70, 0, 1)))},
		{"Globals", Limits{Globals: 1}, withSection(6, vec(op(i32, 0, opI32Const, 0, opEnd))), withSection(6, vec(op(i32, 0, opI32Const, 0, opEnd), op(i32, 0, opI32Const, 0, opEnd)))},
		{"Exports", Limits{Exports: 1}, many(1, func(m *wasmModule) { m.fn("", "", 0) }), many(2, func(m *wasmModule) { m.fn("", "", 0) })},
		{"ElementSegments", Limits{ElementSegments: 1}, withSection(9, vec(op(1, 0, 1, 0))), withSection(9, vec(op(1, 0, 1, 0), op(1, 0, 1, 0)))},
		{"Elements", Limits{Elements: 2}, withSection(9, vec(op(1, 0, 2, 0, 0))), withSection(9, vec(op(1, 0, 2, 0, 0), op(1, 0, 1, 0)))},
		{"DataSegments", Limits{DataSegments: 1}, withSection(11, vec(op(1, 0))), withSection(11, vec(op(1, 0), op(1, 0)))},
		{"DataSegments", Limits{DataSegments: 1}, withBody(), withSection(12, op(2))},
		{"Values", Limits{Values: 2}, withSection(1, vec(op(0x60, 2, i32, i32, 0))), withSection(1, vec(op(0x60, 3, i32, i32, i32, 0)))},
		{"Locals", Limits{Locals: 2}, withBody(), many(1, func(m *wasmModule) { m.fn(i32Sig, "", 2) })},
		{"Nesting", Limits{Nesting: 3}, withBody(block(block(block()))), withBody(block(block(block(block()))))},
		{"LoopNesting", Limits{LoopNesting: 2}, withBody(loop(block(loop())), loop(loop())), withBody(loop(loop(block(loop()))))},
		{"BranchTable", Limits{BranchTable: 3}, withBody(get(0), brTable(3, func(int) int { return 0 })), withBody(get(0), brTable(4, func(int) int { return 0 }))},
		{"FunctionTargets", Limits{FunctionTargets: 5}, withBody(get(0), brTable(4, func(int) int { return 0 })), withBody(block(get(0), brTable(2, func(int) int { return 0 })), get(0), brTable(2, func(int) int { return 0 }))},
		{"Targets", Limits{Targets: 3}, many(1, func(m *wasmModule) { m.fn("", "", 1, get(0), brTable(1, func(int) int { return 0 })) }), many(2, func(m *wasmModule) { m.fn("", "", 1, get(0), brTable(1, func(int) int { return 0 })) })},
		{"CompileWork", Limits{CompileWork: 100_000}, withBody(), withBody(repeat(100, loop(get(0), brIf(0))))},
		{"MemoryBytes", Limits{MemoryBytes: 2 << 16}, withSection(5, op(1, 0, 2)), withSection(5, op(1, 0, 3))},
		{"TableElements", Limits{TableElements: 5}, withSection(4, vec(op(0x70, 0, 5))), withSection(4, vec(op(0x70, 0, 6)))},
	} {
		t.Run(c.limit, func(t *testing.T) {
			if _, _, err := Rewrite(c.fits, c.limits); err != nil {
				t.Fatalf("what fits is refused: %v", err)
			}
			e := refused(t, c.over, c.limits, CodeLimit, c.limit)
			if e.Limit != c.limit || e.Value == 0 || !strings.Contains(e.Message, c.limit+" = ") {
				t.Fatalf("names limit %q = %d in %q", e.Limit, e.Value, e.Message)
			}
		})
	}
}

func TestCompileBombsAreRefused(t *testing.T) {
	one := func(locals int, code ...[]byte) []byte {
		m := &wasmModule{}
		m.fn("", "", locals, code...)
		return m.bytes()
	}
	bodies := func(n int, code ...[]byte) []byte {
		m := &wasmModule{}
		for range n {
			m.funcs = append(m.funcs, wasmFunc{typ: m.typ("", ""), locals: cat(op(1), u(900), op(i32)), code: cat(code...)})
		}
		return m.bytes()
	}
	inLoops := func(n int) []byte {
		return cat(each(n, func(i int) []byte { return cat(op(opLoop, emptyBlock), get(i), constI32(1), add, set(i)) }), repeat(n, get(0), brIf(0), op(opEnd)))
	}
	for rule, wasm := range map[string][]byte{
		"1,000 nested loops with a local each": one(1000, inLoops(1000)),
		"500 nested loops with a local each":   one(500, inLoops(500)),
		"many functions of nested loops":       bodies(500, inLoops(60)),
		"a body of 2 MB":                       one(0, repeat(2<<20, op(1))),
		"a function of 100,000 loops":          one(1, repeat(100_000, loop(get(0), brIf(0)))),
		"a br_table of a million":              one(1, block(get(0), brTable(1_000_000, func(int) int { return 0 }))),
		"br_tables of a million together":      one(1, repeat(200, block(get(0), brTable(5000, func(int) int { return 0 })))),
		"4 billion locals": (func() []byte {
			m := &wasmModule{}
			m.funcs = []wasmFunc{{typ: m.typ("", ""), locals: op(1, 0xff, 0xff, 0xff, 0xff, 0x0f, i32)}}
			return m.bytes()
		})(),
		"locals that overflow 32 bits": (func() []byte {
			m := &wasmModule{}
			m.funcs = []wasmFunc{{typ: m.typ("", ""), locals: op(2, 0xff, 0xff, 0xff, 0xff, 0x0f, i32, 2, i32)}}
			return m.bytes()
		})(),
		"200,000 functions":       bodies(200_000),
		"a million data segments": (&wasmModule{}).section(11, u(1_000_000), repeat(1_000_000, op(1, 0))).bytes(),
		"a memory of 4 GiB":       (&wasmModule{memory: op(0, 0x80, 0x80, 4)}).bytes(),
		"a table of 10⁹":          (&wasmModule{tables: [][]byte{op(0x70, 0, 0x80, 0x94, 0xeb, 0xdc, 3)}}).bytes(),
	} {
		t.Run(rule, func(t *testing.T) { refused(t, wasm, Limits{}, CodeLimit, "over the limit") })
	}
}
