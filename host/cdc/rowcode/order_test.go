package rowcode

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// orderables are the types whose values have an order.
var orderables = []arrow.DataType{
	arrow.FixedWidthTypes.Boolean,
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
	&arrow.Decimal128Type{Precision: 38, Scale: 4}, &arrow.Decimal128Type{Precision: 9, Scale: 2}, &arrow.Decimal256Type{Precision: 60, Scale: 3},
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary, &arrow.FixedSizeBinaryType{ByteWidth: 3},
	arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Timestamp_us, &arrow.TimestampType{Unit: arrow.Microsecond},
	arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Duration_us,
	arrow.StructOf(
		arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "in", Type: arrow.StructOf(
			arrow.Field{Name: "b", Type: arrow.BinaryTypes.Binary, Nullable: true},
			arrow.Field{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true}), Nullable: true},
		arrow.Field{Name: "d", Type: &arrow.Decimal128Type{Precision: 20, Scale: 2}, Nullable: true},
	),
	arrow.ListOf(arrow.BinaryTypes.String), arrow.LargeListOf(arrow.PrimitiveTypes.Int16), arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int64),
	arrow.StructOf(arrow.Field{Name: "l", Type: arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Float32)), Nullable: true}, arrow.Field{Name: "x", Type: arrow.BinaryTypes.String, Nullable: true}),
}

// appendRandom appends a value, mostly from few, so that values meet again and differ at their ends.
func appendRandom(rng *rand.Rand, b array.Builder, nullable bool) {
	if nullable && rng.IntN(5) == 0 {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(rng.IntN(2) == 0)
	case *array.Int8Builder:
		b.Append(int8(randomInt(rng)))
	case *array.Int16Builder:
		b.Append(int16(randomInt(rng)))
	case *array.Int32Builder:
		b.Append(int32(randomInt(rng)))
	case *array.Int64Builder:
		b.Append(randomInt(rng))
	case *array.Uint8Builder:
		b.Append(uint8(randomInt(rng)))
	case *array.Uint16Builder:
		b.Append(uint16(randomInt(rng)))
	case *array.Uint32Builder:
		b.Append(uint32(randomInt(rng)))
	case *array.Uint64Builder:
		b.Append(uint64(randomInt(rng)))
	case *array.Float32Builder:
		b.Append(float32(randomFloat(rng)))
	case *array.Float64Builder:
		b.Append(randomFloat(rng))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(randomInt(rng) % 1e9))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromI64(randomInt(rng)))
	case *array.StringBuilder:
		b.Append(randomText(rng))
	case *array.LargeStringBuilder:
		b.Append(randomText(rng))
	case *array.BinaryBuilder:
		b.Append([]byte(randomText(rng)))
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte((randomText(rng) + "\x00a\x00")[:3]))
	case *array.Date32Builder:
		b.Append(arrow.Date32(randomInt(rng)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(randomInt(rng)))
	case *array.Time32Builder:
		b.Append(arrow.Time32(rng.IntN(1000)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(rng.IntN(1000)))
	case *array.DurationBuilder:
		b.Append(arrow.Duration(randomInt(rng)))
	case *array.StructBuilder:
		b.Append(true)
		for f := range b.NumField() {
			appendRandom(rng, b.FieldBuilder(f), true)
		}
	case *array.FixedSizeListBuilder:
		b.Append(true)
		for range b.Type().(*arrow.FixedSizeListType).Len() {
			appendRandom(rng, b.ValueBuilder(), true)
		}
	case *array.MapBuilder:
		b.Append(true)
		for k := range rng.IntN(3) {
			b.KeyBuilder().(*array.StringBuilder).Append(string(rune('a' + k)))
			appendRandom(rng, b.ItemBuilder(), true)
		}
	case array.ListLikeBuilder:
		b.Append(true)
		for range rng.IntN(3) {
			appendRandom(rng, b.ValueBuilder(), true)
		}
	case *array.NullBuilder:
		b.AppendNull()
	default:
		panic(b.Type().String())
	}
}

func randomInt(rng *rand.Rand) int64 {
	return []int64{0, 1, -1, 127, -128, 255, 256, 1 << 20, math.MinInt64, math.MaxInt64, rng.Int64()}[rng.IntN(11)]
}

func randomFloat(rng *rand.Rand) float64 {
	return []float64{0, math.Copysign(0, -1), 1, -1, math.NaN(), -math.NaN(), math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64, 1e38, rng.NormFloat64()}[rng.IntN(11)]
}

func randomText(rng *rand.Rand) string {
	out := make([]byte, rng.IntN(4))
	for i := range out {
		out[i] = "\x00\x01\xff\xfea"[rng.IntN(5)]
	}
	return string(out)
}

