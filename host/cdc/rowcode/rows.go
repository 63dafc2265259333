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
	cols := make([]*column, 0, len(columns))
	for _, c := range byName(rec.Schema().Fields(), columns) {
		tag := binary.LittleEndian.AppendUint32(nil, uint32(xxh3.HashString(strings.ToLower(rec.ColumnName(c)))))
		cols = append(cols, newColumn(rec.Column(c), tag, nil, contentOf(rec.Column(c)), true))
	}
	out := make([]Hash, rec.NumRows())
	var row []byte
	var lens, pos [chunk]int32
	for from := 0; from < len(out); from += chunk {
		hashes := out[from:min(from+chunk, len(out))]
		clear(lens[:])
		for _, c := range cols {
			c.measure(from, lens[:len(hashes)])
		}
		size := int32(0)
		for i := range hashes {
			pos[i] = size
			size += lens[i]
		}
		row = slices.Grow(row[:0], int(size))[:size]
		for _, c := range cols {
			c.fill(from, row, pos[:len(hashes)])
		}
		for i := range hashes {
			hashes[i] = HashOf(row[pos[i]-lens[i] : pos[i]])
		}
	}
	return out
}

// byName gives the columns in the order of their names, case aside, without those that hold nothing but NULL.
func byName(fields []arrow.Field, columns []int) []int {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c int) bool { return fields[c].Type.ID() == arrow.NULL })
	slices.SortStableFunc(columns, func(a, b int) int {
		return strings.Compare(strings.ToLower(fields[a].Name), strings.ToLower(fields[b].Name))
	})
	return columns
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
		tag  uint32
		col  arrow.Array
		code appender
	}
	types := a.DataType().(*arrow.StructType).Fields()
	all := make([]int, len(types))
	for f := range all {
		all[f] = f
	}
	fields := make([]field, 0, len(types))
	for _, f := range byName(types, all) {
		fields = append(fields, field{uint32(xxh3.HashString(strings.ToLower(types[f].Name))), a.Field(f), contentOf(a.Field(f))})
	}
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
