package delta

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
)

// An adapter gives arrays the type that the table's schema has: columns of
// nested types are put in order, missing ones become null, and narrower types
// are widened. It never loses a value in silence.
type adapter struct {
	mem memory.Allocator
	// match finds the source field of a target field, or -1.
	match func(f *field, candidates []arrow.Field) int
	// stored is for columns of files: Parquet has no integers below 32 bits, and
	// not every writer notes that they stand for narrower ones.
	stored bool
}

// matchName finds columns by the names of the schema, ignoring case when none fits exactly.
func matchName(f *field, candidates []arrow.Field) int { return indexFold(candidates, f.name) }

// matchPhysical finds columns by their physical names (column mapping).
func matchPhysical(f *field, candidates []arrow.Field) int {
	return indexFold(candidates, f.physicalName())
}

// matchID finds columns by the field ids of the file (column mapping).
func matchID(f *field, candidates []arrow.Field) int {
	id := strconv.Itoa(f.fieldID())
	for i := range candidates {
		if k := candidates[i].Metadata.FindKey("PARQUET:field_id"); k >= 0 && candidates[i].Metadata.Values()[k] == id {
			return i
		}
	}
	return -1
}

func indexFold(candidates []arrow.Field, name string) int {
	fold := -1
	for i := range candidates {
		if candidates[i].Name == name {
			return i
		}
		if fold < 0 && strings.EqualFold(candidates[i].Name, name) {
			fold = i
		}
	}
	return fold
}

func (f *field) physicalName() string {
	if p := f.metaString(physicalNameKey); p != "" {
		return p
	}
	return f.name
}

// Adapt gives a column the type that a table's column has by now: fields of
// structs are found by their names, missing ones are NULL, and narrower types
// are widened. A type that does not fit is an error. The caller releases the
// result and keeps col.
func Adapt(mem memory.Allocator, col arrow.Array, to arrow.DataType) (arrow.Array, error) {
	t, err := typeFromArrow(arrow.Field{Type: to}, "the column")
	if err != nil {
		return nil, err
	}
	a := &adapter{mem: mem, match: matchName}
	return a.adapt(col, t)
}

// adapt gives arr the type of t. The caller releases the result and keeps arr.
func (a *adapter) adapt(arr arrow.Array, t dataType) (arrow.Array, error) {
	switch t := t.(type) {
	case *structType:
		if s, ok := arr.(*array.Struct); ok {
			return a.adaptStruct(s, t)
		}
	case *arrayType:
		if l, ok := arr.(array.ListLike); ok {
			return a.adaptList(l, t)
		}
	case *mapType:
		if m, ok := arr.(*array.Map); ok {
			return a.adaptMap(m, t)
		}
	case *primitive:
		return a.adaptPrimitive(arr, t)
	}
	return nil, notAdaptable(arr, t)
}

func notAdaptable(arr arrow.Array, t dataType) error {
	return fault.New("DELTA_TYPE_MISMATCH", "a column of Arrow type %s does not fit the type %s", arr.DataType(), t.sparkName())
}

