package coltype

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// maxDepth bounds the nesting of a type, in text and in Arrow form. Real
// tables stay below ten; the bound is there for hostile text.
const maxDepth = 64

// maxFixed bounds the sizes of fixed_size_binary and fixed_size_array.
const maxFixed = 1 << 20

// Parse reads one type, such as "decimal(18,2)" or "array<struct<a: int>>".
// Text in quotes in its errors is what was found; errors are *Error.
func Parse(text string) (arrow.DataType, error) {
	p := parser{scanner: scanner{text: text}}
	p.next()
	dt, err := p.dataType(0)
	if err != nil {
		return nil, err
	}
	if p.tok.kind != tokEnd {
		return nil, p.unexpected("the end of the type")
	}
	return dt, nil
}

// Field is one column of a schema text. Path has one element, or several for
// a hint on a nested field (a.b DATE).
type Field struct {
	Path    []string
	Type    arrow.DataType
	NotNull bool
	Comment string
}

// Name is the path joined by dots.
func (f Field) Name() string { return strings.Join(f.Path, ".") }

// Arrow gives the field as a top-level column of a schema, its comment in the
// metadata key "comment".
func (f Field) Arrow() arrow.Field {
	out := arrow.Field{Name: f.Name(), Type: f.Type, Nullable: !f.NotNull}
	if f.Comment != "" {
		out.Metadata = arrow.NewMetadata([]string{"comment"}, []string{f.Comment})
	}
	return out
}

// ParseDDL reads a list of columns: "order_id STRING NOT NULL COMMENT 'key',
// a.b DATE, m MAP<STRING,INT>". An empty text is an empty list. A column that
// stands there twice (its case aside) is an error.
func ParseDDL(text string) ([]Field, error) {
	p := parser{scanner: scanner{text: text}}
	p.next()
	var out []Field
	seen := map[string]bool{}
	for p.tok.kind != tokEnd {
		if len(out) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		f, err := p.column()
		if err != nil {
			return nil, err
		}
		key := strings.ToLower(strings.Join(f.Path, "\x00"))
		if seen[key] {
			return nil, errorf("COLUMN_ALREADY_EXISTS", "column %s stands twice in the schema", f.Name())
		}
		seen[key] = true
		out = append(out, f)
	}
	return out, nil
}

type parser struct{ scanner }

func (p *parser) column() (Field, error) {
	var f Field
	for {
		if p.tok.kind != tokIdent && p.tok.kind != tokQuoted {
			return f, p.unexpected("a column name")
		}
		f.Path = append(f.Path, p.tok.text)
		p.next()
		if p.tok.text != "." || p.tok.kind != tokSymbol {
			break
		}
		p.next()
	}
	p.accept(":")
	var err error
	if f.Type, err = p.dataType(0); err != nil {
		return f, err
	}
	f.NotNull, f.Comment, err = p.constraints()
	return f, err
}

// constraints reads [NOT NULL] [COMMENT 'text'] in either order.
func (p *parser) constraints() (notNull bool, comment string, err error) {
	for {
		switch {
		case p.word("not"):
			p.next()
			if !p.word("null") {
				return false, "", p.unexpected("NULL after NOT")
			}
			p.next()
			notNull = true
		case p.word("null"):
			p.next()
		case p.word("comment"):
			p.next()
			if p.tok.kind != tokText {
				return false, "", p.unexpected("a quoted comment")
			}
			comment = p.tok.text
			p.next()
		default:
			return notNull, comment, nil
		}
	}
}

