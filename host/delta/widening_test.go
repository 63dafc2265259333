package delta

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

func decimal(precision, scale int32) arrow.DataType {
	return &arrow.Decimal128Type{Precision: precision, Scale: scale}
}

var ntz = &arrow.TimestampType{Unit: arrow.Microsecond}

// widenings are the type changes of the protocol, with values at the ends of the old type.
var widenings = []struct {
	from, to  arrow.DataType
	old, want []string // as JSON, and as they are read after the change
	new       string   // a value of the new type only, as JSON
	byItself  bool     // schema evolution may do it
}{
	{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, []string{"-128", "127"}, []string{"-128", "127"}, "-32768", true},
	{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int32, []string{"-128", "127"}, []string{"-128", "127"}, "-2147483648", true},
	{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int64, []string{"-128", "127"}, []string{"-128", "127"}, "-9223372036854775808", true},
	{arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, []string{"-32768", "32767"}, []string{"-32768", "32767"}, "2147483647", true},
	{arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int64, []string{"-32768", "32767"}, []string{"-32768", "32767"}, "9223372036854775807", true},
	{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, []string{"-2147483648", "2147483647"}, []string{"-2147483648", "2147483647"}, "9223372036854775807", true},
	{arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, []string{"3.14", "-0.5"}, []string{"3.140000104904175", "-0.5"}, "3.14", true},
	{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Float64, []string{"-128", "127"}, []string{"-128", "127"}, "0.1", false},
	{arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Float64, []string{"-32768", "32767"}, []string{"-32768", "32767"}, "0.1", false},
	{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Float64, []string{"-2147483648", "2147483647"}, []string{"-2.147483648E9", "2.147483647E9"}, "0.1", false},
	{arrow.FixedWidthTypes.Date32, ntz, []string{`"0001-01-01"`, `"9999-12-31"`}, []string{"0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z"}, `"2024-01-01 12:00:00.000001"`, true},
	{decimal(5, 2), decimal(5, 2), []string{`"-999.99"`}, []string{"-999.99"}, `"1.00"`, true},
	{decimal(5, 2), decimal(6, 3), []string{`"-999.99"`, `"0.01"`}, []string{"-999.990", "0.010"}, `"999.999"`, true},
	{decimal(5, 2), decimal(12, 2), []string{`"-999.99"`}, []string{"-999.99"}, `"9999999999.99"`, true},
	{decimal(5, 2), decimal(38, 20), []string{`"-999.99"`}, []string{"-999.99000000000000000000"}, `"999999999999999999.00000000000000000001"`, true},
	{decimal(18, 0), decimal(19, 1), []string{`"999999999999999999"`}, []string{"999999999999999999.0"}, `"0.1"`, true},
	{arrow.PrimitiveTypes.Int8, decimal(10, 0), []string{"-128", "127"}, []string{"-128", "127"}, `"9999999999"`, false},
	{arrow.PrimitiveTypes.Int16, decimal(12, 2), []string{"-32768", "32767"}, []string{"-32768.00", "32767.00"}, `"0.01"`, false},
	{arrow.PrimitiveTypes.Int32, decimal(38, 28), []string{"-2147483648"}, []string{"-2147483648.0000000000000000000000000000"}, `"0.1"`, false},
	{arrow.PrimitiveTypes.Int64, decimal(20, 0), []string{"-9223372036854775808", "9223372036854775807"}, []string{"-9223372036854775808", "9223372036854775807"}, `"99999999999999999999"`, false},
	{arrow.PrimitiveTypes.Int64, decimal(38, 18), []string{"-9223372036854775808"}, []string{"-9223372036854775808.000000000000000000"}, `"0.1"`, false},
}

// places puts a type everywhere a schema can have one. In a partition column it lies in the log.
func places(t arrow.DataType) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{
		{Name: "c", Type: t, Nullable: true},
		{Name: "st", Nullable: true, Type: arrow.StructOf(arrow.Field{Name: "f", Type: t, Nullable: true})},
		{Name: "list", Nullable: true, Type: arrow.ListOf(arrow.ListOf(t))},
		{Name: "map", Nullable: true, Type: arrow.MapOf(t, arrow.ListOf(arrow.StructOf(arrow.Field{Name: "g", Type: t, Nullable: true})))},
		{Name: "p", Type: t, Nullable: true},
	}, nil)
}

func placesRow(v string) string {
	return strings.ReplaceAll(`{"c":V,"st":{"f":V},"list":[[V,null]],"map":[{"key":V,"value":[{"g":V}]}],"p":V}`, "V", v)
}

