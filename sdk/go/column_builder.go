package weir

import "unsafe"

// ColumnBuilder is a column of an output before its type is settled. Asking for a typed builder
// settles it, unless the output is declared; asking for another type than it has records the error,
// and the call fails with it.
type ColumnBuilder struct {
	name     string
	path     string
	nullable bool
	b        builder
	behind   int // rows that a column of a struct missed before its first use
	errs     *stickyError
}

func newColumn(f Field, path string, errs *stickyError) *ColumnBuilder {
	c := &ColumnBuilder{name: f.Name, path: path, nullable: f.Nullable, errs: errs}
	if f.Type.Kind != KindUnknown {
		c.settle(f.Type)
	}
	return c
}

// Type gives the type, of kind unknown while it is not settled.
func (c *ColumnBuilder) Type() DataType {
	if c.b == nil {
		return DataType{}
	}
	return c.b.dataType()
}

// SetType settles the type by a value of DataType, for columns whose type is known when running only.
func (c *ColumnBuilder) SetType(t DataType) {
	if c.b == nil {
		c.settle(t)
	} else if !c.b.dataType().equal(t) {
		c.complain(t.String())
	}
}

// AppendNull adds a null, whatever the type.
func (c *ColumnBuilder) AppendNull() {
	if c.b == nil {
		c.settle(nullType)
	}
	c.b.AppendNull()
}

// Len gives the number of rows since the last Flush.
func (c *ColumnBuilder) Len() int {
	if c.b == nil {
		return 0
	}
	return c.b.Len()
}

func (c *ColumnBuilder) complain(want string) {
	c.errs.set(errorf("[COLUMN_TYPE] output column ", c.path, ": is ", c.Type().String(), ", not ", want))
}

func (c *ColumnBuilder) field() Field {
	t := c.Type()
	if t.Kind == KindUnknown {
		t = nullType
	}
	return Field{Name: c.name, Type: t, Nullable: c.nullable}
}

func (c *ColumnBuilder) reset() {
	if c.b != nil {
		c.b.reset()
	}
	c.behind = 0
}

func (c *ColumnBuilder) encode(e *encoder) {
	if c.b == nil {
		e.node(0, 0)
		return
	}
	c.b.encode(e)
}

func (c *ColumnBuilder) check() error {
	if c.b == nil {
		return nil
	}
	if !c.nullable && c.b.nulls() > 0 {
		return errorf("[OUTPUT_INVALID] output column ", c.path, " is declared not null, and has nulls")
	}
	return c.b.check(c.path)
}

func (c *ColumnBuilder) freeze() {
	switch b := c.b.(type) {
	case nil:
		c.settle(nullType)
	case *ListBuilder:
		b.elem.freeze()
	case *MapBuilder:
		b.entries.freeze()
	case *StructBuilder:
		b.freeze()
	}
}

// settle makes the builder of a type.
func (c *ColumnBuilder) settle(t DataType) {
	c.b = c.newBuilder(t)
	for range c.behind {
		c.b.AppendNull()
	}
}

func (c *ColumnBuilder) newBuilder(t DataType) builder {
	switch t.Kind {
	case KindBool:
		return &BoolBuilder{}
	case KindNull, KindUnknown:
		return &NullBuilder{}
	case KindString, KindLargeString, KindBinary, KindLargeBinary, KindFixedBinary:
		return &StringBuilder{typ: t}
	case KindList, KindLargeList, KindFixedList:
		return &ListBuilder{kind: t.Kind, width: t.Width, elem: c.part(t, 0, "[]")}
	case KindMap:
		return c.newMap(t)
	case KindStruct:
		b := &StructBuilder{columnSet: columnSet{path: c.path + ".", errs: c.errs, declared: t.Fields != nil}}
		for _, f := range t.Fields {
			b.columns = append(b.columns, newColumn(f, c.path+"."+f.Name, c.errs))
		}
		return b
	}
	return &fixedBuilder{typ: t, width: fixedWidth(t.Kind)}
}

// part makes the column of field i of a nested type, open where the type does not say.
func (c *ColumnBuilder) part(t DataType, i int, suffix string) ColumnBuilder {
	f := Field{Name: "item", Nullable: true}
	if i < len(t.Fields) {
		f = t.Fields[i]
	}
	return *newColumn(f, c.path+suffix, c.errs)
}

func (c *ColumnBuilder) newMap(t DataType) builder {
	key, value := c.part(t, 0, "{key}"), c.part(t, 1, "{value}")
	key.name, key.nullable, value.name = "key", false, "value"
	entries := &StructBuilder{columnSet: columnSet{path: c.path, errs: c.errs, declared: true}}
	entries.columns = []*ColumnBuilder{&key, &value}
	m := &MapBuilder{entries: entries}
	m.kind, m.elem = KindMap, ColumnBuilder{name: "entries", path: c.path, b: entries, errs: c.errs}
	return m
}

// settled gives the column's builder as B, settling the type t when it is open. A column of another
// type gives a builder that goes nowhere, and the error is recorded.
func settled[B builder](c *ColumnBuilder, t DataType, fits func(DataType) bool) B {
	if c.b == nil {
		c.settle(t)
	}
	if b, ok := c.b.(B); ok && fits(c.b.dataType()) {
		return b
	}
	c.complain(t.String())
	return c.newBuilder(t).(B)
}

// fixed gives the builder of a fixed-width column. A NumberBuilder is a fixedBuilder that knows the
// type of its values, so the one is seen as the other.
func (c *ColumnBuilder) fixed(t DataType, exact bool) *fixedBuilder {
	return settled[*fixedBuilder](c, t, func(has DataType) bool {
		return has.Kind == t.Kind && (!exact || has.equal(t))
	})
}

