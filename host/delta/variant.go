package delta

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
)

// A variant is two binary fields, in Arrow as in the files we write. So that a
// schema tells it from a struct of that shape, its Arrow field says so in its
// metadata; the extension type of Arrow is understood, too.

const typeKey = "delta.type"

// variantStorage is the Arrow type of a variant.
var variantStorage = arrow.StructOf(
	arrow.Field{Name: "metadata", Type: arrow.BinaryTypes.Binary},
	arrow.Field{Name: "value", Type: arrow.BinaryTypes.Binary},
)

var variantMark = arrow.NewMetadata([]string{typeKey}, []string{"variant"})

func isVariant(t dataType) bool {
	p, ok := t.(*primitive)
	return ok && p.name == "variant"
}

// markOf gives the metadata of an Arrow field or element of a type.
func markOf(t dataType) arrow.Metadata {
	if isVariant(t) {
		return variantMark
	}
	return arrow.Metadata{}
}

// marksVariant tells whether an Arrow field is a variant.
func marksVariant(f arrow.Field) bool {
	if ext, ok := f.Type.(arrow.ExtensionType); ok {
		return extensions.IsVariantExtensionName(ext.ExtensionName())
	}
	i := f.Metadata.FindKey(typeKey)
	return i >= 0 && f.Metadata.Values()[i] == "variant" && looksLikeVariant(f.Type)
}

// looksLikeVariant tells whether a type is a struct of the two binary fields.
func looksLikeVariant(t arrow.DataType) bool {
	s, ok := t.(*arrow.StructType)
	if !ok || s.NumFields() != 2 {
		return false
	}
	for _, name := range []string{"metadata", "value"} {
		if f, ok := s.FieldByName(name); !ok || !isBinaryLike(f.Type) {
			return false
		}
	}
	return true
}

// isVariantShape tells whether a type is a variant or a struct that one can be made of.
func isVariantShape(t dataType) bool { return isVariant(t) || looksLikeVariant(arrowType(t)) }

// adaptVariant gives a variant its two binary fields. One that is shredded, with
// parts of its values in typed columns, is put together again.
func (a *adapter) adaptVariant(arr arrow.Array, t *primitive) (arrow.Array, error) {
	s, ok := arr.(*array.Struct)
	if !ok {
		return nil, notAdaptable(arr, t)
	}
	st := s.DataType().(*arrow.StructType)
	if _, shredded := st.FieldIdx("typed_value"); shredded {
		return a.assembleVariant(s)
	}
	children := make([]arrow.ArrayData, len(variantStorage.Fields()))
	defer func() {
		for _, c := range children {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i, f := range variantStorage.Fields() {
		j, ok := st.FieldIdx(f.Name)
		if !ok || !isBinaryLike(st.Field(j).Type) {
			return nil, notAdaptable(arr, t)
		}
		child, err := a.rebuildBytes(s.Field(j), f.Type)
		if err != nil {
			return nil, within(err, f.Name)
		}
		if child.NullN() > 0 && !nullWith(child, s) {
			child.Release()
			return nil, fault.New("DELTA_INVALID_VARIANT", "a variant has no %s", f.Name)
		}
		children[i] = child.Data()
		children[i].Retain()
		child.Release()
	}
	valid := validity(a.mem, s)
	defer releaseBuffer(valid)
	data := array.NewData(variantStorage, s.Len(), []*memory.Buffer{valid}, children, s.NullN(), 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}

// nullWith tells whether the child is null only where the parent is.
func nullWith(child, parent arrow.Array) bool {
	for i := range child.Len() {
		if child.IsNull(i) && parent.IsValid(i) {
			return false
		}
	}
	return true
}

// assembleVariant makes the two binary fields of shredded values.
func (a *adapter) assembleVariant(s *array.Struct) (arrow.Array, error) {
	vt, err := extensions.NewVariantType(s.DataType())
	if err != nil {
		return nil, fault.Wrap(err, "DELTA_UNSUPPORTED_FEATURE", "a shredded variant of this form cannot be put together")
	}
	ext := array.NewExtensionArrayWithStorage(vt, s).(*extensions.VariantArray)
	defer ext.Release()
	b := array.NewStructBuilder(a.mem, variantStorage)
	defer b.Release()
	metadata, value := b.FieldBuilder(0).(*array.BinaryBuilder), b.FieldBuilder(1).(*array.BinaryBuilder)
	for i := range ext.Len() {
		if s.IsNull(i) {
			b.AppendNull()
			continue
		}
		v, err := ext.Value(i)
		if err != nil {
			return nil, fault.Wrap(err, "DELTA_INVALID_VARIANT", "a shredded variant cannot be put together")
		}
		encoded, err := inOrder(v)
		if err != nil {
			return nil, fault.Wrap(err, "DELTA_INVALID_VARIANT", "a shredded variant cannot be put together")
		}
		b.Append(true)
		metadata.Append(v.Metadata().Bytes())
		value.Append(encoded)
	}
	return b.NewArray(), nil
}
