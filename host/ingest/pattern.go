package ingest

import (
	"strings"
	"time"

	"github.com/weir-data/weir/host/fault"
)

// pattern is a date or timestamp format in the letters of Spark (Java's
// DateTimeFormatter), such as "d MMMM yyyy" or "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]".
type pattern struct {
	text  string
	parts []patternPart
}

type patternPart struct {
	letter byte // 0 for a literal, '[' for an optional section
	count  int
	lit    string
	inner  []patternPart
}

// patternLetters are those that are understood.
const patternLetters = "yuMLdHhkKmsSaEXxZOVzG"

// parsePattern checks a format; option names it in errors.
func parsePattern(option, format string) (*pattern, error) {
	bad := func(why string) error {
		return fault.New("INVALID_DATETIME_PATTERN", "%s %q: %s", option, format, why)
	}
	stack := [][]patternPart{nil}
	add := func(p patternPart) { stack[len(stack)-1] = append(stack[len(stack)-1], p) }
	for i := 0; i < len(format); {
		c := format[i]
		switch {
		case c == '\'':
			// A quote in a quoted text, and one that stands for itself, is written twice.
			var lit strings.Builder
			end := i + 1
			for ; end < len(format); end++ {
				if format[end] == '\'' {
					if end+1 == len(format) || format[end+1] != '\'' || end == i+1 {
						break
					}
					end++
				}
				lit.WriteByte(format[end])
			}
			if end == len(format) {
				return nil, bad("a quote has no end")
			}
			if lit.Len() == 0 {
				lit.WriteByte('\'')
			}
			add(patternPart{lit: lit.String()})
			i = end + 1
		case c == '[':
			stack = append(stack, nil)
			i++
		case c == ']':
			if len(stack) == 1 {
				return nil, bad("a ] without [")
			}
			inner := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			add(patternPart{letter: '[', inner: inner})
			i++
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			n := 1
			for i+n < len(format) && format[i+n] == c {
				n++
			}
			if !strings.ContainsRune(patternLetters, rune(c)) {
				return nil, bad("the letter " + string(c) + " is not supported")
			}
			if most := map[byte]int{'M': 4, 'L': 4, 'E': 4, 'd': 2, 'H': 2, 'h': 2, 'm': 2, 's': 2, 'S': 9, 'a': 1}[c]; most > 0 && n > most {
				return nil, bad("too many letters " + string(c))
			}
			add(patternPart{letter: c, count: n})
			i += n
		default:
			add(patternPart{lit: string(c)})
			i++
		}
	}
	if len(stack) > 1 {
		return nil, bad("a [ without ]")
	}
	if len(stack[0]) == 0 {
		return nil, bad("it is empty")
	}
	return &pattern{text: format, parts: stack[0]}, nil
}

// reading is the state of a match.
type reading struct {
	civil
	pm, half bool
}

// parse matches the whole text.
func (p *pattern) parse(b []byte) (civil, bool) {
	r := reading{civil: civil{year: 1970, month: 1, day: 1}}
	i, ok := r.match(p.parts, b, 0)
	if !ok || i != len(b) {
		return civil{}, false
	}
	if r.half {
		if r.hour > 12 {
			return civil{}, false
		}
		r.hour %= 12
		if r.pm {
			r.hour += 12
		}
	}
	return r.civil, r.valid()
}

func (r *reading) match(parts []patternPart, b []byte, i int) (int, bool) {
	for k, part := range parts {
		switch part.letter {
		case 0:
			if len(b)-i < len(part.lit) || string(b[i:i+len(part.lit)]) != part.lit {
				return i, false
			}
			i += len(part.lit)
			continue
		case '[':
			saved := *r
			if j, ok := r.match(part.inner, b, i); ok {
				i = j
			} else {
				*r = saved
			}
			continue
		}
		// Digits of neighbouring fields ("yyyyMMdd") belong to their own.
		adjacent := k+1 < len(parts) && numericLetter(parts[k+1])
		next, ok := r.field(part, b, i, adjacent)
		if !ok {
			return i, false
		}
		i = next
	}
	return i, true
}

func numericLetter(p patternPart) bool {
	return p.letter != 0 && strings.IndexByte("yudHhkKmsS", p.letter) >= 0 || (p.letter == 'M' || p.letter == 'L') && p.count <= 2
}

func (r *reading) field(part patternPart, b []byte, i int, adjacent bool) (int, bool) {
	number := func(least, most int) (int, int, bool) {
		if adjacent {
			most = least
		}
		v, next := digits(b, i, most)
		return v, next, next-i >= least
	}
	var ok bool
	switch n := part.count; part.letter {
	case 'y', 'u':
		switch {
		case n == 2:
			if r.year, i, ok = number(2, 2); ok {
				r.year += 2000
			}
		case n >= 4:
			r.year, i, ok = number(n, 7)
		default:
			r.year, i, ok = number(n, 7)
		}
		return i, ok
	case 'M', 'L':
		if n >= 3 {
			m, next := nameAt(b, i, n == 3, monthName)
			r.month = m
			return next, m > 0
		}
		r.month, i, ok = number(n, 2)
		return i, ok
	case 'd':
		r.day, i, ok = number(n, 2)
		return i, ok
	case 'H':
		r.hour, i, ok = number(n, 2)
		return i, ok
	case 'k':
		r.hour, i, ok = number(n, 2)
		r.hour %= 24
		return i, ok
	case 'h', 'K':
		r.half = true
		r.hour, i, ok = number(n, 2)
		return i, ok
	case 'm':
		r.minute, i, ok = number(n, 2)
		return i, ok
	case 's':
		r.second, i, ok = number(n, 2)
		return i, ok
	case 'S':
		v, next := digits(b, i, n)
		for k := next - i; k < 6; k++ {
			v *= 10
		}
		for k := next - i; k > 6; k-- {
			v /= 10
		}
		r.micro = v
		// Spark pads the fraction, so fewer digits than letters are fine.
		return next, next > i
	case 'a':
		if len(b)-i < 2 {
			return i, false
		}
		half := strings.ToUpper(string(b[i : i+2]))
		r.pm = half == "PM"
		return i + 2, half == "AM" || half == "PM"
	case 'E':
		d, next := nameAt(b, i, n < 4, func(k int) string {
			if k > 7 {
				return ""
			}
			return time.Weekday(k - 1).String()
		})
		return next, d > 0
	case 'G':
		if len(b)-i >= 2 && (string(b[i:i+2]) == "AD" || string(b[i:i+2]) == "CE") {
			return i + 2, true
		}
		return i, false
	default: // X x Z O V z
		next := i
		for next < len(b) && b[next] != ' ' && b[next] != ']' && b[next] != ')' {
			next++
		}
		return next, r.parseZone(b[i:next])
	}
}

func monthName(k int) string {
	if k > 12 {
		return ""
	}
	return time.Month(k).String()
}

// nameAt finds which name stands at i, its first three letters when short.
func nameAt(b []byte, i int, short bool, name func(int) string) (index, next int) {
	for k := 1; name(k) != ""; k++ {
		n := name(k)
		if short {
			n = n[:3]
		}
		if len(b)-i >= len(n) && strings.EqualFold(string(b[i:i+len(n)]), n) {
			return k, i + len(n)
		}
	}
	return 0, i
}
