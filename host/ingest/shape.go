package ingest

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// shape is what was seen of a value over many records: which kinds, how large
// the numbers, which fields. Merging shapes is commutative and associative, so
// files can be looked at in any order and by many goroutines; the type is
// decided once, at the end.
type shape struct {
	kinds kinds
	// whole and scale are the most digits before and behind the point of decimals.
	whole, scale int
	fields       map[string]*shape
	elem         *shape
	count        int64 // how often a field of this name was there
	at           firstSeen
}

// kinds is a set of what values were.
type kinds uint16

const (
	sawNull kinds = 1 << iota
	sawBool
	sawLong
	sawInt // CSV only: fits 32 bits
	sawDecimal
	sawDouble
	sawDate
	sawTimestamp
	sawString
	sawObject
	sawArray
)

// firstSeen is the first place of something, by the order of the files.
type firstSeen struct {
	set  bool
	file int
	line int64
}

func (a firstSeen) before(b firstSeen) bool {
	return a.set && (!b.set || a.file < b.file || a.file == b.file && a.line < b.line)
}

func (sh *shape) child(name []byte) *shape {
	if c, ok := sh.fields[text(name)]; ok {
		c.count++
		return c
	}
	if sh.fields == nil {
		sh.fields = map[string]*shape{}
	}
	c := &shape{count: 1}
	sh.fields[string(name)] = c
	return c
}

func (sh *shape) element() *shape {
	if sh.elem == nil {
		sh.elem = &shape{}
	}
	return sh.elem
}

// decimal notes a decimal of so many digits before and behind the point.
func (sh *shape) decimal(whole, scale int) {
	sh.kinds |= sawDecimal
	sh.whole, sh.scale = max(sh.whole, whole), max(sh.scale, scale)
}

// merge adds what other saw.
func (sh *shape) merge(other *shape) {
	sh.kinds |= other.kinds
	sh.whole, sh.scale = max(sh.whole, other.whole), max(sh.scale, other.scale)
	sh.count += other.count
	if other.at.before(sh.at) {
		sh.at = other.at
	}
	for name, o := range other.fields {
		if sh.fields == nil {
			sh.fields = map[string]*shape{}
		}
		if mine, ok := sh.fields[name]; ok {
			mine.merge(o)
		} else {
			sh.fields[name] = o
		}
	}
	if other.elem != nil {
		sh.element().merge(other.elem)
	}
}

// resolver turns shapes into types.
type resolver struct {
	dropAllNull bool
	unusable    func(name string) string
}

// dataType gives the type that holds all that was seen, as Spark's
// JsonInferSchema: nil when there is none to make (an empty object).
func (r resolver) dataType(sh *shape) arrow.DataType {
	const numbers = sawLong | sawInt | sawDecimal | sawDouble
	switch seen := sh.kinds &^ sawNull; {
	case seen == 0:
		if r.dropAllNull {
			return nil
		}
		return arrow.BinaryTypes.String
	case seen == sawBool:
		return arrow.FixedWidthTypes.Boolean
	case seen == sawDate:
		return arrow.PrimitiveTypes.Date32
	case seen == sawTimestamp:
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	case seen == sawObject:
		fields := r.fields(sh)
		if len(fields) == 0 {
			return nil
		}
		return arrow.StructOf(fields...)
	case seen == sawArray:
		elem := r.dataType(sh.element())
		if elem == nil {
			return nil
		}
		return arrow.ListOf(elem)
	case seen&^numbers != 0:
		return arrow.BinaryTypes.String
	case seen == sawInt:
		return arrow.PrimitiveTypes.Int32
	case seen&^(sawInt|sawLong) == 0:
		return arrow.PrimitiveTypes.Int64
	case seen&sawDouble != 0:
		return arrow.PrimitiveTypes.Float64
	default:
		whole, scale := sh.whole, sh.scale
		switch {
		case seen&sawLong != 0:
			whole = max(whole, 20)
		case seen&sawInt != 0:
			whole = max(whole, 10)
		}
		if whole+scale > 38 {
			return arrow.PrimitiveTypes.Float64
		}
		return &arrow.Decimal128Type{Precision: int32(max(whole+scale, 1)), Scale: int32(scale)}
	}
}

// fields gives the fields of an object, sorted by name, each spelling once: of
// names that differ in case only the one seen most often is a field.
func (r resolver) fields(sh *shape) []arrow.Field {
	best := map[string]string{}
	names := slices.Sorted(maps.Keys(sh.fields))
	for _, name := range names {
		if r.unusable != nil && r.unusable(name) != "" || name == "" {
			continue
		}
		lower := strings.ToLower(name)
		if twin, ok := best[lower]; !ok || sh.fields[name].count > sh.fields[twin].count {
			best[lower] = name
		}
	}
	var out []arrow.Field
	below := resolver{dropAllNull: r.dropAllNull} // hidden names matter at the top only
	for _, name := range names {
		if name == "" || best[strings.ToLower(name)] != name {
			continue
		}
		if dt := below.dataType(sh.fields[name]); dt != nil {
			out = append(out, arrow.Field{Name: name, Type: dt, Nullable: true})
		}
	}
	return out
}

// certain reports whether the shape surely becomes a column: objects may turn out empty.
func (sh *shape) certain(c *config) bool {
	return sh.kinds&^(sawNull|sawObject|sawArray) != 0 || sh.kinds == sawNull && !c.dropAllNull
}

