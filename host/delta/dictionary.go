package delta

import (
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/zeebo/xxh3"
)

// dictionarySample is how many values of a column are looked at.
const dictionarySample = 2048

// withoutDictionary lists the Parquet columns whose values hardly repeat in the
// first chunk of a file. A dictionary of them costs a hash and an allocation a
// value and saves nothing. The first chunk follows from the rows, and so does
// the choice.
func withoutDictionary(schema *arrow.Schema, cols []arrow.Array) (out []parquet.WriterProperty) {
	for i, f := range schema.Fields() {
		for _, path := range distinctColumns(f.Name, cols[i]) {
			out = append(out, parquet.WithDictionaryFor(path, false))
		}
	}
	return out
}

// distinctColumns walks to the leaves below a column, named as in the file.
func distinctColumns(path string, arr arrow.Array) (out []string) {
	switch a := arr.(type) {
	case *array.Struct:
		for i, f := range a.DataType().(*arrow.StructType).Fields() {
			out = append(out, distinctColumns(path+"."+f.Name, a.Field(i))...)
		}
		return out
	case *array.Map:
		return append(distinctColumns(path+".key_value.key", a.Keys()), distinctColumns(path+".key_value.value", a.Items())...)
	case *array.List:
		return distinctColumns(path+".list.element", a.ListValues())
	}
	if mostlyDistinct(arr) {
		return []string{path}
	}
	return nil
}

// mostlyDistinct tells whether more than half of a sample, spread over the column, are values of their own.
func mostlyDistinct(arr arrow.Array) bool {
	var hash func(i int) uint64
	switch a := arr.(type) {
	case *array.String:
		hash = func(i int) uint64 { return xxh3.HashString(a.Value(i)) }
	case *array.Binary:
		hash = func(i int) uint64 { return xxh3.Hash(a.Value(i)) }
	case *array.Int64:
		hash = func(i int) uint64 { return uint64(a.Value(i)) }
	case *array.Timestamp:
		hash = func(i int) uint64 { return uint64(a.Value(i)) }
	case *array.Float64:
		hash = func(i int) uint64 { return math.Float64bits(a.Value(i)) }
	case *array.Decimal128:
		hash = func(i int) uint64 { return a.Value(i).LowBits() }
	default:
		return false
	}
	var hashes []uint64
	step := max(1, arr.Len()/dictionarySample)
	for i := 0; i < arr.Len(); i += step {
		if arr.IsValid(i) {
			hashes = append(hashes, hash(i))
		}
	}
	n := len(hashes)
	slices.Sort(hashes)
	return n >= 64 && len(slices.Compact(hashes))*2 > n
}
