package meter

import "strings"

// vector reads the count of a section's items and holds it to a limit.
func (w *rewriter) vector(r *reader, what, field string, limit int64, before uint32) uint32 {
	n := r.count()
	if total := uint64(n) + uint64(before); total > uint64(limit) {
		r.fail(over(what, total, field, limit))
		return 0
	}
	return n
}

func (w *rewriter) typeSection(r *reader) []byte {
	n := w.vector(r, "types", "Types", w.limits.Types, 0)
	start := r.at
	w.refuelType, w.waitType = n, n+1
	added := []byte{typeFunction, 1, typeI64, 1, typeI64, typeFunction, 0, 0}
	for i := range n {
		if r.fault != nil {
			return nil
		}
		switch form := r.byte(); form {
		case typeFunction:
		case 0x5e, 0x5f, 0x50, 0x4e, 0x4f:
			r.fail(unsupported("gc", "type %d is no function type", i))
		default:
			r.fail(invalid("type %d has the unknown form %#x", i, form))
		}
		params, results := w.valueTypes(r), w.valueTypes(r)
		w.types = append(w.types, signature{params, results})
	}
	out := append(appendU32(nil, n+2), r.b[start:r.at]...)
	return append(out, added...)
}

// valueTypes reads a vector of them and gives its length.
func (w *rewriter) valueTypes(r *reader) int {
	n := r.count()
	if int64(n) > w.limits.Values {
		r.fail(over("parameters or results of a type", uint64(n), "Values", w.limits.Values))
		return 0
	}
	for _, c := range r.take(uint64(n)) {
		checkValueType(r, c)
	}
	return int(n)
}

func checkValueType(r *reader, c byte) {
	switch {
	case isValueType(c):
	case c == 0x69 || c == 0x74:
		r.fail(unsupported("exception-handling", "it uses value type %#x", c))
	case c == 0x63 || c == 0x64:
		r.fail(unsupported("typed-function-references", "it uses value type %#x", c))
	case c >= 0x65 && c <= 0x6e || c >= 0x71 && c <= 0x73 || c == 0x77 || c == 0x78:
		r.fail(unsupported("gc", "it uses value type %#x", c))
	default:
		r.fail(invalid("%#x is no value type", c))
	}
}

func checkRefType(r *reader, c byte) {
	if checkValueType(r, c); r.fault == nil && !isRefType(c) {
		r.fail(invalid("%#x is no reference type", c))
	}
}

// Kinds of imports and exports.
const (
	externFunction = 0
	externTable    = 1
	externMemory   = 2
	externGlobal   = 3
	externTag      = 4
)

func (w *rewriter) importSection(r *reader) []byte {
	n := w.vector(r, "imports", "Imports", w.limits.Imports, 0)
	out := appendU32(nil, n+1)
	for i := range n {
		if r.fault != nil {
			return nil
		}
		module, name, kind := r.name(), r.name(), r.byte()
		if module == ImportModule {
			r.fail(reserved("it imports %q from %q", name, module))
		}
		out = append(appendName(appendName(out, module), name), kind)
		switch kind {
		case externFunction:
			t := w.typeIndex(r)
			w.functions = append(w.functions, t)
			out = appendU32(out, t)
		case externTable:
			w.tables++
			out = w.tableType(r, out)
		case externMemory:
			w.memories++
			out = w.memoryType(r, out)
		case externGlobal:
			w.globals++
			out = w.globalType(r, out)
		case externTag:
			r.fail(unsupported("exception-handling", "import %d is a tag", i))
		default:
			r.fail(invalid("import %d has the unknown kind %d", i, kind))
		}
	}
	w.importedFunctions = uint32(len(w.functions))
	out = append(appendName(appendName(out, ImportModule), ImportRefuel), externFunction)
	return appendU32(out, w.refuelType)
}

func (w *rewriter) typeIndex(r *reader) uint32 {
	return w.index(r, "type", uint32(len(w.types)))
}

// index reads an index and checks that the module itself has such a thing, so
// that a guest cannot reach what the rewriter adds behind its own.
func (w *rewriter) index(r *reader, what string, count uint32) uint32 {
	i := r.u32()
	if i >= count && r.fault == nil {
		r.fail(invalid("%s %d is not there: it has %d", what, i, count))
		return 0
	}
	return i
}

func (w *rewriter) functionIndex(r *reader) uint32 {
	return w.index(r, "function", uint32(len(w.functions)))
}