// TestWidenedColumnsKeepTheirValues goes through every change of type that the
// protocol allows, in every place, beside rows of the new type.
func TestWidenedColumnsKeepTheirValues(t *testing.T) {
	for _, c := range widenings {
		t.Run(fmt.Sprintf("%s to %s", c.from, c.to), func(t *testing.T) {
			f := newFixture(t)
			rows := func(values ...string) string {
				out := []string{`{"c":null}`}
				for _, v := range values {
					out = append(out, placesRow(v))
				}
				return "[" + strings.Join(out, ",") + "]"
			}
			opt := WriteOptions{Schema: places(c.from), PartitionBy: []string{"p"}, Name: "old"}
			f.commit(Commit{Schema: opt.Schema, PartitionBy: opt.PartitionBy, Properties: map[string]string{"delta.enableTypeWidening": "true"}, Add: f.write(opt, rows(c.old...))})
			var change SchemaChange
			for _, path := range []string{"c", "st.f", "list.element.element", "map.key", "map.value.element.g", "p"} {
				change.Widen = append(change.Widen, Widening{strings.Split(path, "."), c.to})
			}
			f.commit(Commit{Read: f.snapshot(), Change: change})
			s := f.snapshot()
			if !s.Schema().Equal(places(c.to)) || !slices.Contains(s.Protocol().ReaderFeatures, "typeWidening") {
				t.Errorf("%s\n%+v", s.Schema(), s.Protocol())
			}
			f.commit(Commit{Read: s, Add: f.write(WriteOptions{Snapshot: s, Name: "new"}, rows(c.new))})
			got := f.rows()
			for _, v := range c.want {
				text := v
				if c.to.ID() == arrow.TIMESTAMP {
					text = strings.TrimSuffix(v, "Z")
				}
				if n := len(slices.DeleteFunc(slices.Clone(got), func(r string) bool { return !strings.Contains(r, v) && !strings.Contains(r, text) })); n == 0 {
					t.Errorf("no row with %s\n%s", v, strings.Join(got, "\n"))
				}
			}
			// What a table of the new type from the start gives, this one must give, too.
			if c.from.ID() != arrow.FLOAT32 && c.from.ID() != arrow.DATE32 && c.from.ID() != arrow.DECIMAL128 {
				g := newFixture(t)
				old := slices.Clone(c.old)
				if c.to.ID() == arrow.DECIMAL128 {
					for i := range old {
						old[i] = `"` + old[i] + `"`
					}
				}
				opt := WriteOptions{Schema: places(c.to), PartitionBy: []string{"p"}, Name: "old"}
				newer := opt
				newer.Name = "new"
				g.commit(Commit{Schema: opt.Schema, PartitionBy: opt.PartitionBy, Add: append(g.write(opt, rows(old...)), g.write(newer, rows(c.new))...)})
				if want := g.rows(); !slices.Equal(got, want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
			if arrow.TypeEqual(c.from, c.to) {
				return
			}
			from, to := sparkNameOf(t, c.from), sparkNameOf(t, c.to)
			step := func(path string) string {
				if path != "" {
					path = `,"fieldPath":"` + path + `"`
				}
				return fmt.Sprintf(`[{"fromType":%q,"toType":%q%s}]`, from, to, path)
			}
			meta := func(path ...string) string { return string(s.schema.leaf(path).meta[typeChangesKey]) }
			if meta("c") != step("") || meta("st", "f") != step("") || meta("list") != step("element.element") || meta("map") != step("key") || meta("st") != "" || meta("p") != step("") {
				t.Errorf("%s %s %s %s", meta("c"), meta("st", "f"), meta("list"), meta("map"))
			}
			inner := s.schema.find("map").typ.(*mapType).value.(*arrayType).elem.(*structType).find("g")
			if string(inner.meta[typeChangesKey]) != step("") {
				t.Errorf("in the map's values: %s", inner.meta[typeChangesKey])
			}
		})
	}
}

func sparkNameOf(t *testing.T, dt arrow.DataType) string {
	t.Helper()
	typ, err := typeFromArrow(arrow.Field{Type: dt}, "")
	if err != nil {
		t.Fatal(err)
	}
	return typ.(*primitive).name
}

// TestSchemaEvolutionWidensWhereTheTableAllowsIt merges the schema of a batch.
func TestSchemaEvolutionWidensWhereTheTableAllowsIt(t *testing.T) {
	for _, c := range widenings {
		if arrow.TypeEqual(c.from, c.to) {
			continue
		}
		for _, enabled := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s to %s %t", c.from, c.to, enabled), func(t *testing.T) {
				f := newFixture(t)
				f.commit(Commit{Schema: places(c.from), Properties: map[string]string{"delta.enableTypeWidening": fmt.Sprint(enabled)},
					Add: f.write(WriteOptions{Schema: places(c.from), Name: "old"}, "["+placesRow(c.old[0])+"]")})
				s := f.snapshot()
				merged, changed, err := s.MergeSchema(places(c.to))
				if !enabled || !c.byItself {
					if fault.CodeOf(err) != "DELTA_FAILED_TO_MERGE_FIELDS" {
						t.Errorf("%v", err)
					}
					return
				}
				if err != nil || len(changed) != 6 || !merged.Equal(places(c.to)) {
					t.Fatalf("%v %v %s", err, changed, merged)
				}
				f.commit(Commit{Read: s, Schema: merged, Add: f.write(WriteOptions{Snapshot: s, Schema: merged, Name: "new"}, "["+placesRow(c.new)+"]")})
				if got := f.rows(); len(got) != 2 || !strings.Contains(strings.Join(got, ""), c.want[0]) && !strings.Contains(strings.Join(got, ""), strings.TrimSuffix(c.want[0], "Z")) {
					t.Errorf("%s", strings.Join(got, "\n"))
				}
				if got := string(f.snapshot().schema.find("list").meta[typeChangesKey]); !strings.Contains(got, "element.element") {
					t.Errorf("history %s", got)
				}
			})
		}
	}
}

