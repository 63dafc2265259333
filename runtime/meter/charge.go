package meter

// edit is what is put in before a byte of a body's code, or instead of some.
type edit struct {
	kind   editKind
	at     int
	size   int // of a loopStart, of the loop instruction; else the bytes that are replaced
	amount int // of a charge; of a loopEnd, the header's
	unit   lengthUnit
	loop   int // of a branch back, where its header is in edits; noLoop otherwise
	// label is a newLabel, or of a branch back the loop's.
	label   uint32
	wrapped bool // the loop is
	waits   bool // of a loopEnd, a charge of the loop may branch there
	load    bool // of a loopStart, the fuel's local is read from the global
	local   bool // the fuel's local is up to date here
}

type editKind byte

const (
	charge    editKind = iota // fuel is subtracted; a br_if back pays only where it is taken, and is replaced
	loopStart                 // before a loop
	loopEnd                   // behind a wrapped loop
	newLabel                  // instead of one that counts too few blocks
)

// noLoop stands for the header of a charge that is not for going round a loop.
const noLoop = -1

// lengthUnit says what the number on top of the stack counts, for an
// instruction whose work depends on it.
type lengthUnit byte

const (
	noLength     lengthUnit = iota
	bytesMoved              // a unit of fuel for 64 bytes
	entriesMoved            // of tables, 8 bytes each
	growPages               // of 64 KiB; more than the memory may ever have fails at once, for nothing
	growEntries             // likewise
)

// outside is what an instruction costs that leaves compiled code and returns.
const outside = 64

// assemble appends a body with its size.
func (w *rewriter) assemble(b *body, out []byte) []byte {
	groups := b.groups
	scratch, fuel := b.locals, b.locals
	if b.scratch {
		groups++
		fuel++
	}
	if b.cached {
		groups++
	}
	full := append(appendU32(w.full[:0], groups), b.header...)
	if b.scratch {
		full = append(full, 1, typeI32)
	}
	if b.cached {
		full = append(full, 1, typeI64)
	}
	full = w.appendSubtraction(full, edit{amount: max(b.exit, 1)}, 0, 0)
	last := 0
	for _, e := range b.edits {
		full = append(full, b.code[last:e.at]...)
		last = e.at
		switch e.kind {
		case charge:
			full = w.appendCharge(full, e, scratch, fuel)
			last += e.size
		case loopStart:
			if e.load {
				full = w.appendLoad(full, fuel)
			}
			if e.wrapped {
				full = appendWrapping(full, b.code[e.at+1:e.at+e.size])
			}
		case loopEnd:
			full = w.appendWrapped(full, e, fuel)
		case newLabel:
			full = appendU32(full, e.label)
			last += e.size
		}
	}
	full = append(full, b.code[last:]...)
	w.full = full
	return append(appendU32(out, uint32(len(full))), full...)
}

// appendCharge writes a charge and, where it is for a br_if back, the branch.
func (w *rewriter) appendCharge(out []byte, e edit, scratch, fuel uint32) []byte {
	switch {
	case e.size == 0 && e.amount > 0:
		return w.appendSubtraction(out, e, scratch, fuel)
	case e.size == 0:
		return out
	case e.amount == 0: // the header pays
		return appendU32(append(out, opBrIf), e.label)
	}
	e.label++
	out = w.appendSubtraction(append(out, opIf, emptyBlock), e, scratch, fuel)
	return append(appendU32(append(out, opBr), e.label), opEnd)
}

// appendSubtraction writes the sequence that subtracts fuel and, below zero,
// asks the host for more, here or behind a wrapped loop. It takes nothing from
// the stack and leaves nothing there; a length is read by a tee into the
// scratch local. Reading the global again right after it was written costs
// nothing: wazero knows its value.
func (w *rewriter) appendSubtraction(out []byte, e edit, scratch, fuel uint32) []byte {
	w.report.Charges++
	if e.unit != noLength {
		w.report.BulkCharges++
		out = appendU32(append(out, opLocalTee), scratch)
	}
	if e.local {
		out = appendU32(append(out, opLocalGet), fuel)
	} else {
		out = appendU32(append(out, opGlobalGet), w.globals)
	}
	out = append(appendSigned(append(out, opI64Const), int64(e.amount)), opI64Sub)
	if e.unit != noLength {
		out = w.appendLength(out, e.unit, scratch)
		out = append(out, opI64Sub)
	}
	if e.local {
		out = appendU32(append(out, opLocalTee), fuel)
	}
	out = appendU32(append(out, opGlobalSet), w.globals)
	out = append(appendU32(append(out, opGlobalGet), w.globals), opI64Const, 0)
	if e.wrapped {
		return appendU32(append(out, opI64LtS, opBrIf), e.label+1)
	}
	out = w.appendAsk(append(out, opI64GeS, opIf, emptyBlock, opElse))
	if e.local {
		out = w.appendLoad(out, fuel)
	}
	return append(out, opEnd)
}

