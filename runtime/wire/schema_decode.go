package wire

import (
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
)

// Bounds of a schema from a guest. SAP tables have some 400 columns.
const (
	maxFields    = 10_000
	maxNameBytes = 255
	maxFixedSize = 1 << 20
)

type schemaReader struct {
	f      *flat
	fields int
	path   []string
	err    error
}

// readSchema reads the header of a Schema message.
func readSchema(t table) (*arrow.Schema, error) {
	r := &schemaReader{f: t.f}
	if t.int16(0, 0) != 0 {
		return nil, errorf(CodeMessage, nil, "the schema is big-endian")
	}
	fields := r.children(t, 1)
	if r.err != nil {
		return nil, r.err
	}
	if t.f.fault != "" {
		return nil, errorf(CodeMessage, nil, "%s", t.f.fault)
	}
	return arrow.NewSchema(fields, nil), nil
}

func (r *schemaReader) refuse(code, format string, args ...any) {
	if r.err == nil {
		r.err = errorf(code, r.path, format, args...)
	}
}

// children reads a vector of fields. Names that differ only in case are
// refused: Delta and SQL could not tell them apart.
func (r *schemaReader) children(t table, slot int) []arrow.Field {
	p, n, ok := t.vector(slot, 4)
	if !ok {
		return nil
	}
	if n > maxFields {
		r.refuse(CodeLimit, "more than %d fields", maxFields)
		return nil
	}
	out := make([]arrow.Field, 0, n)
	seen := make(map[string]bool, n)
	for i := int64(0); i < n && r.err == nil && r.f.fault == ""; i++ {
		pos, ok := r.f.follow(p + 4*i)
		if !ok {
			return nil
		}
		f := r.field(r.f.table(pos))
		if r.err != nil || r.f.fault != "" {
			return nil
		}
		key := strings.ToLower(f.Name)
		if seen[key] {
			r.path = append(r.path, f.Name)
			r.refuse(CodeData, "the name stands twice")
			return nil
		}
		seen[key] = true
		out = append(out, f)
	}
	return out
}

func (r *schemaReader) field(t table) arrow.Field {
	if r.fields++; r.fields > maxFields {
		r.refuse(CodeLimit, "more than %d fields", maxFields)
		return arrow.Field{}
	}
	if len(r.path) >= maxDepth {
		r.refuse(CodeLimit, "nested deeper than %d", maxDepth)
		return arrow.Field{}
	}
	name, _ := t.text(0)
	if len(name) > maxNameBytes {
		r.refuse(CodeLimit, "a name of %d bytes is over %d", len(name), maxNameBytes)
		return arrow.Field{}
	}
	if !utf8.Valid(name) {
		r.refuse(CodeData, "a name is not UTF-8")
		return arrow.Field{}
	}
	for _, c := range name {
		if c < 0x20 || c == 0x7f {
			r.refuse(CodeData, "a name holds a control character")
			return arrow.Field{}
		}
	}
	if len(name) == 0 && len(r.path) == 0 {
		r.refuse(CodeData, "a column has no name")
		return arrow.Field{}
	}
	f := arrow.Field{Name: string(name), Nullable: t.byte(1, 0) != 0}
	r.path = append(r.path, f.Name)
	if _, ok := t.sub(4); ok {
		r.refuse(CodeType, "dictionary-encoded fields do not cross the boundary")
		return f
	}
	code := t.byte(2, 0)
	typ, ok := t.sub(3)
	if !ok && r.f.fault == "" {
		r.refuse(CodeMessage, "a field without a type")
		return f
	}
	kids := r.children(t, 5)
	if r.err == nil && r.f.fault == "" {
		f.Type = r.dataType(code, typ, kids)
	}
	if r.err == nil {
		r.path = r.path[:len(r.path)-1]
	}
	return f
}

