package plugin

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// maxGap is the most zeros that go between two data segments to make one of
// them; the header of a segment has about 8 bytes itself.
const maxGap = 64

// mostSegments is more than a module may have by its limits.
const mostSegments = 1 << 20

// joinData gives the module with data segments that lie close to each other as
// one. Go's linker writes ten thousand of them, and filling the memory of an
// instance with each takes longer than all the rest. What it does not
// understand it leaves alone; others refuse it.
func joinData(wasm []byte) []byte {
	const data, dataCount = 11, 12
	r := &sectionReader{b: wasm[8:]}
	for len(r.b) > 0 && r.fault == "" {
		start := len(wasm) - len(r.b)
		id := r.byte()
		content := r.take(int64(r.u32()))
		if r.fault != "" || id == dataCount { // segments are named by number elsewhere
			return wasm
		}
		if id != data {
			continue
		}
		joined := joinSegments(content)
		if joined == nil {
			return wasm
		}
		out := append(make([]byte, 0, len(wasm)), wasm[:start]...)
		out = binary.AppendUvarint(append(out, data), uint64(len(joined)))
		out = append(out, joined...)
		return append(out, r.b...)
	}
	return wasm
}

// joinSegments gives the content of a data section with fewer segments, or
// nil where there is nothing to gain, something but plain segments at a place, or
// segments that overlap, whose order counts. The order of others does not, so
// they are joined by their places.
func joinSegments(content []byte) []byte {
	type segment struct {
		at   uint64
		data []byte
	}
	s := &sectionReader{b: content}
	n := s.u32()
	if n > mostSegments {
		return nil
	}
	var all []segment
	for range n {
		if s.byte() != 0 || s.byte() != 0x41 {
			return nil
		}
		at, ok := s.signed32()
		if !ok || s.byte() != 0x0b {
			return nil
		}
		data := s.take(int64(s.u32()))
		if s.fault != "" {
			return nil
		}
		all = append(all, segment{uint64(uint32(at)), data})
	}
	if len(s.b) > 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b segment) int { return cmp.Compare(a.at, b.at) })
	joined := all[:0]
	for _, next := range all {
		if len(joined) == 0 {
			joined = append(joined, segment{next.at, slices.Clone(next.data)})
			continue
		}
		last := &joined[len(joined)-1]
		end := last.at + uint64(len(last.data))
		switch {
		case next.at < end:
			return nil
		case next.at-end <= maxGap:
			last.data = append(append(last.data, make([]byte, next.at-end)...), next.data...)
		default:
			joined = append(joined, segment{next.at, slices.Clone(next.data)})
		}
	}
	if len(joined) > len(all)/2 {
		return nil
	}
	out := binary.AppendUvarint(nil, uint64(len(joined)))
	for _, j := range joined {
		out = appendSigned(append(out, 0, 0x41), int64(int32(uint32(j.at))))
		out = append(binary.AppendUvarint(append(out, 0x0b), uint64(len(j.data))), j.data...)
	}
	return out
}

// signed32 reads a signed number of at most 32 bits.
func (r *sectionReader) signed32() (int32, bool) {
	var v int64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			if c&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return int32(v), r.fault == "" && v == int64(int32(v))
		}
	}
	return 0, false
}

func appendSigned(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
