package rowcode

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// contents are the types a table can hold: those with an order, and those without.
var contents = append(slices.Clone(orderables),
	arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32),
	arrow.MapOf(arrow.BinaryTypes.String, arrow.ListOf(arrow.BinaryTypes.String)),
	arrow.ListOf(arrow.MapOf(arrow.BinaryTypes.String, arrow.FixedWidthTypes.Boolean)),
	arrow.StructOf(arrow.Field{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float32), Nullable: true}),
	arrow.Null,
)

// equalValues says whether SQL calls values equal, NULL being equal to NULL.
func equalValues(a arrow.Array, i int, b arrow.Array, j int) bool {
	if a.IsNull(i) || b.IsNull(j) {
		return a.IsNull(i) == b.IsNull(j)
	}
	switch a := a.(type) {
	case *array.Struct:
		for f := range a.NumField() {
			if !equalValues(a.Field(f), i, b.(*array.Struct).Field(f), j) {
				return false
			}
		}
		return true
	case *array.Map:
		from, to := a.ValueOffsets(i)
		ofrom, oto := b.(*array.Map).ValueOffsets(j)
		for e := from; e < to; e++ {
			found := false
			for o := ofrom; o < oto; o++ {
				found = found || equalValues(a.Keys(), int(e), b.(*array.Map).Keys(), int(o)) && equalValues(a.Items(), int(e), b.(*array.Map).Items(), int(o))
			}
			if !found {
				return false
			}
		}
		return to-from == oto-ofrom
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		ofrom, oto := b.(array.ListLike).ValueOffsets(j)
		for e := range to - from {
			if ofrom+e >= oto || !equalValues(a.ListValues(), int(from+e), b.(array.ListLike).ListValues(), int(ofrom+e)) {
				return false
			}
		}
		return to-from == oto-ofrom
	case *array.Null:
		return true
	}
	return compareValues(a, i, b, j) == 0
}

func TestRowsHashWhatTheyHold(t *testing.T) {
	for ti, typ := range contents {
		rng := rand.New(rand.NewPCG(uint64(ti), 4))
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		cols := []arrow.Array{randomColumn(rng, mem, typ, 300, true), randomColumn(rng, mem, arrow.PrimitiveTypes.Int8, 300, true)}
		fields := []arrow.Field{{Name: "One", Type: typ, Nullable: true}, {Name: "two", Type: arrow.PrimitiveTypes.Int8, Nullable: true}}
		whole := array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, 300)
		rec := whole.NewSlice(13, 300)
		hashes := Rows(rec, []int{0, 1})
		for i := range hashes {
			for j := range i {
				same := equalValues(rec.Column(0), i, rec.Column(0), j) && equalValues(rec.Column(1), i, rec.Column(1), j)
				if (hashes[i] == hashes[j]) != same {
					t.Fatalf("%s: rows (%s, %s) and (%s, %s): equal is %v", typ, rec.Column(0).ValueStr(i), rec.Column(1).ValueStr(i), rec.Column(0).ValueStr(j), rec.Column(1).ValueStr(j), same)
				}
			}
		}
		if again := Rows(rec, []int{1, 0}); !slices.Equal(hashes, again) {
			t.Fatalf("%s: the order of columns counts", typ)
		}
		b := array.NewBuilder(mem, arrow.BinaryTypes.String)
		b.AppendNulls(300)
		nothing := b.NewArray()
		b.Release()
		more := array.NewRecordBatch(arrow.NewSchema(append([]arrow.Field{{Name: "late", Type: arrow.BinaryTypes.String, Nullable: true}}, fields...), nil), append([]arrow.Array{nothing}, cols...), 300)
		if again := Rows(more, []int{0, 1, 2}); !slices.Equal(hashes, again[13:]) {
			t.Fatalf("%s: a column of NULLs counts", typ)
		}
		for _, c := range append(cols, nothing) {
			c.Release()
		}
		more.Release()
		rec.Release()
		whole.Release()
		mem.AssertSize(t, 0)
	}
}

