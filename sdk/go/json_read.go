package weir

import "unicode/utf8"

// jsonReader reads the little JSON that the host gives: one object, the rest skipped.
type jsonReader struct {
	text string
	pos  int
	bad  bool
}

func (r *jsonReader) peek() byte {
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; c {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

func (r *jsonReader) accept(c byte) bool {
	if !r.bad && r.peek() == c {
		r.pos++
		return true
	}
	return false
}

func (r *jsonReader) expect(c byte) {
	if !r.accept(c) {
		r.bad = true
	}
}

// object calls member with each key; it must take the value.
func (r *jsonReader) object(member func(key string)) bool {
	r.expect('{')
	for first := true; !r.bad && !r.accept('}'); first = false {
		if !first {
			r.expect(',')
		}
		key := r.string()
		r.expect(':')
		if !r.bad {
			member(key)
		}
	}
	return !r.bad
}

func (r *jsonReader) null() bool {
	if r.peek() != 'n' {
		return false
	}
	return r.scalar() == ""
}

// scalar gives a string's value, or a number or boolean as it is written; null is "".
func (r *jsonReader) scalar() string {
	if r.peek() == '"' {
		return r.string()
	}
	start := r.pos
	for r.pos < len(r.text) && identByte(r.text[r.pos]) || r.pos < len(r.text) && (r.text[r.pos] == '-' || r.text[r.pos] == '+' || r.text[r.pos] == '.') {
		r.pos++
	}
	word := r.text[start:r.pos]
	if word == "" {
		r.bad = true
	}
	if word == "null" {
		return ""
	}
	return word
}

func (r *jsonReader) int() int64 {
	d, ok := ParseDecimal(r.scalar(), 0, Down)
	if !ok || !d.IsInt64() {
		r.bad = true
	}
	return d.Int64()
}

func (r *jsonReader) string() string {
	r.expect('"')
	var b []byte
	for !r.bad && r.pos < len(r.text) {
		c := r.text[r.pos]
		r.pos++
		switch c {
		case '"':
			return string(b)
		case '\\':
			b = r.escape(b)
		default:
			b = append(b, c)
		}
	}
	r.bad = true
	return ""
}

func (r *jsonReader) escape(b []byte) []byte {
	if r.pos >= len(r.text) {
		r.bad = true
		return b
	}
	c := r.text[r.pos]
	r.pos++
	switch c {
	case 'n':
		return append(b, '\n')
	case 't':
		return append(b, '\t')
	case 'r':
		return append(b, '\r')
	case 'b':
		return append(b, '\b')
	case 'f':
		return append(b, '\f')
	case 'u':
		u := r.hex()
		if u >= 0xD800 && u < 0xDC00 && r.pos+1 < len(r.text) && r.text[r.pos] == '\\' && r.text[r.pos+1] == 'u' {
			r.pos += 2
			u = 0x10000 + (u-0xD800)<<10 + (r.hex() - 0xDC00)
		}
		return utf8.AppendRune(b, u)
	}
	return append(b, c)
}

func (r *jsonReader) hex() rune {
	var u rune
	for range 4 {
		if r.pos >= len(r.text) {
			r.bad = true
			return 0
		}
		c := rune(r.text[r.pos])
		r.pos++
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			r.bad = true
		}
		u = u<<4 | c
	}
	return u
}

// skip passes over any value.
func (r *jsonReader) skip() {
	switch r.peek() {
	case '{':
		r.object(func(string) { r.skip() })
	case '[':
		r.expect('[')
		for first := true; !r.bad && !r.accept(']'); first = false {
			if !first {
				r.expect(',')
			}
			r.skip()
		}
	default:
		r.scalar()
	}
}
