package coltype

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

func utc(u arrow.TimeUnit) arrow.DataType { return &arrow.TimestampType{Unit: u, TimeZone: "UTC"} }
func ntz(u arrow.TimeUnit) arrow.DataType { return &arrow.TimestampType{Unit: u} }

func TestEveryNameHasItsArrowTypeAndReadsBack(t *testing.T) {
	for _, c := range []struct {
		spellings []string // the first is the canonical one
		want      arrow.DataType
		delta     bool
	}{
		{[]string{"void", "NULL"}, arrow.Null, false},
		{[]string{"boolean", "BOOL", "Boolean"}, arrow.FixedWidthTypes.Boolean, true},
		{[]string{"tinyint", "BYTE"}, arrow.PrimitiveTypes.Int8, true},
		{[]string{"smallint", "short"}, arrow.PrimitiveTypes.Int16, true},
		{[]string{"int", "INTEGER"}, arrow.PrimitiveTypes.Int32, true},
		{[]string{"bigint", "Long"}, arrow.PrimitiveTypes.Int64, true},
		{[]string{"uint8"}, arrow.PrimitiveTypes.Uint8, false},
		{[]string{"uint16"}, arrow.PrimitiveTypes.Uint16, false},
		{[]string{"uint32"}, arrow.PrimitiveTypes.Uint32, false},
		{[]string{"uint64", "UINT64"}, arrow.PrimitiveTypes.Uint64, false},
		{[]string{"float", "REAL"}, arrow.PrimitiveTypes.Float32, true},
		{[]string{"double"}, arrow.PrimitiveTypes.Float64, true},
		{[]string{"decimal(18,2)", "DEC( 18 , 2 )", "numeric(18,2)"}, &arrow.Decimal128Type{Precision: 18, Scale: 2}, true},
		{[]string{"decimal(10,0)", "decimal", "decimal(10)"}, &arrow.Decimal128Type{Precision: 10}, true},
		{[]string{"decimal(38,38)"}, &arrow.Decimal128Type{Precision: 38, Scale: 38}, true},
		{[]string{"decimal256(76,10)"}, &arrow.Decimal256Type{Precision: 76, Scale: 10}, false},
		{[]string{"string", "varchar(10)", "CHAR(3)"}, arrow.BinaryTypes.String, true},
		{[]string{"large_string"}, arrow.BinaryTypes.LargeString, false},
		{[]string{"binary"}, arrow.BinaryTypes.Binary, true},
		{[]string{"large_binary"}, arrow.BinaryTypes.LargeBinary, false},
		{[]string{"fixed_size_binary(16)"}, &arrow.FixedSizeBinaryType{ByteWidth: 16}, false},
		{[]string{"date"}, arrow.PrimitiveTypes.Date32, true},
		{[]string{"timestamp", "TIMESTAMP_LTZ", "timestamp(us)", "timestamp(us,'UTC')"}, utc(arrow.Microsecond), true},
		{[]string{"timestamp_ntz", "timestamp_ntz(us)"}, ntz(arrow.Microsecond), true},
		{[]string{"timestamp(ns,'UTC')", "timestamp(ns)"}, utc(arrow.Nanosecond), false},
		{[]string{"timestamp_ntz(s)"}, ntz(arrow.Second), false},
		{[]string{"timestamp(ms,'Europe/Berlin')"}, &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Europe/Berlin"}, false},
		{[]string{"time", "time(us)"}, arrow.FixedWidthTypes.Time64us, false},
		{[]string{"time(ns)"}, arrow.FixedWidthTypes.Time64ns, false},
		{[]string{"time(s)"}, arrow.FixedWidthTypes.Time32s, false},
		{[]string{"time(ms)"}, arrow.FixedWidthTypes.Time32ms, false},
		{[]string{"duration"}, arrow.FixedWidthTypes.Duration_us, false},
		{[]string{"duration(s)"}, arrow.FixedWidthTypes.Duration_s, false},
		{[]string{"array<bigint>", "ARRAY<LONG>", "array < bigint >"}, arrow.ListOf(arrow.PrimitiveTypes.Int64), true},
		{[]string{"large_array<int>"}, arrow.LargeListOf(arrow.PrimitiveTypes.Int32), false},
		{[]string{"fixed_size_array<float,3>"}, arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32), false},
		{[]string{"map<string,int>", "MAP<STRING, INT>"}, arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), true},
		{[]string{"struct<a:int,b:array<struct<c:date>>>", "STRUCT<a INT, b: ARRAY<STRUCT<c: DATE>>>"}, arrow.StructOf(
			arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
			arrow.Field{Name: "b", Nullable: true, Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "c", Type: arrow.PrimitiveTypes.Date32, Nullable: true}))},
		), true},
		{[]string{"struct<`a b`:int not null,`x``y`:string>"}, arrow.StructOf(
			arrow.Field{Name: "a b", Type: arrow.PrimitiveTypes.Int32},
			arrow.Field{Name: "x`y", Type: arrow.BinaryTypes.String, Nullable: true},
		), true},
		{[]string{"struct<>"}, arrow.StructOf(), false},
		{[]string{"array<uint64>"}, arrow.ListOf(arrow.PrimitiveTypes.Uint64), false},
	} {
		for _, s := range c.spellings {
			got, err := Parse(s)
			if err != nil {
				t.Errorf("Parse(%q): %v", s, err)
				continue
			}
			if !arrow.TypeEqual(got, c.want) {
				t.Errorf("Parse(%q) = %v, want %v", s, got, c.want)
			}
		}
		if n, err := Name(c.want); err != nil || n != c.spellings[0] {
			t.Errorf("Name(%v) = %q, %v; want %q", c.want, n, err, c.spellings[0])
		}
		if err := DeltaType(c.want); (err == nil) != c.delta {
			t.Errorf("DeltaType(%v) = %v, want ok %v", c.want, err, c.delta)
		}
	}
}

func TestRefusedTypesAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "[PARSE_SYNTAX_ERROR] expected a type, found the end",
		"strin":                           `[UNSUPPORTED_DATATYPE] there is no column type "strin"`,
		"variant":                         `[UNSUPPORTED_DATATYPE] there is no column type "variant"`,
		"decimal(39,2)":                   "[DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION] decimal precision 39 is outside 1 to 38",
		"decimal(0,0)":                    "[DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION]",
		"decimal(4,5)":                    "[DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION] decimal scale 5",
		"decimal(4,-1)":                   "[PARSE_SYNTAX_ERROR]",
		"decimal(4":                       "[PARSE_SYNTAX_ERROR] expected \")\", found the end",
		"varchar":                         "[DATATYPE_MISSING_SIZE]",
		"int int":                         `[PARSE_SYNTAX_ERROR] expected the end of the type, found "int" at character 5`,
		"array":                           "[PARSE_SYNTAX_ERROR] expected \"<\"",
		"map<map<int,int>,int>":           "[UNSUPPORTED_DATATYPE] a map cannot be the key",
		"struct<a int, A int>":            "[COLUMN_ALREADY_EXISTS] field A",
		"struct<a>":                       "[PARSE_SYNTAX_ERROR]",
		"fixed_size_binary(0)":            "[UNSUPPORTED_DATATYPE] size 0",
		"timestamp(h)":                    "[PARSE_SYNTAX_ERROR] expected a unit",
		"timestamp_ntz(us,'UTC')":         "[PARSE_SYNTAX_ERROR]",
		strings.Repeat("array<", 100_000): "[UNSUPPORTED_DATATYPE] a type nested deeper than 64",
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%.40q) = %v, want %s", text, err, want)
		}
	}
	for _, dt := range []arrow.DataType{arrow.PrimitiveTypes.Date64, arrow.FixedWidthTypes.Float16,
		arrow.BinaryTypes.StringView, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, nil} {
		if n, err := Name(dt); err == nil {
			t.Errorf("Name(%v) = %q, want an error", dt, n)
		}
	}
}

func TestDeltaTypeNamesThePartAndTheWayOut(t *testing.T) {
	dt, err := Parse("struct<a:int,b:array<struct<t:time>>>")
	if err != nil {
		t.Fatal(err)
	}
	want := "[DELTA_UNSUPPORTED_DATA_TYPES] type time at b.element.t has no Delta type; use string"
	if err := DeltaType(dt); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}

// covers A12 (hints may be nested, any case) and A15 (a declared schema).
func TestParseDDL(t *testing.T) {
	got, err := ParseDDL("order_id STRING NOT NULL COMMENT 'it''s the key', a.b DATE,\n m MAP<STRING,INT>, `odd name`: DECIMAL(18,2) COMMENT \"x\" NOT NULL, comment string")
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		name, typ, comment string
		path               int
		notNull            bool
	}{
		{"order_id", "string", "it's the key", 1, true},
		{"a.b", "date", "", 2, false},
		{"m", "map<string,int>", "", 1, false},
		{"odd name", "decimal(18,2)", "x", 1, true},
		{"comment", "string", "", 1, false},
	}
	if len(got) != len(want) {
		t.Fatalf("%d fields, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.Name() != w.name || String(g.Type) != w.typ || g.Comment != w.comment || len(g.Path) != w.path || g.NotNull != w.notNull {
			t.Errorf("field %d = %+v, want %+v", i, g, w)
		}
	}
	for text, want := range map[string]string{
		"a":                  "expected a type",
		"a int,":             "expected a column name, found the end",
		"a int b int":        "expected \",\"",
		"a int, A string":    "[COLUMN_ALREADY_EXISTS] column A",
		"a int NOT":          "expected NULL after NOT",
		"a int COMMENT x":    "expected a quoted comment",
		"`a int":             "expected a column name",
		"a int DEFAULT 3":    "expected \",\", found \"DEFAULT\"",
		"a. int":             "expected a type",
		"a int COMMENT 'abc": "expected a quoted comment",
	} {
		if _, err := ParseDDL(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseDDL(%q) = %v, want %s", text, err, want)
		}
	}
	if fields, err := ParseDDL("  "); err != nil || len(fields) != 0 {
		t.Errorf("an empty text: %v, %v", fields, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"int", "decimal(18,2)", "struct<a:int not null comment 'x',`b c`:map<string,array<date>>>", "timestamp(ms,'Europe/Berlin')", "fixed_size_array<float,3>", "a.b int, c string"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := ParseDDL(text); err != nil {
			_ = err.Error()
		}
		dt, err := Parse(text)
		if err != nil {
			return
		}
		name, err := Name(dt)
		if err != nil {
			t.Fatalf("Parse(%q) = %v has no name: %v", text, dt, err)
		}
		back, err := Parse(name)
		if err != nil || !arrow.TypeEqual(back, dt) {
			t.Fatalf("Parse(%q) = %v, back %v, %v", name, dt, back, err)
		}
	})
}
