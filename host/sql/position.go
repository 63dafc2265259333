package sql

import (
	"sort"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// origin tells where in a file the bytes of an edited text come from.
type origin struct {
	file  string
	lines []int // byte offset of each line's start in the original
	line  int   // number of the first line
	marks []mark
}

// mark says that from byte out of the edited text on, the bytes are those of
// the original from in on.
type mark struct{ out, in int }

func newOrigin(file, text string, line int) *origin {
	if line <= 0 {
		line = 1
	}
	o := &origin{file: file, line: line, lines: []int{0}, marks: []mark{{0, 0}}}
	for i := range len(text) {
		if text[i] == '\n' {
			o.lines = append(o.lines, i+1)
		}
	}
	return o
}

// offset maps a byte of the edited text to one of the original.
func (o *origin) offset(at int) int {
	i := sort.Search(len(o.marks), func(i int) bool { return o.marks[i].out > at }) - 1
	m := o.marks[max(i, 0)]
	in := m.in + at - m.out
	// An edit may be longer than what it replaced: do not run past the next mark.
	if i+1 < len(o.marks) {
		in = min(in, o.marks[i+1].in)
	}
	return in
}

// where gives the place of a byte of the edited text.
func (o *origin) where(at int) fault.Where {
	in := o.offset(at)
	i := sort.Search(len(o.lines), func(i int) bool { return o.lines[i] > in }) - 1
	return fault.Where{File: o.file, Line: int64(o.line + i), Column: int64(in-o.lines[i]) + 1}
}

// within gives the origin of the part of the edited text that starts at byte at.
func (o *origin) within(at int) *origin {
	sub := *o
	sub.marks = []mark{{0, o.offset(at)}}
	for _, m := range o.marks {
		if m.out > at {
			sub.marks = append(sub.marks, mark{m.out - at, m.in})
		}
	}
	return &sub
}

// edit builds a text out of pieces of another and remembers which is which.
type edit struct {
	src   string
	out   strings.Builder
	marks []mark
	done  int // src is consumed up to here
}

func newEdit(src string) *edit { return &edit{src: src, marks: []mark{{0, 0}}} }

// replace puts text in the place of src[start:end]; calls go left to right.
func (e *edit) replace(start, end int, text string) {
	e.out.WriteString(e.src[e.done:start])
	e.marks = append(e.marks, mark{e.out.Len(), start})
	e.out.WriteString(text)
	e.marks = append(e.marks, mark{e.out.Len(), end})
	e.done = end
}

// finish gives the edited text and its origin, given the one of src.
func (e *edit) finish(src *origin) (string, *origin) {
	e.out.WriteString(e.src[e.done:])
	o := *src
	o.marks = make([]mark, 0, len(e.marks)+len(src.marks))
	for i, m := range e.marks {
		o.marks = append(o.marks, mark{m.out, src.offset(m.in)})
		if i%2 == 1 {
			continue // text that was put in: it has no marks of its own
		}
		// Marks of the source inside this untouched stretch stay marks.
		end := len(e.src)
		if i+1 < len(e.marks) {
			end = m.in + e.marks[i+1].out - m.out
		}
		for _, s := range src.marks {
			if s.out > m.in && s.out < end {
				o.marks = append(o.marks, mark{m.out + s.out - m.in, s.in})
			}
		}
	}
	return e.out.String(), &o
}
