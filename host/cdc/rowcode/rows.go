package rowcode

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/zeebo/xxh3"
)

// Rows gives a hash of what the columns of each row hold. Columns count by their
// names, case aside, in whatever order they stand, and NULL counts as nothing: a
// column that is added and holds NULL changes no hash. Maps are equal whatever
// the order of their entries. Values that SQL calls equal hash equal.
func Rows(rec arrow.RecordBatch, columns []int) []Hash {
	type column struct {
		name string
		tag  uint32
		col  arrow.Array
		code appender
	}
	cols := make([]column, 0, len(columns))
	for _, c := range columns {
		name := strings.ToLower(rec.ColumnName(c))
		cols = append(cols, column{name, uint32(xxh3.HashString(name)), rec.Column(c), contentOf(rec.Column(c))})
	}
	slices.SortStableFunc(cols, func(a, b column) int { return strings.Compare(a.name, b.name) })
	out := make([]Hash, rec.NumRows())
	var row []byte
	for i := range out {
		row = row[:0]
		for _, c := range cols {
			if c.col.IsNull(i) {
				continue
			}
			row = binary.LittleEndian.AppendUint32(row, c.tag)
			row = c.code(row, i)
		}
		out[i] = HashOf(row)
	}
	return out
}

// contentOf makes the appender of what a hash covers: the order code for
// numbers, and for the rest codes that say how long they are.
func contentOf(col arrow.Array) appender {
	switch a := col.(type) {
	case *array.String:
		return func(dst []byte, i int) []byte { return appendCounted(dst, a.Value(i)) }
	case *array.LargeString:
		return func(dst []byte, i int) []byte { return appendCounted(dst, a.Value(i)) }
	case *array.Binary:
		return func(dst []byte, i int) []byte { return appendCounted(dst, a.ValueString(i)) }
	case *array.LargeBinary:
		return func(dst []byte, i int) []byte { return appendCounted(dst, a.ValueString(i)) }
	case *array.FixedSizeBinary:
		return func(dst []byte, i int) []byte { return appendCounted(dst, string(a.Value(i))) }
	case *array.Struct:
		return structContent(a)
	case *array.Map:
		return mapContent(a)
	case array.ListLike:
		return listContent(a)
	}
	code, err := orderOf(col)
	if err != nil {
		// A type without values, such as void: NULL is all it holds.
		return func(dst []byte, _ int) []byte { return dst }
	}
	return code
}

func appendCounted(dst []byte, v string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(v)))
	return append(dst, v...)
}

func appendNullable(dst []byte, col arrow.Array, code appender, i int) []byte {
	if col.IsNull(i) {
		return append(dst, fieldNull)
	}
	return code(append(dst, fieldPresent), i)
}

// structContent leaves out NULL fields, as Rows leaves out NULL columns.
func structContent(a *array.Struct) appender {
	type field struct {
		name string
		tag  uint32
		col  arrow.Array
		code appender
	}
	fields := make([]field, a.NumField())
	for f := range fields {
		name := strings.ToLower(a.DataType().(*arrow.StructType).Field(f).Name)
		fields[f] = field{name, uint32(xxh3.HashString(name)), a.Field(f), contentOf(a.Field(f))}
	}
	slices.SortStableFunc(fields, func(x, y field) int { return strings.Compare(x.name, y.name) })
	return func(dst []byte, i int) []byte {
		for _, f := range fields {
			if !f.col.IsNull(i) {
				dst = append(dst, fieldPresent)
				dst = binary.LittleEndian.AppendUint32(dst, f.tag)
				dst = f.code(dst, i)
			}
		}
		return append(dst, fieldNull)
	}
}

func listContent(a array.ListLike) appender {
	values := a.ListValues()
	code := contentOf(values)
	return func(dst []byte, i int) []byte {
		from, to := a.ValueOffsets(i)
		dst = binary.AppendUvarint(dst, uint64(to-from))
		for e := int(from); e < int(to); e++ {
			dst = appendNullable(dst, values, code, e)
		}
		return dst
	}
}

func mapContent(a *array.Map) appender {
	keys, items := a.Keys(), a.Items()
	key, item := contentOf(keys), contentOf(items)
	return func(dst []byte, i int) []byte {
		from, to := a.ValueOffsets(i)
		dst = binary.AppendUvarint(dst, uint64(to-from))
		entries := make([][]byte, 0, to-from)
		for e := int(from); e < int(to); e++ {
			entry := appendNullable(nil, keys, key, e)
			entries = append(entries, appendNullable(entry, items, item, e))
		}
		slices.SortFunc(entries, bytes.Compare)
		for _, entry := range entries {
			dst = append(dst, entry...)
		}
		return dst
	}
}
