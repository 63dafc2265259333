package meter

// stretch is how many instructions may go unpaid on a path before fuel is
// subtracted on the way; see doc.go.
const stretch = 256

// wrapDepth is how many loops in one another are wrapped (appendWrapping).
// Each counts as two to wazero, which pays with the third power of the depth.
const wrapDepth = 8

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
	header  int  // of a loop, its header's charge in edits
	worst   int  // of a loop, the most unpaid on a branch back to it
	shared  bool // of a loop, its header pays for all branches back
	calls   bool // something within it calls
	wrapped bool // a loop with blocks around it; see appendWrapping
	wraps   int  // how many loops from here outwards are wrapped
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
	around := b.frames[len(b.frames)-1]
	f := frame{op: op, carries: s.results, unpaid: dead, entry: b.unpaid, depth: around.depth, owed: around.owed, wraps: around.wraps}
	if op == opLoop && b.unpaid != dead {
		if f.owed+b.unpaid > stretch {
			b.pay()
			f.entry = 0
		}
		f.owed += f.entry
		f.worst = dead
		b.unpaid = 0
		if f.wrapped = s.params == 0 && f.depth < wrapDepth; f.wrapped {
			f.wraps++
			b.loops++
			b.blocks += 2
		}
		// Both stay without effect until the loop's end shows what it needs.
		b.edits = append(b.edits, edit{kind: loopStart, at: b.here, size: size, wrapped: f.wrapped},
			edit{kind: charge, at: b.here + size, loop: noLoop, wrapped: f.wrapped})
		f.header = len(b.edits) - 1
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

// settle decides, at the end of a loop, who pays for going round. Each branch
// back does for its own way: that is exact where a function is one large loop
// around a dispatch, as Go's are. But a branch cannot pay on its own that is
// one of a table, or that takes values along, which the if around it would hide.
func (b *body) settle(f frame) {
	header := &b.edits[f.header]
	if f.shared {
		header.amount = f.worst
	}
	waits := header.amount > 0
	for i := f.header + 1; i < len(b.edits); i++ {
		if e := &b.edits[i]; e.kind == charge && e.loop == f.header {
			if f.shared {
				e.amount = 0
			}
			waits = waits || e.amount > 0
		}
	}
	if f.wrapped {
		b.edits = append(b.edits, edit{kind: loopEnd, at: b.here + 1, amount: header.amount, waits: waits})
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
	for i := f.header; i < len(b.edits); i++ {
		e := &b.edits[i]
		e.load = false // the outermost quiet loop loads
		e.local = true
		used = used || e.kind == charge && e.amount > 0
	}
	b.edits[f.header-1].load = used
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
		b.edits = append(b.edits, edit{kind: charge, at: b.here, amount: b.unpaid, loop: noLoop})
		b.unpaid = 0
	}
}

// bulk charges for an instruction by the length that lies on the stack.
func (b *body) bulk(weight int, unit lengthUnit) {
	if b.unpaid == dead {
		return
	}
	b.edits = append(b.edits, edit{kind: charge, at: b.here, amount: b.unpaid + weight, unit: unit, loop: noLoop})
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

// branch takes note of a br or br_if that takes size bytes.
func (b *body) branch(label uint32, size int, conditional bool) {
	i := b.frameOf(label)
	if b.r.fault != nil {
		return
	}
	b.leave(i)
	f := &b.frames[i]
	target := label + b.shift(i)
	back := f.op == opLoop && b.unpaid != dead
	if back {
		e := edit{kind: charge, at: b.here, amount: b.unpaid + b.frames[len(b.frames)-1].owed - f.owed, loop: f.header, wrapped: f.wrapped, label: target}
		if conditional {
			e.size = size
			f.shared = f.shared || f.carries > 0
		}
		b.edits = append(b.edits, e)
	}
	if !back || !conditional {
		b.relabel(b.here+1, size-1, label, target)
	}
	switch {
	case b.unpaid == dead:
	case conditional:
		b.blocks += 2
	default:
		b.unpaid = dead
	}
}

// shift is by how much a label from here to frame i grows: by three for each
// wrapped loop that it leaves.
func (b *body) shift(i int) uint32 {
	return uint32(3 * (b.frames[len(b.frames)-1].wraps - b.frames[i].wraps))
}

// relabel replaces a label of size bytes at a place of the code, also in code
// that nothing reaches, which must be valid all the same.
func (b *body) relabel(at, size int, label, target uint32) {
	if label != target {
		b.edits = append(b.edits, edit{kind: newLabel, at: at, size: size, label: target})
	}
}
