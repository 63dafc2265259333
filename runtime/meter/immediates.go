package meter

import "errors"

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
