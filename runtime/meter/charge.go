package meter

// charge is a place in a body at which fuel is subtracted.
type charge struct {
	at     int // before this byte of the code
	amount int
	unit   lengthUnit
	loop   int // of a branch back, the header's charge; -1 otherwise
	// a br_if back pays only where it is taken: the bytes it takes, and its label
	replaces int
	label    uint32
	load     bool // the fuel's local is read from the global here
	local    bool // the fuel's local is up to date here
}

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
	full = w.appendCharge(full, charge{amount: max(b.exit, 1)}, 0, 0)
	last := 0
	for _, c := range b.points {
		full = append(full, b.code[last:c.at]...)
		last = c.at
		if c.load {
			full = appendU32(append(full, opGlobalGet), w.globals)
			full = appendU32(append(full, opLocalSet), fuel)
		}
		if c.amount == 0 {
			continue
		}
		if c.replaces > 0 {
			full = append(full, opIf, emptyBlock)
		}
		full = w.appendCharge(full, c, scratch, fuel)
		if c.replaces > 0 {
			full = append(appendU32(append(full, opBr), c.label+1), opEnd)
			last += c.replaces
		}
	}
	full = append(full, b.code[last:]...)
	w.full = full
	return append(appendU32(out, uint32(len(full))), full...)
}

// appendCharge writes the sequence that subtracts fuel and, below zero, asks
// the host for more. It takes nothing from the stack and leaves nothing there;
// a length is read by a tee into the scratch local. Reading the global again
// right after it was written costs nothing: wazero knows its value.
func (w *rewriter) appendCharge(out []byte, c charge, scratch, fuel uint32) []byte {
	w.report.Charges++
	if c.unit != noLength {
		w.report.BulkCharges++
		out = appendU32(append(out, opLocalTee), scratch)
	}
	if c.local {
		out = appendU32(append(out, opLocalGet), fuel)
	} else {
		out = appendU32(append(out, opGlobalGet), w.globals)
	}
	out = append(appendSigned(append(out, opI64Const), int64(c.amount)), opI64Sub)
	if c.unit != noLength {
		out = w.appendLength(out, c.unit, scratch)
		out = append(out, opI64Sub)
	}
	if c.local {
		out = appendU32(append(out, opLocalTee), fuel)
	}
	out = appendU32(append(out, opGlobalSet), w.globals)
	out = appendU32(append(out, opGlobalGet), w.globals)
	out = append(out, opI64Const, 0, opI64GeS, opIf, emptyBlock, opElse)
	out = appendU32(append(out, opCall), uint32(len(w.functions))+1)
	if c.local {
		out = appendU32(append(out, opGlobalGet), w.globals)
		out = appendU32(append(out, opLocalSet), fuel)
	}
	return append(out, opEnd)
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
