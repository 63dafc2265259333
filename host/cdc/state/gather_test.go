package state

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// What is gathered is what the slices are, one after the other, whatever the type.
func TestGatherIsTheSlicesOneAfterTheOther(t *testing.T) {
	for _, c := range []struct {
		typ    arrow.DataType
		values string // one JSON value a line
	}{
		{arrow.FixedWidthTypes.Boolean, "true\nfalse\nnull"},
		{arrow.PrimitiveTypes.Int8, "1\n-2\nnull"},
		{arrow.PrimitiveTypes.Float64, "1.5\n-2\nnull"},
		{&arrow.Decimal128Type{Precision: 20, Scale: 2}, "\"1.50\"\n\"-2.25\"\nnull"},
		{arrow.FixedWidthTypes.Date32, "\"2026-11-30\"\nnull"},
		{arrow.FixedWidthTypes.Timestamp_us, "\"2026-11-30T01:02:03Z\"\nnull"},
		{&arrow.FixedSizeBinaryType{ByteWidth: 3}, "\"YWJj\"\n\"eHl6\"\nnull"},
		{arrow.BinaryTypes.String, "\"\"\n\"a\"\n\"longer\"\nnull"},
		{arrow.BinaryTypes.LargeString, "\"\"\n\"a\"\n\"longer\"\nnull"},
		{arrow.BinaryTypes.Binary, "\"YWJj\"\nnull"},
		{arrow.Null, "null"},
		{arrow.ListOf(arrow.BinaryTypes.String), "[]\n[\"x\",null,\"yy\"]\n[\"z\"]\nnull"},
		{arrow.LargeListOf(arrow.FixedWidthTypes.Boolean), "[]\n[true,null,false]\nnull"},
		{arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32), "[1,2]\n[null,4]\nnull"},
		{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), "[]\n[{\"key\":\"a\",\"value\":1},{\"key\":\"b\",\"value\":null}]\nnull"},
		{arrow.StructOf(arrow.Field{Name: "a", Type: arrow.ListOf(arrow.PrimitiveTypes.Int16), Nullable: true}, arrow.Field{Name: "b", Type: arrow.StructOf(arrow.Field{Name: "c", Type: arrow.BinaryTypes.String, Nullable: true}), Nullable: true}),
			"{\"a\":[1,2],\"b\":{\"c\":\"x\"}}\n{\"a\":null,\"b\":null}\n{\"a\":[],\"b\":{\"c\":null}}\nnull"},
	} {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		rng := rand.New(rand.NewPCG(30, 30))
		values := strings.Split(c.values, "\n")
		for range 20 {
			var srcs []arrow.Array
			var datas []arrow.ArrayData
			for range 1 + rng.IntN(3) {
				var picked []string
				for range 1 + rng.IntN(30) {
					picked = append(picked, values[rng.IntN(len(values))])
				}
				arr, _, err := array.FromJSON(mem, c.typ, strings.NewReader("["+strings.Join(picked, ",")+"]"))
				if err != nil {
					t.Fatalf("%s: %v", c.typ, err)
				}
				from := rng.Int64N(int64(arr.Len()))
				src := array.NewSlice(arr, from, int64(arr.Len()))
				arr.Release()
				srcs, datas = append(srcs, src), append(datas, src.Data())
			}
			none := array.MakeArrayOfNull(mem, c.typ, 5)
			srcs, datas = append(srcs, none), append(datas, nil) // a run that does not have the column
			var spans []span
			var slices []arrow.Array
			for range 1 + rng.IntN(10) {
				s := rng.IntN(len(srcs))
				from := rng.Int64N(int64(srcs[s].Len()))
				n := rng.Int64N(int64(srcs[s].Len()) - from + 1)
				spans = append(spans, span{int32(s), int32(from), int32(n)})
				slices = append(slices, array.NewSlice(srcs[s], from, from+n))
			}
			want, err := array.Concatenate(slices, mem)
			if err != nil {
				t.Fatal(err)
			}
			data, err := gather(mem, c.typ, datas, spans)
			if err != nil {
				t.Fatalf("%s: %v", c.typ, err)
			}
			got := array.MakeFromData(data)
			if !array.Equal(got, want) || got.NullN() != want.NullN() {
				t.Fatalf("%s: %v gives\n%v, want\n%v", c.typ, spans, got, want)
			}
			// A span that leaves its source is an error, not somebody else's bytes.
			for _, bad := range []span{{0, int32(srcs[0].Len()), 1}, {0, -1, 2}, {0, 0, int32(srcs[0].Len()) + 1}} {
				if _, err := gather(mem, c.typ, datas, []span{bad}); err == nil && c.typ != arrow.Null {
					t.Fatalf("%s: %v of %d rows", c.typ, bad, srcs[0].Len())
				}
			}
			for _, a := range append(append(slices, srcs...), want, got) {
				a.Release()
			}
			data.Release()
		}
		mem.AssertSize(t, 0)
	}
}
