package meter

// charge is a place in a body at which fuel is subtracted.
type charge struct {
	at     int // before this byte of the code
	amount int
	unit   lengthUnit
	loop   int // of a branch back, the header's charge; -1 otherwise
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
	entry := max(b.exit, 1)
	full := make([]byte, 0, len(b.code)+len(b.header)+16+24*(len(b.points)+1))
	groups := b.groups
	if b.scratch {
		groups++
	}
	full = append(appendU32(full, groups), b.header...)
	if b.scratch {
		full = append(full, 1, typeI32)
	}
	full = w.appendCharge(full, charge{amount: entry}, 0)
	last := 0
	for _, c := range b.points {
		full = append(full, b.code[last:c.at]...)
		last = c.at
		if c.amount > 0 {
			full = w.appendCharge(full, c, b.locals)
		}
	}
	full = append(full, b.code[last:]...)
	return append(appendU32(out, uint32(len(full))), full...)
}

// appendCharge writes the sequence that subtracts fuel and, below zero, asks
// the host for more. It takes nothing from the stack and leaves nothing there;
// a length is read by a tee into the scratch local. The two reads that follow
// the write cost nothing: wazero knows a global's value within a block.
func (w *rewriter) appendCharge(out []byte, c charge, scratch uint32) []byte {
	w.report.Charges++
	if c.unit != noLength {
		w.report.BulkCharges++
		out = appendU32(append(out, opLocalTee), scratch)
	}
	out = appendU32(append(out, opGlobalGet), w.globals)
	out = append(appendSigned(append(out, opI64Const), int64(c.amount)), opI64Sub)
	if c.unit != noLength {
		out = w.appendLength(out, c.unit, scratch)
		out = append(out, opI64Sub)
	}
	out = appendU32(append(out, opGlobalSet), w.globals)
	out = appendU32(append(out, opGlobalGet), w.globals)
	out = append(out, opI64Const, 0, opI64LtS, opIf, emptyBlock)
	out = appendU32(append(out, opGlobalGet), w.globals)
	out = appendU32(append(out, opCall), w.importedFunctions)
	out = appendU32(append(out, opGlobalSet), w.globals)
	return append(out, opEnd)
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
