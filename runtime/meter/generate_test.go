package meter

import "math/rand/v2"

// generator makes valid modules that always come to an end: a guest global
// counts down at every loop and call, and traps at zero.
type generator struct {
	*rand.Rand
	m      *wasmModule
	funcs  []generated
	locals int // i32 and i64 in turn, then one v128
	labels int // void labels that may be jumped to
	depth  int
	result byte // of the function at hand
}

type generated struct{ params, result byte }

const (
	v128 = typeV128
	gas  = 0 // the global that counts down
)

func generate(seed uint64) []byte {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), m: &wasmModule{}}
	g.m.memory = op(0, 1)
	g.m.globals = [][]byte{
		cat(op(i32, 1), constI32(0), op(opEnd)),
		cat(op(i64, 1), constI64(7), op(opEnd)),
	}
	g.m.tables = [][]byte{op(typeFuncref, 0, 8), op(typeExternref, 1, 2, 20)}
	n := 2 + g.IntN(4)
	for range n {
		g.funcs = append(g.funcs, generated{[]byte{i32, i64}[g.IntN(2)], []byte{i32, i64}[g.IntN(2)]})
	}
	for _, f := range g.funcs {
		g.locals, g.labels, g.result = 6, 0, f.result
		code := cat(g.tick(), g.statements(2+g.IntN(5)), g.value(f.result))
		// local 0 has the parameter's type; the others follow in pairs.
		locals := op(5, 1, i32, 1, i64, 2, i32, 2, i64, 1, v128)
		g.m.funcs = append(g.m.funcs, wasmFunc{typ: g.m.typ(string(f.params), string(f.result)), locals: locals, code: code})
		g.m.export("f"+string(rune('0'+len(g.m.funcs)-1)), 0, len(g.m.funcs)-1)
	}
	g.m.export("memory", 2, 0)
	g.m.export("gas", 3, gas)
	g.m.export("g", 3, 1)
	g.m.section(9, vec(
		cat(op(0), constI32(0), op(opEnd), u(n), each(n, func(i int) []byte { return u(i) })),
		cat(op(5, typeFuncref), vec(op(opRefNull, typeFuncref, opEnd), cat(op(opRefFunc), u(n-1), op(opEnd)))),
	))
	g.m.section(12, u(1))
	g.m.section(11, vec(cat(op(1), str("some passive bytes for memory.init"))))
	// a block type with parameters, for multi-value
	g.m.typ(i32Sig, i32Sig)
	return g.m.bytes()
}

// tick counts the guest's own gas down.
func (g *generator) tick() []byte {
	return cat(op(opGlobalGet, gas), constI32(1), op(0x6b), op(opGlobalSet, gas), op(opGlobalGet, gas), constI32(0), op(0x4c), when(op(opUnreachable)))
}

// local picks one of a type: 1, 3, 4 are i32, 2, 5, 6 are i64, 7 is v128.
func (g *generator) local(typ byte) int {
	switch typ {
	case i32:
		return []int{1, 3, 4}[g.IntN(3)]
	case i64:
		return []int{2, 5, 6}[g.IntN(3)]
	}
	return 7
}

func (g *generator) statements(n int) []byte {
	return each(n, func(int) []byte { return g.statement() })
}

func (g *generator) nested(code func() []byte) []byte {
	g.depth++
	g.labels++
	defer func() { g.depth--; g.labels-- }()
	return code()
}

func (g *generator) statement() []byte {
	if g.depth > 5 {
		return cat(g.value(i32), drop)
	}
	address := func() []byte { return cat(g.value(i32), constI32(0xffff), op(0x71)) }
	length := func() []byte { return cat(g.value(i32), constI32(0x3ff), op(0x71)) }
	switch g.IntN(24) {
	case 0, 1:
		typ := []byte{i32, i64, v128}[g.IntN(3)]
		return cat(g.value(typ), set(g.local(typ)))
	case 2:
		return g.nested(func() []byte { return block(g.statements(1 + g.IntN(4))) })
	case 3, 4: // a loop that goes round while a condition holds
		return g.nested(func() []byte { return loop(g.tick(), g.statements(1+g.IntN(3)), g.value(i32), brIf(0)) })
	case 5: // a loop that goes round by an unconditional branch
		return g.nested(func() []byte {
			return g.nested(func() []byte {
				return block(loop(g.tick(), g.statements(1+g.IntN(3)), g.value(i32), brIf(1), g.statements(g.IntN(2)), br(0)))
			})
		})
	case 6:
		return cat(g.value(i32), g.nested(func() []byte { return when(g.statements(1 + g.IntN(3))) }))
	case 7:
		return cat(g.value(i32), g.nested(func() []byte {
			return cat(op(opIf, emptyBlock), g.statements(1+g.IntN(2)), op(opElse), g.statements(1+g.IntN(2)), op(opEnd))
		}))
	case 8:
		if g.labels > 0 {
			return cat(g.value(i32), brIf(g.IntN(g.labels)))
		}
	case 9: // and code that nothing reaches behind it
		if g.labels > 0 {
			return g.nested(func() []byte { return block(br(g.IntN(g.labels)), g.statements(g.IntN(3))) })
		}
	case 10:
		if n := g.labels; n > 0 {
			return g.nested(func() []byte {
				return block(g.value(i32), constI32(7), op(0x71), brTable(1+g.IntN(4), func(int) int { return g.IntN(n + 1) }))
			})
		}
	case 11:
		return g.nested(func() []byte { return when2(g.value(i32), cat(g.value(g.result), op(opReturn))) })
	case 12:
		return cat(address(), g.value(i32), op(0x36, 2, byte(g.IntN(9))))
	case 13:
		return cat(address(), g.value(i64), op(0x37, 3, 0))
	case 14:
		return cat(address(), g.value(i32), length(), op(opMisc, miscMemoryFill, 0))
	case 15:
		return cat(address(), address(), length(), op(opMisc, miscMemoryCopy, 0, 0))
	case 16:
		return cat(address(), constI32(0), g.value(i32), constI32(15), op(0x71), op(opMisc, miscMemoryInit, 0, 0))
	case 17:
		return cat(g.value(i32), constI32(1), op(0x71), op(opMemoryGrow, 0), drop)
	case 18:
		return cat(op(opRefNull, typeExternref), g.value(i32), constI32(3), op(0x71), op(opMisc, miscTableGrow, 1), drop)
	case 19:
		return cat(g.value(i32), constI32(7), op(0x71), op(opRefNull, typeFuncref), constI32(1), op(opMisc, miscTableFill, 0))
	case 20:
		return cat(constI32(0), constI32(1), g.value(i32), constI32(7), op(0x71), op(opMisc, miscTableCopy, 0, 0))
	case 21:
		return cat(g.value(i64), op(opGlobalSet, 1))
	case 22: // a loop with a parameter on the stack
		t := byte(g.m.typ(i32Sig, i32Sig))
		return g.nested(func() []byte {
			g.labels-- // its label wants a value
			defer func() { g.labels++ }()
			inner := cat(op(opLoop, t), constI32(1), op(0x76), op(opLocalTee, 1), get(1), brIf(0), op(opEnd))
			return cat(g.value(i32), inner, drop)
		})
	case 23:
		return cat(constI32(0), constI32(1), constI32(1), op(opMisc, miscTableInit, 1, 0))
	}
	return cat(g.value(i64), drop)
}

