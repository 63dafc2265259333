package weir

// Kind is the family of a column type.
type Kind uint8

// The kinds that cross the boundary.
const (
	KindUnknown Kind = iota
	KindNull
	KindBool
	KindInt8
	KindInt16
	KindInt32
	KindInt64
	KindUint8
	KindUint16
	KindUint32
	KindUint64
	KindFloat32
	KindFloat64
	KindDecimal128
	KindDecimal256
	KindString
	KindLargeString
	KindBinary
	KindLargeBinary
	KindFixedBinary
	KindDate32
	KindTime32
	KindTime64
	KindTimestamp
	KindDuration
	KindList
	KindLargeList
	KindFixedList
	KindMap
	KindStruct
)

// Unit is the resolution of a time, timestamp or duration.
type Unit uint8

// The units, numbered as in Arrow.
const (
	Second Unit = iota
	Millisecond
	Microsecond
	Nanosecond
)

var unitNames = [...]string{"s", "ms", "us", "ns"}

// DataType is the type of a column. Which fields count depends on the kind.
type DataType struct {
	Kind      Kind
	Precision int     // decimals
	Scale     int     // decimals
	Unit      Unit    // times, timestamps, durations
	Zone      string  // timestamps; "" means without zone
	Width     int     // fixed binary: bytes; fixed list: elements
	Fields    []Field // list: the element; map: key and value; struct: its fields
}

// Field is a column or a part of a nested one.
type Field struct {
	Name     string
	Type     DataType
	Nullable bool
}

// plainTypes are the types whose name is all there is to say; the first name of a kind is the one
// that is written.
var plainTypes = [...]struct {
	name string
	kind Kind
}{
	{"void", KindNull}, {"null", KindNull},
	{"boolean", KindBool}, {"bool", KindBool},
	{"tinyint", KindInt8}, {"byte", KindInt8},
	{"smallint", KindInt16}, {"short", KindInt16},
	{"int", KindInt32}, {"integer", KindInt32},
	{"bigint", KindInt64}, {"long", KindInt64},
	{"uint8", KindUint8}, {"uint16", KindUint16}, {"uint32", KindUint32}, {"uint64", KindUint64},
	{"float", KindFloat32}, {"real", KindFloat32},
	{"double", KindFloat64},
	{"string", KindString}, {"large_string", KindLargeString},
	{"binary", KindBinary}, {"large_binary", KindLargeBinary},
	{"date", KindDate32},
}

// String gives the type's name as manifests write it: "decimal(18,2)", "array<string>".
func (t DataType) String() string {
	switch t.Kind {
	case KindDecimal128:
		return "decimal" + t.digits()
	case KindDecimal256:
		return "decimal256" + t.digits()
	case KindTimestamp:
		return t.timestampName()
	case KindTime32, KindTime64:
		return "time" + t.unit()
	case KindDuration:
		return "duration" + t.unit()
	case KindFixedBinary:
		return "fixed_size_binary(" + itoa(int64(t.Width)) + ")"
	case KindList:
		return "array<" + t.parts() + ">"
	case KindLargeList:
		return "large_array<" + t.parts() + ">"
	case KindMap:
		return "map<" + t.parts() + ">"
	case KindFixedList:
		return "fixed_size_array<" + t.parts() + "," + itoa(int64(t.Width)) + ">"
	case KindStruct:
		return "struct<" + t.parts() + ">"
	}
	for _, p := range plainTypes {
		if p.kind == t.Kind {
			return p.name
		}
	}
	return "unknown"
}

func (t DataType) digits() string {
	return "(" + itoa(int64(t.Precision)) + "," + itoa(int64(t.Scale)) + ")"
}

func (t DataType) unit() string {
	if t.Unit == Microsecond {
		return ""
	}
	return "(" + unitNames[t.Unit&3] + ")"
}

func (t DataType) timestampName() string {
	switch {
	case t.Zone == "":
		return "timestamp_ntz" + t.unit()
	case t.Zone == "UTC" && t.Unit == Microsecond:
		return "timestamp"
	}
	return "timestamp(" + unitNames[t.Unit&3] + "," + quoteText(t.Zone, '\'') + ")"
}

func (t DataType) parts() string {
	out := ""
	for i, f := range t.Fields {
		if i > 0 {
			out += ","
		}
		if t.Kind == KindStruct {
			out += ident(f.Name) + ":"
		}
		out += f.Type.String()
		if t.Kind == KindStruct && !f.Nullable {
			out += " not null"
		}
	}
	return out
}

// ident writes a field name, in backticks unless a bare one reads back.
func ident(name string) string {
	bare := name != ""
	for i := range len(name) {
		bare = bare && identByte(name[i])
	}
	if bare {
		return name
	}
	return quoteText(name, '`')
}

// quoteText puts a text in quotes and doubles those within.
func quoteText(s string, quote byte) string {
	b := []byte{quote}
	for i := range len(s) {
		if s[i] == quote {
			b = append(b, quote)
		}
		b = append(b, s[i])
	}
	return string(append(b, quote))
}

func identByte(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

// equal compares types; the names of list elements and map parts do not count, nor does nullability.
func (t DataType) equal(o DataType) bool {
	if t.Kind != o.Kind || t.Precision != o.Precision || t.Scale != o.Scale || t.Unit != o.Unit ||
		t.Zone != o.Zone || t.Width != o.Width || len(t.Fields) != len(o.Fields) {
		return false
	}
	for i := range t.Fields {
		if !t.Fields[i].Type.equal(o.Fields[i].Type) {
			return false
		}
		if t.Kind == KindStruct && t.Fields[i].Name != o.Fields[i].Name {
			return false
		}
	}
	return true
}