func (w *rewriter) functionSection(r *reader) []byte {
	n := w.vector(r, "functions", "Functions", w.limits.Functions, uint32(len(w.functions)))
	start := r.at
	for range n {
		if r.fault != nil {
			return nil
		}
		w.functions = append(w.functions, w.typeIndex(r))
	}
	w.report.Functions = len(w.functions)
	out := append(appendU32(nil, n+1), r.b[start:r.at]...)
	return appendU32(out, w.waitType)
}

func (w *rewriter) tableSection(r *reader) []byte {
	n := w.vector(r, "tables", "Tables", w.limits.Tables, w.tables)
	out := appendU32(nil, n)
	for range n {
		if r.fault != nil {
			return nil
		}
		w.tables++
		out = w.tableType(r, out)
	}
	return out
}

func (w *rewriter) tableType(r *reader, out []byte) []byte {
	if int64(w.tables) > w.limits.Tables {
		r.fail(over("tables", uint64(w.tables), "Tables", w.limits.Tables))
	}
	c := r.byte()
	if c == 0x40 {
		r.fail(unsupported("typed-function-references", "a table has an initialiser"))
	}
	checkRefType(r, c)
	return capped(r, append(out, c), "entries of a table at start", "TableElements", w.limits.TableElements, w.limits.elements(), 1, 1<<32-1)
}

func (w *rewriter) memorySection(r *reader) []byte {
	n := r.count()
	out := appendU32(nil, n)
	for range n {
		if r.fault != nil {
			return nil
		}
		w.memories++
		out = w.memoryType(r, out)
	}
	return out
}

func (w *rewriter) memoryType(r *reader, out []byte) []byte {
	if w.memories > 1 {
		r.fail(unsupported("multi-memory", "it has more than one memory"))
	}
	before := len(out)
	out = capped(r, out, "bytes of memory at start", "MemoryBytes", w.limits.MemoryBytes, w.limits.pages(), pageBytes, 1<<16)
	if r.fault == nil {
		written := &reader{b: out, at: before + 1}
		written.u32()
		w.report.MemoryPages = written.u32()
	}
	return out
}

// capped copies the limits of a memory or table and lowers, or sets, their maximum.
func capped(r *reader, out []byte, what, field string, limit int64, most, unit uint32, formatMost uint32) []byte {
	flags := r.byte()
	switch {
	case flags&^7 != 0:
		r.fail(invalid("limits with the unknown flags %#x", flags))
	case flags&4 != 0:
		r.fail(unsupported("memory64", "it has 64-bit addresses"))
	case flags&2 != 0:
		r.fail(unsupported("threads", "it has a shared memory or table"))
	}
	low, high := r.u32(), uint32(0)
	if flags&1 != 0 {
		high = r.u32()
		if high < low || high > formatMost {
			r.fail(invalid("limits from %d to %d", low, high))
		}
		high = min(high, most)
	} else {
		high = most
	}
	if low > most {
		r.fail(over(what, uint64(low)*uint64(unit), field, limit))
	}
	return appendU32(appendU32(append(out, 1), low), high)
}

func (w *rewriter) globalType(r *reader, out []byte) []byte {
	c, mutable := r.byte(), r.byte()
	checkValueType(r, c)
	switch {
	case mutable&2 != 0:
		r.fail(unsupported("threads", "it has a shared global"))
	case mutable > 1:
		r.fail(invalid("a global's mutability is %d", mutable))
	}
	w.mutable += uint32(mutable)
	return append(out, c, mutable)
}

func (w *rewriter) globalSection(r *reader) []byte {
	n := w.vector(r, "globals", "Globals", w.limits.Globals, w.globals)
	out := appendU32(nil, n+1)
	for range n {
		if r.fault != nil {
			return nil
		}
		out = w.expression(r, w.globalType(r, out))
		w.globals++
	}
	out = append(out, typeI64, 1, opI64Const)
	return append(appendSigned(out, w.limits.InitialFuel), opEnd)
}

// expression copies a constant expression.
func (w *rewriter) expression(r *reader, out []byte) []byte {
	for r.fault == nil {
		start := r.at
		switch op := r.byte(); op {
		case opEnd:
			return append(out, opEnd)
		case opI32Const:
			r.signed(32)
		case opI64Const:
			r.signed(64)
		case opF32Const:
			r.take(4)
		case opF64Const:
			r.take(8)
		case opGlobalGet:
			w.index(r, "global", w.globals)
		case opRefNull:
			checkRefType(r, r.byte())
		case opRefFunc:
			out = appendU32(append(out, op), w.shifted(w.functionIndex(r)))
			continue
		case opSIMD:
			if r.byte() != simdConst {
				r.fail(invalid("a constant expression has a vector instruction other than v128.const"))
			}
			r.take(16)
		case 0x6a, 0x6b, 0x6c, opI64Add, opI64Sub, opI64Mul:
			r.fail(unsupported("extended-const", "a constant expression computes"))
		case 0xfb:
			r.fail(unsupported("gc", "a constant expression makes an object"))
		default:
			r.fail(invalid("a constant expression has opcode %#x", op))
		}
		out = append(out, r.b[start:r.at]...)
	}
	return nil
}

