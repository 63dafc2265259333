package ingest

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// jsonDecoder reads JSON records into columns: one pass over the bytes, guided
// by the schema, no intermediate values. The position of a field is guessed
// from the last record, so in the steady state a field costs one compare of
// its name, and nothing is allocated for a row.
type jsonDecoder struct {
	decoder
	jsonScan
	chunk   *chunk
	line    int64 // of the record under way
	ends    lineEnds
	scratch []byte
}

// decode reads a chunk; full is called when the columns hold a batch.
func (d *jsonDecoder) decode(ch *chunk, full func() error) error {
	d.b, d.end, d.rules, d.chunk = ch.data, ch.n, d.c.json, ch
	d.begin(ch)
	if ch.overlong {
		return d.malformed(ch, ch.data[:ch.n], 0, ch.line, "a record longer than maxRecordBytes", ch.total)
	}
	if d.rules.multiLine {
		return d.documents(ch, full)
	}
	return d.lines(ch, full)
}

// lines reads one line after the other; a line holds a record, an array of
// records, or several of these.
func (d *jsonDecoder) lines(ch *chunk, full func() error) error {
	valid := utf8.Valid(d.b[:d.end])
	d.line, d.ends = ch.line, lineEnds{}
	for p := 0; p < d.end; d.line++ {
		start, row, lost := p, d.rows, d.out.lost
		d.why = ""
		ok := true
		if !valid {
			if stop := d.ends.find(d.b, start, d.end); !utf8.Valid(d.b[start:stop]) {
				d.fail(start, "invalid UTF-8")
				ok = false
			}
		}
		for ok {
			if p = d.space(p); p >= d.end || d.b[p] == '\n' || d.b[p] == '\r' {
				break
			}
			if p = d.record(p); p < 0 {
				ok = false
			}
		}
		if !ok {
			stop := d.ends.find(d.b, start, d.end)
			d.rollback(row)
			d.depth, d.out.lost = 0, lost
			if err := d.malformed(ch, d.b[start:stop], start, d.line, d.why, 0); err != nil {
				return err
			}
			p = stop
		}
		if p < d.end {
			if d.b[p] == '\r' && d.b[p+1] == '\n' && p+1 < d.end {
				p++
			}
			p++
		}
		if err := full(); err != nil {
			return err
		}
		if d.seg == nil {
			d.begin(ch)
		}
	}
	return nil
}

// record reads one record, or an array of them, at p.
func (d *jsonDecoder) record(p int) int {
	switch d.b[p] {
	case '{':
		at := p
		if p = d.object(d.root, nil, d.rows, p+1); p >= 0 {
			d.endRow(d.chunk, at, d.line)
		}
		return p
	case '[':
		p = d.space(p + 1)
		if d.b[p] == ']' {
			return p + 1
		}
		for {
			if d.b[p] != '{' {
				return d.fail(p, "an array of records may hold objects only")
			}
			at := p
			if p = d.object(d.root, nil, d.rows, p+1); p < 0 {
				return -1
			}
			d.endRow(d.chunk, at, d.line)
			p = d.space(p)
			switch d.b[p] {
			case ',':
				p = d.space(p + 1)
			case ']':
				return p + 1
			default:
				return d.fail(p, "an array needs , or ] here")
			}
		}
	}
	if p < d.end {
		return d.fail(p, "a record must be an object")
	}
	return d.notAValue(p)
}

// documents reads a piece of a file of whole documents: objects one after the
// other, or arrays of them, whatever their line ends. A document that is
// malformed ends where its brackets do, and the next one is read.
func (d *jsonDecoder) documents(ch *chunk, full func() error) error {
	inArray := ch.inArray
	d.line = ch.line
	counted := 0 // line is that of this position
	lineAt := func(p int) int64 {
		d.line += int64(countLines(d.b[counted:p]))
		counted = p
		return d.line
	}
	for p := 0; ; {
		p = d.space(p)
		for inArray && d.b[p] == ',' {
			p = d.space(p + 1)
		}
		if p >= d.end {
			return nil
		}
		if inArray && d.b[p] == ']' {
			inArray = false
			p++
			continue
		}
		if !inArray && d.b[p] == '[' {
			inArray = true
			p++
			continue
		}
		start, row, lost := p, d.rows, d.out.lost
		lineAt(start)
		d.why = ""
		if d.b[p] == '{' {
			if p = d.object(d.root, nil, d.rows, p+1); p >= 0 && !utf8.Valid(d.b[start:p]) {
				p = d.fail(start, "invalid UTF-8")
			}
		} else {
			p = d.fail(p, "a record must be an object")
		}
		if p >= 0 {
			d.endRow(ch, start, d.line)
		} else {
			stop := d.documentEnd(start, inArray)
			d.rollback(row)
			d.depth, d.out.lost = 0, lost
			if err := d.malformed(ch, d.b[start:stop], start, d.line, d.why, 0); err != nil {
				return err
			}
			p = stop
		}
		if err := full(); err != nil {
			return err
		}
		if d.seg == nil {
			d.begin(ch)
		}
	}
}