func TestKeysAreEqualWhereValuesAre(t *testing.T) {
	for ti, typ := range orderables {
		rng := rand.New(rand.NewPCG(uint64(ti), 5))
		cols := []arrow.Array{randomColumn(rng, memory.DefaultAllocator, typ, 300, true), randomColumn(rng, memory.DefaultAllocator, arrow.BinaryTypes.String, 300, true)}
		whole := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "a", Type: typ, Nullable: true}, {Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}}, nil), cols, 300)
		rec := whole.NewSlice(13, 300)
		keys, err := Keys(rec, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		if keys.Len() != 287 || keys.Binary().Len() != 287 {
			t.Fatalf("%d keys", keys.Len())
		}
		for i := range keys.Len() {
			for j := range i {
				same := equalValues(rec.Column(0), i, rec.Column(0), j) && equalValues(rec.Column(1), i, rec.Column(1), j)
				if bytes.Equal(keys.At(i), keys.At(j)) != same {
					t.Fatalf("%s: keys (%s, %q) and (%s, %q): equal is %v", typ, rec.Column(0).ValueStr(i), rec.Column(1).ValueStr(i), rec.Column(0).ValueStr(j), rec.Column(1).ValueStr(j), same)
				}
			}
		}
		whole.Release()
		rec.Release()
	}
}

// A sequence followed by columns that decide: the ties never reach into the sequence, and a NULL among them is lowest.
func TestTiesDecideBetweenEqualSequences(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for _, typ := range []arrow.DataType{arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int16, orderables[25]} {
		sequence := randomColumn(rng, memory.DefaultAllocator, typ, 80, false)
		ties := []arrow.Array{randomColumn(rng, memory.DefaultAllocator, arrow.BinaryTypes.String, 80, true), randomColumn(rng, memory.DefaultAllocator, typ, 80, true)}
		codes, err := Sequences(sequence, ties...)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := Order(sequence)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 80 {
			if p, err := Prefix(typ, codes.At(i)); err != nil || !bytes.Equal(p, alone.At(i)) {
				t.Fatalf("%s: the sequence of %x is %x, want %x (%v)", typ, codes.At(i), p, alone.At(i), err)
			}
			for j := range 80 {
				want := compareValues(sequence, i, sequence, j)
				for _, tie := range ties {
					if want == 0 {
						want = compareValues(tie, i, tie, j)
					}
				}
				if got := bytes.Compare(codes.At(i), codes.At(j)); got != want {
					t.Fatalf("%s: %d and %d compare %d, want %d", typ, i, j, got, want)
				}
			}
		}
	}
}

func TestWideningChangesNoCode(t *testing.T) {
	for _, c := range []struct{ narrow, wide arrow.DataType }{
		{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int64},
		{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64},
		{arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64},
		{&arrow.Decimal128Type{Precision: 9, Scale: 2}, &arrow.Decimal128Type{Precision: 38, Scale: 2}},
	} {
		n, w := array.NewBuilder(memory.DefaultAllocator, c.narrow), array.NewBuilder(memory.DefaultAllocator, c.wide)
		for _, v := range []string{"0", "1", "-7", "100"} {
			for _, b := range []array.Builder{n, w} {
				if err := b.AppendValueFromString(v); err != nil {
					t.Fatal(err)
				}
			}
		}
		var codes [2]Bytes
		var rows [2][]Hash
		for i, b := range []array.Builder{n, w} {
			col := b.NewArray()
			rec := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "x", Type: col.DataType()}}, nil), []arrow.Array{col}, 4)
			var err error
			if codes[i], err = Keys(rec, []int{0}); err != nil {
				t.Fatal(err)
			}
			rows[i] = Rows(rec, []int{0})
		}
		if !bytes.Equal(codes[0].Data, codes[1].Data) || !slices.Equal(rows[0], rows[1]) {
			t.Errorf("%s and %s: %x and %x", c.narrow, c.wide, codes[0].Data, codes[1].Data)
		}
	}
}

