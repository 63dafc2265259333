package meter

// immediate is what follows an opcode.
type immediate byte

const (
	immRefused immediate = iota // no instruction of ours; see feature
	immNone
	immBlock        // block type
	immLabel        // label index
	immLabels       // vector of labels and a default
	immFunction     // function index
	immIndirect     // type index, table index
	immLocal        // local index
	immGlobal       // global index
	immTable        // table index
	immMemory       // the zero byte of the only memory
	immMemarg       // alignment, offset
	immMemargLane   // alignment, offset, lane
	immI32          // signed 32 bits
	immI64          // signed 64 bits
	immF32          // 4 bytes
	immF64          // 8 bytes
	immV128         // 16 bytes: a constant, or the lanes of a shuffle
	immLane         // a byte
	immRefType      // a reference type
	immValueTypes   // vector of value types
	immDataMemory   // data index, zero byte
	immData         // data index
	immTwoMemories  // two zero bytes
	immElementTable // element index, table index
	immElement      // element index
	immTwoTables    // two table indices
	immPrefix       // another opcode
)

// Opcodes that the rewriter treats on their own.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32LeU       = 0x4d
	opI64LtS       = 0x53
	opI64GeS       = 0x59
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64Mul       = 0x7e
	opI64Shl       = 0x86
	opI64ShrU      = 0x88
	opI64ExtendI32 = 0xad // unsigned
	opRefNull      = 0xd0
	opRefFunc      = 0xd2
	opMisc         = 0xfc
	opSIMD         = 0xfd

	miscMemoryInit = 8
	miscMemoryCopy = 10
	miscMemoryFill = 11
	miscTableInit  = 12
	miscTableCopy  = 14
	miscTableGrow  = 15
	miscTableFill  = 17

	simdConst = 12
)

const emptyBlock = 0x40

// Value types.
const (
	typeI32       = 0x7f
	typeI64       = 0x7e
	typeV128      = 0x7b
	typeFuncref   = 0x70
	typeExternref = 0x6f
	typeFunction  = 0x60 // the form of a type entry
)

// plain holds the immediate of each single-byte opcode.
var plain = func() (t [256]immediate) {
	set := func(kind immediate, from, to int) {
		for i := from; i <= to; i++ {
			t[i] = kind
		}
	}
	set(immNone, 0x00, 0x01)
	set(immBlock, opBlock, opIf)
	set(immNone, opElse, opElse)
	set(immNone, opEnd, opEnd)
	set(immLabel, opBr, opBrIf)
	set(immLabels, opBrTable, opBrTable)
	set(immNone, opReturn, opReturn)
	set(immFunction, opCall, opCall)
	set(immIndirect, 0x11, 0x11)
	set(immNone, 0x1a, 0x1b)
	set(immValueTypes, 0x1c, 0x1c)
	set(immLocal, 0x20, 0x22)
	set(immGlobal, 0x23, 0x24)
	set(immTable, 0x25, 0x26)
	set(immMemarg, 0x28, 0x3e)
	set(immMemory, 0x3f, opMemoryGrow)
	set(immI32, opI32Const, opI32Const)
	set(immI64, opI64Const, opI64Const)
	set(immF32, 0x43, 0x43)
	set(immF64, 0x44, 0x44)
	set(immNone, 0x45, 0xc4)
	set(immRefType, opRefNull, opRefNull)
	set(immNone, 0xd1, 0xd1)
	set(immFunction, opRefFunc, opRefFunc)
	set(immPrefix, opMisc, opSIMD)
	return t
}()

// misc holds the immediates behind the prefix 0xfc.
var misc = [...]immediate{
	immNone, immNone, immNone, immNone, immNone, immNone, immNone, immNone, // saturating conversions
	immDataMemory, immData, immTwoMemories, immMemory,
	immElementTable, immElement, immTwoTables, immTable, immTable, immTable,
}

// simd holds the immediates behind the prefix 0xfd.
var simd = func() (t [256]immediate) {
	for i := range t {
		t[i] = immNone
	}
	set := func(kind immediate, opcodes ...int) {
		for _, i := range opcodes {
			t[i] = kind
		}
	}
	set(immMemarg, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 92, 93)
	set(immMemargLane, 84, 85, 86, 87, 88, 89, 90, 91)
	set(immV128, simdConst, 13)
	for i := 21; i <= 34; i++ {
		t[i] = immLane
	}
	set(immRefused, 154, 162, 165, 166, 175, 176, 178, 179, 180, 187, 194, 197, 198,
		207, 208, 210, 211, 212, 226, 238)
	return t
}()

// feature names the proposal that an opcode without a place here belongs to.
func feature(opcode byte) string {
	switch {
	case opcode >= 0x06 && opcode <= 0x0a, opcode == 0x18, opcode == 0x19, opcode == 0x1f:
		return "exception-handling"
	case opcode == 0x12, opcode == 0x13:
		return "tail-call"
	case opcode == 0x14, opcode == 0x15, opcode >= 0xd4 && opcode <= 0xd6:
		return "typed-function-references"
	case opcode == 0xd3, opcode == 0xfb:
		return "gc"
	case opcode == 0xfe:
		return "threads"
	}
	return ""
}

// isValueType knows the value types of this sandbox.
func isValueType(c byte) bool { return c >= typeV128 && c <= typeI32 || isRefType(c) }

func isRefType(c byte) bool { return c == typeFuncref || c == typeExternref }