// TestChangesOfTypeThatLoseAreRefused tries what the protocol leaves out.
func TestChangesOfTypeThatLoseAreRefused(t *testing.T) {
	for _, c := range [][2]arrow.DataType{
		{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int32}, {arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64},
		{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Float32}, {arrow.PrimitiveTypes.Float64, arrow.PrimitiveTypes.Float32},
		{arrow.PrimitiveTypes.Int8, decimal(9, 0)}, {arrow.PrimitiveTypes.Int32, decimal(11, 2)}, {arrow.PrimitiveTypes.Int64, decimal(20, 1)}, {arrow.PrimitiveTypes.Int64, decimal(19, 0)},
		{decimal(5, 2), decimal(5, 3)}, {decimal(5, 2), decimal(6, 1)}, {decimal(5, 2), decimal(4, 2)},
		{arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Timestamp_us}, {arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String}, {ntz, arrow.FixedWidthTypes.Date32},
	} {
		f := newFixture(t)
		f.commit(Commit{Schema: places(c[0]), Properties: map[string]string{"delta.enableTypeWidening": "true"}})
		if _, err := f.table.Commit(background, Commit{Read: f.snapshot(), Change: SchemaChange{Widen: []Widening{{[]string{"c"}, c[1]}}}}); fault.CodeOf(err) != "DELTA_UNSUPPORTED_SCHEMA_CHANGE" {
			t.Errorf("%s to %s: %v", c[0], c[1], err)
		}
	}
}

// TestAHistoryOfTypesThatNobodyKnowsIsRefused follows the rule that readers check delta.typeChanges.
func TestAHistoryOfTypesThatNobodyKnowsIsRefused(t *testing.T) {
	for history, want := range map[string]string{
		`[{"fromType":"byte","toType":"long"},{"fromType":"long","toType":"decimal(20,0)"}]`: "",
		`[{"fromType":"string","toType":"integer"}]`:                                         "DELTA_UNSUPPORTED_FEATURE",
		`[{"fromType":"string","toType":"varchar(3)"}]`:                                      "",
		`[{"fromType":"long","toType":"blob"}]`:                                              "DELTA_UNSUPPORTED_FEATURE",
		`{}`:                                                                                 "DELTA_INVALID_SCHEMA",
	} {
		schema := fmt.Sprintf(`{"type":"struct","fields":[{"name":"a","type":{"type":"array","elementType":"long","containsNull":true},"nullable":true,"metadata":{"delta.typeChanges":%s}}]}`, history)
		tree, err := parseSchema(schema)
		if err != nil {
			t.Fatal(err)
		}
		p := &Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"typeWidening"}, WriterFeatures: []string{"typeWidening"}}
		if err := checkTypeChanges(p, tree); fault.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", history, err, want)
		}
	}
}
