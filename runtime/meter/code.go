package meter

import "fmt"

// body is one function on its way through. Its slices are used again for the
// next function.
type body struct {
	r      *reader
	header []byte // the declared locals
	code   []byte // the instructions, with shifted indices
	copied int    // how far r.b went into code
	here   int    // where in code the instruction at hand begins, once it is there
	edits  []edit // what is put in, in the order of the code
	frames []frame

	locals  uint32 // with parameters
	groups  uint32 // of declared locals
	scratch bool   // wants a local for a length
	cached  bool   // wants a local for the fuel
	unpaid  int    // the most instructions unpaid on a path to here, or dead
	exit    int    // the most unpaid where the function is left
	deepest int
	loops   int
	nested  int // the depth of loops within loops
	blocks  int // basic blocks, about
	calls   int
	values  int // that blocks, branches and calls take along
	targets int
}

func (w *rewriter) codeSection(r *reader) []byte {
	n := r.count()
	if declared := uint32(len(w.functions)) - w.importedFunctions; n != declared && r.fault == nil {
		r.fail(invalid("it has %d bodies for %d functions", n, declared))
		return nil
	}
	if total := r.left(); int64(total) > w.limits.CodeBytes {
		r.fail(over("bytes of code", uint64(total), "CodeBytes", w.limits.CodeBytes))
		return nil
	}
	w.report.CodeBytes = r.left()
	out := appendU32(make([]byte, 0, len(r.b)+len(r.b)/3+32), n+1)
	for i := range n {
		size := r.u32()
		content := r.take(uint64(size))
		if r.fault != nil {
			return nil
		}
		function := w.importedFunctions + i
		if int64(size) > w.limits.BodyBytes {
			r.fail(over(fmt.Sprintf("bytes of the body of function %d", function), uint64(size), "BodyBytes", w.limits.BodyBytes))
			return nil
		}
		if fault := w.walk(&w.body, function, content); fault != nil {
			if fault.Code == CodeInvalidModule {
				fault.Message = fmt.Sprintf("function %d: %s", function, fault.Message)
			}
			r.fail(fault)
			return nil
		}
		out = w.assemble(&w.body, out)
	}
	w.report.MeteredBytes = len(out)
	return w.appendWait(out)
}

// walk reads a body, and decides what is charged where.
func (w *rewriter) walk(b *body, function uint32, content []byte) *Error {
	*b = body{r: &reader{b: content}, code: b.code[:0], edits: b.edits[:0], frames: b.frames[:0]}
	w.declareLocals(b, function)
	b.copied = b.r.at
	b.frames = append(b.frames, frame{unpaid: dead, carries: w.types[w.functions[function]].results})
	for b.r.fault == nil && len(b.frames) > 0 {
		w.instruction(b)
	}
	if b.r.fault == nil && b.r.left() > 0 {
		b.r.fail(invalid("%d bytes follow its end", b.r.left()))
	}
	if b.r.fault != nil {
		return b.r.fault
	}
	b.flush(b.r.at)
	if fault := w.estimate(b, function, len(content)); fault != nil {
		return fault
	}
	w.report.MaxBodyBytes = max(w.report.MaxBodyBytes, len(content))
	w.report.MaxLocals = max(w.report.MaxLocals, int(b.locals))
	w.report.MaxNesting = max(w.report.MaxNesting, b.deepest)
	w.report.MaxLoopNesting = max(w.report.MaxLoopNesting, b.nested)
	w.report.MaxFunctionTargets = max(w.report.MaxFunctionTargets, b.targets)
	return nil
}

func (w *rewriter) declareLocals(b *body, function uint32) {
	r := b.r
	b.groups = r.count()
	start := r.at
	total := uint64(w.types[w.functions[function]].params)
	for range b.groups {
		if r.fault != nil {
			return
		}
		total += uint64(r.u32())
		checkValueType(r, r.byte())
	}
	if total > uint64(w.limits.Locals) || int64(b.groups) > w.limits.Locals {
		r.fail(over(fmt.Sprintf("locals of function %d", function), max(total, uint64(b.groups)), "Locals", w.limits.Locals))
		return
	}
	b.locals = uint32(total)
	b.header = r.b[start:r.at]
}

// flush copies the instructions up to a place of the original.
func (b *body) flush(end int) {
	b.code = append(b.code, b.r.b[b.copied:end]...)
	b.copied = end
}

// renumber replaces what was read behind the opcode at start by a number.
func (b *body) renumber(start int, index uint32) {
	b.flush(start + 1)
	b.code = appendU32(b.code, index)
	b.copied = b.r.at
}

