package ingest

import (
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

func csvLoad(t *testing.T, text string, settings ...string) outcome {
	t.Helper()
	return newLanding(t, map[string]string{"a.csv": text}).load(ReadFiles, append(settings, "format=csv")...)
}

func rescuedText(fields string) string {
	return string(relation.AppendString(nil, "{"+fields+`,"_file_path":"DIR/a.csv"}`))
}

func TestCSVRecordsBecomeRows(t *testing.T) {
	wantRows(t, csvLoad(t, "id,name,when,price,ok\n1,a,2026-07-28,1.5,true\n2,,,,FALSE\n"),
		`{"id":1,"name":"a","when":"2026-07-28","price":1.5,"ok":true,"_rescued_data":null}`,
		`{"id":2,"name":null,"when":null,"price":null,"ok":false,"_rescued_data":null}`)
}

func TestCSVQuoting(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		settings         []string
	}{
		{"a separator in quotes", `"x,y",z`, `x,y|z`, nil},
		{"a doubled quote", `"a ""b"" c",z`, `a "b" c|z`, nil},
		{"a backslash escapes a quote", `"a \"b\" c",z`, `a "b" c|z`, nil},
		{"a backslash is else itself", `"C:\dir",z`, `C:\dir|z`, nil},
		{"escape by quotes alone", `"C:\",z`, `C:\|z`, []string{`escape="`}},
		{"an escaped escape", `"C:\\",z`, `C:\|z`, []string{`charToEscapeQuoteEscaping=\`}},
		{"a quote inside a bare value", `a"b",z`, `a"b"|z`, nil},
		// STOP_AT_DELIMITER: the value was not quoted after all.
		{"text behind a closing quote", `"a"b,z`, `"a"b|z`, nil},
		{"spaces around quotes", ` "a" ,z`, ` "a" |z`, nil},
		{"spaces around quotes, trimmed", ` "a" ,z `, `a|z`, []string{"ignoreLeadingWhiteSpace=true", "ignoreTrailingWhiteSpace=true"}},
		{"another quote", `'x,y',z`, `x,y|z`, []string{"quote='"}},
		{"no quote", `"x",z`, `"x"|z`, []string{"quote="}},
		{"another separator", `x;z,`, `x|z,`, []string{"sep=;"}},
		{"a tab", "x\tz", `x|z`, []string{`sep=\t`}},
		{"a long separator", `x||y|||z`, `x|y|||z`, []string{"sep=||"}},
		{"a long separator again", `x<>z<`, `x|z<`, []string{"delimiter=<>"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := csvLoad(t, c.text+"\n", append(c.settings, "schema=a STRING, b STRING, _rescued_data STRING")...)
			if c.name == "a long separator" {
				wantRows(t, got, `{"a":"x","b":"y","_rescued_data":`+rescuedText(`"_c2":"|z"`)+`}`)
				return
			}
			a, b, _ := strings.Cut(c.want, "|")
			wantRows(t, got, `{"a":`+string(relation.AppendString(nil, a))+`,"b":`+string(relation.AppendString(nil, b))+`,"_rescued_data":null}`)
		})
	}
}

func TestCSVQuotedLineEndsNeedMultiLine(t *testing.T) {
	const text = "a,b\n\"x\ny\",1\r\n\"p\r\n\"\"q\"\"\",2\nz,3"
	got := csvLoad(t, text, "multiLine=true")
	wantRows(t, got, `{"a":"x\ny","b":1,"_rescued_data":null}`, `{"a":"p\r\n\"q\"","b":2,"_rescued_data":null}`, `{"a":"z","b":3,"_rescued_data":null}`)
	for i, line := range []int64{2, 4, 6} {
		if got.places[i].Line != line {
			t.Errorf("row %d at line %d, want %d", i, got.places[i].Line, line)
		}
	}
	// Without it each line is a record, as in Spark; a quote without an end is malformed.
	single := csvLoad(t, text)
	if single.err != nil || len(single.rows) != 5 || single.stats.Malformed != 2 {
		t.Fatalf("%+v", single)
	}
}

// covers B1: the rest of a row that is too long is rescued, a short one ends in nulls.
func TestCSVRaggedRows(t *testing.T) {
	const text = "a,b\n1,2\n3\n4,5,6,,7\n,\n"
	got := csvLoad(t, text)
	wantRows(t, got, `{"a":1,"b":2,"_rescued_data":null}`, `{"a":3,"b":null,"_rescued_data":null}`,
		`{"a":4,"b":5,"_rescued_data":`+rescuedText(`"_c2":"6","_c4":"7"`)+`}`, `{"a":null,"b":null,"_rescued_data":null}`)
	dropped := csvLoad(t, text, "mode=DROPMALFORMED")
	wantRows(t, dropped, `{"a":1,"b":2,"_rescued_data":null}`, `{"a":null,"b":null,"_rescued_data":null}`)
	if dropped.stats.Dropped != 2 {
		t.Fatalf("%+v", dropped.stats)
	}
	if failed := csvLoad(t, text, "mode=FAILFAST"); !fault.Is(failed.err, "MALFORMED_RECORD_IN_PARSING") || !strings.Contains(failed.err.Error(), "line 3") {
		t.Fatal(failed.err)
	}
}

func TestCSVMalformedRecordsKeepTheirText(t *testing.T) {
	got := csvLoad(t, "a,b\n1,\"x\n2,\"y\"\n3,\xff\n")
	wantRows(t, got, `{"a":null,"b":null,"_rescued_data":`+rescuedText(`"_corrupt_record":"1,\"x"`)+`}`,
		`{"a":2,"b":"y","_rescued_data":null}`,
		`{"a":null,"b":null,"_rescued_data":`+rescuedText(`"_corrupt_record":"3,�"`)+`}`)
	if got.stats.Malformed != 2 {
		t.Fatalf("%+v", got.stats)
	}
	open := csvLoad(t, "a,b\n1,2\n\"x\n3,4\n", "multiLine=true")
	if open.err != nil || open.stats.Malformed != 1 || len(open.rows) != 3 {
		t.Fatalf("%+v", open)
	}
	long := csvLoad(t, "a,b\n1,"+strings.Repeat("x", 9<<20)+"\n2,3\n", "maxRecordBytes=1m")
	if long.err != nil || long.stats.Malformed != 1 || len(long.rows) != 2 {
		t.Fatalf("%v %+v", long.err, long.stats)
	}
	limits := csvLoad(t, "a,b\n1,2,3\n1,xxxxx\n1,2\n", "maxColumns=2", "maxCharsPerColumn=4")
	if limits.err != nil || limits.stats.Malformed != 2 || len(limits.rows) != 3 {
		t.Fatalf("%+v", limits)
	}
}

// covers B1: type mismatches in CSV.
func TestCSVValuesOfATypeOrRescued(t *testing.T) {
	for _, c := range []struct{ dt, value, want string }{
		{"INT", "+7", "7"}, {"INT", " 7", ""}, {"INT", "7.0", ""}, {"INT", "2147483648", ""}, {"INT", "007", "7"},
		{"BIGINT", "9223372036854775808", ""}, {"SMALLINT", "70000", ""},
		{"DOUBLE", " 1.5 ", "1.5"}, {"DOUBLE", "1d", ""}, {"DOUBLE", "NaN", `"NaN"`}, {"DOUBLE", "Inf", `"Infinity"`}, {"DOUBLE", "-Inf", `"-Infinity"`}, {"DOUBLE", ".5", "0.5"}, {"DOUBLE", "5.", "5"}, {"DOUBLE", "0x10", ""}, {"DOUBLE", "1_000", ""},
		{"DECIMAL(10,2)", "1.005", "1.01"}, {"DECIMAL(10,2)", "366.90", "366.90"}, {"DECIMAL(10,2)", "N/A", ""}, {"DECIMAL(10,2)", "123456789.00", ""},
		{"BOOLEAN", "True", "true"}, {"BOOLEAN", "yes", ""}, {"BOOLEAN", "1", ""},
		{"DATE", "2026-07-28", `"2026-07-28"`}, {"DATE", "2026-7-8", `"2026-07-08"`}, {"DATE", "00000000", ""}, {"DATE", "0000-00-00", ""}, {"DATE", "2026-02-29", ""},
		{"TIMESTAMP", "2026-07-28 02:15", ""}, {"TIMESTAMP", "2026-07-28 02:15:04+02:00", `"2026-07-28T00:15:04Z"`},
		{"STRING", " x ", `" x "`},
	} {
		t.Run(c.dt+" "+c.value, func(t *testing.T) {
			got := csvLoad(t, "v;w\n"+c.value+";1\n", "sep=;", "header=true", "schema=v "+c.dt+", w INT, _rescued_data STRING")
			want, rescued := c.want, "null"
			if want == "" {
				want, rescued = "null", rescuedText(`"v":`+string(relation.AppendString(nil, c.value)))
			}
			wantRows(t, got, `{"v":`+want+`,"w":1,"_rescued_data":`+rescued+`}`)
		})
	}
}

func TestCSVNullAndEmptyValues(t *testing.T) {
	wantRows(t, csvLoad(t, "a,b\nN/A,\"\"\n,x\n", "nullValue=N/A"),
		`{"a":null,"b":"","_rescued_data":null}`, `{"a":null,"b":"x","_rescued_data":null}`)
	wantRows(t, csvLoad(t, "a,b\ny,\"\"\n,x\n"), `{"a":"y","b":null,"_rescued_data":null}`, `{"a":null,"b":"x","_rescued_data":null}`)
	wantRows(t, csvLoad(t, "a,b\ny,\"\"\n", "emptyValue=EMPTY"), `{"a":"y","b":"EMPTY","_rescued_data":null}`)
}

// covers B1: headers are honoured file by file, whatever enforceSchema says.
func TestCSVHeadersAreHonouredPerFile(t *testing.T) {
	l := newLanding(t, map[string]string{
		"1.csv": "id,name,x\n1,a,p\n", "2.csv": "name,id\nb,2\n", "3.csv": "\n#note\nx,id\r\nq,3\r\n", "4.csv": "", "5.csv": "id,name,x\n",
	})
	got := l.load(ReadFiles, "format=csv", "enforceSchema=true", "comment=#")
	wantRows(t, got, `{"id":1,"name":"a","x":"p","_rescued_data":null}`, `{"id":2,"name":"b","x":null,"_rescued_data":null}`, `{"id":3,"name":null,"x":"q","_rescued_data":null}`)
	if len(got.stats.PerFile) != 5 || got.stats.PerFile[3].Rows != 0 || got.stats.PerFile[3].State != FileIngested {
		t.Fatalf("%+v", got.stats.PerFile)
	}
}

// Names of a header as Spark makes them: _c and the index for an empty one, the
// index behind those that stand twice.
func TestCSVHeaderNames(t *testing.T) {
	wantRows(t, csvLoad(t, "a,,A,b,\n1,2,3,4,\n"), `{"a0":1,"_c1":2,"A2":3,"b":4,"_c4":null,"_rescued_data":null}`)
	wantRows(t, csvLoad(t, "skip me\nand me\na,b\n1,2\n", "skipRows=2"), `{"a":1,"b":2,"_rescued_data":null}`)
	if got := csvLoad(t, "a,\"b\n1,2\n"); !fault.Is(got.err, "MALFORMED_CSV_HEADER") {
		t.Fatal(got.err)
	}
}

func TestCSVWithoutHeader(t *testing.T) {
	wantRows(t, csvLoad(t, "1,x\n2,y,z\n", "header=false"), `{"_c0":1,"_c1":"x","_c2":null,"_rescued_data":null}`, `{"_c0":2,"_c1":"y","_c2":"z","_rescued_data":null}`)
	// A declared schema takes the values by position, and there is no header unless said.
	wantRows(t, csvLoad(t, "1,x\n2,y,z\n", "schema=id INT, name STRING, _rescued_data STRING"),
		`{"id":1,"name":"x","_rescued_data":null}`, `{"id":2,"name":"y","_rescued_data":`+rescuedText(`"_c2":"z"`)+`}`)
}

func TestCSVColumnsThatTheSchemaLacksAreRescued(t *testing.T) {
	wantRows(t, csvLoad(t, "id,Name,new,empty\n1,n,x,\n", "header=true", "schema=id INT, name STRING, _rescued_data STRING"),
		`{"id":1,"name":null,"_rescued_data":`+rescuedText(`"Name":"n","new":"x"`)+`}`)
}

// covers B1: the types of CSVInferSchema.
func TestCSVInference(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"1,2", "int"}, {"1,3000000000", "bigint"}, {"1,12345678901234567890", "decimal(20,0)"}, {"3000000000,12345678901234567890123", "decimal(23,0)"},
		{"1,1.5", "double"}, {"12345678901234567890,1.5", "double"}, {"1e5", "double"}, {"NaN,1", "double"}, {strings.Repeat("9", 39), "double"},
		{"2026-07-28,", "date"}, {"2026-7-8", "timestamp"}, {"2026-07-28 10:00:00", "timestamp"}, {"2026-07-28T10:00:00Z", "timestamp"},
		{"2026-07-28,2026-07-28 10:00:00", "string"}, {"true,FALSE", "boolean"}, {"true,1", "string"}, {"1,x", "string"}, {",", "string"}, {"1,", "int"}, {"2026-07-28,5", "string"},
		{"1d", "string"}, {"007", "int"},
	} {
		t.Run(c.values, func(t *testing.T) {
			got := csvLoad(t, "v;w\n"+strings.ReplaceAll(c.values, ",", ";0\n")+";0\n", "sep=;")
			if got.err != nil {
				t.Fatal(got.err)
			}
			if name := typeName(got.schema.Fields[0].Type); name != c.want {
				t.Fatalf("%s, want %s", name, c.want)
			}
			if got.stats.Rescued != 0 {
				t.Fatal("what was inferred must be readable", got.rows)
			}
		})
	}
	for _, f := range csvLoad(t, "a,b\n1,2026-07-28\n", "inferColumnTypes=false").schema.Fields {
		if typeName(f.Type) != "string" {
			t.Fatal(f)
		}
	}
	if got := csvLoad(t, "a\n2026-07-28\n", "preferDate=false"); typeName(got.schema.Fields[0].Type) != "timestamp" {
		t.Fatal(got.schema)
	}
	if got := csvLoad(t, "a\n28.07.2026 14:30\n", "timestampFormat=dd.MM.yyyy HH:mm"); typeName(got.schema.Fields[0].Type) != "timestamp" {
		t.Fatal(got.schema)
	}
}