var simpleTypes = map[string]arrow.DataType{
	"void": arrow.Null, "null": arrow.Null,
	"boolean": arrow.FixedWidthTypes.Boolean, "bool": arrow.FixedWidthTypes.Boolean,
	"tinyint": arrow.PrimitiveTypes.Int8, "byte": arrow.PrimitiveTypes.Int8,
	"smallint": arrow.PrimitiveTypes.Int16, "short": arrow.PrimitiveTypes.Int16,
	"int": arrow.PrimitiveTypes.Int32, "integer": arrow.PrimitiveTypes.Int32,
	"bigint": arrow.PrimitiveTypes.Int64, "long": arrow.PrimitiveTypes.Int64,
	"uint8": arrow.PrimitiveTypes.Uint8, "uint16": arrow.PrimitiveTypes.Uint16,
	"uint32": arrow.PrimitiveTypes.Uint32, "uint64": arrow.PrimitiveTypes.Uint64,
	"float": arrow.PrimitiveTypes.Float32, "real": arrow.PrimitiveTypes.Float32,
	"double": arrow.PrimitiveTypes.Float64,
	"string": arrow.BinaryTypes.String, "large_string": arrow.BinaryTypes.LargeString,
	"binary": arrow.BinaryTypes.Binary, "large_binary": arrow.BinaryTypes.LargeBinary,
	"date":          arrow.PrimitiveTypes.Date32,
	"timestamp_ltz": &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
}

func (p *parser) dataType(depth int) (arrow.DataType, error) {
	if depth > maxDepth {
		return nil, errorf(CodeUnsupported, "a type nested deeper than %d", maxDepth)
	}
	if p.tok.kind != tokIdent {
		return nil, p.unexpected("a type")
	}
	found := p.tok.text
	name := strings.ToLower(found)
	p.next()
	if dt, ok := simpleTypes[name]; ok {
		return dt, nil
	}
	switch name {
	case "decimal", "dec", "numeric":
		return p.decimal(38, func(precision, scale int32) arrow.DataType {
			return &arrow.Decimal128Type{Precision: precision, Scale: scale}
		})
	case "decimal256":
		return p.decimal(76, func(precision, scale int32) arrow.DataType {
			return &arrow.Decimal256Type{Precision: precision, Scale: scale}
		})
	case "varchar", "char", "character":
		return p.sizedString(name)
	case "timestamp", "timestamp_ntz":
		return p.timestamp(name == "timestamp")
	case "time":
		return p.time()
	case "duration":
		unit, _, err := p.unitAndZone(arrow.Microsecond, false)
		if err != nil {
			return nil, err
		}
		return &arrow.DurationType{Unit: unit}, nil
	case "fixed_size_binary":
		n, err := p.size()
		if err != nil {
			return nil, err
		}
		return &arrow.FixedSizeBinaryType{ByteWidth: n}, nil
	case "array", "large_array", "fixed_size_array":
		return p.array(name, depth)
	case "map":
		return p.mapType(depth)
	case "struct":
		return p.structType(depth)
	}
	return nil, errorf(CodeUnsupported, "there is no column type %q", found)
}

func (p *parser) decimal(most int, build func(precision, scale int32) arrow.DataType) (arrow.DataType, error) {
	precision, scale := 10, 0
	if p.accept("(") {
		var err error
		if precision, err = p.number("a precision"); err != nil {
			return nil, err
		}
		if p.accept(",") {
			if scale, err = p.number("a scale"); err != nil {
				return nil, err
			}
		}
		if err = p.expect(")"); err != nil {
			return nil, err
		}
	}
	if precision < 1 || precision > most {
		return nil, errorf(CodePrecision, "decimal precision %d is outside 1 to %d", precision, most)
	}
	if scale > precision {
		return nil, errorf(CodePrecision, "decimal scale %d is above the precision %d", scale, precision)
	}
	return build(int32(precision), int32(scale)), nil
}

// sizedString reads varchar(n): Arrow and Delta hold it as a string, and the
// length is not enforced.
func (p *parser) sizedString(name string) (arrow.DataType, error) {
	if !p.accept("(") {
		return nil, errorf("DATATYPE_MISSING_SIZE", "type %s needs a length, as in %s(10)", name, name)
	}
	if _, err := p.number("a length"); err != nil {
		return nil, err
	}
	return arrow.BinaryTypes.String, p.expect(")")
}

func (p *parser) timestamp(zoned bool) (arrow.DataType, error) {
	unit, zone, err := p.unitAndZone(arrow.Microsecond, zoned)
	if err != nil {
		return nil, err
	}
	if zoned && zone == "" {
		zone = "UTC"
	}
	return &arrow.TimestampType{Unit: unit, TimeZone: zone}, nil
}