// Codes and hashes lie in the state of targets: this release and the next have to agree on them.
func TestCodesStayAsTheyAre(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int32},
		{Name: "Name", Type: arrow.BinaryTypes.String},
		{Name: "price", Type: &arrow.Decimal128Type{Precision: 10, Scale: 2}},
		{Name: "score", Type: arrow.PrimitiveTypes.Float64},
		{Name: "ok", Type: arrow.FixedWidthTypes.Boolean},
		{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String)},
		{Name: "facts", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64)},
		{Name: "none", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Int32Builder).Append(-5)
	b.Field(1).(*array.StringBuilder).Append("a\x00b")
	b.Field(2).(*array.Decimal128Builder).Append(decimal128.FromI64(1234))
	b.Field(3).(*array.Float64Builder).Append(-1.5)
	b.Field(4).(*array.BooleanBuilder).Append(true)
	tags := b.Field(5).(*array.ListBuilder)
	tags.Append(true)
	tags.ValueBuilder().(*array.StringBuilder).AppendValues([]string{"x", ""}, []bool{true, false})
	facts := b.Field(6).(*array.MapBuilder)
	facts.Append(true)
	facts.KeyBuilder().(*array.StringBuilder).AppendValues([]string{"z", "a"}, nil)
	facts.ItemBuilder().(*array.Int64Builder).AppendValues([]int64{1, 2}, nil)
	b.Field(7).AppendNull()
	rec := b.NewRecordBatch()
	defer rec.Release()

	keys, err := Keys(rec, []int{0, 1, 2, 3, 4, 5, 7})
	if err != nil {
		t.Fatal(err)
	}
	const wantKey = "017ffffffffffffffb" + "016100ff620001" + "01800000000000000000000000000004d2" + "014007ffffffffffff" + "0101" + "010278000101" + "00" + "00"
	if got := hex.EncodeToString(keys.At(0)); got != wantKey {
		t.Errorf("the key is %s, want %s", got, wantKey)
	}
	if got, want := fmt.Sprintf("%x", HashOf(keys.At(0))), "3dbf98d2530d432a61a967b9c414e2df"; got != want {
		t.Errorf("the key's hash is %s, want %s", got, want)
	}
	if got, want := fmt.Sprintf("%x", Rows(rec, []int{0, 1, 2, 3, 4, 5, 6, 7})[0]), "ae29ecd9ac7f5fda18a0e8030ce6681a"; got != want {
		t.Errorf("the row's hash is %s, want %s", got, want)
	}
}

func TestWhatHasNoOrderIsRefused(t *testing.T) {
	for _, typ := range contents[len(orderables):] {
		if Orderable(typ) == nil {
			t.Errorf("%s has an order", typ)
		}
		b := array.NewBuilder(memory.DefaultAllocator, typ)
		b.AppendNull()
		if _, err := Order(b.NewArray()); err == nil {
			t.Errorf("%s has codes", typ)
		}
	}
	for _, typ := range orderables {
		if err := Orderable(typ); err != nil {
			t.Error(err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 7))
	for ti, typ := range orderables {
		codes, err := Order(randomColumn(rng, memory.DefaultAllocator, typ, 5, false))
		if err != nil {
			f.Fatal(err)
		}
		for i := range codes.Len() {
			f.Add(uint8(ti), codes.At(i))
		}
	}
	f.Fuzz(func(t *testing.T, ti uint8, code []byte) {
		typ := orderables[int(ti)%len(orderables)]
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		defer mem.AssertSize(t, 0)
		b := array.NewBuilder(mem, typ)
		defer b.Release()
		err := AppendOrder(b, typ, code)
		if err != nil {
			if b.Len() != 0 {
				t.Fatal("half a value was appended")
			}
			return
		}
		col := b.NewArray()
		defer col.Release()
		again, err := Order(col)
		if err != nil {
			t.Fatal(err)
		}
		prefix, err := Prefix(typ, code)
		if err != nil || col.Len() != 1 || !bytes.Equal(again.At(0), prefix) {
			t.Fatalf("%s: %x is read as %s, whose code is %x", typ, code, col.ValueStr(0), again.At(0))
		}
	})
}
