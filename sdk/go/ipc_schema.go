package weir

import "github.com/weir-data/weir/sdk/go/internal/flatbuf"

// Numbers of Arrow's flatbuffer schema (Schema.fbs, Message.fbs) that both directions need.
const (
	metadataV5 = 4

	headerSchema      = 1
	headerDictionary  = 2
	headerRecordBatch = 3

	typeNull            = 1
	typeInt             = 2
	typeFloat           = 3
	typeBinary          = 4
	typeUtf8            = 5
	typeBool            = 6
	typeDecimal         = 7
	typeDate            = 8
	typeTime            = 9
	typeTimestamp       = 10
	typeList            = 12
	typeStruct          = 13
	typeFixedSizeBinary = 15
	typeFixedSizeList   = 16
	typeMap             = 17
	typeDuration        = 18
	typeLargeBinary     = 19
	typeLargeUtf8       = 20
	typeLargeList       = 21
)

// message is one encapsulated message taken apart, in place.
type message struct {
	kind  byte
	table flatbuf.Table
	body  []byte
}

func readMessage(b []byte) (m message, err error) {
	if len(b) < 8 || flatbuf.U32(b) != 0xFFFFFFFF {
		return m, errorf("[INPUT_INVALID] a message does not start with its marker")
	}
	size := int(flatbuf.U32(b[4:]))
	if size > len(b)-8 {
		return m, errorf("[INPUT_INVALID] a message is cut short")
	}
	if size == 0 { // an end-of-stream marker
		return m, nil
	}
	root := flatbuf.Root(b[8 : 8+size : 8+size])
	m = message{kind: root.Byte(1), table: root.Table(2), body: b[8+size:]}
	if n := root.Int64(3); n < 0 || n > int64(len(m.body)) {
		return m, errorf("[INPUT_INVALID] the body of a message is cut short")
	}
	return m, nil
}

func readSchema(t flatbuf.Table) ([]Field, error) {
	fields, err := readFields(t.Vector(1), 0)
	if err == nil && t.Int16(0, 0) != 0 {
		err = errorf("[INPUT_INVALID] the input is big-endian")
	}
	return fields, err
}

func readFields(v flatbuf.Vector, depth int) ([]Field, error) {
	if depth > maxTypeDepth {
		return nil, errorf("[INPUT_INVALID] the schema is nested too deep")
	}
	fields := make([]Field, v.Len())
	for i := range fields {
		t := v.Table(i)
		f := &fields[i]
		f.Name, f.Nullable = t.String(0), t.Bool(1)
		if t.Table(4).Ok() {
			return nil, errorf("[INPUT_INVALID] column ", f.Name, " is dictionary-encoded")
		}
		children, err := readFields(t.Vector(5), depth+1)
		if err != nil {
			return nil, err
		}
		if f.Type = readType(t.Byte(2), t.Table(3), children); f.Type.Kind == KindUnknown {
			return nil, errorf("[INPUT_INVALID] column ", f.Name, " has Arrow type number ", itoa(int64(t.Byte(2))),
				", which does not cross the boundary")
		}
	}
	return fields, nil
}

// readType gives a type of kind unknown for what is outside the subset.
func readType(number byte, t flatbuf.Table, children []Field) DataType {
	switch number {
	case typeNull:
		return DataType{Kind: KindNull}
	case typeBool:
		return DataType{Kind: KindBool}
	case typeUtf8:
		return DataType{Kind: KindString}
	case typeLargeUtf8:
		return DataType{Kind: KindLargeString}
	case typeBinary:
		return DataType{Kind: KindBinary}
	case typeLargeBinary:
		return DataType{Kind: KindLargeBinary}
	case typeInt:
		return readInt(int(t.Int32(0, 0)), t.Bool(1))
	case typeFloat:
		switch t.Int16(0, 0) {
		case 1:
			return DataType{Kind: KindFloat32}
		case 2:
			return DataType{Kind: KindFloat64}
		}
	case typeDecimal:
		d := DataType{Kind: KindDecimal128, Precision: int(t.Int32(0, 0)), Scale: int(t.Int32(1, 0))}
		switch t.Int32(2, 128) {
		case 256:
			d.Kind = KindDecimal256
			return d
		case 128:
			return d
		}
	case typeDate:
		if t.Int16(0, 1) == 0 {
			return DataType{Kind: KindDate32}
		}
	case typeFixedSizeBinary:
		return DataType{Kind: KindFixedBinary, Width: int(t.Int32(0, 0))}
	case typeTime, typeTimestamp, typeDuration:
		return readTemporal(number, t)
	case typeList, typeLargeList, typeFixedSizeList, typeMap, typeStruct:
		return readNested(number, t, children)
	}
	return DataType{}
}

func readInt(width int, signed bool) DataType {
	kinds := [2][4]Kind{{KindUint8, KindUint16, KindUint32, KindUint64}, {KindInt8, KindInt16, KindInt32, KindInt64}}
	s := 0
	if signed {
		s = 1
	}
	for i := range 4 {
		if width == 8<<i {
			return DataType{Kind: kinds[s][i]}
		}
	}
	return DataType{}
}

