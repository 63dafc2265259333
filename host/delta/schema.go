package delta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// The schema is kept as the tree the log holds, with all field metadata, so
// that a change of ours loses nothing that another writer put there. The Arrow
// schema is derived from it.

const (
	commentKey      = "comment"
	physicalNameKey = "delta.columnMapping.physicalName"
	fieldIDKey      = "delta.columnMapping.id"
)

// maxDepth bounds the nesting of a schema: deeper ones are an attack or a mistake.
const maxDepth = 64

type field struct {
	name     string
	typ      dataType
	nullable bool
	meta     map[string]json.RawMessage
}

// dataType is *primitive, *structType, *arrayType or *mapType.
type dataType interface{ sparkName() string }

type primitive struct {
	name  string // as in the log
	arrow arrow.DataType
}

type structType struct{ fields []*field }

type arrayType struct {
	elem         dataType
	containsNull bool
}

type mapType struct {
	key, value   dataType
	containsNull bool
}

var primitives = map[string]arrow.DataType{
	"string": arrow.BinaryTypes.String, "binary": arrow.BinaryTypes.Binary, "boolean": arrow.FixedWidthTypes.Boolean,
	"long": arrow.PrimitiveTypes.Int64, "integer": arrow.PrimitiveTypes.Int32, "short": arrow.PrimitiveTypes.Int16, "byte": arrow.PrimitiveTypes.Int8,
	"float": arrow.PrimitiveTypes.Float32, "double": arrow.PrimitiveTypes.Float64, "date": arrow.FixedWidthTypes.Date32,
	"timestamp":     &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	"timestamp_ntz": &arrow.TimestampType{Unit: arrow.Microsecond},
	"void":          arrow.Null,
	"variant":       variantStorage,
}

func (p *primitive) sparkName() string {
	switch p.name {
	case "long":
		return "bigint"
	case "integer":
		return "int"
	case "short":
		return "smallint"
	case "byte":
		return "tinyint"
	}
	return p.name
}

func (t *structType) sparkName() string {
	parts := make([]string, len(t.fields))
	for i, f := range t.fields {
		parts[i] = f.name + ": " + f.typ.sparkName()
	}
	return "struct<" + strings.Join(parts, ", ") + ">"
}

func (t *arrayType) sparkName() string { return "array<" + t.elem.sparkName() + ">" }

func (t *mapType) sparkName() string {
	return "map<" + t.key.sparkName() + ", " + t.value.sparkName() + ">"
}

func invalidSchema(format string, args ...any) *fault.Error {
	return fault.New("DELTA_INVALID_SCHEMA", format, args...)
}

// parseSchema decodes schemaString.
func parseSchema(schemaString string) (*structType, error) {
	if schemaString == "" {
		return nil, fault.New("DELTA_INVALID_LOG", "the metaData action has no schemaString")
	}
	t, err := parseType(json.RawMessage(schemaString), 0)
	if err != nil {
		return nil, err
	}
	s, ok := t.(*structType)
	if !ok {
		return nil, invalidSchema("the schema is a %s, not a struct", t.sparkName())
	}
	if dup := duplicate(s.fields); dup != "" {
		return nil, invalidSchema("column %q appears twice", dup)
	}
	return s, nil
}

// duplicate names a column that appears twice ignoring case, or "".
func duplicate(fields []*field) string {
	seen := make(map[string]bool, len(fields))
	for _, f := range fields {
		k := strings.ToLower(f.name)
		if seen[k] {
			return f.name
		}
		seen[k] = true
	}
	return ""
}