func when2(condition, code []byte) []byte { return cat(condition, when(code)) }

// value pushes one.
func (g *generator) value(typ byte) []byte {
	g.depth++
	defer func() { g.depth-- }()
	deep := g.depth > 7
	switch typ {
	case i32:
		switch g.IntN(12) {
		case 0, 1:
			return constI32(int(g.Uint32()) >> g.IntN(31))
		case 2:
			if !deep {
				return cat(g.value(i32), g.value(i32), op([]byte{0x6a, 0x6b, 0x6c, 0x6d, 0x71, 0x73, 0x74, 0x48, 0x4d}[g.IntN(9)]))
			}
		case 3:
			if !deep {
				return cat(g.value(i64), op(0xa7))
			}
		case 4:
			if !deep {
				return cat(g.value(i32), constI32(0x1ffff), op(0x71), op([]byte{0x28, 0x2d, 0x2e}[g.IntN(3)], 0, 4))
			}
		case 5:
			if !deep {
				return cat(g.value(v128), op(opSIMD, 27, byte(g.IntN(4))))
			}
		case 6:
			if !deep {
				return cat(g.value(i32), g.value(i32), g.value(i32), op(0x1b))
			}
		case 7:
			if !deep {
				return g.call(i32)
			}
		case 8: // a block with a result
			if !deep {
				labels := g.labels
				g.labels = 0
				defer func() { g.labels = labels }()
				return cat(op(opBlock, i32), g.value(i32), g.value(i32), brIf(0), drop, g.value(i32), op(opEnd))
			}
		case 9:
			return op(0x3f, 0)
		}
		return get(g.local(i32))
	case i64:
		switch g.IntN(8) {
		case 0:
			return constI64(int64(g.Uint64()) >> g.IntN(63))
		case 1, 2:
			if !deep {
				return cat(g.value(i64), g.value(i64), op([]byte{0x7c, 0x7d, 0x7e, 0x80, 0x85, 0x88}[g.IntN(6)]))
			}
		case 3:
			if !deep {
				return cat(g.value(i32), op(0xad))
			}
		case 4:
			return op(opGlobalGet, 1)
		case 5:
			if !deep {
				return g.call(i64)
			}
		case 6:
			if !deep {
				return cat(g.value(i32), op(0xb8), op(0x9f), op(0xbd)) // to f64, its root, its bits
			}
		}
		return get(g.local(i64))
	}
	if deep {
		return get(7)
	}
	switch g.IntN(5) {
	case 0:
		return cat(g.value(i32), op(opSIMD, 17))
	case 1:
		return cat(g.value(v128), g.value(v128), op(opSIMD), [][]byte{{0x6e}, {0xae, 0x01}, {0xb5, 0x01}, {0x51}}[g.IntN(4)])
	case 2:
		lanes := each(16, func(int) []byte { return op(byte(g.IntN(32))) })
		return cat(g.value(v128), g.value(v128), op(opSIMD, 13), lanes)
	case 3:
		return cat(g.value(i32), constI32(0xfff), op(0x71), op(opSIMD, 0, 0, 0))
	}
	return get(7)
}

// call calls, directly or through the table, a function with this result.
func (g *generator) call(result byte) []byte {
	target := g.IntN(len(g.funcs))
	f := g.funcs[target]
	if f.result != result {
		return get(g.local(result))
	}
	argument := g.value(f.params)
	if g.IntN(2) == 0 {
		return cat(argument, call(uint32(target)))
	}
	return cat(argument, g.value(i32), constI32(7), op(0x71), op(0x11), u(int(g.m.typ(string(f.params), string(f.result)))), op(0))
}
