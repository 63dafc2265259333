package meter

import (
	"bytes"
	"encoding/binary"
)

// wasmModule builds modules by hand, as right or as wrong as a test wants.
type wasmModule struct {
	sections map[byte][]byte // whole contents, by number
	types    [][]byte
	funcs    []wasmFunc
	memory   []byte // limits
	exports  [][]byte
	globals  [][]byte
	tables   [][]byte
}

type wasmFunc struct {
	typ    uint32
	locals []byte // declarations with their count; nil for none
	code   []byte // without the last end
}

const (
	i32 = typeI32
	i64 = typeI64
)

func (m *wasmModule) typ(params, results string) uint32 {
	t := cat([]byte{typeFunction}, str(params), str(results))
	for i := range m.types {
		if bytes.Equal(m.types[i], t) {
			return uint32(i)
		}
	}
	m.types = append(m.types, t)
	return uint32(len(m.types) - 1)
}

// fn adds an exported function f0, f1, ... with i32 locals.
func (m *wasmModule) fn(params, results string, locals int, code ...[]byte) uint32 {
	f := wasmFunc{typ: m.typ(params, results), code: cat(code...)}
	if locals > 0 {
		f.locals = cat([]byte{1}, u(locals), []byte{i32})
	}
	m.funcs = append(m.funcs, f)
	index := len(m.funcs) - 1
	m.export("f"+string(rune('0'+index)), 0, index)
	return uint32(index)
}

func (m *wasmModule) export(name string, kind byte, index int) {
	m.exports = append(m.exports, cat(str(name), []byte{kind}, u(index)))
}

func (m *wasmModule) bytes() []byte {
	var funcs, codes [][]byte
	for _, f := range m.funcs {
		funcs = append(funcs, u(int(f.typ)))
		locals := f.locals
		if locals == nil {
			locals = []byte{0}
		}
		body := cat(locals, f.code, []byte{opEnd})
		codes = append(codes, cat(u(len(body)), body))
	}
	var memories [][]byte
	if m.memory != nil {
		memories = append(memories, m.memory)
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		id    byte
		items [][]byte
	}{
		{1, m.types}, {2, nil}, {3, funcs}, {4, m.tables}, {5, memories}, {13, nil}, {6, m.globals}, {7, m.exports}, {8, nil}, {9, nil},
		{12, nil}, {10, codes}, {11, nil}, {0, nil},
	} {
		content, ok := m.sections[s.id]
		if !ok && len(s.items) > 0 {
			content, ok = vec(s.items...), true
		}
		if ok {
			out = cat(out, []byte{s.id}, u(len(content)), content)
		}
	}
	return out
}

// section sets the whole content of one.
func (m *wasmModule) section(id byte, content ...[]byte) *wasmModule {
	if m.sections == nil {
		m.sections = map[byte][]byte{}
	}
	m.sections[id] = cat(content...)
	return m
}

func cat(parts ...[]byte) []byte          { return bytes.Join(parts, nil) }
func u(v int) []byte                      { return binary.AppendUvarint(nil, uint64(v)) }
func str(s string) []byte                 { return append(u(len(s)), s...) }
func vec(items ...[]byte) []byte          { return append(u(len(items)), cat(items...)...) }
func repeat(n int, code ...[]byte) []byte { return bytes.Repeat(cat(code...), n) }
func each(n int, f func(i int) []byte) []byte { // f(0), f(1), ...
	var out []byte
	for i := range n {
		out = append(out, f(i)...)
	}
	return out
}
func op(code ...byte) []byte     { return code }
func constI32(v int) []byte      { return appendSigned([]byte{opI32Const}, int64(int32(v))) }
func constI64(v int64) []byte    { return appendSigned([]byte{opI64Const}, v) }
func get(i int) []byte           { return append([]byte{opLocalGet}, u(i)...) }
func set(i int) []byte           { return append([]byte{opLocalSet}, u(i)...) }
func br(label int) []byte        { return append([]byte{opBr}, u(label)...) }
func brIf(label int) []byte      { return append([]byte{opBrIf}, u(label)...) }
func call(i uint32) []byte       { return appendU32([]byte{opCall}, i) }
func loop(code ...[]byte) []byte { return cat([]byte{opLoop, emptyBlock}, cat(code...), []byte{opEnd}) }
func block(code ...[]byte) []byte {
	return cat([]byte{opBlock, emptyBlock}, cat(code...), []byte{opEnd})
}
func when(code ...[]byte) []byte { return cat([]byte{opIf, emptyBlock}, cat(code...), []byte{opEnd}) }

// brTable jumps to label f(0), f(1), ... and, past them, to label 0.
func brTable(n int, f func(i int) int) []byte {
	return cat([]byte{opBrTable}, u(n), each(n, func(i int) []byte { return u(f(i)) }), u(0))
}

const (
	i32Sig = "\x7f"
	i64Sig = "\x7e"
)

var (
	add  = op(0x6a)
	drop = op(0x1a)
)
