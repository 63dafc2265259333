package relation

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// one makes an array of one value with a builder.
func one[B array.Builder](dt arrow.DataType, add func(B)) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	add(b.(B))
	return b.NewArray()
}

func TestEveryArrowTypeHasItsJSON(t *testing.T) {
	us, str := arrow.Microsecond, arrow.BinaryTypes.String
	for _, c := range []struct {
		name string
		arr  arrow.Array
		want string
	}{
		{"null", array.NewNull(1), `null`},
		{"a NULL", one(str, func(b *array.StringBuilder) { b.AppendNull() }), `null`},
		{"bool", one(arrow.FixedWidthTypes.Boolean, func(b *array.BooleanBuilder) { b.Append(true) }), `true`},
		{"int8", one(arrow.PrimitiveTypes.Int8, func(b *array.Int8Builder) { b.Append(-128) }), `-128`},
		{"int16", one(arrow.PrimitiveTypes.Int16, func(b *array.Int16Builder) { b.Append(-5) }), `-5`},
		{"int32", one(arrow.PrimitiveTypes.Int32, func(b *array.Int32Builder) { b.Append(7) }), `7`},
		{"int64", one(arrow.PrimitiveTypes.Int64, func(b *array.Int64Builder) { b.Append(math.MinInt64) }), `-9223372036854775808`},
		{"uint8", one(arrow.PrimitiveTypes.Uint8, func(b *array.Uint8Builder) { b.Append(255) }), `255`},
		{"uint16", one(arrow.PrimitiveTypes.Uint16, func(b *array.Uint16Builder) { b.Append(1) }), `1`},
		{"uint32", one(arrow.PrimitiveTypes.Uint32, func(b *array.Uint32Builder) { b.Append(1) }), `1`},
		{"uint64", one(arrow.PrimitiveTypes.Uint64, func(b *array.Uint64Builder) { b.Append(math.MaxUint64) }), `18446744073709551615`},
		{"float16", one(arrow.FixedWidthTypes.Float16, func(b *array.Float16Builder) { b.Append(float16.New(1.5)) }), `1.5`},
		{"float32", one(arrow.PrimitiveTypes.Float32, func(b *array.Float32Builder) { b.Append(0.1) }), `0.1`},
		{"float64", one(arrow.PrimitiveTypes.Float64, func(b *array.Float64Builder) { b.Append(1e300) }), `1e+300`},
		{"NaN", one(arrow.PrimitiveTypes.Float64, func(b *array.Float64Builder) { b.Append(math.NaN()) }), `"NaN"`},
		{"infinity", one(arrow.PrimitiveTypes.Float64, func(b *array.Float64Builder) { b.Append(math.Inf(-1)) }), `"-Infinity"`},
		{"decimal", one(&arrow.Decimal128Type{Precision: 18, Scale: 2}, func(b *array.Decimal128Builder) { b.Append(decimal128.FromI64(-5)) }), `-0.05`},
		{"decimal without scale", one(&arrow.Decimal128Type{Precision: 18}, func(b *array.Decimal128Builder) { b.Append(decimal128.FromI64(1200)) }), `1200`},
		{"decimal256", one(&arrow.Decimal256Type{Precision: 70, Scale: 1}, func(b *array.Decimal256Builder) { b.Append(decimal256.FromI64(15)) }), `1.5`},
		{"string", one(str, func(b *array.StringBuilder) { b.Append("a\"b\\c\n\x01<é>\xff☃") }), "\"a\\\"b\\\\c\\n\\u0001<é>\uFFFD☃\""},
		{"large string", one(arrow.BinaryTypes.LargeString, func(b *array.LargeStringBuilder) { b.Append("x") }), `"x"`},
		{"string view", one(arrow.BinaryTypes.StringView, func(b *array.StringViewBuilder) { b.Append("x") }), `"x"`},
		{"binary", one(arrow.BinaryTypes.Binary, func(b *array.BinaryBuilder) { b.Append([]byte{0, 255}) }), `"AP8="`},
		{"fixed binary", one(&arrow.FixedSizeBinaryType{ByteWidth: 2}, func(b *array.FixedSizeBinaryBuilder) { b.Append([]byte{1, 2}) }), `"AQI="`},
		{"date32", one(arrow.FixedWidthTypes.Date32, func(b *array.Date32Builder) { b.Append(-1) }), `"1969-12-31"`},
		{"date64", one(arrow.FixedWidthTypes.Date64, func(b *array.Date64Builder) { b.Append(86400000) }), `"1970-01-02"`},
		{"time32", one(arrow.FixedWidthTypes.Time32ms, func(b *array.Time32Builder) { b.Append(1500) }), `"00:00:01.5"`},
		{"time64", one(arrow.FixedWidthTypes.Time64us, func(b *array.Time64Builder) { b.Append(1) }), `"00:00:00.000001"`},
		{"timestamp", one(&arrow.TimestampType{Unit: us, TimeZone: "UTC"}, func(b *array.TimestampBuilder) { b.Append(1500000) }), `"1970-01-01T00:00:01.5Z"`},
		{"timestamp of a zone", one(&arrow.TimestampType{Unit: us, TimeZone: "Asia/Tokyo"}, func(b *array.TimestampBuilder) { b.Append(0) }), `"1970-01-01T00:00:00Z"`},
		{"timestamp_ntz", one(&arrow.TimestampType{Unit: us}, func(b *array.TimestampBuilder) { b.Append(-1) }), `"1969-12-31T23:59:59.999999"`},
		{"duration", one(&arrow.DurationType{Unit: arrow.Millisecond}, func(b *array.DurationBuilder) { b.Append(-1500) }), `-1.500`},
		{"least duration", one(&arrow.DurationType{Unit: us}, func(b *array.DurationBuilder) { b.Append(math.MinInt64) }), `-9223372036854.775808`},
		{"interval", one(arrow.FixedWidthTypes.MonthInterval, func(b *array.MonthIntervalBuilder) { b.Append(3) }), `"3"`},
		{"list", one(arrow.ListOf(arrow.PrimitiveTypes.Int32), func(b *array.ListBuilder) {
			b.Append(true)
			b.ValueBuilder().(*array.Int32Builder).AppendValues([]int32{1, 2}, []bool{true, false})
		}), `[1,null]`},
		{"fixed list", one(arrow.FixedSizeListOf(1, arrow.PrimitiveTypes.Int32), func(b *array.FixedSizeListBuilder) {
			b.Append(true)
			b.ValueBuilder().(*array.Int32Builder).Append(1)
		}), `[1]`},
		{"struct", one(arrow.StructOf(arrow.Field{Name: "b", Type: str}, arrow.Field{Name: "_metadata", Type: str}), func(b *array.StructBuilder) {
			b.Append(true)
			b.FieldBuilder(0).(*array.StringBuilder).Append("x")
			b.FieldBuilder(1).(*array.StringBuilder).Append("y")
		}), `{"b":"x","_metadata":"y"}`},
		{"map of texts", one(arrow.MapOf(str, arrow.PrimitiveTypes.Int32), func(b *array.MapBuilder) {
			b.Append(true)
			b.KeyBuilder().(*array.StringBuilder).Append("k")
			b.ItemBuilder().(*array.Int32Builder).Append(1)
		}), `{"k":1}`},
		{"map of numbers", one(arrow.MapOf(arrow.PrimitiveTypes.Int32, str), func(b *array.MapBuilder) {
			b.Append(true)
			b.KeyBuilder().(*array.Int32Builder).Append(1)
			b.ItemBuilder().(*array.StringBuilder).AppendNull()
		}), `[{"key":1,"value":null}]`},
		{"dictionary", one(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: str}, func(b *array.BinaryDictionaryBuilder) { _ = b.AppendString("d") }), `"d"`},
		{"run ends", one(arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, str), func(b *array.RunEndEncodedBuilder) {
			b.Append(1)
			b.ValueBuilder().(*array.StringBuilder).Append("r")
		}), `"r"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := AppendJSON(nil, c.arr, 0)
			if string(got) != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if !json.Valid(got) {
				t.Errorf("%s is no JSON", got)
			}
		})
	}
}

func TestRowsLeaveTheHiddenColumnsOut(t *testing.T) {
	schema := SourceColumns([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "we \"ird", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, true)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Int32Builder).Append(1)
	b.Field(1).AppendNull()
	b.Field(2).AppendNull()
	b.Field(3).(*array.Int64Builder).Append(9)
	rec := b.NewRecordBatch()
	defer rec.Release()
	if got := string(RowJSON(rec, 0)); got != `{"id":1,"we \"ird":null}` {
		t.Errorf("got %s", got)
	}
	data := Data(rec)
	defer data.Release()
	if data.NumCols() != 2 || !data.Schema().Equal(DataSchema(schema)) {
		t.Errorf("got %s", data.Schema())
	}
	if rows, ok := Int64Column(rec, RowColumn); !ok || rows.Value(0) != 9 {
		t.Error("the row column is not found")
	}
	if _, ok := Int64Column(rec, MaskColumn); ok {
		t.Error("a mask is found that is not there")
	}
}

func FuzzStringsAreJSON(f *testing.F) {
	for _, s := range []string{"", "a\"\\\n\x00\x7f", "\xff\xfe", "é☃😀", "\u2028<>&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := AppendString(nil, s)
		var back string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		if want := strings.ToValidUTF8(s, ""); strings.ReplaceAll(back, "\uFFFD", "") != strings.ReplaceAll(want, "\uFFFD", "") {
			t.Fatalf("%q came back as %q", s, back)
		}
	})
}
