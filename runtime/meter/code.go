package meter

import (
	"errors"
	"fmt"
)

// stretch is how many instructions may go unpaid on a path before fuel is
// subtracted on the way; see doc.go.
const stretch = 256

// body is one function on its way through. Its slices are used again for the
// next function.
type body struct {
	r      *reader
	header []byte   // the declared locals
	code   []byte   // the instructions, with shifted indices
	copied int      // how far r.b went into code
	here   int      // where in code the instruction at hand begins, once it is there
	points []charge // where fuel is subtracted, in the order of the code
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

// dead is the unpaid count of code that no path reaches.
const dead = -1

// frame is an open block.
type frame struct {
	op      byte // opBlock, opLoop, opIf, opElse; 0 for the function
	unpaid  int  // the most unpaid on branches to its end
	entry   int  // unpaid at its start; for a loop this is paid after it
	carries int  // how many values a branch to its label takes along
	depth   int  // of loops, this one included
	owed    int  // the sum of entry over this and the outer loops
	point   int  // of a loop, its header in points
	worst   int  // of a loop, the most unpaid on a branch back to it
	mixed   bool // of a loop, some branch back is conditional
	calls   bool // something within it calls
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
	*b = body{r: &reader{b: content}, code: b.code[:0], points: b.points[:0], frames: b.frames[:0]}
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
		b.branch(r.u32(), op == opBrIf)
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

// immediates reads over the ones that need no further thought.
func (w *rewriter) immediates(b *body, kind immediate) {
	r := b.r
	switch kind {
	case immNone:
	case immGlobal:
		w.index(r, "global", w.globals)
	case immTable:
		w.index(r, "table", w.tables)
	case immMemory:
		r.zero("a memory instruction")
		w.needMemory(r)
	case immMemarg:
		w.memarg(r)
	case immMemargLane:
		w.memarg(r)
		r.byte()
	case immI64:
		r.signed(64)
	case immF32:
		r.take(4)
	case immF64:
		r.take(8)
	case immV128:
		r.take(16)
	case immLane:
		r.byte()
	case immRefType:
		checkRefType(r, r.byte())
	case immValueTypes:
		if n := r.count(); n != 1 {
			r.fail(invalid("a select has %d types", n))
		}
		checkValueType(r, r.byte())
	case immDataMemory:
		w.dataIndex(r)
		r.zero("memory.init")
		w.needMemory(r)
	case immData:
		w.dataIndex(r)
	case immTwoMemories:
		r.zero("memory.copy")
		r.zero("memory.copy")
		w.needMemory(r)
	case immElementTable:
		w.index(r, "element segment", w.elements)
		w.index(r, "table", w.tables)
	case immElement:
		w.index(r, "element segment", w.elements)
	case immTwoTables:
		w.index(r, "table", w.tables)
		w.index(r, "table", w.tables)
	default:
		panic(errors.New("an immediate of a kind that instruction handles"))
	}
}

func (w *rewriter) needMemory(r *reader) {
	if w.memories == 0 {
		r.fail(invalid("an instruction needs a memory and there is none"))
	}
}

func (w *rewriter) dataIndex(r *reader) {
	if !w.hasDataCount {
		r.fail(invalid("an instruction names a data segment and there is no data count"))
	}
	w.index(r, "data segment", w.dataCount)
}

func (w *rewriter) memarg(r *reader) {
	if align := r.u32(); align >= 1<<6 {
		r.fail(unsupported("multi-memory", "a memory instruction names its memory"))
	}
	r.u32()
	w.needMemory(r)
}

// blockType gives what a block takes and gives.
func (w *rewriter) blockType(r *reader) signature {
	if r.left() > 0 {
		switch c := r.b[r.at]; {
		case c == emptyBlock:
			r.at++
			return signature{}
		case c&0xc0 == 0x40: // one byte, and negative
			r.at++
			checkValueType(r, c)
			return signature{results: 1}
		}
	}
	i := r.signed(33)
	if (i < 0 || i >= int64(len(w.types))) && r.fault == nil {
		r.fail(invalid("a block has type %d: there are %d", i, len(w.types)))
	}
	if r.fault != nil {
		return signature{}
	}
	return w.types[i]
}

func (w *rewriter) open(b *body, op byte, s signature, size int) {
	if depth := len(b.frames); int64(depth) > w.limits.Nesting {
		b.r.fail(over("nested blocks", uint64(depth), "Nesting", w.limits.Nesting))
		return
	}
	if op == opIf {
		b.count(1, false)
	}
	b.values += s.params + s.results
	f := frame{op: op, carries: s.results, unpaid: dead, entry: b.unpaid, depth: b.frames[len(b.frames)-1].depth, owed: b.frames[len(b.frames)-1].owed}
	if op == opLoop && b.unpaid != dead {
		if f.owed+b.unpaid > stretch {
			b.pay()
			f.entry = 0
		}
		f.owed += f.entry
		f.worst = dead
		b.unpaid = 0
		// Both stay without effect until the loop's end shows what it needs.
		b.points = append(b.points, charge{at: b.here, loop: -1}, charge{at: b.here + size, loop: -1})
		f.point = len(b.points) - 1
	}
	b.blocks++
	switch op {
	case opIf:
		b.blocks += 2
	case opLoop:
		f.carries = s.params
		b.loops++
		f.depth++
		b.nested = max(b.nested, f.depth)
		if int64(f.depth) > w.limits.LoopNesting {
			b.r.fail(over("nested loops", uint64(f.depth), "LoopNesting", w.limits.LoopNesting))
			return
		}
	}
	b.frames = append(b.frames, f)
	b.deepest = max(b.deepest, len(b.frames)-1)
}

func (b *body) otherwise() {
	f := &b.frames[len(b.frames)-1]
	if f.op != opIf {
		b.r.fail(invalid("an else without an if"))
		return
	}
	f.unpaid = max(f.unpaid, b.unpaid)
	b.unpaid = f.entry
	f.op = opElse
}

func (b *body) end() {
	f := b.frames[len(b.frames)-1]
	b.frames = b.frames[:len(b.frames)-1]
	switch f.op {
	case opLoop:
		if b.unpaid != dead {
			b.unpaid += f.entry
		}
		b.passCalls(f)
		if f.entry != dead {
			b.settle(f)
			b.quiet(f)
		}
	case opIf:
		b.unpaid = max(b.unpaid, f.unpaid, f.entry)
		b.passCalls(f)
	case 0:
		b.exit = max(b.exit, b.unpaid, f.unpaid)
	default:
		b.unpaid = max(b.unpaid, f.unpaid)
		b.passCalls(f)
	}
}

// passCalls tells the block around f that something in f calls.
func (b *body) passCalls(f frame) {
	if n := len(b.frames); f.calls && n > 0 {
		b.frames[n-1].calls = true
	}
}

// settle decides, at the end of a loop, who pays for going round: the header,
// when some branch back is conditional, since a compare stays next to its
// branch that way; each branch for itself otherwise, since a function that is
// one large loop around a dispatch (as Go's are) would pay for its longest way
// round each time.
func (b *body) settle(f frame) {
	if !f.mixed {
		return
	}
	b.points[f.point].amount = f.worst
	for i := f.point + 1; i < len(b.points); i++ {
		if b.points[i].loop == f.point {
			b.points[i].amount = 0
		}
	}
}

// quiet lets a loop in which nothing is called keep the fuel in a local, where
// counting takes one cycle; in the global it takes the five or so that a
// processor needs to load what it just stored. The global is still written at
// every charge, so that it is always right.
func (b *body) quiet(f frame) {
	if f.calls {
		return
	}
	used := false
	for i := f.point; i < len(b.points); i++ {
		p := &b.points[i]
		p.load = false // the outermost quiet loop loads
		p.local = true
		used = used || p.amount > 0
	}
	b.points[f.point-1].load = used
	b.cached = b.cached || used
}

// count adds an instruction to what is unpaid. Before one that follows nothing
// of its own (a compare stays next to its branch) it pays what is due.
func (b *body) count(weight int, free bool) {
	if b.unpaid == dead {
		return
	}
	if b.unpaid >= stretch && (free || b.unpaid >= 2*stretch) {
		b.pay()
	}
	b.unpaid += weight
}

// pay charges, before this instruction, for what is unpaid.
func (b *body) pay() {
	if b.unpaid > 0 {
		b.points = append(b.points, charge{at: b.here, amount: b.unpaid, loop: -1})
		b.unpaid = 0
	}
}

// bulk charges for an instruction by the length that lies on the stack.
func (b *body) bulk(weight int, unit lengthUnit) {
	if b.unpaid == dead {
		return
	}
	b.points = append(b.points, charge{at: b.here, amount: b.unpaid + weight, unit: unit, loop: -1})
	b.unpaid = 0
	b.scratch = true
}

// leave takes note of what is unpaid on a way out of the frames within frame i.
func (b *body) leave(i int) {
	b.values += b.frames[i].carries
	if b.unpaid == dead {
		return
	}
	unpaid := b.unpaid + b.frames[len(b.frames)-1].owed - b.frames[i].owed
	f := &b.frames[i]
	if i == 0 {
		b.exit = max(b.exit, unpaid)
	} else if f.op == opLoop {
		f.worst = max(f.worst, unpaid)
	} else {
		f.unpaid = max(f.unpaid, unpaid)
	}
}

// called takes note of a call.
func (b *body) called(s signature) {
	b.calls++
	b.values += s.params + s.results
	b.frames[len(b.frames)-1].calls = true
}

// frameOf gives the frame that a label names.
func (b *body) frameOf(label uint32) int {
	if uint64(label) >= uint64(len(b.frames)) {
		b.r.fail(invalid("label %d is not there: the depth is %d", label, len(b.frames)))
		return 0
	}
	return len(b.frames) - 1 - int(label)
}

func (b *body) branch(label uint32, conditional bool) {
	i := b.frameOf(label)
	if b.r.fault != nil {
		return
	}
	b.leave(i)
	if b.unpaid == dead {
		return
	}
	f := &b.frames[i]
	if conditional {
		b.blocks += 2
		f.mixed = true
		return
	}
	if f.op == opLoop {
		unpaid := b.unpaid + b.frames[len(b.frames)-1].owed - f.owed
		b.points = append(b.points, charge{at: b.here, amount: unpaid, loop: f.point})
	}
	b.unpaid = dead
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
		i := b.frameOf(r.u32())
		b.leave(i)
		b.frames[i].mixed = b.frames[i].mixed || b.unpaid != dead
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
