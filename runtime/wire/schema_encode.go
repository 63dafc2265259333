package wire

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	flatbuffers "github.com/google/flatbuffers/go"
)

// schemaMessage builds the whole Schema message of the fields.
func schemaMessage(b *flatbuffers.Builder, fields []arrow.Field) ([]byte, error) {
	b.Reset()
	refs := make([]flatbuffers.UOffsetT, len(fields))
	for i, f := range fields {
		ref, err := fieldTable(b, f, []string{f.Name})
		if err != nil {
			return nil, err
		}
		refs[i] = ref
	}
	vec := refVector(b, refs)
	b.StartObject(4)
	b.PrependUOffsetTSlot(1, vec, 0)
	schema := b.EndObject()
	finishMessage(b, headerSchema, schema, 0)
	return frame(nil, b.FinishedBytes(), guestAlign), nil
}

func refVector(b *flatbuffers.Builder, refs []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	b.StartVector(4, len(refs), 4)
	for i := len(refs) - 1; i >= 0; i-- {
		b.PrependUOffsetT(refs[i])
	}
	return b.EndVector(len(refs))
}

func finishMessage(b *flatbuffers.Builder, header byte, ref flatbuffers.UOffsetT, bodySize int64) {
	b.StartObject(5)
	b.PrependInt64Slot(3, bodySize, 0)
	b.PrependUOffsetTSlot(2, ref, 0)
	b.PrependInt16Slot(0, metadataV5, 0)
	b.PrependByteSlot(1, header, 0)
	b.Finish(b.EndObject())
}

// frame appends prefix and metadata, padded so that what follows starts at a
// multiple of align.
func frame(dst, metadata []byte, align int64) []byte {
	size := alignUp(prefixSize+int64(len(metadata)), align) - prefixSize
	dst = binary.LittleEndian.AppendUint32(dst, continuation)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
	dst = append(dst, metadata...)
	for n := size - int64(len(metadata)); n > 0; n-- {
		dst = append(dst, 0)
	}
	return dst
}

// fieldTable writes a field and its children. Metadata does not cross, and a
// dictionary-encoded field crosses as its values.
func fieldTable(b *flatbuffers.Builder, f arrow.Field, path []string) (flatbuffers.UOffsetT, error) {
	if len(path) > maxDepth {
		return 0, errorf(CodeLimit, path[:1], "nested deeper than %d", maxDepth)
	}
	dt := f.Type
	if d, ok := dt.(*arrow.DictionaryType); ok {
		dt = d.ValueType
	}
	var children []arrow.Field
	switch t := dt.(type) {
	case *arrow.MapType: // before ListType: a map is a list of its entries
		entries := arrow.StructOf(
			arrow.Field{Name: "key", Type: t.KeyType()},
			arrow.Field{Name: "value", Type: t.ItemType(), Nullable: t.ItemField().Nullable})
		children = []arrow.Field{{Name: "entries", Type: entries}}
	case *arrow.ListType:
		children = []arrow.Field{t.ElemField()}
	case *arrow.LargeListType:
		children = []arrow.Field{t.ElemField()}
	case *arrow.FixedSizeListType:
		children = []arrow.Field{t.ElemField()}
	case *arrow.StructType:
		children = t.Fields()
	}
	refs := make([]flatbuffers.UOffsetT, len(children))
	for i, c := range children {
		ref, err := fieldTable(b, c, append(path, c.Name))
		if err != nil {
			return 0, err
		}
		refs[i] = ref
	}
	vec := refVector(b, refs)
	code, ref, err := typeTable(b, dt, path)
	if err != nil {
		return 0, err
	}
	name := b.CreateString(f.Name)
	b.StartObject(7)
	b.PrependUOffsetTSlot(5, vec, 0)
	b.PrependUOffsetTSlot(3, ref, 0)
	b.PrependUOffsetTSlot(0, name, 0)
	b.PrependByteSlot(2, code, 0)
	b.PrependBoolSlot(1, f.Nullable, false)
	return b.EndObject(), nil
}

