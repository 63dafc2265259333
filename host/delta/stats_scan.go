package delta

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// statsLeaf is a column of the table that has statistics: a leaf of the schema
// without its partition columns, under its physical names.
type statsLeaf struct {
	stored []string // physical names
	names  []string // as the table has them
	typ    arrow.DataType
	// bounded tells that the type has a least and a greatest value.
	bounded bool
}

// statsLeaves gives the columns whose statistics the properties ask for, in the order of the schema.
func (s *Snapshot) statsLeaves() []statsLeaf {
	choose := statsChoice(s.metadata.Configuration, s.clusterPaths())
	var out []statsLeaf
	var walk func(fields []*field, names, stored []string)
	walk = func(fields []*field, names, stored []string) {
		for _, f := range fields {
			if len(names) == 0 && slices.Contains(s.metadata.PartitionColumns, f.name) || isVoid(f.typ) {
				continue
			}
			physical := f.name
			if s.mapping != "none" {
				physical = f.physicalName()
			}
			names, stored := append(names[:len(names):len(names)], f.name), append(stored[:len(stored):len(stored)], physical)
			if st, ok := f.typ.(*structType); ok {
				walk(st.fields, names, stored)
				continue
			}
			if !choose(names, stored) {
				continue
			}
			leaf := statsLeaf{stored: stored, names: names, typ: arrow.PrimitiveTypes.Int64}
			if p, ok := f.typ.(*primitive); ok && newBounds(p.arrow) != nil {
				leaf.typ, leaf.bounded = p.arrow, true
			}
			out = append(out, leaf)
		}
	}
	walk(s.schema.fields, nil, nil)
	return out
}

// statsScanner decodes statistics into columns. Files of one writer have
// statistics of one shape: the text between the values of one is that of the
// next. The shape is learned from the first file and again whenever one differs.
type statsScanner struct {
	leaves []statsLeaf
	rows   int
	room   int // rows that the columns have room for
	// sinks take numRecords, tightBounds, and for each leaf nullCount, minimum and maximum.
	sinks   []statsSink
	targets map[string]int // path of the value to its sink

	shape   []shapeStep
	tail    string
	missing []int // sinks that the shape has no value for
	tokens  []statsToken
}

const (
	sinkRecords = iota
	sinkTight
	sinkLeaves // of a leaf the nulls, then the least, then the greatest
)

// statsSink is a column of decoded statistics.
type statsSink struct {
	typ     arrow.DataType
	builder array.Builder
	append  func(t statsToken) bool // false for what is no value of the type
}

// statsToken is a scalar of the JSON, without the quotes when it is a string.
type statsToken struct {
	text            string
	quoted, escaped bool
}

// shapeStep is the text before a value, and where the value goes (-1: nowhere).
type shapeStep struct {
	before string
	sink   int
}

func newStatsScanner(mem memory.Allocator, leaves []statsLeaf) *statsScanner {
	s := &statsScanner{leaves: leaves, targets: map[string]int{"\x00numRecords": sinkRecords, "\x00tightBounds": sinkTight}}
	s.sinks = append(s.sinks, newStatsSink(mem, arrow.PrimitiveTypes.Int64), newStatsSink(mem, arrow.FixedWidthTypes.Boolean))
	for _, l := range leaves {
		key := "\x00" + strings.Join(l.stored, "\x00")
		s.targets["\x00nullCount"+key] = len(s.sinks)
		if l.bounded {
			s.targets["\x00minValues"+key], s.targets["\x00maxValues"+key] = len(s.sinks)+1, len(s.sinks)+2
		}
		s.sinks = append(s.sinks, newStatsSink(mem, arrow.PrimitiveTypes.Int64), newStatsSink(mem, l.typ), newStatsSink(mem, l.typ))
	}
	return s
}

func (s *statsScanner) release() {
	for _, c := range s.sinks {
		c.builder.Release()
	}
}

// reserve makes room for n more rows.
func (s *statsScanner) reserve(n int) {
	s.room = s.rows + n
	for _, c := range s.sinks {
		c.builder.Reserve(n)
	}
}

