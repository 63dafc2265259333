package delta

import (
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
)

// layout says how the columns of a table lie in its data files: without the
// partition columns and without void ones, and with column mapping under
// physical names and with field ids.
type layout struct {
	fields []*field // of the table, void ones too
	mapped bool
	schema *arrow.Schema // of the files
	plain  bool          // the columns of the table lie in files as they are
}

// newLayout gives the layout of the files that are written to a table.
func newLayout(t *structType, partitionBy []string, mapped bool) (*layout, error) {
	l := &layout{mapped: mapped}
	for _, f := range t.fields {
		if !slices.Contains(partitionBy, f.name) {
			l.fields = append(l.fields, f)
		}
	}
	l.plain = !mapped && !containsType(t, "void")
	l.schema = arrow.NewSchema(l.arrowFields(l.fields), nil)
	if l.schema.NumFields() == 0 {
		return nil, fault.New("DELTA_UNSUPPORTED_TYPE", "all columns of the files would be of type void, which is never written").
			WithHint("Add a column of another type")
	}
	return l, checkVoid(t, "", false)
}

// checkVoid refuses what cannot be written: void within arrays and maps, and structs of nothing else.
func checkVoid(t dataType, path string, within bool) error {
	switch t := t.(type) {
	case *structType:
		some := false
		for _, f := range t.fields {
			some = some || !isVoid(f.typ)
			if err := checkVoid(f.typ, path+"."+f.name, within); err != nil {
				return err
			}
		}
		if !some && path != "" {
			return fault.New("DELTA_UNSUPPORTED_TYPE", "column %q is a struct of void fields only, which cannot be written", path[1:])
		}
	case *arrayType:
		return checkVoid(t.elem, path+".element", true)
	case *mapType:
		if err := checkVoid(t.key, path+".key", true); err != nil {
			return err
		}
		return checkVoid(t.value, path+".value", true)
	case *primitive:
		if within && isVoid(t) {
			return fault.New("DELTA_UNSUPPORTED_TYPE", "column %q has type void within an array or a map, which cannot be written", path[1:])
		}
	}
	return nil
}

func isVoid(t dataType) bool {
	p, ok := t.(*primitive)
	return ok && p.arrow.ID() == arrow.NULL
}

// arrowFields gives the fields as files have them. All other metadata stays
// away: it would end in the file.
func (l *layout) arrowFields(fields []*field) []arrow.Field {
	var out []arrow.Field
	for _, f := range fields {
		if isVoid(f.typ) {
			continue
		}
		af := arrow.Field{Name: f.storedName(l.mapped), Type: l.arrowType(f.typ), Nullable: f.nullable}
		if id := f.fieldID(); l.mapped && id >= 0 {
			af.Metadata = arrow.NewMetadata([]string{parquetFieldID}, []string{strconv.Itoa(id)})
		}
		out = append(out, af)
	}
	return out
}

// parquetFieldID is where pqarrow keeps the field id of a Parquet column.
const parquetFieldID = "PARQUET:field_id"

func (l *layout) arrowType(t dataType) arrow.DataType {
	switch t := t.(type) {
	case *structType:
		return arrow.StructOf(l.arrowFields(t.fields)...)
	case *arrayType:
		return arrow.ListOfField(arrow.Field{Name: "item", Type: l.arrowType(t.elem), Nullable: t.containsNull})
	case *mapType:
		return arrow.MapOfFields(arrow.Field{Name: "key", Type: l.arrowType(t.key)},
			arrow.Field{Name: "value", Type: l.arrowType(t.value), Nullable: t.containsNull})
	}
	return arrowType(t)
}

// columns gives columns of the table, those of l.fields, the form they have in
// files. Values are shared; the caller releases the result.
func (l *layout) columns(cols []arrow.Array) []arrow.Array {
	var out []arrow.Array
	for i, f := range l.fields {
		switch {
		case isVoid(f.typ):
		case l.plain:
			cols[i].Retain()
			out = append(out, cols[i])
		default:
			data := l.relabel(cols[i].Data(), f.typ, l.schema.Field(len(out)).Type)
			out = append(out, array.MakeFromData(data))
			data.Release()
		}
	}
	return out
}

// relabel gives data the type it has in files: other names, and no void fields.
func (l *layout) relabel(data arrow.ArrayData, t dataType, to arrow.DataType) arrow.ArrayData {
	var children []arrow.ArrayData
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	switch t := t.(type) {
	case *structType:
		st := to.(*arrow.StructType)
		for i, f := range t.fields {
			if !isVoid(f.typ) {
				children = append(children, l.relabel(data.Children()[i], f.typ, st.Field(len(children)).Type))
			}
		}
	case *arrayType:
		children = []arrow.ArrayData{l.relabel(data.Children()[0], t.elem, to.(*arrow.ListType).Elem())}
	case *mapType:
		m := to.(*arrow.MapType)
		entries := data.Children()[0]
		key, value := l.relabel(entries.Children()[0], t.key, m.KeyType()), l.relabel(entries.Children()[1], t.value, m.ItemType())
		children = []arrow.ArrayData{array.NewData(m.Elem(), entries.Len(), entries.Buffers(), []arrow.ArrayData{key, value}, entries.NullN(), entries.Offset())}
		key.Release()
		value.Release()
	default:
		for _, c := range data.Children() { // of a variant
			c.Retain()
			children = append(children, c)
		}
	}
	return array.NewData(to, data.Len(), data.Buffers(), children, data.NullN(), data.Offset())
}
