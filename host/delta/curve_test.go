package delta

import (
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// Property: the curve passes every point once, and each step goes to a neighbour.
func TestTheCurveVisitsEveryPointNextToItsNeighbour(t *testing.T) {
	for _, c := range []struct{ dims, bits int }{{1, 5}, {2, 1}, {2, 5}, {3, 3}, {4, 2}, {5, 2}} {
		total := 1 << (c.dims * c.bits)
		at := make([][]uint32, total)
		for p := range total {
			point := make([]uint32, c.dims)
			for d := range point {
				point[d] = uint32(p >> (d * c.bits) & (1<<c.bits - 1))
			}
			key := hilbertKey(slices.Clone(point), c.bits)
			if key >= uint64(total) || at[key] != nil {
				t.Fatalf("%+v: point %v has key %d, which is taken or too large", c, point, key)
			}
			at[key] = point
		}
		for k := 1; k < total; k++ {
			distance := 0
			for d := range c.dims {
				distance += int(math.Abs(float64(at[k][d]) - float64(at[k-1][d])))
			}
			if distance != 1 {
				t.Fatalf("%+v: from %v to %v at %d", c, at[k-1], at[k], k)
			}
		}
	}
}

// Ranks keep the order of values, whatever their type; nulls come first.
func TestRanksFollowTheOrderOfValues(t *testing.T) {
	f := newFixture(t)
	micros := arrow.FixedWidthTypes.Timestamp_us
	for name, c := range map[string]struct {
		typ  arrow.DataType
		rows string
	}{
		"integers":     {arrow.PrimitiveTypes.Int64, `[{"v":null},{"v":-9223372036854775808},{"v":-5},{"v":0},{"v":3},{"v":9223372036854775807}]`},
		"small":        {arrow.PrimitiveTypes.Int8, `[{"v":null},{"v":-128},{"v":-1},{"v":0},{"v":127}]`},
		"doubles":      {arrow.PrimitiveTypes.Float64, `[{"v":null},{"v":"-Inf"},{"v":-1.5},{"v":0},{"v":1e-300},{"v":2},{"v":"+Inf"},{"v":"NaN"}]`},
		"floats":       {arrow.PrimitiveTypes.Float32, `[{"v":-1.5},{"v":-0.25},{"v":0.25}]`},
		"booleans":     {arrow.FixedWidthTypes.Boolean, `[{"v":null},{"v":false},{"v":true}]`},
		"texts":        {arrow.BinaryTypes.String, `[{"v":null},{"v":""},{"v":"A"},{"v":"a"},{"v":"ab"},{"v":"ä"}]`},
		"dates":        {arrow.FixedWidthTypes.Date32, `[{"v":"1900-01-01"},{"v":"1970-01-01"},{"v":"2024-01-01"}]`},
		"times":        {micros, `[{"v":"1900-01-01T00:00:00Z"},{"v":"1970-01-01T00:00:00Z"},{"v":"2024-01-01T00:00:00Z"}]`},
		"decimals":     {&arrow.Decimal128Type{Precision: 30, Scale: 2}, `[{"v":null},{"v":"-100000000000000000000.01"},{"v":"-0.01"},{"v":"0.00"},{"v":"0.01"},{"v":"100000000000000000000.01"}]`},
		"binary":       {arrow.BinaryTypes.Binary, `[{"v":"AA=="},{"v":"AQ=="},{"v":"/w=="}]`},
		"sampled less": {arrow.PrimitiveTypes.Int32, `[{"v":1},{"v":2},{"v":3},{"v":4},{"v":5},{"v":6},{"v":7},{"v":8},{"v":9},{"v":10}]`},
	} {
		rec := f.batch(arrow.NewSchema([]arrow.Field{{Name: "v", Type: c.typ, Nullable: true}}, nil), c.rows)
		column := nestedColumn{leaf: rec.Column(0)}
		r := &ranker{}
		if err := r.sample(column); err != nil {
			t.Fatal(err)
		}
		ranks := uint32(4096)
		if name == "sampled less" {
			ranks = 8
		}
		r.ready(int(ranks))
		last := int64(-1)
		for i := range int(rec.NumRows()) {
			rank := r.rank(column, i)
			if int64(rank) < last || int64(rank) == last && ranks == 4096 || rank >= ranks || (rank == 0) != rec.Column(0).IsNull(i) {
				t.Errorf("%s: row %d has rank %d after %d", name, i, rank, last)
			}
			last = int64(rank)
		}
		rec.Release()
	}
	rec := f.batch(arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true}}, nil), `[{"v":[1]}]`)
	defer rec.Release()
	if err := (&ranker{}).sample(nestedColumn{leaf: rec.Column(0)}); err == nil {
		t.Error("a list has no order")
	}
}

// A field of a struct is null where the struct is.
func TestNestedColumnsAreNullWithTheirStruct(t *testing.T) {
	f := newFixture(t)
	inner := arrow.StructOf(arrow.Field{Name: "y", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	schema := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "x", Type: inner, Nullable: true}), Nullable: true}}, nil)
	rec := f.batch(schema, `[{"s":{"x":{"y":5}}},{"s":null},{"s":{"x":null}},{"s":{"x":{"y":null}}},{"s":{"x":{"y":7}}}]`)
	defer rec.Release()
	tree, err := fromArrow(schema.Fields(), "")
	if err != nil {
		t.Fatal(err)
	}
	o, err := newCurveOrder(tree, [][]string{{"s", "x", "y"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.learn([]arrow.RecordBatch{rec}, 1); err != nil {
		t.Fatal(err)
	}
	part := rec.NewSlice(1, 5)
	defer part.Release()
	if keys := append(o.keys(rec), o.keys(part)...); !slices.Equal(keys, []uint64{2, 0, 0, 0, 3, 0, 0, 0, 3}) {
		t.Errorf("%v", keys)
	}
	if _, err := newCurveOrder(tree, [][]string{{"s", "z"}}); err == nil {
		t.Error("no such column")
	}
}