func parseType(raw json.RawMessage, depth int) (dataType, error) {
	if depth > maxDepth {
		return nil, invalidSchema("the schema nests deeper than %d levels", maxDepth)
	}
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return parsePrimitive(name)
	}
	var t struct {
		Type   string `json:"type"`
		Fields []struct {
			Name     *string                    `json:"name"`
			Type     json.RawMessage            `json:"type"`
			Nullable *bool                      `json:"nullable"`
			Metadata map[string]json.RawMessage `json:"metadata"`
		} `json:"fields"`
		ElementType       json.RawMessage `json:"elementType"`
		ContainsNull      *bool           `json:"containsNull"`
		KeyType           json.RawMessage `json:"keyType"`
		ValueType         json.RawMessage `json:"valueType"`
		ValueContainsNull *bool           `json:"valueContainsNull"`
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fault.Wrap(err, "DELTA_INVALID_SCHEMA", "the schema is not readable")
	}
	yes := func(b *bool) bool { return b == nil || *b }
	switch t.Type {
	case "struct":
		s := &structType{}
		for _, f := range t.Fields {
			if f.Name == nil {
				return nil, invalidSchema("a field has no name")
			}
			typ, err := parseType(f.Type, depth+1)
			if err != nil {
				return nil, fault.Place(err, "DELTA_INVALID_SCHEMA", fault.Where{})
			}
			s.fields = append(s.fields, &field{*f.Name, typ, yes(f.Nullable), f.Metadata})
		}
		return s, nil
	case "array":
		elem, err := parseType(t.ElementType, depth+1)
		if err != nil {
			return nil, err
		}
		return &arrayType{elem, yes(t.ContainsNull)}, nil
	case "map":
		key, err := parseType(t.KeyType, depth+1)
		if err != nil {
			return nil, err
		}
		value, err := parseType(t.ValueType, depth+1)
		if err != nil {
			return nil, err
		}
		return &mapType{key, value, yes(t.ValueContainsNull)}, nil
	}
	return nil, invalidSchema("type %q is unknown", t.Type)
}

func parsePrimitive(name string) (dataType, error) {
	if t, ok := primitives[name]; ok {
		return &primitive{name, t}, nil
	}
	if name == "null" {
		return &primitive{"void", arrow.Null}, nil
	}
	if name == "decimal" {
		name = "decimal(10,0)"
	}
	if args, ok := strings.CutPrefix(name, "decimal("); ok {
		p, s, ok := strings.Cut(strings.TrimSuffix(args, ")"), ",")
		precision, err1 := strconv.Atoi(strings.TrimSpace(p))
		scale, err2 := strconv.Atoi(strings.TrimSpace(s))
		if ok && err1 == nil && err2 == nil && precision >= 1 && precision <= 38 && scale >= 0 && scale <= precision {
			return &primitive{fmt.Sprintf("decimal(%d,%d)", precision, scale), &arrow.Decimal128Type{Precision: int32(precision), Scale: int32(scale)}}, nil
		}
	}
	return nil, fault.New("DELTA_UNSUPPORTED_TYPE", "column type %q is not supported", name)
}

// arrowType derives the Arrow type of a node.
func arrowType(t dataType) arrow.DataType {
	switch t := t.(type) {
	case *primitive:
		return t.arrow
	case *structType:
		return arrow.StructOf(arrowFields(t)...)
	case *arrayType:
		return arrow.ListOfField(arrow.Field{Name: "item", Type: arrowType(t.elem), Nullable: t.containsNull, Metadata: markOf(t.elem)})
	case *mapType:
		return arrow.MapOfFields(arrow.Field{Name: "key", Type: arrowType(t.key)},
			arrow.Field{Name: "value", Type: arrowType(t.value), Nullable: t.containsNull, Metadata: markOf(t.value)})
	}
	return nil
}

func arrowFields(t *structType) []arrow.Field {
	out := make([]arrow.Field, len(t.fields))
	for i, f := range t.fields {
		out[i] = arrow.Field{Name: f.name, Type: arrowType(f.typ), Nullable: f.nullable, Metadata: markOf(f.typ)}
		if c := f.comment(); c != "" {
			mark := out[i].Metadata
			out[i].Metadata = arrow.NewMetadata(append(mark.Keys(), commentKey), append(mark.Values(), c))
		}
	}
	return out
}

func (f *field) metaString(key string) string {
	var s string
	if raw, ok := f.meta[key]; ok && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return ""
}

func (f *field) comment() string { return f.metaString(commentKey) }

func (f *field) setMeta(key, value string) {
	raw, _ := json.Marshal(value) // a string always has a JSON form
	if f.meta == nil {
		f.meta = map[string]json.RawMessage{}
	}
	f.meta[key] = raw
}

// fieldID gives the column mapping id of the field, or -1.
func (f *field) fieldID() int {
	var id int
	if raw, ok := f.meta[fieldIDKey]; ok && json.Unmarshal(raw, &id) == nil {
		return id
	}
	return -1
}