// appendAsk calls the function that appendWait writes.
func (w *rewriter) appendAsk(out []byte) []byte {
	return appendU32(append(out, opCall), uint32(len(w.functions))+1)
}

// appendLoad reads the fuel into its local.
func (w *rewriter) appendLoad(out []byte, fuel uint32) []byte {
	out = appendU32(append(out, opGlobalGet), w.globals)
	return appendU32(append(out, opLocalSet), fuel)
}

// appendWrapping opens three blocks around a loop that takes no values:
//
//	block                      ;; the way out
//	  loop                     ;; the way back in
//	    block                  ;; a charge that finds no fuel leaves this one
//	      loop ... end         ;; the guest's
//	      br 2
//	    end
//	    call $wait
//	    br 0
//	  end
//	end
//
// It is where all that a loop pays for going round waits for the host, because
// wazero keeps in memory, from where it is set, every value that differs from
// round to round and is alive at a call. Here those are values of their own,
// set on the way to the call; beside each charge they would be the loop's.
func appendWrapping(out, result []byte) []byte {
	out = append(append(out, opBlock), result...)
	out = append(append(out, opLoop), result...)
	return append(out, opBlock, emptyBlock)
}

// appendWrapped closes what appendWrapping opened. The header of a loop that
// pays for all of it will do so again after the wait, and gets it back.
func (w *rewriter) appendWrapped(out []byte, e edit, fuel uint32) []byte {
	out = append(out, opBr, 2, opEnd)
	if !e.waits {
		return append(out, opUnreachable, opEnd, opEnd)
	}
	out = w.appendAsk(out)
	if e.amount > 0 {
		out = appendU32(append(out, opGlobalGet), w.globals)
		out = append(appendSigned(append(out, opI64Const), int64(e.amount)), opI64Add)
		out = appendU32(append(out, opGlobalSet), w.globals)
	}
	if e.local {
		out = w.appendLoad(out, fuel)
	}
	return append(out, opBr, 0, opEnd, opEnd)
}

// appendWait appends the function, behind all others, that asks the host: one
// place for what would be three instructions at each charge.
func (w *rewriter) appendWait(out []byte) []byte {
	body := []byte{0}
	body = appendU32(append(body, opGlobalGet), w.globals)
	body = appendU32(append(body, opCall), w.importedFunctions)
	body = appendU32(append(body, opGlobalSet), w.globals)
	body = append(body, opEnd)
	return append(appendU32(out, uint32(len(body))), body...)
}

// appendLength pushes the fuel for the length in the scratch local: one for 64
// bytes, in 64 bits and unsigned.
func (w *rewriter) appendLength(out []byte, unit lengthUnit, scratch uint32) []byte {
	read := func() { out = appendU32(append(out, opLocalGet), scratch) }
	shift := func(op, by byte) { out = append(out, opI64Const, by, op) }
	read()
	out = append(out, opI64ExtendI32)
	var most uint32
	switch unit {
	case bytesMoved:
		shift(opI64ShrU, 6)
		return out
	case entriesMoved:
		shift(opI64ShrU, 3)
		return out
	case growPages:
		shift(opI64Shl, 10)
		most = w.limits.pages()
	case growEntries:
		shift(opI64ShrU, 3)
		most = w.limits.elements()
	}
	// times one where growing can succeed at all, and zero elsewhere
	read()
	out = appendSigned(append(out, opI32Const), int64(int32(most)))
	return append(out, opI32LeU, opI64ExtendI32, opI64Mul)
}
