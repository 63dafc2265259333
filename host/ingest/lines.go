package ingest

import "bytes"

// lineEnds finds the ends of lines: \n, \r\n or \r. It remembers the next \n, so
// that a file without any is not searched for one again with each line.
type lineEnds struct{ next int }

// find gives the end of the line that holds position p; calls come with rising p.
func (l *lineEnds) find(b []byte, p, end int) int {
	if l.next <= p || l.next > end {
		l.next = end
		if i := bytes.IndexByte(b[p:end], '\n'); i >= 0 {
			l.next = p + i
		}
	}
	if i := bytes.IndexByte(b[p:l.next], '\r'); i >= 0 {
		return p + i
	}
	return l.next
}

// countLines counts the line ends in b.
func countLines(b []byte) int {
	n := bytes.Count(b, []byte{'\n'})
	if bytes.IndexByte(b, '\r') < 0 {
		return n
	}
	for i, c := range b {
		if c == '\r' && (i+1 == len(b) || b[i+1] != '\n') {
			n++
		}
	}
	return n
}

// A cutter finds where a file may be cut into pieces of whole records.
type cutter interface {
	// cut looks at b, of which the bytes before from were looked at already, and
	// gives the last place found so far; 0 is none. With first it stops at the next
	// place, and looks no further.
	cut(b []byte, from int, first bool) int
	// shift tells that the first n bytes are gone.
	shift(n int)
}

// lineCutter cuts behind line ends.
type lineCutter struct{ last int }

func (l *lineCutter) cut(b []byte, from int, first bool) int {
	if first {
		var ends lineEnds
		if i := ends.find(b, from, len(b)); i < len(b) {
			switch {
			case b[i] == '\n':
				l.last = i + 1
			case i+1 < len(b) && b[i+1] == '\n':
				l.last = i + 2
			case i+1 < len(b): // else it may be the half of a \r\n
				l.last = i + 1
			}
		}
		return l.last
	}
	if i := bytes.LastIndexByte(b[from:], '\n'); i >= 0 {
		l.last = from + i + 1
	} else if l.last == 0 && len(b) > 0 {
		// Lines that end in \r alone; the last byte may be the half of a \r\n.
		if i := bytes.LastIndexByte(b[:len(b)-1], '\r'); i >= 0 && b[i+1] != '\n' {
			l.last = i + 1
		}
	}
	return l.last
}

func (l *lineCutter) shift(n int) { l.last = max(l.last-n, 0) }

// csvCutter cuts behind records of a file whose quoted values may hold line
// ends. It splits records as the decoder does, so both see the same ones.
type csvCutter struct {
	scan csvScan
	last int

	// What follows serves records too long to be held: quotes are followed byte by byte.
	quoted bool
	begin  bool // at the beginning of a value
	skip   bool // the byte before was an escape
	before byte
}

func newCSVCutter(rules *csvRules) *csvCutter {
	return &csvCutter{scan: csvScan{rules: rules, multi: true}, begin: true}
}

func (c *csvCutter) cut(b []byte, from int, first bool) int {
	if first {
		return c.follow(b, from)
	}
	s := &c.scan
	s.b, s.end, s.ends = b, len(b), lineEnds{}
	for p := c.last; p < s.end; {
		end := s.pass(p)
		if end == p {
			var why string
			if end, why = s.record(p); why != "" || end >= s.end-1 {
				break // it may go on, and its last byte may be the half of a \r\n
			}
			end = s.afterLine(end)
		} else if end >= s.end && b[s.end-1] != '\n' {
			break
		}
		p, c.last = end, end
	}
	return c.last
}

// follow finds the first line end outside of quotes.
func (c *csvCutter) follow(b []byte, from int) int {
	r := c.scan.rules
	for i := from; i < len(b); i++ {
		ch := b[i]
		switch {
		case c.skip:
			c.skip = false
		case c.quoted:
			if ch == r.quote {
				c.quoted = false
			} else if ch == r.escape && r.escape != 0 {
				c.skip = true
			}
		case ch == r.quote && r.quote != 0 && (c.begin || c.before == r.quote):
			c.quoted, c.begin = true, false
		case ch == '\n' || ch == '\r':
			*c = csvCutter{scan: c.scan, begin: true}
			c.last = i + 1
			return c.last
		case ch == r.sep[len(r.sep)-1]:
			c.begin = true
		case ch != ' ' && ch != '\t':
			c.begin = false
		}
		c.before = ch
	}
	return c.last
}

func (c *csvCutter) shift(n int) { c.last = max(c.last-n, 0) }

// jsonLexer follows strings and brackets, no more: enough to tell where a
// document ends without parsing it.
type jsonLexer struct {
	rules   jsonRules
	inArray bool // inside a top-level array, whose elements are the records
	depth   int
	quote   byte
	skip    bool
}

// step takes one byte and reports whether the text may be cut behind it.
func (l *jsonLexer) step(c byte) bool {
	if l.quote != 0 {
		switch {
		case l.skip:
			l.skip = false
		case c == '\\':
			l.skip = true
		case c == l.quote:
			l.quote = 0
		}
		return false
	}
	switch c {
	case '"':
		l.quote = c
	case '\'':
		if l.rules.singleQuotes {
			l.quote = c
		}
	case '{':
		l.depth++
	case '[':
		if l.depth == 0 && !l.inArray {
			l.inArray = true
			return true
		}
		l.depth++
	case '}':
		l.depth = max(l.depth-1, 0)
		return l.depth == 0
	case ']':
		if l.depth == 0 {
			l.inArray = false
			return true
		}
		l.depth--
	}
	return false
}

// jsonCutter cuts behind documents.
type jsonCutter struct {
	lexer jsonLexer
	last  int
	// array is inArray at last.
	array bool
}

func (j *jsonCutter) cut(b []byte, from int, first bool) int {
	for i := from; i < len(b); i++ {
		if j.lexer.step(b[i]) {
			if j.last, j.array = i+1, j.lexer.inArray; first {
				return j.last
			}
		}
	}
	return j.last
}

func (j *jsonCutter) shift(n int) { j.last = max(j.last-n, 0) }