// fromArrow makes a tree of an Arrow schema; types without a Delta type are refused by name.
func fromArrow(fields []arrow.Field, path string) (*structType, error) {
	out := &structType{}
	for _, f := range fields {
		where := path + f.Name
		t, err := typeFromArrow(f, where)
		if err != nil {
			return nil, err
		}
		nf := &field{name: f.Name, typ: t, nullable: f.Nullable}
		if i := f.Metadata.FindKey(commentKey); i >= 0 && f.Metadata.Values()[i] != "" {
			nf.setMeta(commentKey, f.Metadata.Values()[i])
		}
		for _, key := range []string{invariantKey, generationKey, defaultKey} {
			if i := f.Metadata.FindKey(key); i >= 0 {
				nf.setMeta(key, f.Metadata.Values()[i])
			}
		}
		out.fields = append(out.fields, nf)
	}
	if dup := duplicate(out.fields); dup != "" {
		return nil, fault.New("DELTA_DUPLICATE_COLUMNS_FOUND", "column %q appears twice (names are compared ignoring case)", path+dup)
	}
	return out, nil
}

// typeFromArrow gives the type of a field, or of the element, key or value that a field describes.
func typeFromArrow(f arrow.Field, where string) (dataType, error) {
	if marksVariant(f) {
		return parsePrimitive("variant")
	}
	switch t := f.Type.(type) {
	case *arrow.StructType:
		if t.NumFields() == 0 {
			return nil, fault.New("DELTA_UNSUPPORTED_TYPE", "column %q: a struct needs at least one field", where)
		}
		return fromArrow(t.Fields(), where+".")
	case *arrow.MapType:
		key, err := typeFromArrow(t.KeyField(), where+".key")
		if err != nil {
			return nil, err
		}
		value, err := typeFromArrow(t.ItemField(), where+".value")
		if err != nil {
			return nil, err
		}
		return &mapType{key, value, t.ItemField().Nullable}, nil
	case *arrow.ListType:
		elem, err := typeFromArrow(t.ElemField(), where+".element")
		if err != nil {
			return nil, err
		}
		return &arrayType{elem, t.ElemField().Nullable}, nil
	case *arrow.Decimal128Type:
		return parsePrimitive(fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale))
	case *arrow.TimestampType:
		switch {
		case t.TimeZone == "":
			return parsePrimitive("timestamp_ntz")
		default:
			return parsePrimitive("timestamp")
		}
	case *arrow.LargeStringType, *arrow.StringViewType:
		return parsePrimitive("string")
	case *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return parsePrimitive("binary")
	}
	for name, p := range primitives {
		if p.ID() == f.Type.ID() && p.ID() != arrow.STRUCT && p.ID() != arrow.TIMESTAMP {
			return &primitive{name, p}, nil
		}
	}
	return nil, fault.New("DELTA_UNSUPPORTED_TYPE", "column %q: type %s has no Delta type", where, f.Type)
}

// schemaString encodes the tree as the log has it, keys in Spark's order.
func schemaString(t *structType) string {
	var b bytes.Buffer
	writeType(&b, t)
	return b.String()
}

func writeType(b *bytes.Buffer, t dataType) {
	switch t := t.(type) {
	case *primitive:
		writeString(b, t.name)
	case *structType:
		b.WriteString(`{"type":"struct","fields":[`)
		for i, f := range t.fields {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`{"name":`)
			writeString(b, f.name)
			b.WriteString(`,"type":`)
			writeType(b, f.typ)
			fmt.Fprintf(b, `,"nullable":%t,"metadata":`, f.nullable)
			writeMeta(b, f.meta)
			b.WriteByte('}')
		}
		b.WriteString(`]}`)
	case *arrayType:
		b.WriteString(`{"type":"array","elementType":`)
		writeType(b, t.elem)
		fmt.Fprintf(b, `,"containsNull":%t}`, t.containsNull)
	case *mapType:
		b.WriteString(`{"type":"map","keyType":`)
		writeType(b, t.key)
		b.WriteString(`,"valueType":`)
		writeType(b, t.value)
		fmt.Fprintf(b, `,"valueContainsNull":%t}`, t.containsNull)
	}
}

func writeMeta(b *bytes.Buffer, meta map[string]json.RawMessage) {
	keys := make([]string, 0, len(meta))
	for k := range meta {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		writeString(b, k)
		b.WriteByte(':')
		b.Write(meta[k])
	}
	b.WriteByte('}')
}

// writeString writes a JSON string without HTML escapes.
func writeString(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always has a JSON form
	b.Truncate(b.Len() - 1)
}
