package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

// columns writes a schema as "name type origin, …".
func columns(s *Schema) string {
	var out []string
	for _, f := range s.Fields {
		text := f.Name + " " + typeName(f.Type)
		if f.Origin != Inferred {
			text += " " + string(f.Origin)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func inferText(t *testing.T, text string, settings ...string) (*Schema, error) {
	t.Helper()
	l := newLanding(t, map[string]string{"a.json": text})
	s := l.source(ReadFiles, append(settings, "format=json")...)
	return s.Infer(context.Background(), files(t, s))
}

// covers B1: the types of JsonInferSchema.
func TestJSONInference(t *testing.T) {
	for _, c := range []struct{ records, want string }{
		{`{"v":1}`, "v bigint"},
		{`{"v":9223372036854775807} {"v":9223372036854775808}`, "v decimal(20,0)"},
		{`{"v":12345678901234567890123}`, "v decimal(23,0)"},
		{`{"v":` + strings.Repeat("9", 39) + `}`, "v double"},
		{`{"v":1.5}`, "v double"}, {`{"v":1} {"v":1.5}`, "v double"}, {`{"v":1e2}`, "v double"}, {`{"v":12345678901234567890} {"v":0.5}`, "v double"},
		{`{"v":true} {"v":false}`, "v boolean"}, {`{"v":true} {"v":1}`, "v string"}, {`{"v":"x"} {"v":1}`, "v string"},
		{`{"v":null}`, "v string"}, {`{"v":""}`, "v string"}, {`{"v":""} {"v":1}`, "v bigint"}, {`{"v":null} {"v":1.5}`, "v double"},
		{`{"v":"2026-07-28"}`, "v string"},
		{`{"b":1,"a":2,"C":3}`, "C bigint, a bigint, b bigint"},
		{`{"v":{"b":1,"a":"x"}} {"v":{"c":null}}`, "v struct<a:string,b:bigint,c:string>"},
		{`{"v":[1,2.5]} {"v":[]}`, "v array<double>"}, {`{"v":[]}`, "v array<string>"}, {`{"v":[null]}`, "v array<string>"},
		{`{"v":[{"a":1},{"b":2}]}`, "v array<struct<a:bigint,b:bigint>>"}, {`{"v":[1,"x"]}`, "v array<string>"}, {`{"v":[[1],[2.5]]}`, "v array<array<double>>"},
		{`{"v":{"a":1}} {"v":"x"}`, "v string"}, {`{"v":[1]} {"v":{"a":1}}`, "v string"}, {`{"v":{"a":1}} {"v":null}`, "v struct<a:bigint>"},
		{`{"v":{}} {"a":1}`, "a bigint"}, {`{"v":{"w":{}}} {"a":1}`, "a bigint"}, {`{"v":[{}]} {"a":1}`, "a bigint"}, {`{"":1,"a":1}`, "a bigint"},
		{`{"_metadata":1,"_rescued_data":2,"a":1}`, "a bigint"},
		{`{"Id":1} {"id":2} {"id":"x"}`, "id string"}, {`{"ID":1} {"id":2}`, "ID bigint"},
		{`[{"a":1},{"b":2}]`, "a bigint, b bigint"}, {"nope\n{\"a\":1}\n[1]\n{\"b\":", "a bigint"}, {`{"v":NaN}`, "v double"},
		{`{"a.b":1,"c d":{"e.f":2}}`, "a.b bigint, c d struct<`e.f`:bigint>"},
	} {
		got, err := inferText(t, c.records)
		if err != nil || columns(got) != c.want {
			t.Errorf("%s\n got %v %v\nwant %s", c.records, got, err, c.want)
		}
	}
}

func TestJSONInferenceOptions(t *testing.T) {
	for _, c := range []struct{ set, records, want string }{
		{"prefersDecimal=true", `{"v":1.50} {"v":123}`, "v decimal(22,2)"},
		{"prefersDecimal=true", `{"v":"1.5"} {"v":"10"}`, "v decimal(3,1)"},
		{"prefersDecimal=true", `{"v":1e3}`, "v decimal(4,0)"},
		{"prefersDecimal=true", `{"v":0.001}`, "v decimal(3,3)"},
		{"inferTimestamp=true", `{"v":"2026-07-28T10:00:00Z"} {"v":""}`, "v timestamp"},
		{"inferTimestamp=true", `{"v":"2026-07-28T10:00:00Z"} {"v":"x"}`, "v string"},
		{"primitivesAsString=true", `{"v":1,"w":true,"x":[1.5]}`, "v string, w string, x array<string>"},
		{"dropFieldIfAllNull=true", `{"v":null,"w":[],"x":1}`, "x bigint"},
		// covers B1, A11: without inference every column is a string, nested ones too.
		{"inferColumnTypes=false", `{"v":1,"w":{"a":[1]}}`, "v string, w string"},
	} {
		if got, err := inferText(t, c.records, c.set); err != nil || columns(got) != c.want {
			t.Errorf("%s %s\n got %v %v\nwant %s", c.set, c.records, got, err, c.want)
		}
	}
	if _, err := inferText(t, "{\"a\":1}\nnope", "mode=FAILFAST"); !fault.Is(err, "MALFORMED_RECORD_IN_PARSING") || !strings.Contains(err.Error(), "line 2") {
		t.Error(err)
	}
}

func TestInferenceWithoutRecordsIsAnError(t *testing.T) {
	for _, text := range []string{"", "\n\n", "{}", "nope", "[]"} {
		if _, err := inferText(t, text); !fault.Is(err, "UNABLE_TO_INFER_SCHEMA") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if got, err := inferText(t, "", "schemaHints=a INT"); err != nil || columns(got) != "a int hint" {
		t.Error(got, err)
	}
}

// covers A12, A36, B1: hints pin types, nested ones too; a column that no record had is added.
func TestSchemaHints(t *testing.T) {
	const records = `{"id":1,"total":1.5,"who":{"dob":"2000-01-01","name":"x"},"items":[{"price":1}],"m":{"a":1}}`
	for _, c := range []struct{ hints, want string }{
		{"id STRING, total DECIMAL(18,2)", "id string hint, items array<struct<price:bigint>>, m struct<a:bigint>, total decimal(18,2) hint, who struct<dob:string,name:string>"},
		{"who.dob DATE, items.element.price DECIMAL(10,2)", "id bigint, items array<struct<price:decimal(10,2)>>, m struct<a:bigint>, total double, who struct<dob:date,name:string>"},
		{"m MAP<STRING,INT>, who.new INT", "id bigint, items array<struct<price:bigint>>, m map<string,int> hint, total double, who struct<dob:string,name:string,new:int>"},
		{"late TIMESTAMP, deep.er INT", "id bigint, items array<struct<price:bigint>>, m struct<a:bigint>, total double, who struct<dob:string,name:string>, late timestamp hint, deep struct<er:int> hint"},
		{"ID INT", "id int hint, items array<struct<price:bigint>>, m struct<a:bigint>, total double, who struct<dob:string,name:string>"},
	} {
		if got, err := inferText(t, records, "schemaHints="+c.hints); err != nil || columns(got) != c.want {
			t.Errorf("%s\n got %s %v\nwant %s", c.hints, columns(got), err, c.want)
		}
	}
	if got, err := inferText(t, records, "schemaHints=who.dob DATE", "inferColumnTypes=false"); err != nil || columns(got) != "id string, items string, m string, total string, who struct<dob:date,name:string>" {
		t.Error(got, err)
	}
	if _, err := inferText(t, records, "schemaHints=items.price INT"); !fault.Is(err, "INVALID_SCHEMA_HINT") {
		t.Error(err)
	}
}

func TestDeclaredSchemaIsItself(t *testing.T) {
	got, err := inferText(t, `{"z":1}`, "schema=b INT COMMENT 'bee', a STRING, _rescued_data STRING")
	if err != nil || columns(got) != "b int declared, a string declared" || got.Fields[0].Comment != "bee" {
		t.Fatal(got, err)
	}
	l := newLanding(t, nil)
	s := l.source(ReadFiles, "format=json", "schema=b INT COMMENT 'bee', a STRING, _rescued_data STRING")
	if v, _ := s.ArrowSchema(got).Field(0).Metadata.GetValue("comment"); v != "bee" {
		t.Fatal(s.ArrowSchema(got))
	}
	if n := s.ArrowSchema(got).NumFields(); n != 5 {
		t.Fatal(n)
	}
}

// evolving reads files with the schema of the first of them.
func evolving(t *testing.T, l *landing, first string, settings ...string) (outcome, *Source) {
	t.Helper()
	s := l.source(ReadFiles, settings...)
	fs := files(t, s)
	var some []File
	for _, f := range fs {
		if strings.HasSuffix(f.Path, first) {
			some = append(some, f)
		}
	}
	schema, err := s.Infer(context.Background(), some)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, s, schema, fs, ReadOptions{BatchRows: 2}), s
}

// covers A30, A38, A204: addNewColumns stops once, having found every new column of
// the micro-batch, and the next read has them.
func TestAddNewColumnsFindsAllAtOnce(t *testing.T) {
	l := newLanding(t, map[string]string{
		"1.json": `{"id":1,"a":{"x":1}}`,
		"2.json": "{\"id\":2}\n{\"id\":3,\"gift\":\"yes\",\"zed\":1}\n",
		"3.json": `{"id":4,"zed":2.5,"a":{"x":2,"y":{"z":true}},"l":[{"q":1}],"n":null,"ID":9,"e":{},"":1}`,
		"4.json": "broken\n",
	})
	got, s := evolving(t, l, "1.json", "format=json")
	var unknown *UnknownFieldError
	if !errors.As(got.err, &unknown) || fault.CodeOf(got.err) != "UNKNOWN_FIELD" {
		t.Fatalf("%+v", got.err)
	}
	if want := "a struct<x:bigint,y:struct<z:boolean>>, id bigint, gift string evolved, l array<struct<q:bigint>> evolved, n string evolved, zed double evolved"; columns(unknown.Evolved) != want {
		t.Fatalf("\n got %s\nwant %s", columns(unknown.Evolved), want)
	}
	var fields []string
	for _, f := range unknown.Fields {
		fields = append(fields, f.Name)
	}
	if fmt.Sprint(fields) != "[a.y gift l n zed]" || !strings.HasSuffix(unknown.File, "2.json") || unknown.Line != 2 || unknown.Evolved.Version != 1 {
		t.Fatalf("%v %s %d", fields, unknown.File, unknown.Line)
	}
	for _, want := range []string{"[UNKNOWN_FIELD]", `"gift" (STRING)`, "2.json", "line 2", "version 1"} {
		if !strings.Contains(got.err.Error(), want) {
			t.Errorf("%s lacks %s", got.err, want)
		}
	}
	again := read(t, s, unknown.Evolved, files(t, s), ReadOptions{})
	wantRows(t, again,
		`{"a":{"x":1,"y":null},"id":1,"gift":null,"l":null,"n":null,"zed":null,"_rescued_data":null}`,
		`{"a":null,"id":2,"gift":null,"l":null,"n":null,"zed":null,"_rescued_data":null}`,
		`{"a":null,"id":3,"gift":"yes","l":null,"n":null,"zed":1,"_rescued_data":null}`,
		`{"a":{"x":2,"y":{"z":true}},"id":4,"gift":null,"l":[{"q":1}],"n":null,"zed":2.5,"_rescued_data":"{\"ID\":9,\"e\":\"{}\",\"\":1,\"_file_path\":\"DIR/3.json\"}"}`,
		`{"a":null,"id":null,"gift":null,"l":null,"n":null,"zed":null,"_rescued_data":"{\"_corrupt_record\":\"broken\",\"_file_path\":\"DIR/4.json\"}"}`)
}

// covers B1: the types of what the schema has do not change, new columns take their hints.
func TestEvolutionKeepsTypesAndTakesHints(t *testing.T) {
	l := newLanding(t, map[string]string{"1.json": `{"id":1}`, "2.json": `{"id":"x","new":1.5,"s":{"d":"2026-01-01"}}`})
	s := l.source(ReadFiles, "format=json")
	schema, err := s.Infer(context.Background(), files(t, s)[:1])
	if err != nil {
		t.Fatal(err)
	}
	// The hints came after the first schema was recorded.
	hinting := l.source(ReadFiles, "format=json", "schemaHints=new DECIMAL(5,2), s.d DATE, id STRING")
	got := read(t, hinting, schema, files(t, s), ReadOptions{})
	var unknown *UnknownFieldError
	if !errors.As(got.err, &unknown) || columns(unknown.Evolved) != "id bigint, new decimal(5,2) hint, s struct<d:date> evolved" {
		t.Fatal(got.err)
	}
}

// covers B1: a hint pins its column: what is new inside is rescued.
func TestHintedStructsDoNotEvolve(t *testing.T) {
	l := newLanding(t, map[string]string{"1.json": `{"s":{"a":1}}`, "2.json": `{"s":{"a":2,"b":3}}`})
	got, _ := evolving(t, l, "1.json", "format=json", "schemaHints=s STRUCT<a INT>")
	wantRows(t, got, `{"s":{"a":1},"_rescued_data":null}`, `{"s":{"a":2},"_rescued_data":"{\"s.b\":3,\"_file_path\":\"DIR/2.json\"}"}`)
}

// covers A31, A32, A33: the other modes.
func TestOtherEvolutionModes(t *testing.T) {
	l := newLanding(t, map[string]string{"1.json": `{"id":1}`, "2.json": `{"id":2,"gift":"yes"}`})
	rescued := `{"id":2,"_rescued_data":"{\"gift\":\"yes\",\"_file_path\":\"DIR/2.json\"}"}`
	for _, mode := range []string{"rescue", "none"} {
		got, _ := evolving(t, l, "1.json", "format=json", "schemaEvolutionMode="+mode)
		wantRows(t, got, `{"id":1,"_rescued_data":null}`, rescued)
	}
	got, _ := evolving(t, l, "1.json", "format=json", "schemaEvolutionMode=failOnNewColumns")
	var unknown *UnknownFieldError
	if fault.CodeOf(got.err) != "UNKNOWN_FIELD" || errors.As(got.err, &unknown) || !strings.Contains(got.err.Error(), "failOnNewColumns") || !strings.Contains(got.err.Error(), "2.json") {
		t.Fatal(got.err)
	}
}

// An empty object is a value without a column in it: no mode stops for ever over it.
func TestFieldsThatCannotBeColumnsAreRescued(t *testing.T) {
	l := newLanding(t, map[string]string{"1.json": `{"id":1}`, "2.json": `{"id":2,"e":{},"f":[{}],"_metadata":1,"ID":3}`})
	got, _ := evolving(t, l, "1.json", "format=json")
	wantRows(t, got, `{"id":1,"_rescued_data":null}`,
		`{"id":2,"_rescued_data":"{\"e\":\"{}\",\"f\":\"[{}]\",\"_metadata\":1,\"ID\":3,\"_file_path\":\"DIR/2.json\"}"}`)
}

func TestCSVEvolution(t *testing.T) {
	l := newLanding(t, map[string]string{
		"1.csv": "id,name\n1,a\n", "2.csv": "id,zeta,alpha,\n2,5,x,\n", "3.csv": "new,id\n,3\n", "4.csv": "id,name\n4,b,extra\n",
	})
	got, s := evolving(t, l, "1.csv", "format=csv")
	var unknown *UnknownFieldError
	if !errors.As(got.err, &unknown) || columns(unknown.Evolved) != "id int, name string, zeta int evolved, alpha string evolved, new string evolved" {
		t.Fatal(got.err)
	}
	if !strings.HasSuffix(unknown.File, "2.csv") || unknown.Line != 1 {
		t.Fatal(unknown.File, unknown.Line)
	}
	again := read(t, s, unknown.Evolved, files(t, s), ReadOptions{})
	if again.err != nil || again.stats.Rescued != 1 || again.rows[1] != `{"id":2,"name":null,"zeta":5,"alpha":"x","new":null,"_rescued_data":null}` {
		t.Fatal(again.err, again.rows)
	}
}

func TestSchemaVersionsSurviveTheirJSON(t *testing.T) {
	schema, err := inferText(t, `{"a b":1.5,"s":{"x.y":[{"q":1}]},"b":true}`, "schemaHints=m MAP<STRING,ARRAY<DECIMAL(20,3)>>, t TIMESTAMP_NTZ COMMENT 'when'")
	if err != nil {
		t.Fatal(err)
	}
	schema.Version, schema.Batch = 3, 17
	data, err := MarshalSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	back, err := UnmarshalSchema(data)
	if err != nil || back.Version != 3 || back.Batch != 17 || columns(back) != columns(schema) || back.Fields[4].Comment != "when" {
		t.Fatal(err, back, string(data))
	}
	again, err := MarshalSchema(back)
	if err != nil || string(again) != string(data) {
		t.Fatalf("%s\n%s", again, data)
	}
	for _, bad := range []string{
		``, `{}`, `{"format":2,"version":0,"batch":0,"fields":[]}`, `{"format":1,"version":-1,"batch":0,"fields":[]}`,
		`{"format":1,"version":0,"batch":0,"fields":[],"more":1}`, `{"format":1,"version":0,"batch":0,"fields":[]} x`,
		`{"format":1,"version":0,"batch":0,"fields":[{"name":"a","type":"what","origin":"hint"}]}`,
		`{"format":1,"version":0,"batch":0,"fields":[{"name":"a","type":"int","origin":"guess"}]}`,
		`{"format":1,"version":0,"batch":0,"fields":[{"name":"","type":"int","origin":"hint"}]}`,
		`{"format":1,"version":0,"batch":0,"fields":[{"name":"a","type":"int","origin":"hint"},{"name":"A","type":"int","origin":"hint"}]}`,
	} {
		if _, err := UnmarshalSchema([]byte(bad)); !fault.Is(err, "INVALID_SCHEMA_VERSION") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func FuzzUnmarshalSchema(f *testing.F) {
	f.Add([]byte(`{"format":1,"version":0,"batch":0,"fields":[{"name":"a","type":"struct<a:int>","origin":"hint"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := UnmarshalSchema(data)
		if err != nil {
			return
		}
		out, err := MarshalSchema(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := UnmarshalSchema(out); err != nil {
			t.Fatal(err)
		}
	})
}