// adaptStruct keeps the nulls of the struct and adapts its children.
func (a *adapter) adaptStruct(s *array.Struct, t *structType) (arrow.Array, error) {
	candidates := s.DataType().(*arrow.StructType).Fields()
	children := make([]arrow.ArrayData, len(t.fields))
	defer func() {
		for _, c := range children {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i, f := range t.fields {
		var child arrow.Array
		var err error
		if j := a.match(f, candidates); j >= 0 {
			child, err = a.adapt(s.Field(j), f.typ)
		} else {
			child = a.nulls(f.typ, s.Len())
		}
		if err != nil {
			return nil, within(err, f.name)
		}
		children[i] = child.Data()
		children[i].Retain()
		child.Release()
	}
	// s.Field slices the children to the struct's window.
	valid := validity(a.mem, s)
	defer releaseBuffer(valid)
	data := array.NewData(arrowType(t), s.Len(), []*memory.Buffer{valid}, children, s.NullN(), 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}

// validity gives the validity of an array from its first row on, or nil.
func validity(mem memory.Allocator, arr arrow.Array) *memory.Buffer {
	if arr.NullN() == 0 {
		return nil
	}
	src := arr.Data().Buffers()[0]
	if arr.Data().Offset() == 0 {
		src.Retain()
		return src
	}
	out := memory.NewResizableBuffer(mem)
	out.Resize((arr.Len() + 7) / 8)
	bitutil.CopyBitmap(src.Bytes(), arr.Data().Offset(), arr.Len(), out.Bytes(), 0)
	return out
}

func releaseBuffer(b *memory.Buffer) {
	if b != nil {
		b.Release()
	}
}

func (a *adapter) adaptList(l array.ListLike, t *arrayType) (arrow.Array, error) {
	switch l.(type) {
	case *array.List, *array.LargeList, *array.FixedSizeList:
	default:
		return nil, notAdaptable(l, t)
	}
	offsets, first, last, err := a.offsets(l)
	if err != nil {
		return nil, err
	}
	defer offsets.Release()
	window := array.NewSlice(l.ListValues(), first, last)
	defer window.Release()
	elem, err := a.adapt(window, t.elem)
	if err != nil {
		return nil, within(err, "element")
	}
	defer elem.Release()
	valid := validity(a.mem, l)
	defer releaseBuffer(valid)
	data := array.NewData(arrowType(t), l.Len(), []*memory.Buffer{valid, offsets}, []arrow.ArrayData{elem.Data()}, l.NullN(), 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}

// offsets gives 32-bit offsets from 0 on and the window of values they span.
func (a *adapter) offsets(l array.ListLike) (buf *memory.Buffer, first, last int64, err error) {
	n := l.Len()
	buf = memory.NewResizableBuffer(a.mem)
	buf.Resize(arrow.Int32Traits.BytesRequired(n + 1))
	out := arrow.Int32Traits.CastFromBytes(buf.Bytes())
	if n == 0 {
		out[0] = 0
		return buf, 0, 0, nil
	}
	first, _ = l.ValueOffsets(0)
	_, last = l.ValueOffsets(n - 1)
	if last-first > math.MaxInt32 {
		buf.Release()
		return nil, 0, 0, fault.New("DELTA_TYPE_MISMATCH", "a batch of lists holds more than 2^31 values")
	}
	out[0] = 0
	for i := range n {
		_, end := l.ValueOffsets(i)
		out[i+1] = int32(end - first)
	}
	return buf, first, last, nil
}

func (a *adapter) adaptMap(m *array.Map, t *mapType) (arrow.Array, error) {
	offsets, first, last, err := a.offsets(m)
	if err != nil {
		return nil, err
	}
	defer offsets.Release()
	var parts [2]arrow.Array
	for i, src := range []arrow.Array{m.Keys(), m.Items()} {
		window := array.NewSlice(src, first, last)
		parts[i], err = a.adapt(window, []dataType{t.key, t.value}[i])
		window.Release()
		if err != nil {
			if i == 1 {
				parts[0].Release()
			}
			return nil, within(err, []string{"key", "value"}[i])
		}
	}
	defer parts[0].Release()
	defer parts[1].Release()
	mt := arrowType(t).(*arrow.MapType)
	entries := array.NewData(mt.Elem(), int(last-first), []*memory.Buffer{nil}, []arrow.ArrayData{parts[0].Data(), parts[1].Data()}, 0, 0)
	defer entries.Release()
	valid := validity(a.mem, m)
	defer releaseBuffer(valid)
	data := array.NewData(mt, m.Len(), []*memory.Buffer{valid, offsets}, []arrow.ArrayData{entries}, m.NullN(), 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}

// within says in which part of a column the trouble is.
func within(err error, part string) error {
	return fault.Wrap(err, fault.CodeOf(err), "in %s", part)
}

// nulls makes a column without values.
func (a *adapter) nulls(t dataType, n int) arrow.Array {
	return array.MakeArrayOfNull(a.mem, arrowType(t), n)
}

// widens tells whether every value of from has an equal one in to.
func widens(from, to arrow.DataType) bool {
	rank := func(t arrow.DataType) int {
		switch t.ID() {
		case arrow.INT8:
			return 1
		case arrow.INT16:
			return 2
		case arrow.INT32:
			return 3
		case arrow.INT64:
			return 4
		}
		return 0
	}
	digits := []int32{0, 3, 5, 10, 19} // of the integers, by rank
	switch to := to.(type) {
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type:
		return rank(from) > 0 && rank(from) <= rank(to)
	case *arrow.Float64Type:
		return from.ID() == arrow.FLOAT32 || rank(from) > 0 && rank(from) <= 3
	case *arrow.Decimal128Type:
		if d, ok := from.(*arrow.Decimal128Type); ok {
			return d.Scale <= to.Scale && d.Precision-d.Scale <= to.Precision-to.Scale
		}
		return rank(from) > 0 && to.Precision-to.Scale >= digits[rank(from)]
	case *arrow.TimestampType:
		return to.TimeZone == "" && from.ID() == arrow.DATE32
	}
	return false
}

func (a *adapter) adaptPrimitive(arr arrow.Array, t *primitive) (arrow.Array, error) {
	from, to := arr.DataType(), t.arrow
	if from.ID() == arrow.EXTENSION {
		return a.adaptPrimitive(arr.(array.ExtensionArray).Storage(), t)
	}
	if isVariant(t) && from.ID() != arrow.NULL {
		return a.adaptVariant(arr, t)
	}
	if d, ok := arr.(*array.Dictionary); ok {
		return a.decode(d, t)
	}
	if arrow.TypeEqual(from, to) {
		arr.Retain()
		return arr, nil
	}
	switch {
	case from.ID() == arrow.NULL:
		return a.nulls(t, arr.Len()), nil
	case to.ID() == arrow.NULL:
		return array.NewNull(arr.Len()), nil
	case isStringLike(from) && to.ID() == arrow.STRING, isBinaryLike(from) && (to.ID() == arrow.BINARY || to.ID() == arrow.STRING), isStringLike(from) && to.ID() == arrow.BINARY:
		return a.rebuildBytes(arr, to)
	case from.ID() == arrow.TIMESTAMP && to.ID() == arrow.TIMESTAMP:
		return a.toMicros(arr, to)
	case widens(from, to):
		return a.widen(arr, to)
	case a.stored && from.ID() == arrow.INT32 && (to.ID() == arrow.INT8 || to.ID() == arrow.INT16):
		return a.narrow(arr.(*array.Int32), to)
	}
	return nil, notAdaptable(arr, t)
}

func isStringLike(t arrow.DataType) bool {
	return t.ID() == arrow.STRING || t.ID() == arrow.LARGE_STRING || t.ID() == arrow.STRING_VIEW
}

func isBinaryLike(t arrow.DataType) bool {
	return t.ID() == arrow.BINARY || t.ID() == arrow.LARGE_BINARY || t.ID() == arrow.BINARY_VIEW || t.ID() == arrow.FIXED_SIZE_BINARY
}

// rebuildBytes turns any array of strings or bytes into one with 32-bit offsets.
func (a *adapter) rebuildBytes(arr arrow.Array, to arrow.DataType) (arrow.Array, error) {
	if id := arr.DataType().ID(); id == arrow.STRING || id == arrow.BINARY {
		// Same layout: only the type differs.
		d := arr.Data()
		data := array.NewData(to, d.Len(), d.Buffers(), nil, arr.NullN(), d.Offset())
		defer data.Release()
		return array.MakeFromData(data), nil
	}
	b := array.NewBinaryBuilder(a.mem, to.(arrow.BinaryDataType))
	defer b.Release()
	b.Reserve(arr.Len())
	var value func(i int) []byte
	switch s := arr.(type) {
	case *array.LargeString:
		value = func(i int) []byte { return []byte(s.Value(i)) }
	case *array.StringView:
		value = func(i int) []byte { return []byte(s.Value(i)) }
	case *array.LargeBinary:
		value = s.Value
	case *array.BinaryView:
		value = s.Value
	case *array.FixedSizeBinary:
		value = s.Value
	default:
		return nil, fmt.Errorf("no bytes in %s", arr.DataType())
	}
	for i := range arr.Len() {
		if arr.IsNull(i) {
			b.AppendNull()
		} else {
			b.Append(value(i))
		}
	}
	return b.NewArray(), nil
}

// decode replaces the keys of a dictionary by its values.
func (a *adapter) decode(d *array.Dictionary, t *primitive) (arrow.Array, error) {
	values, err := a.adaptPrimitive(d.Dictionary(), t)
	if err != nil {
		return nil, err
	}
	defer values.Release()
	b := array.NewBuilder(a.mem, t.arrow)
	defer b.Release()
	b.Reserve(d.Len())
	for i := range d.Len() {
		if d.IsNull(i) || values.IsNull(d.GetValueIndex(i)) {
			b.AppendNull()
			continue
		}
		if err := appendValue(b, values, d.GetValueIndex(i)); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}

// appendValue appends row i of an array of the builder's type.
func appendValue(b array.Builder, arr arrow.Array, i int) error {
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(arr.(*array.String).Value(i))
	case *array.BinaryBuilder:
		b.Append(arr.(*array.Binary).Value(i))
	case *array.BooleanBuilder:
		b.Append(arr.(*array.Boolean).Value(i))
	case *array.Int8Builder:
		b.Append(arr.(*array.Int8).Value(i))
	case *array.Int16Builder:
		b.Append(arr.(*array.Int16).Value(i))
	case *array.Int32Builder:
		b.Append(arr.(*array.Int32).Value(i))
	case *array.Int64Builder:
		b.Append(arr.(*array.Int64).Value(i))
	case *array.Float32Builder:
		b.Append(arr.(*array.Float32).Value(i))
	case *array.Float64Builder:
		b.Append(arr.(*array.Float64).Value(i))
	case *array.Date32Builder:
		b.Append(arr.(*array.Date32).Value(i))
	case *array.TimestampBuilder:
		b.Append(arr.(*array.Timestamp).Value(i))
	case *array.Decimal128Builder:
		b.Append(arr.(*array.Decimal128).Value(i))
	default:
		return fault.New("DELTA_UNSUPPORTED_TYPE", "type %s", arr.DataType())
	}
	return nil
}

// toMicros changes the unit of timestamps; finer ones are cut down.
func (a *adapter) toMicros(arr arrow.Array, to arrow.DataType) (arrow.Array, error) {
	ts := arr.(*array.Timestamp)
	if ts.DataType().(*arrow.TimestampType).Unit == arrow.Microsecond {
		d := arr.Data()
		data := array.NewData(to, d.Len(), d.Buffers(), nil, arr.NullN(), d.Offset())
		defer data.Release()
		return array.MakeFromData(data), nil
	}
	b := array.NewTimestampBuilder(a.mem, to.(*arrow.TimestampType))
	defer b.Release()
	b.Reserve(arr.Len())
	unit := ts.DataType().(*arrow.TimestampType).Unit
	factor := map[arrow.TimeUnit]int64{arrow.Second: 1e6, arrow.Millisecond: 1e3}[unit]
	for i, v := range ts.TimestampValues() {
		if ts.IsNull(i) {
			b.AppendNull()
			continue
		}
		switch n := int64(v); {
		case factor == 0: // nanoseconds
			b.Append(arrow.Timestamp(floorDiv(n, 1000)))
		case n > math.MaxInt64/factor || n < math.MinInt64/factor:
			return nil, fault.New("DELTA_VALUE_OUT_OF_RANGE", "timestamp %d %s is outside the range of microseconds", n, unit)
		default:
			b.Append(arrow.Timestamp(n * factor))
		}
	}
	return b.NewArray(), nil
}

func floorDiv(n, d int64) int64 {
	q := n / d
	if n%d < 0 {
		q--
	}
	return q
}

func (a *adapter) widen(arr arrow.Array, to arrow.DataType) (arrow.Array, error) {
	b := array.NewBuilder(a.mem, to)
	defer b.Release()
	b.Reserve(arr.Len())
	for i := range arr.Len() {
		if arr.IsNull(i) {
			b.AppendNull()
			continue
		}
		switch b := b.(type) {
		case *array.Float64Builder:
			if f, ok := arr.(*array.Float32); ok {
				b.Append(float64(f.Value(i)))
			} else {
				b.Append(float64(intValue(arr, i)))
			}
		case *array.TimestampBuilder:
			b.Append(arrow.Timestamp(int64(arr.(*array.Date32).Value(i)) * 86_400_000_000))
		case *array.Decimal128Builder:
			n, err := toScale(arr, i, to.(*arrow.Decimal128Type))
			if err != nil {
				return nil, err
			}
			b.Append(n)
		case *array.Int16Builder:
			b.Append(int16(intValue(arr, i)))
		case *array.Int32Builder:
			b.Append(int32(intValue(arr, i)))
		case *array.Int64Builder:
			b.Append(intValue(arr, i))
		default:
			return nil, fmt.Errorf("no widening to %s", to)
		}
	}
	return b.NewArray(), nil
}

// narrow gives integers the width that the table has; one that does not fit is an error.
func (a *adapter) narrow(arr *array.Int32, to arrow.DataType) (arrow.Array, error) {
	b := array.NewBuilder(a.mem, to)
	defer b.Release()
	b.Reserve(arr.Len())
	for i, v := range arr.Int32Values() {
		switch b := b.(type) {
		case *array.Int8Builder:
			if arr.IsNull(i) {
				b.AppendNull()
			} else if v == int32(int8(v)) {
				b.Append(int8(v))
			} else {
				return nil, fault.New("DELTA_VALUE_OUT_OF_RANGE", "%d does not fit %s", v, to)
			}
		case *array.Int16Builder:
			if arr.IsNull(i) {
				b.AppendNull()
			} else if v == int32(int16(v)) {
				b.Append(int16(v))
			} else {
				return nil, fault.New("DELTA_VALUE_OUT_OF_RANGE", "%d does not fit %s", v, to)
			}
		}
	}
	return b.NewArray(), nil
}

func toScale(arr arrow.Array, i int, to *arrow.Decimal128Type) (decimal128.Num, error) {
	var n decimal128.Num
	scale := int32(0)
	if d, ok := arr.(*array.Decimal128); ok {
		n, scale = d.Value(i), d.DataType().(*arrow.Decimal128Type).Scale
	} else {
		n = decimal128.FromI64(intValue(arr, i))
	}
	v := new(big.Int).Mul(n.BigInt(), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(to.Scale-scale)), nil))
	if v.BitLen() > 127 {
		return n, fault.New("DELTA_VALUE_OUT_OF_RANGE", "a decimal does not fit %s", to)
	}
	return decimal128.FromBigInt(v), nil
}

func intValue(arr arrow.Array, i int) int64 {
	switch arr := arr.(type) {
	case *array.Int8:
		return int64(arr.Value(i))
	case *array.Int16:
		return int64(arr.Value(i))
	case *array.Int32:
		return int64(arr.Value(i))
	case *array.Int64:
		return arr.Value(i)
	}
	return 0
}
