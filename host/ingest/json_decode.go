package ingest

import (
	"bytes"
	"encoding/base64"
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

// mismatch rescues a value that does not fit its column; the row stays null.
func (d *jsonDecoder) mismatch(c *column, i, p int) int {
	end := d.skip(p)
	if end < 0 {
		return -1
	}
	d.misfit(c, i, p, end)
	return end
}

func (d *jsonDecoder) misfit(c *column, i, p, end int) {
	if d.keeps() {
		d.rescueValue(&d.res, c.path(), p, end)
	}
	c.truncate(i)
}

// value reads the value at p into row i of a column and gives its end.
func (d *jsonDecoder) value(c *column, i, p int) int {
	ch := d.b[p]
	if ch == 'n' {
		if d.b[p+1] == 'u' && d.b[p+2] == 'l' && d.b[p+3] == 'l' {
			if c.n > i {
				c.truncate(i)
			}
			return p + 4
		}
		return d.notAValue(p)
	}
	switch c.kind {
	case kindString:
		if ch == '"' {
			return d.stringValue(c, i, p)
		}
		return d.textValue(c, i, p)
	case kindInt64:
		if end, v, ok := d.smallInt(p); ok {
			c.put64(i, uint64(v))
			return end
		}
		return d.intValue(c, i, p)
	case kindInt32, kindInt16, kindInt8:
		return d.intValue(c, i, p)
	case kindFloat64, kindFloat32:
		return d.floatValue(c, i, p)
	case kindDecimal:
		return d.decimalValue(c, i, p)
	case kindBool:
		lit := "false"
		if ch == 't' {
			lit = "true"
		}
		if ch == 't' || ch == 'f' {
			end := d.word(p, lit)
			if end > 0 {
				c.putBool(i, ch == 't')
			}
			return end
		}
		return d.mismatch(c, i, p)
	case kindTimestamp, kindTimestampNTZ, kindDate:
		return d.timeValue(c, i, p)
	case kindStruct:
		if ch != '{' {
			return d.mismatch(c, i, p)
		}
		c.align(i)
		if p = d.object(c.obj, c, i, p+1); p >= 0 {
			c.set(i)
		}
		return p
	case kindList:
		if ch != '[' {
			return d.mismatch(c, i, p)
		}
		return d.list(c, i, p+1)
	case kindMap:
		if ch != '{' {
			return d.mismatch(c, i, p)
		}
		return d.mapValue(c, i, p+1)
	default:
		return d.binaryValue(c, i, p)
	}
}

// stringValue copies a string into its column, escapes resolved.
func (d *jsonDecoder) stringValue(c *column, i, p int) int {
	end, escapes := d.str(p+1, d.b[p])
	if end < 0 {
		return -1
	}
	raw := d.b[p+1 : end]
	dst := c.room(i, len(raw))
	n := len(raw)
	if escapes {
		n = unescape(dst, raw)
	} else {
		copy(dst, raw)
	}
	c.putRoom(i, n)
	return end + 1
}

// textValue puts what is no string into a string column, as it was written.
func (d *jsonDecoder) textValue(c *column, i, p int) int {
	if d.b[p] == '\'' && d.rules.singleQuotes {
		return d.stringValue(c, i, p)
	}
	end := d.skip(p)
	if end >= 0 {
		c.putBytes(i, d.b[p:end])
	}
	return end
}

// smallInt reads an integer of at most 18 digits.
func (d *jsonDecoder) smallInt(p int) (end int, v int64, ok bool) {
	start := p
	neg := d.b[p] == '-'
	if neg {
		p++
		start++
	}
	for {
		c := d.b[p] - '0'
		if c > 9 {
			break
		}
		v = v*10 + int64(c)
		p++
	}
	if n := p - start; n == 0 || n > 18 || d.b[start] == '0' && n > 1 {
		return p, 0, false
	}
	if c := d.b[p]; c == '.' || c|0x20 == 'e' {
		return p, 0, false
	}
	if neg {
		v = -v
	}
	return p, v, true
}

func (d *jsonDecoder) intValue(c *column, i, p int) int {
	if d.token(p) != tokNumber {
		return d.mismatch(c, i, p)
	}
	end, whole := d.number(p)
	if end < 0 {
		return -1
	}
	v, ok := int64(0), false
	if whole {
		v, ok = parseInt(d.b[p:end])
	}
	if !ok || !c.putInt(i, v) {
		d.misfit(c, i, p, end)
	}
	return end
}

func (d *jsonDecoder) floatValue(c *column, i, p int) int {
	var v float64
	var end int
	ok := false
	switch d.token(p) {
	case tokNumber:
		if end, _ = d.number(p); end < 0 {
			return -1
		}
		bits := 64
		if c.kind == kindFloat32 {
			bits = 32
		}
		v, ok = parseFloat(d.b[p:end], bits)
	case tokNonNumber:
		end = d.nonNumber(p)
		v, ok = nonNumeric(text(d.b[p:end]))
	case tokString:
		stop, _ := d.str(p+1, d.b[p])
		if stop < 0 {
			return -1
		}
		end = stop + 1
		if d.rules.nonNumeric {
			v, ok = nonNumeric(text(d.b[p+1 : stop]))
		}
	default:
		return d.mismatch(c, i, p)
	}
	if !ok {
		d.misfit(c, i, p, end)
		return end
	}
	c.putFloat(i, v)
	return end
}

func (d *jsonDecoder) decimalValue(c *column, i, p int) int {
	var end int
	var v decimal
	var ok bool
	switch d.token(p) {
	case tokNumber:
		if end, _ = d.number(p); end < 0 {
			return -1
		}
		v, ok = parseDecimal(d.b[p:end], c.precision, c.scale)
	case tokString:
		stop, _ := d.str(p+1, d.b[p])
		if stop < 0 {
			return -1
		}
		end = stop + 1
		v, ok = parseDecimal(withoutCommas(d.b[p+1:stop]), c.precision, c.scale)
	default:
		return d.mismatch(c, i, p)
	}
	if !ok {
		d.misfit(c, i, p, end)
		return end
	}
	c.putDecimal(i, v)
	return end
}

// timeValue reads a date or timestamp: text, or for a timestamp with zone a
// whole number of seconds since the epoch, as Spark.
func (d *jsonDecoder) timeValue(c *column, i, p int) int {
	switch d.token(p) {
	case tokString:
		stop, escapes := d.str(p+1, d.b[p])
		if stop < 0 {
			return -1
		}
		v := d.b[p+1 : stop]
		if escapes {
			d.scratch = append(d.scratch[:0], v...)
			d.scratch = d.scratch[:unescape(d.scratch, v)]
			v = d.scratch
		}
		if n, ok := d.c.timeOf(c.kind, v); !ok || !c.putInt(i, n) {
			d.misfit(c, i, p, stop+1)
		}
		return stop + 1
	case tokNumber:
		end, whole := d.number(p)
		if end < 0 {
			return -1
		}
		const most = int64(1<<63-1) / microsPerSecond
		if v, ok := parseInt(d.b[p:end]); whole && ok && c.kind == kindTimestamp && v <= most && v >= -most {
			c.put64(i, uint64(v*microsPerSecond))
		} else {
			d.misfit(c, i, p, end)
		}
		return end
	}
	return d.mismatch(c, i, p)
}

func (d *jsonDecoder) binaryValue(c *column, i, p int) int {
	if d.token(p) != tokString {
		return d.mismatch(c, i, p)
	}
	stop, escapes := d.str(p+1, d.b[p])
	if stop < 0 {
		return -1
	}
	raw := d.b[p+1 : stop]
	if !escapes {
		dst := c.room(i, base64.StdEncoding.DecodedLen(len(raw)))
		if n, err := base64.StdEncoding.Decode(dst, raw); err == nil {
			c.putRoom(i, n)
			return stop + 1
		}
	}
	d.misfit(c, i, p, stop+1)
	return stop + 1
}

func (d *jsonDecoder) list(c *column, i, p int) int {
	if !d.enter(p) {
		return -1
	}
	c.open(i)
	p = d.space(p)
	if d.b[p] == ']' {
		c.shut(i)
		d.depth--
		return p + 1
	}
	for {
		if p = d.value(c.elem, c.items, p); p < 0 {
			return -1
		}
		c.items++
		if d.b[p] <= ' ' || d.b[p] == '/' {
			p = d.space(p)
		}
		switch d.b[p] {
		case ',':
			if p++; d.b[p] <= ' ' || d.b[p] == '/' {
				p = d.space(p)
			}
		case ']':
			c.shut(i)
			d.depth--
			return p + 1
		default:
			if p >= d.end {
				return d.fail(p, "the text ends inside an array")
			}
			return d.fail(p, "an array needs , or ] here")
		}
	}
}

// mapValue reads an object into a map. Of a key that stands twice the first
// value stays, and the others are rescued: a map has no place for both.
func (d *jsonDecoder) mapValue(c *column, i, p int) int {
	if !d.enter(p) {
		return -1
	}
	c.open(i)
	first := c.items
	var seen map[string]struct{}
	p = d.space(p)
	if d.b[p] == '}' {
		c.shut(i)
		d.depth--
		return p + 1
	}
	for {
		k := d.key(p)
		if k.next < 0 {
			return -1
		}
		name := d.b[k.from:k.to]
		dst := c.key.room(c.items, len(name))
		n := len(name)
		if k.escapes {
			n = unescape(dst, name)
		} else {
			copy(dst, name)
		}
		twice := false
		if seen == nil {
			for e := first; e < c.items && !twice; e++ {
				twice = string(c.key.data[c.key.offs[e]:c.key.offs[e+1]]) == string(dst[:n])
			}
			if c.items-first == 32 {
				seen = make(map[string]struct{}, 64)
				for e := first; e < c.items; e++ {
					seen[string(c.key.data[c.key.offs[e]:c.key.offs[e+1]])] = struct{}{}
				}
			}
		}
		if seen != nil && !twice {
			_, twice = seen[string(dst[:n])]
			seen[string(dst[:n])] = struct{}{}
		}
		if twice {
			path := joinPath(c.path(), string(dst[:n]))
			end := d.skip(k.next)
			if end < 0 {
				return -1
			}
			if d.keeps() {
				d.rescueValue(&d.res, path, k.next, end)
			}
			p = end
		} else {
			c.key.putRoom(c.items, n)
			if p = d.value(c.elem, c.items, k.next); p < 0 {
				return -1
			}
			c.items++
		}
		p = d.space(p)
		switch d.b[p] {
		case ',':
			p = d.space(p + 1)
		case '}':
			c.shut(i)
			d.depth--
			return p + 1
		default:
			return d.fail(p, "an object needs , or } here")
		}
	}
}