func randomColumn(rng *rand.Rand, mem memory.Allocator, t arrow.DataType, n int, nullable bool) arrow.Array {
	b := array.NewBuilder(mem, t)
	defer b.Release()
	for range n {
		appendRandom(rng, b, nullable)
	}
	return b.NewArray()
}

func TestCodesCompareAsValuesDo(t *testing.T) {
	for ti, typ := range orderables {
		rng := rand.New(rand.NewPCG(uint64(ti), 2))
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		whole := randomColumn(rng, mem, typ, 73, true)
		col := array.NewSlice(whole, 3, 73)
		whole.Release()
		codes, err := Order(col)
		if err != nil {
			t.Fatal(err)
		}
		for i := range col.Len() {
			for j := range col.Len() {
				if got, want := bytes.Compare(codes.At(i), codes.At(j)), compareValues(col, i, col, j); got != want {
					t.Fatalf("%s: %s and %s compare %d, want %d (%x, %x)", typ, col.ValueStr(i), col.ValueStr(j), got, want, codes.At(i), codes.At(j))
				}
			}
		}
		back := array.NewBuilder(mem, typ)
		for i := range col.Len() {
			if err := AppendOrder(back, typ, codes.At(i)); err != nil {
				t.Fatalf("%s: %s: %v", typ, col.ValueStr(i), err)
			}
		}
		again := back.NewArray()
		for i := range col.Len() {
			if again.IsNull(i) != col.IsNull(i) || compareValues(col, i, again, i) != 0 {
				t.Fatalf("%s: %s comes back as %s", typ, col.ValueStr(i), again.ValueStr(i))
			}
		}
		back.Release()
		again.Release()
		col.Release()
		mem.AssertSize(t, 0)
	}
}

// compareValues compares as Spark does.
func compareValues(a arrow.Array, i int, b arrow.Array, j int) int {
	switch {
	case a.IsNull(i) && b.IsNull(j):
		return 0
	case a.IsNull(i):
		return -1
	case b.IsNull(j):
		return 1
	}
	switch a := a.(type) {
	case *array.Struct:
		for f := range a.NumField() {
			if c := compareValues(a.Field(f), i, b.(*array.Struct).Field(f), j); c != 0 {
				return c
			}
		}
		return 0
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		ofrom, oto := b.(array.ListLike).ValueOffsets(j)
		for ; from < to && ofrom < oto; from, ofrom = from+1, ofrom+1 {
			if c := compareValues(a.ListValues(), int(from), b.(array.ListLike).ListValues(), int(ofrom)); c != 0 {
				return c
			}
		}
		return sign(to-from) - sign(oto-ofrom)
	case *array.Boolean:
		return compareOrdered(truth(a.Value(i)), truth(b.(*array.Boolean).Value(j)))
	case *array.Uint64:
		return compareOrdered(a.Value(i), b.(*array.Uint64).Value(j))
	case *array.Float32:
		return compareFloats(float64(a.Value(i)), float64(b.(*array.Float32).Value(j)))
	case *array.Float64:
		return compareFloats(a.Value(i), b.(*array.Float64).Value(j))
	case *array.Decimal128:
		return a.Value(i).Cmp(b.(*array.Decimal128).Value(j))
	case *array.Decimal256:
		return a.Value(i).Cmp(b.(*array.Decimal256).Value(j))
	}
	if x, ok := text(a, i); ok {
		y, _ := text(b, j)
		return compareOrdered(x, y)
	}
	return compareOrdered(number(a, i), number(b, j))
}

func compareOrdered[T int | int64 | uint64 | string](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func compareFloats(a, b float64) int {
	switch {
	case a != a && b != b:
		return 0
	case a != a || a > b:
		return 1
	case b != b || a < b:
		return -1
	}
	return 0
}

func truth(v bool) int {
	if v {
		return 1
	}
	return 0
}

func sign(n int64) int { return compareOrdered(n, 0) }

func text(a arrow.Array, i int) (string, bool) {
	switch a := a.(type) {
	case *array.String:
		return a.Value(i), true
	case *array.LargeString:
		return a.Value(i), true
	case *array.Binary:
		return string(a.Value(i)), true
	case *array.LargeBinary:
		return string(a.Value(i)), true
	case *array.FixedSizeBinary:
		return string(a.Value(i)), true
	}
	return "", false
}

func number(a arrow.Array, i int) int64 {
	switch a := a.(type) {
	case *array.Int8:
		return int64(a.Value(i))
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Uint8:
		return int64(a.Value(i))
	case *array.Uint16:
		return int64(a.Value(i))
	case *array.Uint32:
		return int64(a.Value(i))
	case *array.Date32:
		return int64(a.Value(i))
	case *array.Timestamp:
		return int64(a.Value(i))
	case *array.Time32:
		return int64(a.Value(i))
	case *array.Time64:
		return int64(a.Value(i))
	case *array.Duration:
		return int64(a.Value(i))
	}
	panic(a.DataType().String())
}
