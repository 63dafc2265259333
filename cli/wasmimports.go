package cli

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// wasmImports lists what a module imports as "module.name", in its order. It
// reads the import section only; whether the module may be loaded is
// runtime/plugin's to say.
func wasmImports(wasm []byte) ([]string, error) {
	const header, importSection = 8, 2
	if len(wasm) < header || string(wasm[:4]) != "\x00asm" {
		return nil, errors.New("not a WebAssembly module")
	}
	r := wasmReader{b: wasm[header:]}
	for len(r.b) > 0 && r.err == nil {
		id := r.byte()
		body := r.take(r.uint())
		if id == importSection && r.err == nil {
			return importNames(wasmReader{b: body})
		}
	}
	return nil, r.err
}

func importNames(r wasmReader) ([]string, error) {
	var names []string
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		module := string(r.take(r.uint()))
		name := string(r.take(r.uint()))
		switch kind := r.byte(); kind {
		case 0: // function: type index
			r.uint()
		case 1: // table: element type, limits
			r.byte()
			r.limits()
		case 2: // memory: limits
			r.limits()
		case 3: // global: value type, mutability
			r.byte()
			r.byte()
		default:
			if r.err == nil {
				return nil, fmt.Errorf("import %s.%s is of the unknown kind %d", module, name, kind)
			}
		}
		if r.err == nil {
			names = append(names, module+"."+name)
		}
	}
	return names, r.err
}

// wasmReader reads the little of the binary format that imports need. The
// first error sticks.
type wasmReader struct {
	b   []byte
	err error
}

func (r *wasmReader) byte() byte {
	if b := r.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *wasmReader) take(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(len(r.b)) {
		r.err = errors.New("the module is cut off")
		return nil
	}
	head := r.b[:n]
	r.b = r.b[n:]
	return head
}

// uint reads a LEB128 number; binary.Uvarint reads the same encoding.
func (r *wasmReader) uint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 5 {
		r.err = errors.New("a number is malformed")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *wasmReader) limits() {
	const hasMaximum = 1
	flags := r.byte()
	r.uint()
	if flags&hasMaximum != 0 {
		r.uint()
	}
}
