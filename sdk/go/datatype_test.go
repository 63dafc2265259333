package weir

import (
	"strings"
	"testing"
)

func TestTypeNamesReadBack(t *testing.T) {
	for text, want := range map[string]string{
		"void": "void", "NULL": "void", "bool": "boolean", "byte": "tinyint", "SHORT": "smallint", "integer": "int", "long": "bigint",
		"uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "real": "float", "Double": "double",
		"decimal": "decimal(10,0)", "DEC(5)": "decimal(5,0)", "numeric( 18 , 2 )": "decimal(18,2)", "decimal256(76,3)": "decimal256(76,3)",
		"varchar(10)": "string", "char(1)": "string", "string": "string", "large_string": "large_string", "binary": "binary", "large_binary": "large_binary",
		"fixed_size_binary(16)": "fixed_size_binary(16)", "date": "date",
		"timestamp": "timestamp", "timestamp_ltz": "timestamp", "timestamp_ntz": "timestamp_ntz", "timestamp(us,'UTC')": "timestamp",
		"timestamp(ms)": "timestamp(ms,'UTC')", "timestamp(ns,'it''s')": "timestamp(ns,'it''s')", "timestamp_ntz(s)": "timestamp_ntz(s)",
		"time": "time", "time(s)": "time(s)", "time(ms)": "time(ms)", "time(us)": "time", "time(ns)": "time(ns)", "duration": "duration", "duration(ns)": "duration(ns)",
		"ARRAY<STRING>": "array<string>", "large_array<int>": "large_array<int>", "fixed_size_array<int, 3>": "fixed_size_array<int,3>",
		"map<string, array<int>>":                            "map<string,array<int>>",
		"struct<a: int, `b c` string not null, d: struct<>>": "struct<a:int,`b c`:string not null,d:struct<>>",
		"struct<`x``y` int>":                                 "struct<`x``y`:int>",
	} {
		got, err := ParseType(text)
		if err != nil || got.String() != want {
			t.Errorf("%q read as %q, %v; want %q", text, got, err, want)
			continue
		}
		again, err := ParseType(got.String())
		if err != nil || !again.equal(got) {
			t.Errorf("%q does not read back: %v, %v", got, again, err)
		}
	}
}

func TestBadTypesSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		"": "expected a type at character 1", "strin": "expected a type at character 1", "decimal(39,0)": "a precision of 1 to 38",
		"decimal(5,6)": "a scale of at most the precision", "decimal(5": "expected \")\"", "array<int": "expected \">\"", "array<>": "expected a type",
		"int int": "the end of the type at character 5", "struct<int>": "expected a type", "timestamp(h)": "a unit", "timestamp(ms,'x": "a closing quote",
		"decimal(99999999999999999999)": "a precision", strings.Repeat("array<", 70): "nested less deep", "struct<`a int>": "a closing backtick",
	} {
		if got, err := ParseType(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q gave %v, %v; want %s", text, got, err, want)
		}
	}
	if _, err := ParseColumns("a int,, b int"); err == nil {
		t.Error("two commas were read")
	}
}

func FuzzParseColumns(f *testing.F) {
	f.Add("order_id string not null, amount decimal(18,2), items array<struct<sku: string, tags: map<string,int>>>")
	f.Add("`a``b` timestamp(ms,'Europe/Zurich')")
	f.Fuzz(func(t *testing.T, text string) {
		fields, err := ParseColumns(text)
		if err != nil {
			return
		}
		for _, field := range fields {
			again, err := ParseType(field.Type.String())
			if err != nil || !again.equal(field.Type) {
				t.Fatalf("%q came back as %v, %v", field.Type, again, err)
			}
		}
	})
}
