package weir

// maxTypeDepth bounds the nesting of a type, as the host does.
const maxTypeDepth = 64

// ParseType reads the name of a type in the spelling of SQL or of Spark's DataType:
// "decimal(18,2)", "array<struct<sku: string, qty: int>>". Case does not count.
func ParseType(text string) (DataType, error) {
	p := typeParser{text: text}
	t := p.dataType(0)
	p.space()
	if p.err == nil && p.pos < len(p.text) {
		p.fail("the end of the type")
	}
	return t, p.err
}

type typeParser struct {
	text string
	pos  int
	err  error
}

func (p *typeParser) fail(want string) {
	if p.err == nil {
		p.err = errorf("type \"", p.text, "\": expected ", want, " at character ", itoa(int64(p.pos+1)))
	}
}

func (p *typeParser) space() {
	for p.pos < len(p.text) && (p.text[p.pos] == ' ' || p.text[p.pos] == '\t' || p.text[p.pos] == '\n' || p.text[p.pos] == '\r') {
		p.pos++
	}
}

func (p *typeParser) accept(c byte) bool {
	p.space()
	if p.err == nil && p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *typeParser) expect(c byte) {
	if !p.accept(c) {
		p.fail("\"" + string(rune(c)) + "\"")
	}
}

// word reads a run of identifier bytes.
func (p *typeParser) word() string {
	p.space()
	start := p.pos
	for p.pos < len(p.text) && identByte(p.text[p.pos]) {
		p.pos++
	}
	return p.text[start:p.pos]
}

// keyword reads the given word, or nothing.
func (p *typeParser) keyword(w string) bool {
	at := p.pos
	if lower(p.word()) == w {
		return true
	}
	p.pos = at
	return false
}

// name reads an identifier, bare or in backticks.
func (p *typeParser) name() string {
	if !p.accept('`') {
		w := p.word()
		if w == "" {
			p.fail("a name")
		}
		return w
	}
	return p.quoted('`', "a closing backtick")
}

// quoted reads the rest of a quoted text; a doubled quote stands for one.
func (p *typeParser) quoted(quote byte, want string) string {
	var b []byte
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		p.pos++
		if c != quote {
			b = append(b, c)
			continue
		}
		if p.pos >= len(p.text) || p.text[p.pos] != quote {
			return string(b)
		}
		b = append(b, quote)
		p.pos++
	}
	p.fail(want)
	return string(b)
}

func (p *typeParser) number(what string) int {
	w := p.word()
	n := 0
	for i := range len(w) {
		if w[i] < '0' || w[i] > '9' || n > 1<<24 {
			n = -1
			break
		}
		n = 10*n + int(w[i]-'0')
	}
	if w == "" || n < 0 {
		p.fail(what)
		return 0
	}
	return n
}

func (p *typeParser) dataType(depth int) DataType {
	if depth > maxTypeDepth {
		p.fail("a type nested less deep")
		return DataType{}
	}
	at := p.pos
	w := lower(p.word())
	for _, plain := range plainTypes {
		if plain.name == w {
			return DataType{Kind: plain.kind}
		}
	}
	switch w {
	case "varchar", "char", "character":
		p.expect('(')
		p.number("a length")
		p.expect(')')
		return DataType{Kind: KindString}
	case "decimal", "dec", "numeric":
		return p.decimal(KindDecimal128, 38)
	case "decimal256":
		return p.decimal(KindDecimal256, 76)
	case "fixed_size_binary":
		p.expect('(')
		n := p.number("a size")
		p.expect(')')
		return DataType{Kind: KindFixedBinary, Width: n}
	case "timestamp", "timestamp_ntz", "timestamp_ltz":
		return p.timestamp(w)
	case "time":
		unit, _ := p.unitAndZone(false)
		if unit <= Millisecond {
			return DataType{Kind: KindTime32, Unit: unit}
		}
		return DataType{Kind: KindTime64, Unit: unit}
	case "duration":
		unit, _ := p.unitAndZone(false)
		return DataType{Kind: KindDuration, Unit: unit}
	case "array", "large_array", "fixed_size_array":
		return p.array(w, depth)
	case "map":
		return p.mapType(depth)
	case "struct":
		return p.structType(depth)
	}
	p.pos = at
	p.space()
	p.fail("a type")
	return DataType{}
}