func (w *rewriter) instruction(b *body) {
	r := b.r
	start := r.at
	b.here = len(b.code) + start - b.copied
	op := r.byte()
	if r.fault != nil {
		return
	}
	switch kind := plain[op]; kind {
	case immNone:
		switch op {
		case opElse:
			b.otherwise()
		case opEnd:
			b.end()
		case opReturn:
			b.count(1, false)
			b.leave(0)
			b.unpaid = dead
		case opUnreachable:
			b.unpaid = dead
		default:
			b.count(1, true)
		}
	case immBlock:
		s := w.blockType(r)
		w.open(b, op, s, r.at-start)
	case immLabel:
		b.count(1, false)
		label := r.u32()
		b.branch(label, r.at-start, op == opBrIf)
	case immLabels:
		w.branchTable(b)
	case immLocal:
		w.index(r, "local", b.locals)
		b.count(1, true)
	case immI32:
		r.signed(32)
		b.count(1, true)
	case immFunction:
		index := w.functionIndex(r)
		weight := 1
		if op == opRefFunc {
			weight = outside
		}
		b.count(weight, true)
		b.renumber(start, w.shifted(index))
		if op == opCall && r.fault == nil {
			b.called(w.types[w.functions[index]])
		}
	case immMemory:
		r.zero("a memory instruction")
		w.needMemory(r)
		if op == opMemoryGrow {
			b.bulk(outside, growPages)
		} else {
			b.count(1, true)
		}
	case immIndirect:
		t := w.typeIndex(r)
		w.index(r, "table", w.tables)
		b.count(1, true)
		if r.fault == nil {
			b.called(w.types[t])
		}
	case immPrefix:
		w.prefixed(b, op, start)
	case immRefused:
		if name := feature(op); name != "" {
			r.fail(unsupported(name, "it has opcode %#x", op))
		} else {
			r.fail(invalid("opcode %#x does not exist", op))
		}
	default:
		w.immediates(b, kind)
		b.count(1, true)
	}
}

func (w *rewriter) branchTable(b *body) {
	r := b.r
	n := r.count()
	b.targets += int(n) + 1
	w.report.Targets += int(n) + 1
	switch {
	case int64(n) > w.limits.BranchTable:
		r.fail(over("targets of a br_table", uint64(n), "BranchTable", w.limits.BranchTable))
	case int64(b.targets) > w.limits.FunctionTargets:
		r.fail(over("targets of the br_tables of a function", uint64(b.targets), "FunctionTargets", w.limits.FunctionTargets))
	case int64(w.report.Targets) > w.limits.Targets:
		r.fail(over("targets of all br_tables", uint64(w.report.Targets), "Targets", w.limits.Targets))
	}
	b.count(1, false)
	for range uint64(n) + 1 {
		if r.fault != nil {
			return
		}
		start := r.at
		label := r.u32()
		i := b.frameOf(label)
		b.leave(i)
		b.relabel(len(b.code)+start-b.copied, r.at-start, label, label+b.shift(i))
		b.frames[i].shared = b.frames[i].shared || b.unpaid != dead
	}
	b.unpaid = dead
}

// prefixed reads an instruction of two opcodes. wazero reads the second of a
// vector instruction as a byte, so that a longer form would mean something
// else to it; a longer form of the others is legal, and written short.
func (w *rewriter) prefixed(b *body, prefix byte, start int) {
	r := b.r
	from := r.at
	op := r.u32()
	if r.fault != nil {
		return
	}
	if n := r.at - from; n > 1 && op>>(7*(n-1)) == 0 {
		if prefix == opSIMD {
			r.fail(invalid("opcode %#x %d is written longer than it is", prefix, op))
			return
		}
		b.renumber(start, op)
	}
	if prefix == opSIMD {
		switch {
		case op > 0xff && op < 0x200:
			r.fail(unsupported("relaxed-simd", "it has opcode 0xfd %d", op))
		case op > 0xff || simd[op] == immRefused:
			r.fail(invalid("opcode 0xfd %d does not exist", op))
		default:
			w.immediates(b, simd[op])
			b.count(1, true)
		}
		return
	}
	if op >= uint32(len(misc)) {
		if op >= 19 && op <= 22 {
			r.fail(unsupported("wide-arithmetic", "it has opcode 0xfc %d", op))
		} else {
			r.fail(invalid("opcode 0xfc %d does not exist", op))
		}
		return
	}
	w.immediates(b, misc[op])
	switch op {
	case miscMemoryInit, miscMemoryCopy, miscMemoryFill:
		b.bulk(1, bytesMoved)
	case miscTableInit, miscTableCopy, miscTableFill:
		b.bulk(outside, entriesMoved)
	case miscTableGrow:
		b.bulk(outside, growEntries)
	default:
		b.count(1, true)
	}
}