func typeTable(b *flatbuffers.Builder, dt arrow.DataType, path []string) (byte, flatbuffers.UOffsetT, error) {
	empty := func() flatbuffers.UOffsetT { b.StartObject(0); return b.EndObject() }
	integer := func(bits int32, signed bool) flatbuffers.UOffsetT {
		b.StartObject(2)
		b.PrependInt32Slot(0, bits, 0)
		b.PrependBoolSlot(1, signed, false)
		return b.EndObject()
	}
	unit := func(u, def int16) flatbuffers.UOffsetT {
		b.StartObject(1)
		b.PrependInt16Slot(0, u, def)
		return b.EndObject()
	}
	word := func(n int32) flatbuffers.UOffsetT {
		b.StartObject(1)
		b.PrependInt32Slot(0, n, 0)
		return b.EndObject()
	}
	decimal := func(precision, scale, bits int32) flatbuffers.UOffsetT {
		b.StartObject(3)
		b.PrependInt32Slot(0, precision, 0)
		b.PrependInt32Slot(1, scale, 0)
		b.PrependInt32Slot(2, bits, 128)
		return b.EndObject()
	}
	time := func(u arrow.TimeUnit, bits int32) flatbuffers.UOffsetT {
		b.StartObject(2)
		b.PrependInt16Slot(0, int16(u), 1)
		b.PrependInt32Slot(1, bits, 32)
		return b.EndObject()
	}
	switch t := dt.(type) {
	case *arrow.NullType:
		return typeNull, empty(), nil
	case *arrow.BooleanType:
		return typeBool, empty(), nil
	case *arrow.Int8Type:
		return typeInt, integer(8, true), nil
	case *arrow.Int16Type:
		return typeInt, integer(16, true), nil
	case *arrow.Int32Type:
		return typeInt, integer(32, true), nil
	case *arrow.Int64Type:
		return typeInt, integer(64, true), nil
	case *arrow.Uint8Type:
		return typeInt, integer(8, false), nil
	case *arrow.Uint16Type:
		return typeInt, integer(16, false), nil
	case *arrow.Uint32Type:
		return typeInt, integer(32, false), nil
	case *arrow.Uint64Type:
		return typeInt, integer(64, false), nil
	case *arrow.Float32Type:
		return typeFloatingPoint, unit(1, 0), nil
	case *arrow.Float64Type:
		return typeFloatingPoint, unit(2, 0), nil
	case *arrow.Decimal128Type:
		return typeDecimal, decimal(t.Precision, t.Scale, 128), nil
	case *arrow.Decimal256Type:
		return typeDecimal, decimal(t.Precision, t.Scale, 256), nil
	case *arrow.StringType:
		return typeUTF8, empty(), nil
	case *arrow.LargeStringType:
		return typeLargeUTF8, empty(), nil
	case *arrow.BinaryType:
		return typeBinary, empty(), nil
	case *arrow.LargeBinaryType:
		return typeLargeBinary, empty(), nil
	case *arrow.FixedSizeBinaryType:
		return typeFixedSizeBinary, word(int32(t.ByteWidth)), nil
	case *arrow.Date32Type:
		return typeDate, unit(0, 1), nil
	case *arrow.Time32Type:
		return typeTime, time(t.Unit, 32), nil
	case *arrow.Time64Type:
		return typeTime, time(t.Unit, 64), nil
	case *arrow.DurationType:
		return typeDuration, unit(int16(t.Unit), 1), nil
	case *arrow.TimestampType:
		var zone flatbuffers.UOffsetT
		if t.TimeZone != "" {
			zone = b.CreateString(t.TimeZone)
		}
		b.StartObject(2)
		b.PrependUOffsetTSlot(1, zone, 0)
		b.PrependInt16Slot(0, int16(t.Unit), 0)
		return typeTimestamp, b.EndObject(), nil
	case *arrow.MapType:
		b.StartObject(1)
		b.PrependBoolSlot(0, t.KeysSorted, false)
		return typeMap, b.EndObject(), nil
	case *arrow.ListType:
		return typeList, empty(), nil
	case *arrow.LargeListType:
		return typeLargeList, empty(), nil
	case *arrow.FixedSizeListType:
		return typeFixedSizeList, word(t.Len()), nil
	case *arrow.StructType:
		return typeStruct, empty(), nil
	}
	return 0, 0, errorf(CodeType, path, "Arrow type %s does not cross the boundary", dt)
}