func (p *typeParser) decimal(kind Kind, most int) DataType {
	t := DataType{Kind: kind, Precision: 10}
	if p.accept('(') {
		t.Precision = p.number("a precision")
		if p.accept(',') {
			t.Scale = p.number("a scale")
		}
		p.expect(')')
	}
	if t.Precision < 1 || t.Precision > most {
		p.fail("a precision of 1 to " + itoa(int64(most)))
	}
	if t.Scale > t.Precision {
		p.fail("a scale of at most the precision")
	}
	return t
}

func (p *typeParser) timestamp(word string) DataType {
	t := DataType{Kind: KindTimestamp, Unit: Microsecond, Zone: "UTC"}
	switch word {
	case "timestamp":
		t.Unit, t.Zone = p.unitAndZone(true)
		if t.Zone == "" {
			t.Zone = "UTC"
		}
	case "timestamp_ntz":
		t.Unit, _ = p.unitAndZone(false)
		t.Zone = ""
	}
	return t
}

func (p *typeParser) unitAndZone(zoned bool) (unit Unit, zone string) {
	if !p.accept('(') {
		return Microsecond, ""
	}
	w := lower(p.word())
	unit = Unit(len(unitNames))
	for i, n := range unitNames {
		if w == n {
			unit = Unit(i)
		}
	}
	if int(unit) == len(unitNames) {
		p.fail("a unit: s, ms, us or ns")
		return Microsecond, ""
	}
	if zoned && p.accept(',') {
		p.expect('\'')
		zone = p.quoted('\'', "a closing quote")
	}
	p.expect(')')
	return unit, zone
}

func (p *typeParser) array(word string, depth int) DataType {
	p.expect('<')
	t := DataType{Kind: KindList, Fields: []Field{{Name: "item", Type: p.dataType(depth + 1), Nullable: true}}}
	switch word {
	case "large_array":
		t.Kind = KindLargeList
	case "fixed_size_array":
		t.Kind = KindFixedList
		p.expect(',')
		t.Width = p.number("a length")
	}
	p.expect('>')
	return t
}

func (p *typeParser) mapType(depth int) DataType {
	p.expect('<')
	key := p.dataType(depth + 1)
	p.expect(',')
	value := p.dataType(depth + 1)
	p.expect('>')
	return DataType{Kind: KindMap, Fields: []Field{{Name: "key", Type: key}, {Name: "value", Type: value, Nullable: true}}}
}

func (p *typeParser) structType(depth int) DataType {
	t := DataType{Kind: KindStruct}
	p.expect('<')
	for p.err == nil && !p.accept('>') {
		if len(t.Fields) > 0 {
			p.expect(',')
		}
		t.Fields = append(t.Fields, p.field(depth))
	}
	return t
}

// field reads "name type [not null]", with an optional colon after the name.
func (p *typeParser) field(depth int) Field {
	f := Field{Name: p.name(), Nullable: true}
	p.accept(':')
	f.Type = p.dataType(depth + 1)
	if p.keyword("not") {
		if !p.keyword("null") {
			p.fail("NULL after NOT")
		}
		f.Nullable = false
	}
	return f
}

// ParseColumns reads a list of columns: "order_id string not null, amount decimal(18,2)".
func ParseColumns(text string) ([]Field, error) {
	p := typeParser{text: text}
	var fields []Field
	for p.space(); p.err == nil && p.pos < len(p.text); p.space() {
		if len(fields) > 0 {
			p.expect(',')
		}
		if p.err == nil {
			fields = append(fields, p.field(0))
		}
	}
	return fields, p.err
}
