package delta

import (
	"github.com/apache/arrow-go/v18/parquet/variant"

	"github.com/weir-data/weir/host/fault"
)

// maxVariantDepth bounds the nesting of values from outside.
const maxVariantDepth = 500

// inOrder gives the bytes of a variant with the values of its objects in the
// order of their keys. arrow-go v18.8.0 puts shredded objects together in the
// order of a Go map: the same file would read as other bytes each time.
func inOrder(v variant.Value) ([]byte, error) {
	if t := v.BasicType(); t != variant.BasicObject && t != variant.BasicArray {
		return v.Bytes(), nil
	}
	b := variant.NewBuilderFromMeta(v.Metadata())
	if err := appendInOrder(b, v, 0); err != nil {
		return nil, err
	}
	return b.BuildWithoutMeta(), nil
}

func appendInOrder(b *variant.Builder, v variant.Value, depth int) error {
	if depth > maxVariantDepth {
		return fault.New("DELTA_INVALID_VARIANT", "a variant is nested more than %d deep", maxVariantDepth)
	}
	start := b.Offset()
	switch x := v.Value().(type) {
	case variant.ObjectValue:
		fields := make([]variant.FieldEntry, 0, x.NumElements())
		for key, value := range x.Values() {
			fields = append(fields, b.NextField(start, key))
			if err := appendInOrder(b, value, depth+1); err != nil {
				return err
			}
		}
		return b.FinishObject(start, fields)
	case variant.ArrayValue:
		offsets := make([]int, 0, x.Len())
		for value := range x.Values() {
			offsets = append(offsets, b.NextElement(start))
			if err := appendInOrder(b, value, depth+1); err != nil {
				return err
			}
		}
		return b.FinishArray(start, offsets)
	}
	return b.UnsafeAppendEncoded(v.Bytes())
}
