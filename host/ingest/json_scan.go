package ingest

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// maxDepth is how deep a JSON value may nest, as in Spark's parser. A deeper
// one is malformed; the recursion below relies on the bound.
const maxDepth = 1000

// padding is what follows the bytes of a chunk: NULs, which stop every scan.
const padding = 16

// jsonRules are the liberties a JSON text may take; the names are Spark's.
type jsonRules struct {
	singleQuotes, unquotedNames, comments bool
	leadingZeros, nonNumeric              bool
	backslashAny, controlChars            bool
	multiLine                             bool
}

// jsonScan walks over JSON text. Its methods take a position and give the next
// one, or -1 after fail has told why. b is followed by padding.
type jsonScan struct {
	b     []byte // the text and its padding
	end   int    // the length of the text
	rules jsonRules
	depth int

	why   string
	whyAt int
}

func (s *jsonScan) fail(at int, why string) int {
	if s.why == "" {
		s.why, s.whyAt = why, at
	}
	return -1
}

// space skips white space; line ends count as such only in multi-line text.
func (s *jsonScan) space(p int) int {
	for {
		switch c := s.b[p]; {
		case c > ' ' && c != '/' && c != '#':
			return p
		case c == ' ' || c == '\t':
			p++
		case (c == '\n' || c == '\r') && s.rules.multiLine:
			p++
		case (c == '/' || c == '#') && s.rules.comments:
			q := s.comment(p)
			if q < 0 {
				return p // the caller fails on the character
			}
			p = q
		default:
			return p
		}
	}
}

