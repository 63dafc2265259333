package wire

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi/coltype"
)

// subset names every type that may cross the boundary, nested ones included.
var subset = []string{
	"void", "boolean", "tinyint", "smallint", "int", "bigint", "uint8", "uint16", "uint32", "uint64", "float", "double",
	"decimal(18,2)", "decimal(38,0)", "decimal256(50,10)", "string", "large_string", "binary", "large_binary", "fixed_size_binary(5)",
	"date", "timestamp", "timestamp_ntz", "timestamp(s)", "timestamp_ntz(ms)", "timestamp(ns,'Europe/Berlin')",
	"time(s)", "time(ms)", "time", "time(ns)", "duration", "duration(s)", "duration(ms)", "duration(ns)",
	"array<bigint>", "array<string>", "array<boolean>", "large_array<decimal(10,3)>", "fixed_size_array<int,3>", "fixed_size_array<boolean,5>",
	"map<string,int>", "map<int,array<string>>", "struct<a:int,b:string>", "array<struct<sku:string,qty:int,tags:array<string>>>",
	"struct<a:struct<b:struct<c:boolean,d:array<array<date>>>>>", "array<void>", "array<map<string,struct<x:double>>>", "fixed_size_array<struct<a:int>,2>",
}

func subsetSchema(t testing.TB, names ...string) *arrow.Schema {
	t.Helper()
	var fields []arrow.Field
	for i, name := range names {
		dt, err := coltype.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d_%.20s", i, name), Type: dt, Nullable: true})
	}
	return arrow.NewSchema(fields, nil)
}

// sample makes a batch of random rows, a share of them null.
func sample(mem memory.Allocator, schema *arrow.Schema, rows int, nulls float64, r *rand.Rand) arrow.RecordBatch {
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	for i := range schema.NumFields() {
		for range rows {
			appendRandom(b.Field(i), r, nulls)
		}
	}
	return b.NewRecordBatch()
}

func appendRandom(b array.Builder, r *rand.Rand, nulls float64) {
	if r.Float64() < nulls {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.NullBuilder:
		b.AppendNull()
	case *array.BooleanBuilder:
		b.Append(r.IntN(2) == 0)
	case *array.Int8Builder:
		b.Append(int8(r.Uint32()))
	case *array.Int16Builder:
		b.Append(int16(r.Uint32()))
	case *array.Int32Builder:
		b.Append(int32(r.Uint32()))
	case *array.Int64Builder:
		b.Append(int64(r.Uint64()))
	case *array.Uint8Builder:
		b.Append(uint8(r.Uint32()))
	case *array.Uint16Builder:
		b.Append(uint16(r.Uint32()))
	case *array.Uint32Builder:
		b.Append(r.Uint32())
	case *array.Uint64Builder:
		b.Append(r.Uint64())
	case *array.Float32Builder:
		b.Append(r.Float32())
	case *array.Float64Builder:
		b.Append(r.NormFloat64())
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(r.Int64N(2e9) - 1e9))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromI64(int64(r.Uint64())))
	case *array.StringBuilder:
		b.Append(word(r))
	case *array.LargeStringBuilder:
		b.Append(word(r))
	case *array.BinaryBuilder:
		b.Append([]byte(word(r) + "\xff"))
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte{1, byte(r.Uint32()), 3, 4, 255})
	case *array.Date32Builder:
		b.Append(arrow.Date32(r.IntN(40000)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(r.Int64N(1e15)))
	case *array.Time32Builder:
		b.Append(arrow.Time32(r.IntN(86400)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(r.Int64N(86400e6)))
	case *array.DurationBuilder:
		b.Append(arrow.Duration(r.Int64N(1e12)))
	case *array.ListBuilder:
		b.Append(true)
		appendSome(b.ValueBuilder(), r, nulls, r.IntN(4))
	case *array.LargeListBuilder:
		b.Append(true)
		appendSome(b.ValueBuilder(), r, nulls, r.IntN(4))
	case *array.FixedSizeListBuilder:
		b.Append(true)
		appendSome(b.ValueBuilder(), r, nulls, int(b.Type().(*arrow.FixedSizeListType).Len()))
	case *array.MapBuilder:
		b.Append(true)
		n := r.IntN(4)
		appendSome(b.KeyBuilder(), r, 0, n)
		appendSome(b.ItemBuilder(), r, nulls, n)
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			appendRandom(b.FieldBuilder(i), r, nulls)
		}
	default:
		panic(fmt.Sprintf("no sample for %T", b))
	}
}

func appendSome(b array.Builder, r *rand.Rand, nulls float64, n int) {
	for range n {
		appendRandom(b, r, nulls)
	}
}

func word(r *rand.Rand) string {
	return strings.Repeat([]string{"a", "grün", "漢", "🜁", "xyz "}[r.IntN(5)], r.IntN(5))
}

// walk touches every value of an array through its typed accessors, as a
// consumer would; it panics or faults on an array that lies.
func walk(a arrow.Array) int {
	seen := 0
	for i := range a.Len() {
		if a.IsValid(i) {
			seen += len(a.ValueStr(i))
		}
	}
	switch a := a.(type) {
	case *array.String:
		for i := range a.Len() {
			seen += len(a.Value(i))
		}
	case *array.LargeString:
		for i := range a.Len() {
			seen += len(a.Value(i))
		}
	case *array.Binary:
		for i := range a.Len() {
			seen += len(a.Value(i))
		}
	case *array.LargeBinary:
		for i := range a.Len() {
			seen += len(a.Value(i))
		}
	case *array.Map:
		for i := range a.Len() {
			from, to := a.ValueOffsets(i)
			seen += int(to - from)
		}
		seen += walk(a.Keys()) + walk(a.Items())
	case array.ListLike:
		for i := range a.Len() {
			from, to := a.ValueOffsets(i)
			seen += int(to - from)
		}
		seen += walk(a.ListValues())
	case *array.Struct:
		for i := range a.NumField() {
			seen += walk(a.Field(i))
		}
	}
	return seen
}
