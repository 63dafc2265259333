package ingest

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// csvScan splits CSV text into records and fields, by the rules of Spark's
// reader with two exceptions, both in favour of what RFC 4180 says: a doubled
// quote inside a quoted value is a quote whatever the escape is, and a quoted
// value without an end makes the record malformed.
type csvScan struct {
	b       []byte
	end     int
	rules   *csvRules
	multi   bool
	ends    lineEnds
	fields  []csvField
	scratch []byte
}

// csvField is where a value stands: in b, or in scratch when it had escapes.
type csvField struct {
	from, to int
	scratch  bool
	quoted   bool
}

func (s *csvScan) value(f csvField) []byte {
	if f.scratch {
		return s.scratch[f.from:f.to]
	}
	return s.b[f.from:f.to]
}

func (s *csvScan) isSep(p, stop int) bool {
	sep := s.rules.sep
	return p < stop && s.b[p] == sep[0] && (len(sep) == 1 || p+len(sep) <= stop && string(s.b[p:p+len(sep)]) == sep)
}

// blank reports whether c may be trimmed around a value.
func (s *csvScan) blank(c byte) bool {
	return (c == ' ' || c == '\t') && c != s.rules.sep[0]
}

// bounds gives the end of the text of the record at p: the line in single-line
// files, everything in multi-line ones, where a record finds its own end.
func (s *csvScan) bounds(p int) int {
	if s.multi {
		return s.end
	}
	return s.ends.find(s.b, p, s.end)
}

// pass skips an empty or comment line at p and gives what follows, or p.
func (s *csvScan) pass(p int) int {
	stop := s.ends.find(s.b, p, s.end)
	line := s.b[p:stop]
	if len(bytes.TrimSpace(line)) == 0 || s.rules.comment != 0 && line[0] == s.rules.comment {
		return s.afterLine(stop)
	}
	return p
}

// afterLine steps over the line end at p.
func (s *csvScan) afterLine(p int) int {
	if p < s.end && s.b[p] == '\r' {
		p++
		if p < s.end && s.b[p] == '\n' {
			p++
		}
	} else if p < s.end && s.b[p] == '\n' {
		p++
	}
	return p
}

// record reads the fields of the record at p and gives the end of its text;
// why is set when it is malformed, and the end is that of the line then.
func (s *csvScan) record(p int) (end int, why string) {
	s.fields, s.scratch = s.fields[:0], s.scratch[:0]
	start, stop := p, s.bounds(p)
	for {
		if s.rules.trimLeft {
			for p < stop && s.blank(s.b[p]) {
				p++
			}
		}
		var f csvField
		if p < stop && s.rules.quote != 0 && s.b[p] == s.rules.quote {
			if f, p = s.quoted(p, stop); p < 0 {
				return s.ends.find(s.b, start, s.end), "a quoted value has no end"
			}
		} else {
			f, p = s.plain(p, p, stop)
		}
		if s.rules.maxChars >= 0 && f.to-f.from > s.rules.maxChars {
			return s.ends.find(s.b, start, s.end), "a value longer than maxCharsPerColumn"
		}
		s.fields = append(s.fields, f)
		if len(s.fields) > s.rules.maxColumns {
			return s.ends.find(s.b, start, s.end), "more values than maxColumns"
		}
		if !s.isSep(p, stop) {
			return p, ""
		}
		p += len(s.rules.sep)
	}
}

// plain reads a value without quotes that begins at from; p is where to look for its end.
func (s *csvScan) plain(from, p, stop int) (csvField, int) {
	sep0 := s.rules.sep[0]
	for ; p < stop; p++ {
		c := s.b[p]
		if c == sep0 && s.isSep(p, stop) || s.multi && (c == '\n' || c == '\r') {
			break
		}
	}
	to := p
	if s.rules.trimRight {
		for to > from && s.blank(s.b[to-1]) {
			to--
		}
	}
	return csvField{from: from, to: to}, p
}