func (p *parser) time() (arrow.DataType, error) {
	unit, _, err := p.unitAndZone(arrow.Microsecond, false)
	if err != nil {
		return nil, err
	}
	if unit == arrow.Second || unit == arrow.Millisecond {
		return &arrow.Time32Type{Unit: unit}, nil
	}
	return &arrow.Time64Type{Unit: unit}, nil
}

func (p *parser) array(name string, depth int) (arrow.DataType, error) {
	if err := p.expect("<"); err != nil {
		return nil, err
	}
	elem, err := p.dataType(depth + 1)
	if err != nil {
		return nil, err
	}
	var dt arrow.DataType
	switch name {
	case "array":
		dt = arrow.ListOf(elem)
	case "large_array":
		dt = arrow.LargeListOf(elem)
	default:
		if err = p.expect(","); err != nil {
			return nil, err
		}
		n, err := p.number("a length")
		if err != nil {
			return nil, err
		}
		if n < 1 || n > maxFixed {
			return nil, errorf(CodeUnsupported, "length %d of a fixed_size_array is outside 1 to %d", n, maxFixed)
		}
		dt = arrow.FixedSizeListOf(int32(n), elem)
	}
	return dt, p.expect(">")
}

func (p *parser) mapType(depth int) (arrow.DataType, error) {
	if err := p.expect("<"); err != nil {
		return nil, err
	}
	key, err := p.dataType(depth + 1)
	if err != nil {
		return nil, err
	}
	if key.ID() == arrow.MAP {
		return nil, errorf(CodeUnsupported, "a map cannot be the key of a map")
	}
	if err = p.expect(","); err != nil {
		return nil, err
	}
	item, err := p.dataType(depth + 1)
	if err != nil {
		return nil, err
	}
	return arrow.MapOf(key, item), p.expect(">")
}

func (p *parser) structType(depth int) (arrow.DataType, error) {
	if err := p.expect("<"); err != nil {
		return nil, err
	}
	var fields []arrow.Field
	seen := map[string]bool{}
	for !p.accept(">") {
		if len(fields) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		if p.tok.kind != tokIdent && p.tok.kind != tokQuoted {
			return nil, p.unexpected("a field name")
		}
		name := p.tok.text
		if seen[strings.ToLower(name)] {
			return nil, errorf("COLUMN_ALREADY_EXISTS", "field %s stands twice in a struct", name)
		}
		seen[strings.ToLower(name)] = true
		p.next()
		p.accept(":")
		dt, err := p.dataType(depth + 1)
		if err != nil {
			return nil, err
		}
		notNull, comment, err := p.constraints()
		if err != nil {
			return nil, err
		}
		fields = append(fields, Field{Path: []string{name}, Type: dt, NotNull: notNull, Comment: comment}.Arrow())
	}
	return arrow.StructOf(fields...), nil
}

func (p *parser) size() (int, error) {
	if err := p.expect("("); err != nil {
		return 0, err
	}
	n, err := p.number("a size")
	if err != nil {
		return 0, err
	}
	if n < 1 || n > maxFixed {
		return 0, errorf(CodeUnsupported, "size %d is outside 1 to %d", n, maxFixed)
	}
	return n, p.expect(")")
}

// unitAndZone reads nothing, "(ms)" or, for a zoned type, "(ms,'Europe/Berlin')".
func (p *parser) unitAndZone(unit arrow.TimeUnit, zoned bool) (arrow.TimeUnit, string, error) {
	if !p.accept("(") {
		return unit, "", nil
	}
	switch {
	case p.word("s"):
		unit = arrow.Second
	case p.word("ms"):
		unit = arrow.Millisecond
	case p.word("us"):
		unit = arrow.Microsecond
	case p.word("ns"):
		unit = arrow.Nanosecond
	default:
		return 0, "", p.unexpected("a unit: s, ms, us or ns")
	}
	p.next()
	zone := ""
	if zoned && p.accept(",") {
		if p.tok.kind != tokText || p.tok.text == "" {
			return 0, "", p.unexpected("a quoted time zone")
		}
		zone = p.tok.text
		p.next()
	}
	return unit, zone, p.expect(")")
}