// comment skips /* … */, // … and # … (YAML's, which goes with Jackson's option only for /).
func (s *jsonScan) comment(p int) int {
	if s.b[p] == '#' {
		return -1
	}
	switch s.b[p+1] {
	case '/':
		for p < s.end && s.b[p] != '\n' && s.b[p] != '\r' {
			p++
		}
		return p
	case '*':
		for p += 2; p < s.end; p++ {
			if s.b[p] == '*' && s.b[p+1] == '/' {
				return p + 2
			}
			if (s.b[p] == '\n' || s.b[p] == '\r') && !s.rules.multiLine {
				return -1
			}
		}
	}
	return -1
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain gives the position of the first byte from p on that ends or interrupts
// a string: the quote, a backslash, a control character.
func (s *jsonScan) plain(p int, quote byte) int {
	q := uint64(quote) * ones
	for {
		w := binary.LittleEndian.Uint64(s.b[p:])
		x, y := w^q, w^('\\'*ones)
		m := ((x-ones)&^x | (y-ones)&^y | (w-' '*ones)&^w) & highs
		if m != 0 {
			return p + bits.TrailingZeros64(m)>>3
		}
		p += 8
	}
}

// str scans a string from behind its opening quote and gives the position of
// the closing one, and whether there are escapes between.
func (s *jsonScan) str(p int, quote byte) (end int, escapes bool) {
	for {
		p = s.plain(p, quote)
		switch c := s.b[p]; {
		case c == quote:
			return p, escapes
		case c == '\\':
			escapes = true
			if p = s.escape(p); p < 0 {
				return -1, false
			}
		case p >= s.end:
			return s.fail(p, "a string has no end"), false
		case s.rules.controlChars && (s.rules.multiLine || c != '\n' && c != '\r'):
			p++
		case c == '\n' || c == '\r':
			return s.fail(p, "a string has no end on its line"), false
		default:
			return s.fail(p, "a control character in a string"), false
		}
	}
}

// escape checks the escape at p and gives the position behind it.
func (s *jsonScan) escape(p int) int {
	switch c := s.b[p+1]; c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return p + 2
	case 'u':
		if hex4(s.b[p+2:]) < 0 {
			return s.fail(p, `a \u escape needs four hexadecimal digits`)
		}
		return p + 6
	default:
		if s.rules.singleQuotes && c == '\'' || s.rules.backslashAny && p+1 < s.end && c >= ' ' {
			return p + 2
		}
		return s.fail(p, "an unknown escape in a string")
	}
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// unescape writes the text of a string whose escapes were checked; dst has at
// least len(src) bytes. It gives the length. A lone surrogate becomes U+FFFD.
func unescape(dst, src []byte) int {
	n := 0
	for i := 0; i < len(src); {
		c := src[i]
		if c != '\\' {
			dst[n] = c
			n++
			i++
			continue
		}
		i++
		switch c = src[i]; c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r := hex4(src[i+1:])
			i += 5
			if utf16.IsSurrogate(r) {
				low := rune(-1)
				if i+6 <= len(src) && src[i] == '\\' && src[i+1] == 'u' {
					low = hex4(src[i+2:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			n += utf8.EncodeRune(dst[n:], r)
			continue
		}
		dst[n] = c
		n++
		i++
	}
	return n
}

// number scans a number and gives its end; whole is false when it has a
// fraction or an exponent.
func (s *jsonScan) number(p int) (end int, whole bool) {
	start := p
	if s.b[p] == '-' {
		p++
	}
	switch c := s.b[p]; {
	case c == '0':
		p++
		if s.b[p] >= '0' && s.b[p] <= '9' {
			if !s.rules.leadingZeros {
				return s.fail(start, "a number with leading zeros"), false
			}
			for s.b[p] >= '0' && s.b[p] <= '9' {
				p++
			}
		}
	case c >= '1' && c <= '9':
		for s.b[p] >= '0' && s.b[p] <= '9' {
			p++
		}
	default:
		return s.fail(start, "not a JSON value"), false
	}
	whole = true
	if s.b[p] == '.' {
		whole = false
		p++
		if s.b[p] < '0' || s.b[p] > '9' {
			return s.fail(start, "a number without digits behind its point"), false
		}
		for s.b[p] >= '0' && s.b[p] <= '9' {
			p++
		}
	}
	if s.b[p]|0x20 == 'e' {
		whole = false
		p++
		if s.b[p] == '+' || s.b[p] == '-' {
			p++
		}
		if s.b[p] < '0' || s.b[p] > '9' {
			return s.fail(start, "a number without digits in its exponent"), false
		}
		for s.b[p] >= '0' && s.b[p] <= '9' {
			p++
		}
	}
	return p, whole
}

// word gives the end of the literal at p if it is that one.
func (s *jsonScan) word(p int, lit string) int {
	if p+len(lit) <= s.end && string(s.b[p:p+len(lit)]) == lit {
		return p + len(lit)
	}
	return s.fail(p, "not a JSON value")
}

// nonNumericWords are the numbers that JSON lacks, as Jackson spells them.
var nonNumericWords = []string{"NaN", "Infinity", "-Infinity", "+Infinity", "INF", "-INF", "+INF"}

// nonNumber gives the end of a NaN or infinity at p, or 0 when there is none.
func (s *jsonScan) nonNumber(p int) int {
	if !s.rules.nonNumeric {
		return 0
	}
	for _, w := range nonNumericWords {
		if p+len(w) <= s.end && string(s.b[p:p+len(w)]) == w {
			return p + len(w)
		}
	}
	return 0
}

// token is the kind of a value, told by its first byte.
type token uint8

const (
	tokNone token = iota
	tokString
	tokNumber
	tokObject
	tokArray
	tokTrue
	tokFalse
	tokNull
	tokNonNumber
)

func (s *jsonScan) token(p int) token {
	switch c := s.b[p]; c {
	case '"':
		return tokString
	case '{':
		return tokObject
	case '[':
		return tokArray
	case 't':
		return tokTrue
	case 'f':
		return tokFalse
	case 'n':
		return tokNull
	case '\'':
		if s.rules.singleQuotes {
			return tokString
		}
	case '-', '+', 'N', 'I':
		if s.nonNumber(p) > 0 {
			return tokNonNumber
		}
		if c == '-' {
			return tokNumber
		}
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return tokNumber
	}
	return tokNone
}

// skip checks the value at p and gives its end.
func (s *jsonScan) skip(p int) int {
	switch s.token(p) {
	case tokString:
		end, _ := s.str(p+1, s.b[p])
		if end < 0 {
			return -1
		}
		return end + 1
	case tokNumber:
		end, _ := s.number(p)
		return end
	case tokObject:
		return s.skipObject(p + 1)
	case tokArray:
		return s.skipArray(p + 1)
	case tokTrue:
		return s.word(p, "true")
	case tokFalse:
		return s.word(p, "false")
	case tokNull:
		return s.word(p, "null")
	case tokNonNumber:
		return s.nonNumber(p)
	}
	return s.notAValue(p)
}

func (s *jsonScan) notAValue(p int) int {
	if p >= s.end {
		return s.fail(p, "the text ends inside a value")
	}
	return s.fail(p, "not a JSON value")
}

// enter counts a level of nesting; every enter that did not fail has a leave.
func (s *jsonScan) enter(p int) bool {
	if s.depth >= maxDepth {
		s.fail(p, "values nested deeper than 1000")
		return false
	}
	s.depth++
	return true
}

func (s *jsonScan) skipObject(p int) int {
	if !s.enter(p) {
		return -1
	}
	defer func() { s.depth-- }()
	p = s.space(p)
	if s.b[p] == '}' {
		return p + 1
	}
	for {
		k := s.key(p)
		if k.next < 0 {
			return -1
		}
		if p = s.skip(k.next); p < 0 {
			return -1
		}
		p = s.space(p)
		switch s.b[p] {
		case ',':
			p = s.space(p + 1)
		case '}':
			return p + 1
		default:
			return s.fail(p, "an object needs , or } here")
		}
	}
}

func (s *jsonScan) skipArray(p int) int {
	if !s.enter(p) {
		return -1
	}
	defer func() { s.depth-- }()
	p = s.space(p)
	if s.b[p] == ']' {
		return p + 1
	}
	for {
		if p = s.skip(p); p < 0 {
			return -1
		}
		p = s.space(p)
		switch s.b[p] {
		case ',':
			p = s.space(p + 1)
		case ']':
			return p + 1
		default:
			return s.fail(p, "an array needs , or ] here")
		}
	}
}

// key is a field name and the position of its value; next is -1 after a failure.
type key struct {
	from, to int
	escapes  bool
	next     int
}

// key scans the name at p, the colon, and the space around it.
func (s *jsonScan) key(p int) (k key) {
	switch c := s.b[p]; {
	case c == '"' || c == '\'' && s.rules.singleQuotes:
		k.from = p + 1
		k.to, k.escapes = s.str(p+1, c)
		if k.to < 0 {
			k.next = -1
			return k
		}
		p = k.to + 1
	case s.rules.unquotedNames && nameByte(c):
		k.from = p
		for nameByte(s.b[p]) {
			p++
		}
		k.to = p
	default:
		why := "an object needs a quoted name here"
		if p >= s.end {
			why = "the text ends inside an object"
		}
		k.next = s.fail(p, why)
		return k
	}
	if s.b[p] != ':' {
		if p = s.space(p); s.b[p] != ':' {
			k.next = s.fail(p, "a name needs a : behind it")
			return k
		}
	}
	if k.next = p + 1; s.b[k.next] <= ' ' || s.b[k.next] == '/' {
		k.next = s.space(k.next)
	}
	return k
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c == '-' || c >= 0x80
}

// text lends the bytes as a string that lives no longer than they do.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