// shapeOf notes the value at p and gives its end, or -1 when it is malformed.
func (s *jsonScan) shapeOf(p int, sh *shape, c *config) int {
	switch s.token(p) {
	case tokString:
		end, escapes := s.str(p+1, s.b[p])
		if end < 0 {
			return -1
		}
		s.shapeString(s.b[p+1:end], escapes, sh, c)
		return end + 1
	case tokNumber:
		end, whole := s.number(p)
		if end > 0 {
			shapeNumber(s.b[p:end], whole, sh, c)
		}
		return end
	case tokNonNumber:
		sh.kinds |= c.primitive(sawDouble)
		return s.nonNumber(p)
	case tokTrue:
		sh.kinds |= c.primitive(sawBool)
		return s.word(p, "true")
	case tokFalse:
		sh.kinds |= c.primitive(sawBool)
		return s.word(p, "false")
	case tokNull:
		sh.kinds |= sawNull
		return s.word(p, "null")
	case tokObject:
		return s.shapeObject(p+1, sh, c)
	case tokArray:
		return s.shapeArray(p+1, sh, c)
	}
	return s.notAValue(p)
}

func (c *config) primitive(k kinds) kinds {
	if c.primitivesAsString {
		return sawString
	}
	return k
}

func (s *jsonScan) shapeObject(p int, sh *shape, c *config) int {
	if !s.enter(p) {
		return -1
	}
	defer func() { s.depth-- }()
	sh.kinds |= sawObject
	p = s.space(p)
	if s.b[p] == '}' {
		return p + 1
	}
	for {
		k := s.key(p)
		if k.next < 0 {
			return -1
		}
		name := s.b[k.from:k.to]
		if k.escapes {
			buf := make([]byte, len(name))
			name = buf[:unescape(buf, name)]
		}
		if p = s.shapeOf(k.next, sh.child(name), c); p < 0 {
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

func (s *jsonScan) shapeArray(p int, sh *shape, c *config) int {
	if !s.enter(p) {
		return -1
	}
	defer func() { s.depth-- }()
	sh.kinds |= sawArray
	elem := sh.element()
	p = s.space(p)
	if s.b[p] == ']' {
		return p + 1
	}
	for {
		if p = s.shapeOf(p, elem, c); p < 0 {
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

// shapeString: an empty string tells nothing, as in Spark, since some writers mean null by it.
func (s *jsonScan) shapeString(v []byte, escapes bool, sh *shape, c *config) {
	switch {
	case len(v) == 0:
		sh.kinds |= sawNull
	case c.prefersDecimal && !escapes && shapeDecimalText(v, sh):
	case c.inferTimestamp && !escapes && c.isTimestamp(v):
		sh.kinds |= sawTimestamp
	default:
		sh.kinds |= sawString
	}
}

func shapeDecimalText(v []byte, sh *shape) bool {
	v = withoutCommas(v)
	d, ok := shapeDecimal(v)
	if !ok {
		return false
	}
	whole, scale := decimalDigits(d)
	if whole+scale > 38 {
		return false
	}
	sh.decimal(whole, scale)
	return true
}

// withoutCommas takes the grouping commas out, as Spark does for decimals in text.
func withoutCommas(v []byte) []byte {
	if bytes.IndexByte(v, ',') < 0 {
		return v
	}
	return bytes.ReplaceAll(v, []byte(","), nil)
}

// decimalDigits gives the digits before and behind the point.
func decimalDigits(d decimalShape) (whole, scale int) {
	if d.scale < 0 {
		return d.digits - d.scale, 0
	}
	return max(d.digits-d.scale, 0), d.scale
}

func shapeNumber(v []byte, whole bool, sh *shape, c *config) {
	if c.primitivesAsString {
		sh.kinds |= sawString
		return
	}
	if whole {
		if len(v) < 19 {
			sh.kinds |= sawLong
			return
		}
		if _, ok := parseInt(v); ok {
			sh.kinds |= sawLong
			return
		}
	} else if !c.prefersDecimal {
		sh.kinds |= sawDouble
		return
	}
	d, ok := shapeDecimal(v)
	before, scale := decimalDigits(d)
	if !ok || before+scale > 38 {
		sh.kinds |= sawDouble
		return
	}
	sh.decimal(before, scale)
}

// isTimestamp reports whether text reads as a timestamp by the options.
func (c *config) isTimestamp(v []byte) bool {
	_, ok := c.timestampOf(v)
	return ok
}

// timestampOf reads a timestamp by timestampFormat or Spark's default forms, as microseconds.
func (c *config) timestampOf(v []byte) (int64, bool) {
	if c.timestamp != nil {
		t, ok := c.timestamp.parse(v)
		return t.instant(c.zone), ok
	}
	t, ok := parseTimestamp(v)
	if !ok {
		return 0, false
	}
	return t.instant(c.zone), true
}

// timestampNTZOf reads a timestamp without zone; a zone in the text is refused.
func (c *config) timestampNTZOf(v []byte) (int64, bool) {
	var t civil
	var ok bool
	if c.ntz != nil {
		t, ok = c.ntz.parse(v)
	} else {
		t, ok = parseTimestamp(v)
	}
	return t.local(), ok && !t.zoned
}

func (c *config) dateOf(v []byte) (int64, bool) {
	if c.date != nil {
		t, ok := c.date.parse(v)
		return daysOf(t.year, t.month, t.day), ok
	}
	return parseDate(v)
}