// quoted reads the value that opens with a quote at p; -1 when it has no end.
func (s *csvScan) quoted(p, stop int) (csvField, int) {
	quote, escape := s.rules.quote, s.rules.escape
	escapes := false
	q := p + 1
	for {
		if q >= stop {
			return csvField{}, -1
		}
		c := s.b[q]
		if c != quote && (c != escape || escape == 0) && (c != s.rules.escapeEscape || c == 0) {
			q++
			continue
		}
		next := byte(0)
		if q+1 < stop {
			next = s.b[q+1]
		}
		if c == s.rules.escapeEscape && c != 0 && next == escape && q+1 < stop || (c == quote || c == escape) && next == quote && q+1 < stop {
			escapes = true
			q += 2
			continue
		}
		if c != quote {
			q++
			continue
		}
		break
	}
	after := q + 1
	for after < stop && s.blank(s.b[after]) {
		after++
	}
	if after < stop && !s.isSep(after, stop) && !(s.multi && (s.b[after] == '\n' || s.b[after] == '\r')) {
		// STOP_AT_DELIMITER: a quote inside the value; it was not quoted after all.
		return s.plain(p, after, stop)
	}
	if !escapes {
		return csvField{from: p + 1, to: q, quoted: true}, after
	}
	from := len(s.scratch)
	for i := p + 1; i < q; i++ {
		c := s.b[i]
		if i+1 < q && (c == s.rules.escapeEscape && c != 0 && s.b[i+1] == escape || (c == quote || c == escape && escape != 0) && s.b[i+1] == quote) {
			i++
			c = s.b[i]
		}
		s.scratch = append(s.scratch, c)
	}
	return csvField{from: from, to: len(s.scratch), scratch: true, quoted: true}, after
}

// header makes column names of the first record, as Spark: a name that is
// empty or the null value becomes _c and its index, and names that stand
// twice (but for their case) get their index at the end.
func (s *csvScan) header() []string {
	count := map[string]int{}
	names := make([]string, len(s.fields))
	for i, f := range s.fields {
		names[i] = strings.ToValidUTF8(string(s.value(f)), "\uFFFD")
		count[strings.ToLower(names[i])]++
	}
	for i, n := range names {
		switch {
		case n == "" || n == s.rules.null:
			names[i] = nameless(i)
		case count[strings.ToLower(n)] > 1:
			names[i] = n + strconv.Itoa(i)
		}
	}
	return names
}

func nameless(i int) string { return "_c" + strconv.Itoa(i) }

// csvDecoder reads CSV records into columns.
type csvDecoder struct {
	decoder
	csvScan
	file    *source
	opened  int // value of taken when targets was made: their shapes are part of the news
	targets []csvTarget
}

// csvTarget is what becomes of the i-th value of a record.
type csvTarget struct {
	col  *column
	name string
	// fresh columns are not in the schema and could be; sh is what was seen of one.
	fresh bool
	sh    *shape
}

// open finds the columns of a file's values.
func (d *csvDecoder) open(ch *chunk) {
	d.file, d.opened = ch.file, d.taken
	d.targets = d.targets[:0]
	for i, name := range ch.file.header {
		t := csvTarget{name: name}
		if f, ok := d.root.index[name]; ok {
			t.col = d.root.fields[f]
		} else if f, ok := d.root.folded[strings.ToLower(name)]; ok && !d.c.caseSensitive {
			t.col = d.root.fields[f]
		} else if !ok && d.evolve && d.src.unusable(name) == "" && d.byName[strings.ToLower(name)] == nil {
			// A named column counts at once, a nameless one when it has a value.
			t.fresh = true
			if name != nameless(i) {
				d.newColumn(ch, i, &t).kinds |= sawNull
				d.foundNew(ch, 1, t.sh)
			}
		}
		// Two names of a file that mean one column: the first has it.
		if t.col != nil && slices.ContainsFunc(d.targets, func(o csvTarget) bool { return o.col == t.col }) {
			t.col = nil
		}
		d.targets = append(d.targets, t)
	}
	if ch.file.header == nil {
		for i := range d.root.fields {
			t := csvTarget{name: nameless(i), col: d.root.fields[i]}
			if len(d.c.schema) == 0 {
				t.col = nil
				if f, ok := d.root.index[t.name]; ok {
					t.col = d.root.fields[f]
				}
			}
			d.targets = append(d.targets, t)
		}
	}
}

// newColumn gives the shape of the i-th column of a file, which is new.
func (d *csvDecoder) newColumn(ch *chunk, i int, t *csvTarget) *shape {
	if t.sh == nil {
		t.sh = d.newShape(nil).child([]byte(t.name))
		if at := (firstSeen{true, ch.file.index, int64(i)}); at.before(t.sh.at) {
			t.sh.at = at
		}
	}
	return t.sh
}