// scan appends a row. Statistics may be missing, cut or foreign: what cannot be
// decoded is null.
func (s *statsScanner) scan(stats string) {
	if s.rows == s.room {
		s.reserve(max(1024, s.rows))
	}
	s.rows++
	if len(s.shape) > 0 && s.fits(stats) {
		for i := range s.tokens {
			if sink := s.shape[i].sink; sink >= 0 && !s.sinks[sink].append(s.tokens[i]) {
				s.sinks[sink].builder.AppendNull()
			}
		}
		for _, sink := range s.missing {
			s.sinks[sink].builder.AppendNull()
		}
		return
	}
	if stats != "" {
		s.learn(stats)
	}
	for i := range s.sinks {
		if s.sinks[i].builder.Len() < s.rows {
			s.sinks[i].builder.AppendNull()
		}
	}
}

// fits cuts the statistics into the values of the learned shape.
func (s *statsScanner) fits(stats string) bool {
	s.tokens = s.tokens[:0]
	for i := range s.shape {
		before := s.shape[i].before
		if len(stats) < len(before) || stats[:len(before)] != before {
			return false
		}
		token, rest, ok := cutScalar(stats[len(before):])
		if !ok {
			return false
		}
		s.tokens, stats = append(s.tokens, token), rest
	}
	return stats == s.tail
}

// cutScalar takes a JSON scalar off the front.
func cutScalar(s string) (t statsToken, rest string, ok bool) {
	if s == "" {
		return t, s, false
	}
	if s[0] != '"' {
		end := 0
		for end < len(s) && scalarByte(s[end]) {
			end++
		}
		return statsToken{text: s[:end]}, s[end:], end > 0
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			t.escaped = true
			i++
		case '"':
			t.text, t.quoted = s[1:i], true
			return t, s[i+1:], true
		}
	}
	return t, s, false
}

// scalarByte tells what numbers, true, false and null consist of.
func scalarByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// learn decodes statistics step by step, and keeps their shape where it is one of objects and scalars alone.
func (s *statsScanner) learn(stats string) {
	p := &shapeParser{targets: s.targets, text: stats}
	s.shape = nil
	ok := p.object("", 0)
	p.space()
	if !ok || p.at != len(stats) {
		return // nothing of a torn text is trusted
	}
	for i, step := range p.shape {
		switch {
		case step.sink < 0:
		case s.sinks[step.sink].builder.Len() >= s.rows:
			p.irregular = true // a value that comes twice: the first one counts
		case !s.sinks[step.sink].append(p.tokens[i]):
			s.sinks[step.sink].builder.AppendNull()
		}
	}
	if p.irregular {
		return
	}
	s.shape, s.tail, s.missing = p.shape, stats[p.last:], s.missing[:0]
	for i := range s.sinks {
		if s.sinks[i].builder.Len() < s.rows {
			s.missing = append(s.missing, i)
		}
	}
}

// shapeParser reads one JSON object of statistics.
type shapeParser struct {
	targets map[string]int
	text    string
	at      int
	last    int // end of the last value

	shape     []shapeStep
	tokens    []statsToken // of the steps
	irregular bool         // an array, or a value that comes twice
}