func (w *rewriter) exportSection(r *reader) []byte {
	n := w.vector(r, "exports", "Exports", w.limits.Exports, 0)
	out := appendU32(nil, n+1)
	for range n {
		if r.fault != nil {
			return nil
		}
		name, kind := r.name(), r.byte()
		if strings.HasPrefix(name, ImportModule) {
			r.fail(reserved("it exports %q", name))
		}
		out = append(appendName(out, name), kind)
		var index uint32
		switch kind {
		case externFunction:
			index = w.shifted(w.functionIndex(r))
		case externTable:
			index = w.index(r, "table", w.tables)
		case externMemory:
			index = w.index(r, "memory", w.memories)
		case externGlobal:
			index = w.index(r, "global", w.globals)
		case externTag:
			r.fail(unsupported("exception-handling", "export %q is a tag", name))
		default:
			r.fail(invalid("export %q has the unknown kind %d", name, kind))
		}
		out = appendU32(out, index)
	}
	return appendU32(append(appendName(out, ExportFuel), externGlobal), w.globals)
}

func (w *rewriter) startSection(r *reader) []byte {
	return appendU32(nil, w.shifted(w.functionIndex(r)))
}

func (w *rewriter) elementSection(r *reader) []byte {
	n := w.vector(r, "element segments", "ElementSegments", w.limits.ElementSegments, 0)
	out := appendU32(nil, n)
	for total := uint64(0); w.elements < n; w.elements++ {
		if r.fault != nil {
			return nil
		}
		flags := r.u32()
		if flags > 7 {
			r.fail(invalid("an element segment has flags %d", flags))
		}
		out = appendU32(out, flags)
		passive, explicit, expressions := flags&1 != 0, flags&2 != 0, flags&4 != 0
		if !passive {
			table := uint32(0)
			if explicit {
				table = r.u32()
				out = appendU32(out, table)
			}
			if table >= w.tables {
				r.fail(invalid("table %d is not there: it has %d", table, w.tables))
			}
			out = w.expression(r, out)
		}
		if passive || explicit {
			kind := r.byte()
			if expressions {
				checkRefType(r, kind)
			} else if kind != 0 {
				r.fail(invalid("an element segment has kind %d", kind))
			}
			out = append(out, kind)
		}
		count := r.count()
		if total += uint64(count); total > uint64(w.limits.Elements) {
			r.fail(over("entries of all element segments", total, "Elements", w.limits.Elements))
			return nil
		}
		out = appendU32(out, count)
		for range count {
			if r.fault != nil {
				return nil
			}
			if expressions {
				out = w.expression(r, out)
			} else {
				out = appendU32(out, w.shifted(w.functionIndex(r)))
			}
		}
	}
	return out
}

func (w *rewriter) dataCountSection(r *reader) []byte {
	w.dataCount, w.hasDataCount = r.u32(), true
	if int64(w.dataCount) > w.limits.DataSegments {
		r.fail(over("data segments", uint64(w.dataCount), "DataSegments", w.limits.DataSegments))
	}
	return r.b[:r.at]
}

func (w *rewriter) dataSection(r *reader) []byte {
	n := w.vector(r, "data segments", "DataSegments", w.limits.DataSegments, 0)
	if w.hasDataCount && n != w.dataCount {
		r.fail(invalid("it announces %d data segments and has %d", w.dataCount, n))
	}
	out := appendU32(make([]byte, 0, len(r.b)), n)
	for range n {
		if r.fault != nil {
			return nil
		}
		flags := r.u32()
		if flags > 2 {
			r.fail(invalid("a data segment has flags %d", flags))
		}
		out = appendU32(out, flags)
		if flags != 1 {
			if flags == 2 {
				if m := r.u32(); m != 0 {
					r.fail(unsupported("multi-memory", "a data segment names memory %d", m))
				}
				out = append(out, 0)
			}
			if w.memories == 0 {
				r.fail(invalid("a data segment has no memory"))
			}
			out = w.expression(r, out)
		}
		bytes := r.take(uint64(r.u32()))
		out = append(appendU32(out, uint32(len(bytes))), bytes...)
	}
	return out
}