// documentEnd is where a malformed document that starts at p ends: behind its
// last bracket, or before the next separator when it has none.
func (d *jsonDecoder) documentEnd(p int, inArray bool) int {
	l := jsonLexer{rules: d.rules, inArray: true}
	for i := p; i < d.end; i++ {
		c := d.b[i]
		if l.quote == 0 && l.depth == 0 && i > p {
			switch {
			case inArray && (c == ',' || c == ']'), !inArray && (c == '{' || c == '[' || c == '\n' || c == '\r'):
				return i
			}
		}
		depth := l.depth
		l.step(c)
		if depth > 0 && l.depth == 0 {
			return i + 1
		}
	}
	return d.end
}

// object reads the fields of a struct, or of the record when c is nil, into row i.
func (d *jsonDecoder) object(o *object, c *column, i, p int) int {
	if !d.enter(p) {
		return -1
	}
	if d.b[p] <= ' ' || d.b[p] == '/' {
		p = d.space(p)
	}
	if d.b[p] == '}' {
		d.depth--
		return p + 1
	}
	last := int32(0) // the field before, plus one
	for {
		f := int32(-1)
		if int(last) < len(o.follow) {
			if guess := o.follow[last]; int(guess) < len(o.quoted) {
				name := o.quoted[guess]
				if n := len(name); p+n < len(d.b) && string(d.b[p:p+n]) == name {
					f = guess
					p += n
				}
			}
		}
		if f >= 0 {
			if d.b[p] != ':' {
				if p = d.space(p); d.b[p] != ':' {
					return d.fail(p, "a name needs a : behind it")
				}
			}
			if p++; d.b[p] <= ' ' || d.b[p] == '/' {
				p = d.space(p)
			}
			last = f + 1
			p = d.value(o.fields[f], i, p)
		} else {
			k := d.key(p)
			if k.next < 0 {
				return -1
			}
			name := d.b[k.from:k.to]
			if k.escapes {
				d.scratch = append(d.scratch[:0], name...)
				d.scratch = d.scratch[:unescape(d.scratch, name)]
				name = d.scratch
			}
			var ok bool
			if f, ok = o.index[text(name)]; !ok && !d.c.caseSensitive {
				f, ok = o.folded[strings.ToLower(text(name))]
			}
			if ok {
				o.follow[last] = f
				last = f + 1
				p = d.value(o.fields[f], i, k.next)
			} else {
				p = d.unknown(o, c, text(name), k.next)
			}
		}
		if p < 0 {
			return -1
		}
		if d.b[p] <= ' ' || d.b[p] == '/' {
			p = d.space(p)
		}
		switch d.b[p] {
		case ',':
			if p++; d.b[p] <= ' ' || d.b[p] == '/' {
				p = d.space(p)
			}
		case '}':
			d.depth--
			return p + 1
		default:
			if p >= d.end {
				return d.fail(p, "the text ends inside an object")
			}
			return d.fail(p, "an object needs , or } here")
		}
	}
}

// unknown reads the value of a field that has no column: it is rescued, and
// noted as a new column when the schema may evolve.
func (d *jsonDecoder) unknown(o *object, c *column, name string, p int) int {
	_, collides := o.folded[strings.ToLower(name)]
	usable := name != "" && !collides
	if c == nil && usable {
		usable = d.src.unusable(name) == "" && d.byName[strings.ToLower(name)] == nil
	}
	var end int
	if d.evolve && !o.frozen && usable {
		fresh := &shape{count: 1}
		if end = d.shapeOf(p, fresh, d.c); end < 0 {
			return -1
		}
		sh := d.newShape(c).child([]byte(name))
		sh.count--
		sh.merge(fresh)
		d.foundNew(d.chunk, d.line, sh)
	} else if end = d.skip(p); end < 0 {
		return -1
	}
	if d.token(p) == tokNull {
		return end
	}
	if c == nil {
		if part := d.byName[strings.ToLower(name)]; part != nil && d.samePartition(part, p, end) {
			return end
		}
	}
	if d.keeps() {
		if c != nil {
			name = joinPath(c.path(), name)
		}
		d.rescueValue(&d.res, name, p, end)
	}
	return end
}

// samePartition reports whether a field repeats what its folder says.
func (d *jsonDecoder) samePartition(col *column, p, end int) bool {
	for _, f := range d.parts {
		if f.col == col {
			return string(bytes.Trim(d.b[p:end], `"`)) == string(f.value)
		}
	}
	return false
}
