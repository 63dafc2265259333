package meter

import (
	"math/rand/v2"
	"testing"
)

// TestNoPathIsUnderpaid walks through functions at random, as an engine
// would whose conditions are drawn by lot, and keeps account: whoever leaves
// has paid at least an instruction each, and nobody is ever far behind.
func TestNoPathIsUnderpaid(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	check := func(wasm []byte) {
		w := &rewriter{limits: wide.withDefaults()}
		sections, _, fault := split(wasm)
		if fault != nil {
			t.Fatal(fault)
		}
		for _, step := range []struct {
			id      byte
			rewrite func(r *reader) []byte
		}{{1, w.typeSection}, {2, w.importSection}, {3, w.functionSection}, {4, w.tableSection}, {5, w.memorySection}, {6, w.globalSection}, {9, w.elementSection}, {12, w.dataCountSection}} {
			if sections[step.id] == nil {
				sections[step.id] = []byte{0}
			}
			if r := (&reader{b: sections[step.id]}); step.id != 12 || sections[12][0] > 0 {
				step.rewrite(r)
			}
		}
		r := &reader{b: sections[sectionCode]}
		for i := range r.count() {
			var b body
			if fault := w.walk(&b, w.importedFunctions+i, r.take(uint64(r.u32()))); fault != nil {
				t.Fatal(fault)
			}
			for range 40 {
				stroll(t, random, w, &b)
			}
		}
	}
	for seed := range uint64(200) {
		check(generate(seed))
	}
	check(cKernels(t))
}

// stroll takes one random way through a function.
func stroll(t *testing.T, random *rand.Rand, w *rewriter, b *body) {
	code := &body{r: &reader{b: b.code}}
	type label struct {
		loop  bool
		start int // where a loop's body begins
	}
	labels := []label{{}}
	paid, done := max(b.exit, 1), 0
	next := 0
	// skip goes to the end, or else, of the innermost block.
	skip := func(stopAtElse bool) {
		for depth := 0; ; {
			at := code.r.at
			o := b.code[at]
			step(w, code)
			switch {
			case plain[o] == immBlock:
				depth++
			case o == opElse && depth == 0 && stopAtElse:
				return
			case o == opEnd:
				if depth--; depth < 0 {
					labels = labels[:len(labels)-1]
					return
				}
			}
		}
	}
	jump := func(depth int) {
		for range depth {
			skip(false)
		}
		if l := labels[len(labels)-1]; l.loop {
			code.r.at = l.start
			for next = 0; next < len(b.edits) && b.edits[next].at < l.start; next++ {
			}
			return
		}
		skip(false)
	}
	for steps := 0; len(labels) > 0 && steps < 5000; steps++ {
		at := code.r.at
		taken := random.IntN(2) == 0
		for next < len(b.edits) && b.edits[next].at <= at {
			if e := b.edits[next]; e.kind == charge && e.at == at && (e.size == 0 || taken) {
				paid += e.amount
			}
			next++
		}
		if done-paid > 4*stretch+outside {
			t.Fatalf("%d instructions done and %d paid at byte %d of % x", done, paid, at, b.code)
		}
		o := b.code[at]
		target, table := step(w, code)
		if plain[o] != immBlock && o != opEnd && o != opElse && o != opUnreachable || o == opIf {
			done++
		}
		switch o {
		case opUnreachable:
			return
		case opReturn:
			labels = nil
		case opBlock:
			labels = append(labels, label{})
		case opLoop:
			labels = append(labels, label{loop: true, start: code.r.at})
		case opIf:
			labels = append(labels, label{})
			if random.IntN(2) == 0 {
				skip(true)
			}
		case opElse:
			skip(false)
		case opEnd:
			labels = labels[:len(labels)-1]
		case opBr:
			jump(target)
		case opBrIf:
			if taken {
				jump(target)
			}
		case opBrTable:
			jump(table[random.IntN(len(table))])
		}
	}
	if len(labels) == 0 && paid < done {
		t.Fatalf("left with %d instructions done and %d paid: % x", done, paid, b.code)
	}
}

// step reads over one instruction and gives its labels.
func step(w *rewriter, b *body) (target int, table []int) {
	start := b.r.at
	o := b.r.byte()
	switch plain[o] {
	case immBlock:
		w.blockType(b.r)
	case immLabel:
		target = int(b.r.u32())
	case immLabels:
		for range b.r.u32() + 1 {
			table = append(table, int(b.r.u32()))
		}
	case immLocal, immFunction:
		b.r.u32()
	case immI32:
		b.r.signed(32)
	case immIndirect:
		b.r.u32()
		b.r.u32()
	case immPrefix:
		if second := b.r.u32(); o == opSIMD {
			w.immediates(b, simd[second])
		} else {
			w.immediates(b, misc[second])
		}
	default:
		w.immediates(b, plain[o])
	}
	if b.r.fault != nil {
		panic(b.r.fault.Error() + " at " + string(rune('0'+start%10)))
	}
	return target, table
}
