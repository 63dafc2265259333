package wire

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi/coltype"
)

// SameSchema says whether a stream of schema got can stand for one of schema
// want: the same names in the same order, of the same types. Whether columns
// may be null is held against the batches, not the schema.
func SameSchema(want, got *arrow.Schema) error {
	for i := range max(want.NumFields(), got.NumFields()) {
		switch {
		case i >= got.NumFields():
			return errorf(CodeWrongSchema, []string{want.Field(i).Name}, "is missing; there are %d columns instead of %d", got.NumFields(), want.NumFields())
		case i >= want.NumFields():
			return errorf(CodeWrongSchema, []string{got.Field(i).Name}, "is not expected; there are %d columns instead of %d", got.NumFields(), want.NumFields())
		}
		w, g := want.Field(i), got.Field(i)
		if w.Name != g.Name {
			return errorf(CodeWrongSchema, []string{g.Name}, "column %d should be %q", i, w.Name)
		}
		if !SameType(w.Type, g.Type) {
			return errorf(CodeWrongSchema, []string{w.Name}, "has type %s instead of %s", coltype.String(g.Type), coltype.String(w.Type))
		}
	}
	return nil
}

// SameType compares types as their names do: the field names of lists and
// maps, the nullability of their elements and metadata do not count.
func SameType(a, b arrow.DataType) bool {
	if a == b {
		return true
	}
	if a.ID() != b.ID() {
		return false
	}
	an, nested := a.(arrow.NestedType)
	if !nested {
		return arrow.TypeEqual(a, b)
	}
	if f, ok := a.(*arrow.FixedSizeListType); ok && f.Len() != b.(*arrow.FixedSizeListType).Len() {
		return false
	}
	af, bf := an.Fields(), b.(arrow.NestedType).Fields()
	if m, ok := a.(*arrow.MapType); ok {
		n := b.(*arrow.MapType)
		return SameType(m.KeyType(), n.KeyType()) && SameType(m.ItemType(), n.ItemType())
	}
	if len(af) != len(bf) {
		return false
	}
	for i := range af {
		if a.ID() == arrow.STRUCT && af[i].Name != bf[i].Name || !SameType(af[i].Type, bf[i].Type) {
			return false
		}
	}
	return true
}