// dataType builds the type; where it is nil, an error was recorded.
func (r *schemaReader) dataType(code byte, t table, kids []arrow.Field) arrow.DataType {
	want := 0
	switch code {
	case typeList, typeLargeList, typeFixedSizeList, typeMap:
		want = 1
	case typeStruct:
		want = len(kids)
	}
	if len(kids) != want {
		r.refuse(CodeMessage, "a field of type %d has %d children instead of %d", code, len(kids), want)
		return nil
	}
	switch code {
	case typeNull:
		return arrow.Null
	case typeBool:
		return arrow.FixedWidthTypes.Boolean
	case typeInt:
		return r.integer(t.int32(0, 0), t.byte(1, 0) != 0)
	case typeFloatingPoint:
		switch p := t.int16(0, 0); p {
		case 1:
			return arrow.PrimitiveTypes.Float32
		case 2:
			return arrow.PrimitiveTypes.Float64
		case 0:
			r.refuse(CodeType, "float16 does not cross the boundary")
		default:
			r.refuse(CodeMessage, "a float of precision %d", p)
		}
		return nil
	case typeDecimal:
		return r.decimal(t.int32(0, 0), t.int32(1, 0), t.int32(2, 128))
	case typeUTF8:
		return arrow.BinaryTypes.String
	case typeLargeUTF8:
		return arrow.BinaryTypes.LargeString
	case typeBinary:
		return arrow.BinaryTypes.Binary
	case typeLargeBinary:
		return arrow.BinaryTypes.LargeBinary
	case typeFixedSizeBinary:
		if n, ok := r.size(t.int32(0, 0)); ok {
			return &arrow.FixedSizeBinaryType{ByteWidth: int(n)}
		}
		return nil
	case typeDate:
		if t.int16(0, 1) != 0 {
			r.refuse(CodeType, "date64 does not cross the boundary; use date32")
			return nil
		}
		return arrow.PrimitiveTypes.Date32
	case typeTime:
		return r.time(t.int16(0, 1), t.int32(1, 32))
	case typeTimestamp:
		return r.timestamp(t)
	case typeDuration:
		if u, ok := r.unit(t.int16(0, 1)); ok {
			return &arrow.DurationType{Unit: u}
		}
		return nil
	case typeList:
		return arrow.ListOfField(kids[0])
	case typeLargeList:
		return arrow.LargeListOfField(kids[0])
	case typeFixedSizeList:
		if n, ok := r.size(t.int32(0, 0)); ok {
			return arrow.FixedSizeListOfField(n, kids[0])
		}
		return nil
	case typeStruct:
		return arrow.StructOf(kids...)
	case typeMap:
		entries, ok := kids[0].Type.(*arrow.StructType)
		if !ok || entries.NumFields() != 2 {
			r.refuse(CodeMessage, "the entries of a map are not a struct of two fields")
			return nil
		}
		m := arrow.MapOf(entries.Field(0).Type, entries.Field(1).Type)
		m.KeysSorted = t.byte(0, 0) != 0
		m.SetItemNullable(entries.Field(1).Nullable)
		return m
	}
	if name, ok := refusedTypes[code]; ok {
		r.refuse(CodeType, "%s does not cross the boundary", name)
	} else {
		r.refuse(CodeMessage, "there is no type %d", code)
	}
	return nil
}

func (r *schemaReader) integer(bits int64, signed bool) arrow.DataType {
	p := arrow.PrimitiveTypes
	signedTypes := map[int64]arrow.DataType{8: p.Int8, 16: p.Int16, 32: p.Int32, 64: p.Int64}
	unsignedTypes := map[int64]arrow.DataType{8: p.Uint8, 16: p.Uint16, 32: p.Uint32, 64: p.Uint64}
	types := unsignedTypes
	if signed {
		types = signedTypes
	}
	dt, ok := types[bits]
	if !ok {
		r.refuse(CodeMessage, "an integer of %d bits", bits)
		return nil
	}
	return dt
}

func (r *schemaReader) decimal(precision, scale, bits int64) arrow.DataType {
	most := map[int64]int64{128: 38, 256: 76}[bits]
	switch {
	case most == 0 && (bits == 32 || bits == 64):
		r.refuse(CodeType, "decimal%d does not cross the boundary; use decimal128", bits)
	case most == 0:
		r.refuse(CodeMessage, "a decimal of %d bits", bits)
	case precision < 1 || precision > most:
		r.refuse(CodeMessage, "precision %d of a decimal%d is outside 1 to %d", precision, bits, most)
	case scale < 0 || scale > precision:
		r.refuse(CodeMessage, "scale %d of a decimal is outside 0 to its precision %d", scale, precision)
	case bits == 128:
		return &arrow.Decimal128Type{Precision: int32(precision), Scale: int32(scale)}
	default:
		return &arrow.Decimal256Type{Precision: int32(precision), Scale: int32(scale)}
	}
	return nil
}

func (r *schemaReader) size(n int64) (int32, bool) {
	if n < 1 || n > maxFixedSize {
		r.refuse(CodeMessage, "a fixed size of %d is outside 1 to %d", n, maxFixedSize)
		return 0, false
	}
	return int32(n), true
}

func (r *schemaReader) unit(u int64) (arrow.TimeUnit, bool) {
	if u < 0 || u > 3 {
		r.refuse(CodeMessage, "there is no time unit %d", u)
		return 0, false
	}
	return arrow.TimeUnit(u), true
}

func (r *schemaReader) time(u, bits int64) arrow.DataType {
	unit, ok := r.unit(u)
	if !ok {
		return nil
	}
	coarse := unit == arrow.Second || unit == arrow.Millisecond
	switch {
	case bits == 32 && coarse:
		return &arrow.Time32Type{Unit: unit}
	case bits == 64 && !coarse:
		return &arrow.Time64Type{Unit: unit}
	}
	r.refuse(CodeMessage, "a time in %s of %d bits", unit, bits)
	return nil
}

func (r *schemaReader) timestamp(t table) arrow.DataType {
	unit, ok := r.unit(t.int16(0, 0))
	if !ok {
		return nil
	}
	zone, _ := t.text(1)
	if len(zone) > maxNameBytes || !utf8.Valid(zone) {
		r.refuse(CodeData, "the name of a time zone is not UTF-8 or over %d bytes", maxNameBytes)
		return nil
	}
	return &arrow.TimestampType{Unit: unit, TimeZone: string(zone)}
}