func number[T Number](c *ColumnBuilder, kind Kind) *NumberBuilder[T] {
	return (*NumberBuilder[T])(unsafe.Pointer(c.fixed(DataType{Kind: kind}, false)))
}

// Bool builds a boolean column.
func (c *ColumnBuilder) Bool() *BoolBuilder {
	return settled[*BoolBuilder](c, DataType{Kind: KindBool}, func(DataType) bool { return true })
}

// Int8 builds a tinyint column.
func (c *ColumnBuilder) Int8() *NumberBuilder[int8] { return number[int8](c, KindInt8) }

// Int16 builds a smallint column.
func (c *ColumnBuilder) Int16() *NumberBuilder[int16] { return number[int16](c, KindInt16) }

// Int32 builds an int column.
func (c *ColumnBuilder) Int32() *NumberBuilder[int32] { return number[int32](c, KindInt32) }

// Int64 builds a bigint column.
func (c *ColumnBuilder) Int64() *NumberBuilder[int64] { return number[int64](c, KindInt64) }

// Uint8 builds a uint8 column.
func (c *ColumnBuilder) Uint8() *NumberBuilder[uint8] { return number[uint8](c, KindUint8) }

// Uint16 builds a uint16 column.
func (c *ColumnBuilder) Uint16() *NumberBuilder[uint16] { return number[uint16](c, KindUint16) }

// Uint32 builds a uint32 column.
func (c *ColumnBuilder) Uint32() *NumberBuilder[uint32] { return number[uint32](c, KindUint32) }

// Uint64 builds a uint64 column.
func (c *ColumnBuilder) Uint64() *NumberBuilder[uint64] { return number[uint64](c, KindUint64) }

// Float32 builds a float column.
func (c *ColumnBuilder) Float32() *NumberBuilder[float32] { return number[float32](c, KindFloat32) }

// Float64 builds a double column.
func (c *ColumnBuilder) Float64() *NumberBuilder[float64] { return number[float64](c, KindFloat64) }

// Date builds a date column.
func (c *ColumnBuilder) Date() *NumberBuilder[Date] { return number[Date](c, KindDate32) }

// Decimal128 builds a decimal column of a precision and scale.
func (c *ColumnBuilder) Decimal128(precision, scale int) *DecimalBuilder {
	t := DataType{Kind: KindDecimal128, Precision: precision, Scale: scale}
	return (*DecimalBuilder)(unsafe.Pointer(c.fixed(t, true)))
}

// Decimal256 builds a decimal256 column of a precision and scale.
func (c *ColumnBuilder) Decimal256(precision, scale int) *NumberBuilder[Decimal256] {
	t := DataType{Kind: KindDecimal256, Precision: precision, Scale: scale}
	return (*NumberBuilder[Decimal256])(unsafe.Pointer(c.fixed(t, true)))
}

// Timestamp builds a timestamp column: microseconds in UTC unless the output declares another unit
// or zone, which Type tells.
func (c *ColumnBuilder) Timestamp() *NumberBuilder[int64] {
	t := DataType{Kind: KindTimestamp, Unit: Microsecond, Zone: "UTC"}
	return (*NumberBuilder[int64])(unsafe.Pointer(c.fixed(t, false)))
}

// Time builds a time of day column: microseconds unless the output declares nanoseconds.
func (c *ColumnBuilder) Time() *NumberBuilder[int64] {
	t := DataType{Kind: KindTime64, Unit: Microsecond}
	return (*NumberBuilder[int64])(unsafe.Pointer(c.fixed(t, false)))
}

// Time32 builds a time of day column: milliseconds unless the output declares seconds.
func (c *ColumnBuilder) Time32() *NumberBuilder[int32] {
	t := DataType{Kind: KindTime32, Unit: Millisecond}
	return (*NumberBuilder[int32])(unsafe.Pointer(c.fixed(t, false)))
}

// Duration builds a duration column: microseconds unless the output declares another unit.
func (c *ColumnBuilder) Duration() *NumberBuilder[int64] {
	t := DataType{Kind: KindDuration, Unit: Microsecond}
	return (*NumberBuilder[int64])(unsafe.Pointer(c.fixed(t, false)))
}

// String builds a string column.
func (c *ColumnBuilder) String() *StringBuilder {
	return settled[*StringBuilder](c, DataType{Kind: KindString}, func(t DataType) bool {
		return t.Kind == KindString || t.Kind == KindLargeString
	})
}

// Binary builds a binary column, of a fixed size where the output declares one.
func (c *ColumnBuilder) Binary() *StringBuilder {
	return settled[*StringBuilder](c, DataType{Kind: KindBinary}, func(t DataType) bool {
		return t.Kind == KindBinary || t.Kind == KindLargeBinary || t.Kind == KindFixedBinary
	})
}

// List builds an array column.
func (c *ColumnBuilder) List() *ListBuilder {
	return settled[*ListBuilder](c, DataType{Kind: KindList}, func(DataType) bool { return true })
}

// Map builds a map column.
func (c *ColumnBuilder) Map() *MapBuilder {
	return settled[*MapBuilder](c, DataType{Kind: KindMap}, func(DataType) bool { return true })
}

// Struct builds a struct column.
func (c *ColumnBuilder) Struct() *StructBuilder {
	return settled[*StructBuilder](c, DataType{Kind: KindStruct}, func(DataType) bool { return true })
}
