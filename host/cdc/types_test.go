package cdc_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/cdctest"
)

// TestValuesOfEveryType takes values through the state and through temporary files.
func TestValuesOfEveryType(t *testing.T) {
	kinds := map[string]struct {
		typ  arrow.DataType
		json string
		text string // "" is the JSON
	}{
		"tinyint": {arrow.PrimitiveTypes.Int8, `7`, ""},
		"int":     {arrow.PrimitiveTypes.Int32, `-7`, ""},
		"double":  {arrow.PrimitiveTypes.Float64, `0.5`, ""},
		"boolean": {arrow.FixedWidthTypes.Boolean, `true`, ""},
		"decimal": {&arrow.Decimal128Type{Precision: 18, Scale: 2}, `"12.50"`, "12.5"},
		"string":  {stringType, `"ä"`, "ä"},
		"binary":  {arrow.BinaryTypes.Binary, `"AQI="`, "AQI="},
		"date":    {arrow.FixedWidthTypes.Date32, `"2026-11-30"`, "2026-11-30"},
		"time":    {&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, `"2026-11-30T12:00:00.000001Z"`, "2026-11-30T12:00:00.000001Z"},
		"array":   {arrow.ListOf(int64Type), `[1,null]`, ""},
		"struct":  {arrow.StructOf(field("a", arrow.ListOf(stringType)), field("b", int64Type)), `{"a":["x"],"b":null}`, ""},
		"map":     {arrow.MapOf(stringType, int64Type), `[{"key":"k","value":1}]`, ""},
	}
	var columns []arrow.Field
	var full, empty, shown, null string
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		k := kinds[name]
		text := k.text
		if text == "" {
			text = k.json
		}
		columns = append(columns, field(name, k.typ))
		full, empty = full+fmt.Sprintf(`,"%s":%s`, name, k.json), empty+fmt.Sprintf(`,"%s":null`, name)
		shown, null = shown+fmt.Sprintf(" %s=%s", name, text), null+fmt.Sprintf(" %s=null", name)
	}
	s := items(columns...)
	row := func(seq int, v, values string) string {
		return fmt.Sprintf(`{"id":1,"v":"%s"%s,"__weir_cdc_sequence":%d}`, v, values, seq)
	}
	for _, def := range []cdc.Definition{{SCDType: 1}, {SCDType: 2}, {SCDType: 2, IgnoreNulls: &cdc.Choice{}}, {SCDType: 2, Memory: 1}} {
		t.Run(fmt.Sprint(def.SCDType, def.IgnoreNulls != nil, def.Memory), func(t *testing.T) {
			def.Keys = []string{"id"}
			x := cdctest.New(t, def)
			apply(t, x, s, []string{row(1, "a", full), `{"id":2,"__weir_cdc_sequence":1}`}, []string{row(3, "c", empty)}, []string{row(2, "b", full)}, []string{row(2, "b", full)})
			last := null
			if def.IgnoreNulls != nil {
				last = shown
			}
			if def.SCDType == 1 {
				expect(t, x, "id=1 v=c"+last, "id=2 v=null"+null)
				return
			}
			expect(t, x, "id=1 v=a"+shown+" __START_AT=1 __END_AT=2", "id=1 v=b"+shown+" __START_AT=2 __END_AT=3",
				"id=1 v=c"+last+" __START_AT=3 __END_AT=null", "id=2 v=null"+null+" __START_AT=1 __END_AT=null")
		})
	}
}

// TestSequencesOfEveryType orders by values of other types, and shows them.
func TestSequencesOfEveryType(t *testing.T) {
	pair := arrow.StructOf(field("at", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}), field("n", int64Type))
	for name, v := range map[string]struct {
		typ         arrow.DataType
		low, high   string
		start, next string
	}{
		"text":    {stringType, `"a"`, `"ab"`, "a", "ab"},
		"decimal": {&arrow.Decimal128Type{Precision: 38, Scale: 3}, `"-1.5"`, `"1"`, "-1.5", "1"},
		"date":    {arrow.FixedWidthTypes.Date32, `"1969-12-31"`, `"1970-01-02"`, "1969-12-31", "1970-01-02"},
		"double":  {arrow.PrimitiveTypes.Float64, `-1`, `0`, "-1", "0"},
		"struct": {pair, `{"at":"2026-01-01T00:00:00Z","n":2}`, `{"at":"2026-01-01T00:00:00Z","n":10}`,
			`{"at":"2026-01-01T00:00:00Z","n":2}`, `{"at":"2026-01-01T00:00:00Z","n":10}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := cdctest.Fields([]arrow.Field{field("id", int64Type), field("v", stringType), field("__weir_cdc_tie_0", stringType)}, v.typ, "delete")
			x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: 2, LastBy: []string{"tie"}})
			row := func(seq, text string) string {
				return fmt.Sprintf(`{"id":1,"v":"%s","__weir_cdc_tie_0":"%s","__weir_cdc_sequence":%s}`, text, text, seq)
			}
			apply(t, x, s, []string{row(v.high, "h1")}, []string{row(v.low, "l2")}, []string{row(v.high, "h2"), row(v.low, "l1")})
			expect(t, x, "id=1 v=h2 __START_AT="+v.next+" __END_AT=null", "id=1 v=l2 __START_AT="+v.start+" __END_AT="+v.next)
		})
	}
}