func (p *shapeParser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *shapeParser) take(c byte) bool {
	p.space()
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

// object reads an object whose path is given.
func (p *shapeParser) object(path string, depth int) bool {
	if depth > maxDepth || !p.take('{') {
		return false
	}
	if p.take('}') {
		return true
	}
	for {
		p.space()
		key, rest, ok := cutScalar(p.text[p.at:])
		if !ok || !key.quoted {
			return false
		}
		p.at = len(p.text) - len(rest)
		name := key.text
		if key.escaped {
			if name, ok = unescape(key); !ok {
				return false
			}
		}
		if !p.take(':') || !p.value(path+"\x00"+name, depth) {
			return false
		}
		if p.take('}') {
			return true
		}
		if !p.take(',') {
			return false
		}
	}
}

func (p *shapeParser) value(path string, depth int) bool {
	p.space()
	if p.at >= len(p.text) {
		return false
	}
	switch p.text[p.at] {
	case '{':
		return p.object(path, depth+1)
	case '[':
		p.irregular = true
		return p.array(depth + 1)
	}
	before := p.text[p.last:p.at]
	token, rest, ok := cutScalar(p.text[p.at:])
	if !ok {
		return false
	}
	p.at = len(p.text) - len(rest)
	p.last = p.at
	sink, wanted := p.targets[path]
	if !wanted {
		sink = -1
	}
	p.shape, p.tokens = append(p.shape, shapeStep{before, sink}), append(p.tokens, token)
	return true
}

func (p *shapeParser) array(depth int) bool {
	if depth > maxDepth || !p.take('[') {
		return false
	}
	if p.take(']') {
		return true
	}
	for {
		if !p.value("\x00", depth) {
			return false
		}
		if p.take(']') {
			return true
		}
		if !p.take(',') {
			return false
		}
	}
}

// unescape gives the text of a JSON string with escapes.
func unescape(t statsToken) (string, bool) {
	var s string
	err := json.Unmarshal([]byte(`"`+t.text+`"`), &s)
	return s, err == nil
}

// string gives the text of a string, and tells whether it is one.
func (t statsToken) string() (string, bool) {
	if !t.quoted || !t.escaped {
		return t.text, t.quoted
	}
	return unescape(t)
}

// int reads a whole number.
func (t statsToken) int(bits int) (int64, bool) {
	if t.quoted || t.text == "" {
		return 0, false
	}
	if s := t.text; len(s) < 18 { // no overflow
		v, from := int64(0), 0
		if s[0] == '-' {
			from = 1
		}
		for _, c := range []byte(s[from:]) {
			if c < '0' || c > '9' {
				return 0, false
			}
			v = v*10 + int64(c-'0')
		}
		if from == 1 {
			v = -v
		}
		return v, len(s) > from && (bits == 64 || v>>(bits-1) == 0 || v>>(bits-1) == -1)
	}
	v, err := strconv.ParseInt(t.text, 10, bits)
	return v, err == nil
}

// float reads a number, or the words for those that JSON has not.
func (t statsToken) float(bits int) (float64, bool) {
	switch {
	case !t.quoted:
	case t.text == "NaN" || t.text == "Infinity" || t.text == "-Infinity" || t.text == "+Infinity":
	default:
		return 0, false
	}
	v, err := strconv.ParseFloat(t.text, bits)
	return v, err == nil && (t.quoted || !math.IsNaN(v) && !math.IsInf(v, 0))
}

// newStatsSink makes the column for values of a type.
func newStatsSink(mem memory.Allocator, typ arrow.DataType) statsSink {
	b := array.NewBuilder(mem, typ)
	c := statsSink{typ: typ, builder: b}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		c.append = func(t statsToken) bool {
			if t.quoted || t.text != "true" && t.text != "false" {
				return false
			}
			b.Append(t.text == "true")
			return true
		}
	case *array.Int8Builder:
		c.append = intSink(8, func(v int64) { b.UnsafeAppend(int8(v)) })
	case *array.Int16Builder:
		c.append = intSink(16, func(v int64) { b.UnsafeAppend(int16(v)) })
	case *array.Int32Builder:
		c.append = intSink(32, func(v int64) { b.UnsafeAppend(int32(v)) })
	case *array.Int64Builder:
		c.append = intSink(64, b.UnsafeAppend)
	case *array.Float32Builder:
		c.append = floatSink(32, func(v float64) { b.UnsafeAppend(float32(v)) })
	case *array.Float64Builder:
		c.append = floatSink(64, b.UnsafeAppend)
	case *array.StringBuilder:
		c.append = func(t statsToken) bool {
			s, ok := t.string()
			if ok {
				b.Append(s)
			}
			return ok
		}
	case *array.Date32Builder:
		c.append = func(t statsToken) bool {
			days, ok := t.days()
			if ok {
				b.UnsafeAppend(days)
			}
			return ok
		}
	case *array.TimestampBuilder:
		c.append = func(t statsToken) bool {
			v, ok := t.micros()
			if ok {
				b.UnsafeAppend(v)
			}
			return ok
		}
	case *array.Decimal128Builder:
		dt := typ.(*arrow.Decimal128Type)
		c.append = func(t statsToken) bool {
			v, ok := t.decimal(dt)
			if ok {
				b.Append(v)
			}
			return ok
		}
	default:
		c.append = func(statsToken) bool { return false }
	}
	return c
}

func intSink(bits int, put func(int64)) func(statsToken) bool {
	return func(t statsToken) bool {
		v, ok := t.int(bits)
		if ok {
			put(v)
		}
		return ok
	}
}

func floatSink(bits int, put func(float64)) func(statsToken) bool {
	return func(t statsToken) bool {
		v, ok := t.float(bits)
		if ok {
			put(v)
		}
		return ok
	}
}

