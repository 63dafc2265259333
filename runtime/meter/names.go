package meter

// Subsections of the name section.
const (
	namesModule   = 0
	namesFunction = 1
)

// nameSection gives the module's and the functions' names under their new
// indices, so that stack traces stay readable, and nil where they are damaged:
// names are for people, and no module is refused for them. Every other custom
// section is left out; the offsets in DWARF would be wrong.
func (w *rewriter) nameSection(content []byte) []byte {
	r := &reader{b: content}
	out := appendName(nil, "name")
	for r.left() > 0 && r.fault == nil {
		id := r.byte()
		s := &reader{b: r.take(uint64(r.u32()))}
		var kept []byte
		switch id {
		case namesModule:
			kept = appendName(nil, s.name())
		case namesFunction:
			kept = w.functionNames(s)
		default:
			continue
		}
		if s.fault != nil || s.left() > 0 {
			return nil
		}
		out = append(out, id)
		out = append(appendU32(out, uint32(len(kept))), kept...)
	}
	if r.fault != nil {
		return nil
	}
	return out
}

func (w *rewriter) functionNames(r *reader) []byte {
	n := r.count()
	out := appendU32(nil, n)
	for range n {
		if r.fault != nil {
			return nil
		}
		index := w.shifted(w.functionIndex(r))
		out = appendName(appendU32(out, index), r.name())
	}
	return out
}
