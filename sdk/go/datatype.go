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

var plainNames = [...]string{
	KindNull: "void", KindBool: "boolean",
	KindInt8: "tinyint", KindInt16: "smallint", KindInt32: "int", KindInt64: "bigint",
	KindUint8: "uint8", KindUint16: "uint16", KindUint32: "uint32", KindUint64: "uint64",
	KindFloat32: "float", KindFloat64: "double",
	KindString: "string", KindLargeString: "large_string",
	KindBinary: "binary", KindLargeBinary: "large_binary",
	KindDate32: "date", KindStruct: "",
}

// String gives the type's name as manifests write it: "decimal(18,2)", "array<string>".
func (t DataType) String() string { return string(t.appendName(nil)) }

func (t DataType) appendName(b []byte) []byte {
	switch t.Kind {
	case KindDecimal128:
		return t.appendDecimal(append(b, "decimal"...))
	case KindDecimal256:
		return t.appendDecimal(append(b, "decimal256"...))
	case KindTimestamp:
		return t.appendTimestamp(b)
	case KindTime32, KindTime64:
		return t.appendUnit(append(b, "time"...))
	case KindDuration:
		return t.appendUnit(append(b, "duration"...))
	case KindFixedBinary:
		b = appendInt(append(b, "fixed_size_binary("...), int64(t.Width))
		return append(b, ')')
	case KindList:
		return t.appendParts(append(b, "array<"...))
	case KindLargeList:
		return t.appendParts(append(b, "large_array<"...))
	case KindMap:
		return t.appendParts(append(b, "map<"...))
	case KindFixedList:
		b = append(t.Fields[0].Type.appendName(append(b, "fixed_size_array<"...)), ',')
		return append(appendInt(b, int64(t.Width)), '>')
	case KindStruct:
		return t.appendStruct(append(b, "struct<"...))
	}
	if int(t.Kind) < len(plainNames) && plainNames[t.Kind] != "" {
		return append(b, plainNames[t.Kind]...)
	}
	return append(b, "unknown"...)
}

func (t DataType) appendDecimal(b []byte) []byte {
	b = append(appendInt(append(b, '('), int64(t.Precision)), ',')
	return append(appendInt(b, int64(t.Scale)), ')')
}

func (t DataType) appendUnit(b []byte) []byte {
	if t.Unit == Microsecond {
		return b
	}
	return append(append(append(b, '('), unitNames[t.Unit&3]...), ')')
}

func (t DataType) appendTimestamp(b []byte) []byte {
	switch t.Zone {
	case "":
		return t.appendUnit(append(b, "timestamp_ntz"...))
	case "UTC":
		if t.Unit == Microsecond {
			return append(b, "timestamp"...)
		}
	}
	b = append(append(b, "timestamp("...), unitNames[t.Unit&3]...)
	b = append(b, ",'"...)
	for i := range len(t.Zone) {
		if t.Zone[i] == '\'' {
			b = append(b, '\'')
		}
		b = append(b, t.Zone[i])
	}
	return append(b, "')"...)
}

func (t DataType) appendParts(b []byte) []byte {
	for i, f := range t.Fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = f.Type.appendName(b)
	}
	return append(b, '>')
}

func (t DataType) appendStruct(b []byte) []byte {
	for i, f := range t.Fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendIdent(b, f.Name)
		b = f.Type.appendName(append(b, ':'))
		if !f.Nullable {
			b = append(b, " not null"...)
		}
	}
	return append(b, '>')
}

// appendIdent writes a field name, in backticks unless a bare one reads back.
func appendIdent(b []byte, name string) []byte {
	bare := name != ""
	for i := range len(name) {
		bare = bare && identByte(name[i])
	}
	if bare {
		return append(b, name...)
	}
	b = append(b, '`')
	for i := range len(name) {
		if name[i] == '`' {
			b = append(b, '`')
		}
		b = append(b, name[i])
	}
	return append(b, '`')
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