func readTemporal(number byte, t flatbuf.Table) DataType {
	unit := Unit(t.Int16(0, 1)) & 3
	switch number {
	case typeTimestamp:
		return DataType{Kind: KindTimestamp, Unit: Unit(t.Int16(0, 0)) & 3, Zone: t.String(1)}
	case typeDuration:
		return DataType{Kind: KindDuration, Unit: unit}
	}
	if unit <= Millisecond {
		return DataType{Kind: KindTime32, Unit: unit}
	}
	return DataType{Kind: KindTime64, Unit: unit}
}

func readNested(number byte, t flatbuf.Table, children []Field) DataType {
	if number == typeStruct {
		return DataType{Kind: KindStruct, Fields: children}
	}
	if len(children) != 1 {
		return DataType{}
	}
	switch number {
	case typeList:
		return DataType{Kind: KindList, Fields: children}
	case typeLargeList:
		return DataType{Kind: KindLargeList, Fields: children}
	case typeFixedSizeList:
		return DataType{Kind: KindFixedList, Width: int(t.Int32(0, 0)), Fields: children}
	}
	entries := children[0].Type
	if entries.Kind != KindStruct || len(entries.Fields) != 2 {
		return DataType{}
	}
	return DataType{Kind: KindMap, Fields: entries.Fields}
}

// encodeSchema writes a Schema message into b.
func encodeSchema(b *flatbuf.Builder, fields []Field) []byte {
	b.Reset()
	list := encodeFields(b, fields)
	b.Start(2)
	b.Ref(1, list)
	schema := b.End()
	return finishMessage(b, headerSchema, schema, 0)
}

func encodeFields(b *flatbuf.Builder, fields []Field) int {
	refs := make([]int, len(fields))
	for i, f := range fields {
		refs[i] = encodeField(b, f)
	}
	return b.Refs(refs)
}

func encodeField(b *flatbuf.Builder, f Field) int {
	var children []Field
	switch f.Type.Kind {
	case KindList, KindLargeList, KindFixedList, KindStruct:
		children = f.Type.Fields
	case KindMap:
		children = []Field{{Name: "entries", Type: DataType{Kind: KindStruct, Fields: f.Type.Fields}}}
	}
	kids := encodeFields(b, children)
	name := b.String(f.Name)
	number, typ := encodeType(b, f.Type)
	b.Start(7)
	b.Ref(0, name)
	b.Ref(3, typ)
	b.Ref(5, kids)
	b.Scalar(2, uint64(number), 1)
	b.Bool(1, f.Nullable)
	return b.End()
}

func encodeType(b *flatbuf.Builder, t DataType) (number byte, offset int) {
	zone := 0
	if t.Kind == KindTimestamp && t.Zone != "" {
		zone = b.String(t.Zone)
	}
	b.Start(3)
	switch t.Kind {
	case KindNull:
		number = typeNull
	case KindBool:
		number = typeBool
	case KindInt8, KindInt16, KindInt32, KindInt64:
		number = typeInt
		b.Scalar(0, 8<<(t.Kind-KindInt8), 4)
		b.Bool(1, true)
	case KindUint8, KindUint16, KindUint32, KindUint64:
		number = typeInt
		b.Scalar(0, 8<<(t.Kind-KindUint8), 4)
	case KindFloat32, KindFloat64:
		number = typeFloat
		b.Scalar(0, uint64(t.Kind-KindFloat32)+1, 2)
	case KindDecimal128, KindDecimal256:
		number = typeDecimal
		b.Scalar(0, uint64(t.Precision), 4)
		b.Scalar(1, uint64(t.Scale), 4)
		b.Scalar(2, 128<<(t.Kind-KindDecimal128), 4)
	case KindString:
		number = typeUtf8
	case KindLargeString:
		number = typeLargeUtf8
	case KindBinary:
		number = typeBinary
	case KindLargeBinary:
		number = typeLargeBinary
	case KindFixedBinary:
		number = typeFixedSizeBinary
		b.Scalar(0, uint64(t.Width), 4)
	case KindDate32:
		number = typeDate
		b.Scalar(0, 0, 2)
	case KindTime32, KindTime64:
		number = typeTime
		b.Scalar(1, 32<<(t.Kind-KindTime32), 4)
		b.Scalar(0, uint64(t.Unit), 2)
	case KindTimestamp:
		number = typeTimestamp
		b.Ref(1, zone)
		b.Scalar(0, uint64(t.Unit), 2)
	case KindDuration:
		number = typeDuration
		b.Scalar(0, uint64(t.Unit), 2)
	case KindList:
		number = typeList
	case KindLargeList:
		number = typeLargeList
	case KindFixedList:
		number = typeFixedSizeList
		b.Scalar(0, uint64(t.Width), 4)
	case KindMap:
		number = typeMap
	case KindStruct:
		number = typeStruct
	}
	return number, b.End()
}

func finishMessage(b *flatbuf.Builder, kind byte, header int, body int64) []byte {
	b.Start(5)
	b.Scalar(3, uint64(body), 8)
	b.Ref(2, header)
	b.Scalar(0, metadataV5, 2)
	b.Scalar(1, uint64(kind), 1)
	return b.Finish(b.End())
}
