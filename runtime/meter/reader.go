package meter

import "unicode/utf8"

// reader takes a binary apart. The first fault stays and every later read
// gives zero, so that callers check once per item; counts are checked against
// what is left, so that no loop runs longer than its input.
type reader struct {
	b     []byte
	at    int
	fault *Error
}

func (r *reader) fail(err *Error) {
	if r.fault == nil {
		r.fault = err
	}
	r.at = len(r.b)
}

func (r *reader) left() int { return len(r.b) - r.at }

func (r *reader) byte() byte {
	if r.at >= len(r.b) {
		r.fail(invalid("it ends in the middle of an item"))
		return 0
	}
	c := r.b[r.at]
	r.at++
	return c
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(r.left()) {
		r.fail(invalid("it ends in the middle of an item"))
		return nil
	}
	b := r.b[r.at : r.at+int(n)]
	r.at += int(n)
	return b
}

// u32 reads an unsigned LEB128 of at most 32 bits, as strictly as the format
// demands: at most five bytes and no stray bits in the last.
func (r *reader) u32() uint32 {
	if r.at < len(r.b) && r.b[r.at] < 0x80 {
		c := r.b[r.at]
		r.at++
		return uint32(c)
	}
	var v uint32
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		if shift == 28 && c > 0x0f {
			break
		}
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	r.fail(invalid("an integer has more than 32 bits"))
	return 0
}

// signed reads a signed LEB128 of at most bits bits (32, 33 or 64).
func (r *reader) signed(bits int) int64 {
	var v int64
	for shift := 0; ; shift += 7 {
		c := r.byte()
		if rest := bits - shift; rest < 7 {
			// The unused bits of the last byte repeat the sign.
			high := int8(c<<1) >> rest
			if c >= 0x80 || (high != 0 && high != -1) {
				r.fail(invalid("an integer has more than %d bits", bits))
				return 0
			}
		}
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			if shift+7 < 64 && c&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v
		}
		if r.fault != nil {
			return 0
		}
	}
}

// count reads the length of a vector whose items take at least one byte each.
func (r *reader) count() uint32 {
	n := r.u32()
	if uint64(n) > uint64(r.left()) {
		r.fail(invalid("it announces %d items in %d bytes", n, r.left()))
		return 0
	}
	return n
}

func (r *reader) name() string {
	b := r.take(uint64(r.u32()))
	if !utf8.Valid(b) {
		r.fail(invalid("a name is not UTF-8"))
	}
	return string(b)
}

// zero reads the byte that stands for "the only memory".
func (r *reader) zero(what string) {
	if c := r.byte(); c != 0 {
		r.fail(unsupported("multi-memory", "%s names memory %d", what, c))
	}
}