// days reads a date.
func (t statsToken) days() (arrow.Date32, bool) {
	if !t.quoted {
		return 0, false
	}
	if len(t.text) == len("2006-01-02") {
		days, ok := isoDate(t.text)
		return arrow.Date32(days), ok
	}
	at, err := parseTimestamp(t.text)
	if err != nil {
		return 0, false
	}
	return arrow.Date32FromTime(at), true
}

// micros reads a timestamp.
func (t statsToken) micros() (arrow.Timestamp, bool) {
	if !t.quoted {
		return 0, false
	}
	// The spelling of Spark, by the milliseconds and with or without a zone, is read directly.
	if s := t.text; len(s) >= len("2006-01-02T15:04:05.000") && len(s) <= len("2006-01-02T15:04:05.000Z") && s[10] == 'T' && s[13] == ':' && s[16] == ':' && s[19] == '.' && (len(s) == 23 || s[23] == 'Z') {
		days, ok := isoDate(s[:10])
		h, ok1 := digits(s[11:13])
		m, ok2 := digits(s[14:16])
		sec, ok3 := digits(s[17:19])
		ms, ok4 := digits(s[20:23])
		if ok && ok1 && ok2 && ok3 && ok4 && h < 24 && m < 60 && sec < 60 {
			return arrow.Timestamp((int64(days)*86400+int64(h)*3600+int64(m)*60+int64(sec))*1_000_000 + int64(ms)*1000), true
		}
	}
	at, err := parseTimestamp(t.text)
	if err != nil {
		return 0, false
	}
	return arrow.Timestamp(at.UnixMicro()), true
}

// digits reads a number without a sign.
func digits(s string) (int, bool) {
	v := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int(c-'0')
	}
	return v, true
}

// isoDate gives the days since 1970 of a date of ten characters.
func isoDate(s string) (int32, bool) {
	y, ok1 := digits(s[:4])
	m, ok2 := digits(s[5:7])
	d, ok3 := digits(s[8:])
	if !ok1 || !ok2 || !ok3 || s[4] != '-' || s[7] != '-' || m < 1 || m > 12 || d < 1 || d > daysIn(y, m) {
		return 0, false
	}
	// The year begins with March here, so that the leap day is the last of one.
	if m -= 3; m < 0 {
		m, y = m+12, y-1
	}
	y += 400 // the March before year 0
	return int32(365*y + y/4 - y/100 + y/400 + (153*m+2)/5 + d - 1 - 719468 - 146097), true
}

func daysIn(y, m int) int {
	switch m {
	case 2:
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// decimal reads a number of the type's scale; foreign writers have it as a string.
func (t statsToken) decimal(dt *arrow.Decimal128Type) (decimal128.Num, bool) {
	if v, ok := shortDecimal(t.text, dt); ok {
		return decimal128.FromI64(v), true
	}
	if t.escaped || len(t.text) > 80 {
		return decimal128.Num{}, false
	}
	v, err := parseDecimal(t.text, dt)
	return v, err == nil
}

// arrays gives the columns of the rows scanned so far and begins anew. The caller releases them.
func (s *statsScanner) arrays() []arrow.Array {
	out := make([]arrow.Array, len(s.sinks))
	for i, c := range s.sinks {
		out[i] = c.builder.NewArray()
	}
	s.rows, s.room = 0, 0
	return out
}

// shortDecimal reads a number without an exponent that fits 64 bits, as nearly all are.
func shortDecimal(s string, dt *arrow.Decimal128Type) (int64, bool) {
	negative := s != "" && s[0] == '-'
	if negative {
		s = s[1:]
	}
	if len(s) == 0 || len(s) > 17 || dt.Precision < 18 {
		return 0, false
	}
	v, scale, point := int64(0), dt.Scale, false
	for i, c := range []byte(s) {
		switch {
		case c == '.' && !point && i > 0:
			point = true
			continue
		case c < '0' || c > '9':
			return 0, false
		case point:
			scale--
		}
		v = v*10 + int64(c-'0')
	}
	for ; scale > 0; scale-- {
		if v > math.MaxInt64/100 {
			return 0, false
		}
		v *= 10
	}
	if negative {
		v = -v
	}
	return v, scale == 0 && v < 1e18 && v > -1e18
}