// decode reads a chunk; full is called when the columns hold a batch.
func (d *csvDecoder) decode(ch *chunk, full func() error) error {
	d.b, d.end, d.rules, d.multi = ch.data, ch.n, &d.c.csv, d.c.multiLine
	d.ends = lineEnds{}
	if d.file != ch.file || d.opened != d.taken {
		d.open(ch)
	}
	d.begin(ch)
	if ch.overlong {
		return d.malformed(ch, ch.data[:ch.n], 0, ch.line, "a record longer than maxRecordBytes", ch.total)
	}
	valid := utf8.Valid(d.b[:d.end])
	line := ch.line
	for p := 0; p < d.end; {
		if q := d.pass(p); q != p {
			p = q
			line++
			continue
		}
		end, why := d.record(p)
		if why == "" && !valid && !utf8.Valid(d.b[p:end]) {
			why = "invalid UTF-8"
		}
		if why == "" {
			why = d.row(ch, line)
		}
		switch why {
		case "":
			d.endRow(ch, p, line)
		case ragged:
			d.res.reset()
			for _, c := range d.cols {
				c.truncate(d.rows)
			}
			fallthrough
		default:
			if err := d.malformed(ch, d.b[p:end], p, line, why, 0); err != nil {
				return err
			}
		}
		if d.multi {
			line += int64(countLines(d.b[p:end]))
		}
		line++
		p = d.afterLine(end)
		if err := full(); err != nil {
			return err
		}
		if d.seg == nil {
			d.begin(ch)
		}
	}
	return nil
}

const ragged = "a record with another number of values than the header"

// row puts the fields of a record into the columns. A record with too few
// values has nulls at its end, of one with too many the rest is rescued; only
// under DROPMALFORMED and FAILFAST it is malformed for that.
func (d *csvDecoder) row(ch *chunk, line int64) string {
	if d.c.mode != permissive && len(d.fields) != len(d.targets) {
		return ragged
	}
	for i, f := range d.fields {
		v := d.value(f)
		if len(v) == 0 {
			if !f.quoted || d.rules.empty == "" && d.rules.null == "" {
				continue
			}
			v = []byte(d.rules.empty)
		}
		if d.rules.null != "" && string(v) == d.rules.null {
			continue
		}
		if i >= len(d.targets) {
			if d.keeps() {
				d.res.text(nameless(i), v)
			}
			continue
		}
		t := &d.targets[i]
		if t.col != nil {
			if !d.c.putText(t.col, d.rows, v) {
				t.col.truncate(d.rows)
				if d.keeps() {
					d.res.text(t.name, v)
				}
			}
			continue
		}
		if t.fresh {
			d.c.shapeText(v, d.newColumn(ch, i, t))
			d.foundNew(ch, line, t.sh)
		}
		if d.samePart(t.name, v) {
			continue
		}
		if d.keeps() {
			d.res.text(t.name, v)
		}
	}
	return ""
}

// samePart reports whether a value repeats what the file's folder says.
func (d *csvDecoder) samePart(name string, v []byte) bool {
	for _, p := range d.parts {
		if strings.EqualFold(p.col.name, name) {
			return bytes.Equal(p.value, v)
		}
	}
	return false
}

// shapeText notes what a CSV value reads as: the first of the types in Spark's
// order that takes it.
func (c *config) shapeText(v []byte, sh *shape) {
	if n, ok := parseInt(v); ok {
		if n == int64(int32(n)) {
			sh.kinds |= sawInt
		} else {
			sh.kinds |= sawLong
		}
		return
	}
	if d, ok := shapeDecimal(v); ok && d.scale == 0 && d.digits <= 38 && !bytes.ContainsAny(v, ".eE") {
		sh.decimal(max(d.digits, 1), 0)
		return
	}
	if _, ok := c.floatOf(v, 64); ok {
		sh.kinds |= sawDouble
		return
	}
	if c.csv.preferDate && c.isDate(v) {
		sh.kinds |= sawDate
		return
	}
	if c.isTimestamp(v) {
		sh.kinds |= sawTimestamp
		return
	}
	if s := text(v); strings.EqualFold(s, "true") || strings.EqualFold(s, "false") {
		sh.kinds |= sawBool
		return
	}
	sh.kinds |= sawString
}

// isDate is stricter than the reading of a date column: the format, or yyyy-MM-dd in full.
func (c *config) isDate(v []byte) bool {
	if c.date == nil && (len(v) != 10 || v[4] != '-' || v[7] != '-') {
		return false
	}
	_, ok := c.dateOf(v)
	return ok
}
