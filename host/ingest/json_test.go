package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// declare reads one JSON text with a declared schema that has a rescue column.
func declare(t *testing.T, schema, text string, settings ...string) outcome {
	t.Helper()
	l := newLanding(t, map[string]string{"a.json": text})
	return l.load(ReadFiles, append(settings, "format=json", "schema="+schema+", _rescued_data STRING")...)
}

func TestJSONDocumentsBecomeRows(t *testing.T) {
	l := newLanding(t, map[string]string{
		"a.json": `{"id":1,"name":"a","price":1.5,"tags":["x","y"],"who":{"first":"A","n":1}}` + "\n" + `{"id":2,"ok":true}`,
		"b.json": `{"name":"caf\u00e9 \ud83d\ude00\n","id":3,"who":{"first":null}}`,
	})
	got := l.load(ReadFiles, "format=json")
	wantRows(t, got,
		`{"id":1,"name":"a","ok":null,"price":1.5,"tags":["x","y"],"who":{"first":"A","n":1},"_rescued_data":null}`,
		`{"id":2,"name":null,"ok":true,"price":null,"tags":null,"who":null,"_rescued_data":null}`,
		`{"id":3,"name":"café 😀\n","ok":null,"price":null,"tags":null,"who":{"first":null,"n":null},"_rescued_data":null}`,
	)
}

// covers B1: type mismatches, by the rules of Spark's JacksonParser.
func TestJSONValuesOfATypeOrRescued(t *testing.T) {
	for _, c := range []struct{ dt, value, want, rescued string }{
		{"BOOLEAN", `true`, `true`, ``},
		{"BOOLEAN", `"true"`, `null`, `"true"`},
		{"BOOLEAN", `1`, `null`, `1`},
		{"BIGINT", `-9223372036854775808`, `-9223372036854775808`, ``},
		{"BIGINT", `9223372036854775807`, `9223372036854775807`, ``},
		{"BIGINT", `9223372036854775808`, `null`, `9223372036854775808`},
		{"BIGINT", `1.0`, `null`, `1.0`},
		{"BIGINT", `1e3`, `null`, `1e3`},
		{"BIGINT", `"1"`, `null`, `"1"`},
		{"BIGINT", `""`, `null`, `""`},
		{"BIGINT", `-0`, `0`, ``},
		{"INT", `2147483647`, `2147483647`, ``},
		{"INT", `2147483648`, `null`, `2147483648`},
		{"SMALLINT", `-32768`, `-32768`, ``},
		{"SMALLINT", `32768`, `null`, `32768`},
		{"TINYINT", `127`, `127`, ``},
		{"TINYINT", `128`, `null`, `128`},
		{"DOUBLE", `1.5`, `1.5`, ``},
		{"DOUBLE", `3`, `3`, ``},
		{"DOUBLE", `1e400`, `"Infinity"`, ``},
		{"DOUBLE", `0.1e-7`, `1e-08`, ``},
		{"DOUBLE", `"NaN"`, `"NaN"`, ``},
		{"DOUBLE", `-Infinity`, `"-Infinity"`, ``},
		{"DOUBLE", `"1.5"`, `null`, `"1.5"`},
		{"FLOAT", `1.1`, `1.1`, ``},
		// Too many digits are rounded half away from zero, as Spark's Decimal.
		{"DECIMAL(18,2)", `1.005`, `1.01`, ``},
		{"DECIMAL(18,2)", `-1.005`, `-1.01`, ``},
		{"DECIMAL(18,2)", `1.004999999999999999999999999999999999`, `1.00`, ``},
		{"DECIMAL(18,2)", `12345678901234567890.1`, `null`, `12345678901234567890.1`},
		{"DECIMAL(4,2)", `99.994`, `99.99`, ``},
		{"DECIMAL(4,2)", `99.995`, `null`, `99.995`},
		{"DECIMAL(18,2)", `1.5e3`, `1500.00`, ``},
		{"DECIMAL(18,2)", `"1,234.50"`, `1234.50`, ``},
		{"DECIMAL(18,2)", `"$100.00"`, `null`, `"$100.00"`},
		{"DECIMAL(38,18)", `0.000000000000000001`, `0.000000000000000001`, ``},
		{"DECIMAL(38,0)", `99999999999999999999999999999999999999`, `99999999999999999999999999999999999999`, ``},
		{"DECIMAL(38,0)", `100000000000000000000000000000000000000`, `null`, `100000000000000000000000000000000000000`},
		{"STRING", `"x"`, `"x"`, ``},
		{"STRING", `""`, `""`, ``},
		{"STRING", `1.50`, `"1.50"`, ``},
		{"STRING", `true`, `"true"`, ``},
		{"STRING", `{"a": [1, 2]}`, `"{\"a\": [1, 2]}"`, ``},
		{"STRING", `[ ]`, `"[ ]"`, ``},
		{"DATE", `"2026-07-28"`, `"2026-07-28"`, ``},
		{"DATE", `"2026-07-28T10:00:00"`, `"2026-07-28"`, ``},
		{"DATE", `"28.07.2026"`, `null`, `"28.07.2026"`},
		{"DATE", `20260728`, `null`, `20260728`},
		{"TIMESTAMP", `"2026-07-28T02:15:04Z"`, `"2026-07-28T02:15:04Z"`, ``},
		{"TIMESTAMP", `1785204904`, `"2026-07-28T02:15:04Z"`, ``},
		{"TIMESTAMP", `1785204904.5`, `null`, `1785204904.5`},
		{"TIMESTAMP", `"soon"`, `null`, `"soon"`},
		{"TIMESTAMP_NTZ", `"2026-07-28 02:15:04.5"`, `"2026-07-28T02:15:04.5"`, ``},
		{"TIMESTAMP_NTZ", `"2026-07-28T02:15:04Z"`, `null`, `"2026-07-28T02:15:04Z"`},
		{"BINARY", `"aGk="`, `"aGk="`, ``},
		{"BINARY", `"?"`, `null`, `"?"`},
		{"ARRAY<INT>", `[1,null,3]`, `[1,null,3]`, ``},
		{"ARRAY<INT>", `[]`, `[]`, ``},
		{"ARRAY<INT>", `{"a":1}`, `null`, `"{\"a\":1}"`},
		{"ARRAY<INT>", `"1"`, `null`, `"1"`},
		{"STRUCT<a INT>", `{"a":1}`, `{"a":1}`, ``},
		{"STRUCT<a INT>", `[1]`, `null`, `"[1]"`},
		{"STRUCT<a INT>", `{}`, `{"a":null}`, ``},
		{"MAP<STRING,INT>", `{"b":1,"a":2}`, `{"b":1,"a":2}`, ``},
		{"MAP<STRING,INT>", `{}`, `{}`, ``},
		{"MAP<STRING,INT>", `3`, `null`, `3`},
	} {
		t.Run(c.dt+" "+c.value, func(t *testing.T) {
			got := declare(t, "v "+c.dt, `{"v":`+c.value+`}`)
			rescued := "null"
			if c.rescued != "" {
				rescued = string(relation.AppendString(nil, `{"v":`+c.rescued+`,"_file_path":"DIR/a.json"}`))
			}
			wantRows(t, got, `{"v":`+c.want+`,"_rescued_data":`+rescued+`}`)
			// A missing or null value is null, and nothing to rescue.
			wantRows(t, declare(t, "v "+c.dt, `{"v":null}`+"\n{}"), `{"v":null,"_rescued_data":null}`, `{"v":null,"_rescued_data":null}`)
		})
	}
}

// covers B1, A31, A43: one flat object of the fields that have no place, and the file's path.
func TestRescuedDataIsOneFlatObject(t *testing.T) {
	const schema = "id BIGINT, price DECIMAL(10,2), a STRUCT<b INT, c ARRAY<STRUCT<d INT>>>, m MAP<STRING,INT>"
	for _, c := range []struct{ name, record, want string }{
		{"a new column", `{"id":1,"gift":"yes"}`, `{"gift":"yes","_file_path":"DIR/a.json"}`},
		{"a new number keeps its digits", `{"id":1,"n":1.50}`, `{"n":1.50,"_file_path":"DIR/a.json"}`},
		{"nested values are encoded strings", `{"quantity":{"units":2},"l":[1, 2]}`, `{"quantity":"{\"units\":2}","l":"[1, 2]","_file_path":"DIR/a.json"}`},
		{"a type mismatch", `{"price":"$100.00"}`, `{"price":"$100.00","_file_path":"DIR/a.json"}`},
		{"a case collision", `{"ID":7}`, `{"ID":7,"_file_path":"DIR/a.json"}`},
		{"several in their order", `{"x":1,"id":"q","y":true}`, `{"x":1,"id":"q","y":true,"_file_path":"DIR/a.json"}`},
		{"inside a struct", `{"a":{"b":"x","z":1}}`, `{"a.b":"x","a.z":1,"_file_path":"DIR/a.json"}`},
		{"inside a list", `{"a":{"c":[{"d":1},{"d":"two","e.f":3}]}}`, "{\"a.c[1].d\":\"two\",\"a.c[1].`e.f`\":3,\"_file_path\":\"DIR/a.json\"}"},
		{"inside a map", `{"m":{"k":"v","l":2}}`, `{"m.k":"v","_file_path":"DIR/a.json"}`},
		{"a null is nothing", `{"id":1,"x":null}`, ``},
		{"a key that stands twice in a map", `{"m":{"k":1,"k":2}}`, `{"m.k":2,"_file_path":"DIR/a.json"}`},
		{"escapes are undone and done again", `{"q\"\u00e4":"line\nbreak"}`, `{"q\"ä":"line\nbreak","_file_path":"DIR/a.json"}`},
		{"an empty name", `{"":1}`, `{"":1,"_file_path":"DIR/a.json"}`},
		{"the name of a hidden column", `{"__weir_row":1,"_metadata":2,"_rescued_data":3}`, `{"__weir_row":1,"_metadata":2,"_rescued_data":3,"_file_path":"DIR/a.json"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := declare(t, schema, c.record)
			if got.err != nil || len(got.rows) != 1 {
				t.Fatalf("%+v", got)
			}
			_, rescued, _ := strings.Cut(got.rows[0], `"_rescued_data":`)
			want := "null}"
			if c.want != "" {
				want = string(relation.AppendString(nil, c.want)) + "}"
			}
			if rescued != want {
				t.Fatalf("\n got %s\nwant %s", rescued, want)
			}
			if n := int64(b2i(c.want != "")); got.stats.Rescued != n {
				t.Fatalf("%d rescued, want %d", got.stats.Rescued, n)
			}
		})
	}
}

// The last of equal keys wins, as in Spark, whatever stood before it.
func TestDuplicateKeysTheLastWins(t *testing.T) {
	const schema = "a INT, s STRING, t STRUCT<x INT, y INT>, l ARRAY<INT>"
	wantRows(t, declare(t, schema,
		`{"a":1,"a":2,"s":"long one","s":"b","t":{"x":1},"t":{"y":2},"l":[1,2,3],"l":[4]}`+"\n"+
			`{"a":1,"a":null,"t":{"x":1},"t":null,"l":[1],"l":null,"s":"x","s":null}`+"\n"+
			`{"a":5,"s":"e","t":{"x":6,"y":7},"l":[8,9]}`),
		`{"a":2,"s":"b","t":{"x":null,"y":2},"l":[4],"_rescued_data":null}`,
		`{"a":null,"s":null,"t":null,"l":null,"_rescued_data":null}`,
		`{"a":5,"s":"e","t":{"x":6,"y":7},"l":[8,9],"_rescued_data":null}`)
}

// covers B1 and answer 2: a record that is no JSON is a row of nulls with its text.
func TestMalformedRecordsKeepTheirText(t *testing.T) {
	deep := strings.Repeat("[", 1001) + strings.Repeat("]", 1001)
	for _, c := range []struct{ name, record string }{
		{"truncated", `{"id":2,"l":[1,{"x":`},
		{"a word", `hello`},
		{"a number", `12`},
		{"null", `null`},
		{"a missing colon", `{"id" 2}`},
		{"a missing comma", `{"id":2 "x":3}`},
		{"a trailing comma", `{"id":2,}`},
		{"trailing text", `{"id":2} x`},
		{"a bad literal", `{"id":tru}`},
		{"leading zeros", `{"id":012}`},
		{"a bare point", `{"id":1.}`},
		{"an unknown escape", `{"s":"\q"}`},
		{"a short unicode escape", `{"s":"\u12"}`},
		{"a control character", "{\"s\":\"a\x01b\"}"},
		{"a tab in a string", "{\"s\":\"a\tb\"}"},
		{"NUL bytes", "{\"id\":2}\x00\x00"},
		{"an unquoted name", `{id:2}`},
		{"a comment", `{"id":2/* two */}`},
		{"an array of numbers", `[1,2]`},
		{"an array with a null", `[{"id":9},null]`},
		{"an array that breaks off", `[{"id":9},{"id":8}`},
		{"nested too deep", `{"l":` + deep + `}`},
		{"a second record that is broken", `{"id":9}{"id":`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "{\"id\":1,\"l\":[1],\"s\":\"a\"}\n" + c.record + "\n{\"id\":3,\"l\":[3],\"s\":\"c\"}\n"
			got := declare(t, "id INT, s STRING, l ARRAY<INT>", text)
			corrupt := `{"_corrupt_record":` + string(relation.AppendString(nil, c.record)) + `,"_file_path":"DIR/a.json"}`
			wantRows(t, got,
				`{"id":1,"s":"a","l":[1],"_rescued_data":null}`,
				`{"id":null,"s":null,"l":null,"_rescued_data":`+string(relation.AppendString(nil, corrupt))+`}`,
				`{"id":3,"s":"c","l":[3],"_rescued_data":null}`)
			if got.stats.Malformed != 1 || got.stats.Rescued != 1 || got.stats.Rows != 3 {
				t.Fatalf("%+v", got.stats)
			}
			if got.places[1].Line != 2 || got.places[1].Byte != 25 || got.places[2].Line != 3 {
				t.Fatalf("%+v", got.places)
			}
			dropped := declare(t, "id INT, s STRING, l ARRAY<INT>", text, "mode=dropmalformed")
			if dropped.err != nil || len(dropped.rows) != 2 || dropped.stats.Dropped != 1 || dropped.places[1].Line != 3 {
				t.Fatalf("%+v", dropped)
			}
			failed := declare(t, "id INT, s STRING, l ARRAY<INT>", text, "mode=FAILFAST")
			if !fault.Is(failed.err, "MALFORMED_RECORD_IN_PARSING") || !strings.Contains(failed.err.Error(), "line 2") || !strings.Contains(failed.err.Error(), "a.json") {
				t.Fatal(failed.err)
			}
		})
	}
}

// A type mismatch is no malformed record: it neither drops the row nor fails the read.
func TestMismatchesAreNotMalformed(t *testing.T) {
	for _, mode := range []string{"PERMISSIVE", "DROPMALFORMED", "FAILFAST"} {
		got := declare(t, "id INT", `{"id":"x"}`, "mode="+mode)
		wantRows(t, got, `{"id":null,"_rescued_data":"{\"id\":\"x\",\"_file_path\":\"DIR/a.json\"}"}`)
		if got.stats.Malformed+got.stats.Dropped != 0 {
			t.Fatalf("%+v", got.stats)
		}
	}
}

func TestInvalidUTF8MakesItsRecordMalformed(t *testing.T) {
	got := declare(t, "s STRING", "{\"s\":\"ok\"}\n{\"s\":\"\xff\"}\r\n{\"s\":\"ä\"}")
	wantRows(t, got, `{"s":"ok","_rescued_data":null}`,
		`{"s":null,"_rescued_data":"{\"_corrupt_record\":\"{\\\"s\\\":\\\"�\\\"}\",\"_file_path\":\"DIR/a.json\"}"}`,
		`{"s":"ä","_rescued_data":null}`)
}

func TestCorruptRecordsGoToTheirDeclaredColumn(t *testing.T) {
	l := newLanding(t, map[string]string{"a.json": "{\"a\":1}\nnope"})
	wantRows(t, l.load(ReadFiles, "format=json", "schema=a INT, _corrupt_record STRING"),
		`{"a":1,"_corrupt_record":null}`, `{"a":null,"_corrupt_record":"nope"}`)
	wantRows(t, l.load(ReadFiles, "format=json", "schema=a INT, bad STRING", "columnNameOfCorruptRecord=bad", "rescuedDataColumn=r"),
		`{"a":1,"bad":null,"r":null}`, `{"a":null,"bad":"nope","r":null}`)
}

// Without a rescue column what has no place is counted: nothing is lost unseen.
func TestWithoutARescueColumnLossIsCounted(t *testing.T) {
	l := newLanding(t, map[string]string{"a.json": "{\"a\":\"x\",\"b\":1}\nnope\n{\"a\":1}"})
	s := l.source(ReadFiles, "format=json", "schema=a INT")
	if w := s.Warnings(); len(w) != 1 || !strings.Contains(w[0], "NO_RESCUE_COLUMN") {
		t.Fatal(w)
	}
	got := l.load(ReadFiles, "format=json", "schema=a INT")
	wantRows(t, got, `{"a":null}`, `{"a":null}`, `{"a":1}`)
	if got.stats.Lost != 3 || got.stats.Malformed != 1 || got.stats.Rescued != 0 {
		t.Fatalf("%+v", got.stats)
	}
}

func TestLinesEndWithLFOrCRLFOrCR(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		text := strings.Join([]string{`{"a":1}`, ``, `  `, `{"a":2} {"a":3}`, `[{"a":4},{"a":5}]`, `[]`, `x`, `{"a":6}`}, end)
		got := declare(t, "a INT", text)
		if got.err != nil || len(got.rows) != 7 || got.stats.Malformed != 1 {
			t.Fatalf("%q: %+v", end, got)
		}
		lines := []int64{1, 4, 4, 5, 5, 7, 8}
		for i, p := range got.places {
			if p.Line != lines[i] || text[p.Byte:][0] != "{{{{{x{"[i] {
				t.Fatalf("%q row %d: %+v", end, i, p)
			}
		}
	}
}

func TestByteOrderMark(t *testing.T) {
	got := declare(t, "a INT", "\xef\xbb\xbf{\"a\":1}\n{\"a\":2}")
	wantRows(t, got, `{"a":1,"_rescued_data":null}`, `{"a":2,"_rescued_data":null}`)
	if got.places[0].Byte != 3 || got.places[1].Byte != 11 {
		t.Fatalf("%+v", got.places)
	}
	for _, bom := range []string{"\xff\xfe{\x00", "\xfe\xff\x00{", "\x00\x00\xfe\xff"} {
		if got := declare(t, "a INT", bom); !fault.Is(got.err, "UNSUPPORTED_ENCODING") {
			t.Fatalf("%q: %v", bom, got.err)
		}
	}
}

// covers A6: one document per file, pretty-printed or not; arrays are unwrapped.
func TestMultiLineDocuments(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
		malformed  int64
	}{
		{"one document", "{\n \"a\": 1,\n \"b\": [\n1\n]\n}\n", []string{`1 [1]`}, 0},
		{"an array", "[\n {\"a\":1},\n {\"a\":2}\n]", []string{`1 null`, `2 null`}, 0},
		{"several", "{\"a\":1}\n{\"a\":\n2}[{\"a\":3}]{\"a\":4}", []string{`1 null`, `2 null`, `3 null`, `4 null`}, 0},
		{"nothing", " \n\t", nil, 0},
		{"an empty array", "[]", nil, 0},
		{"a broken element", "[{\"a\":1},{\"a\":x},{\"a\":\"}\",\"c\":[1,]},{\"a\":4}]", []string{`1 null`, `{"a":x}`, `{"a":"}","c":[1,]}`, `4 null`}, 2},
		{"an element that is no object", "[{\"a\":1}, 7, [2,3], {\"a\":4}]", []string{`1 null`, `7`, `[2,3]`, `4 null`}, 2},
		{"an end that is missing", "[{\"a\":1},\n{\"a\":2", []string{`1 null`, `{"a":2`}, 1},
		{"text behind", "{\"a\":1} xyz\n{\"a\":2}", []string{`1 null`, `xyz`, `2 null`}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := declare(t, "a INT, b ARRAY<INT>", c.text, "multiLine=true")
			var want []string
			for _, w := range c.want {
				a, b, ok := strings.Cut(w, " ")
				if ok && !strings.ContainsAny(a, "{[x") {
					want = append(want, fmt.Sprintf(`{"a":%s,"b":%s,"_rescued_data":null}`, a, b))
					continue
				}
				text := `{"_corrupt_record":` + string(relation.AppendString(nil, w)) + `,"_file_path":"DIR/a.json"}`
				want = append(want, `{"a":null,"b":null,"_rescued_data":`+string(relation.AppendString(nil, text))+`}`)
			}
			wantRows(t, got, want...)
			if got.stats.Malformed != c.malformed {
				t.Fatalf("%+v", got.stats)
			}
		})
	}
	got := declare(t, "a INT", "[\n{\"a\":1},\n\n{\"a\":2}]", "multiLine=true")
	if got.places[0].Line != 2 || got.places[1].Line != 4 || got.places[1].Byte != 12 {
		t.Fatalf("%+v", got.places)
	}
}

func TestLibertiesOfJSON(t *testing.T) {
	for _, c := range []struct{ option, record, want string }{
		{"allowSingleQuotes", `{'s':'it\'s "x"'}`, `"it's \"x\""`},
		{"allowUnquotedFieldNames", `{s:"x"}`, `"x"`},
		{"allowComments", `/* c */{"s"/**/:/**/"x"/**/}// end`, `"x"`},
		{"allowNumericLeadingZeros", `{"s":0012}`, `"0012"`},
		{"allowNonNumericNumbers", `{"s":NaN}`, `"NaN"`},
		{"allowBackslashEscapingAnyCharacter", `{"s":"\q"}`, `"q"`},
		{"allowUnquotedControlChars", "{\"s\":\"a\tb\"}", `"a\tb"`},
	} {
		t.Run(c.option, func(t *testing.T) {
			wantRows(t, declare(t, "s STRING", c.record, c.option+"=true"), `{"s":`+c.want+`,"_rescued_data":null}`)
			if got := declare(t, "s STRING", c.record, c.option+"=false"); got.stats.Malformed != 1 {
				t.Fatalf("%+v", got)
			}
		})
	}
	// What JSON does not know is rescued as JSON all the same.
	wantRows(t, declare(t, "s STRING", `{'x':'a"b','n':NaN,'z':007}`, "allowNumericLeadingZeros=true"),
		`{"s":null,"_rescued_data":"{\"x\":\"a\\\"b\",\"n\":\"NaN\",\"z\":\"007\",\"_file_path\":\"DIR/a.json\"}"}`)
}

// covers B1: readerCaseSensitive.
func TestReaderCaseSensitive(t *testing.T) {
	const record = `{"Id":1,"A":{"B":2}}`
	wantRows(t, declare(t, "id INT, a STRUCT<b INT>", record, "readerCaseSensitive=false"), `{"id":1,"a":{"b":2},"_rescued_data":null}`)
	wantRows(t, declare(t, "id INT, a STRUCT<b INT>", record),
		`{"id":null,"a":null,"_rescued_data":"{\"Id\":1,\"A\":\"{\\\"B\\\":2}\",\"_file_path\":\"DIR/a.json\"}"}`)
}

func TestRecordsBeyondMaxRecordBytesAreMalformedNotMemory(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 20<<20) + `"}`
	for _, multi := range []string{"false", "true"} {
		text := "{\"a\":\"1\"}\n" + long + "\n{\"a\":\"3\"}\n"
		got := declare(t, "a STRING", text, "maxRecordBytes=1m", "multiLine="+multi)
		if got.err != nil || len(got.rows) != 3 || got.stats.Malformed != 1 {
			t.Fatalf("multiLine=%s: %d rows, %+v, %v", multi, len(got.rows), got.stats, got.err)
		}
		if !strings.Contains(got.rows[1], fmt.Sprintf(`\"_corrupt_record_bytes\":%d`, len(long))) || len(got.rows[1]) > 8<<10 {
			t.Fatal(got.rows[1][len(got.rows[1])-200:])
		}
		if got.places[2].Line != 3 || text[got.places[2].Byte:] != "{\"a\":\"3\"}\n" {
			t.Fatalf("%+v", got.places[2])
		}
	}
	// One that is longer than a piece, and allowed, is read.
	got := declare(t, "a STRING", long+"\n{\"a\":\"3\"}")
	if got.err != nil || len(got.rows) != 2 || got.stats.Malformed != 0 || len(got.rows[0]) < 20<<20 {
		t.Fatalf("%d rows, %+v, %v", len(got.rows), got.stats, got.err)
	}
}

func TestNestingUpToTheLimit(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	if got := declare(t, "a STRING", `{"a":`+nested(999)+`}`); got.stats.Malformed != 0 || got.err != nil {
		t.Fatal(got.stats, got.err)
	}
	if got := declare(t, "a STRING", `{"a":`+nested(1000)+`}`); got.stats.Malformed != 1 || got.err != nil {
		t.Fatal(got.stats, got.err)
	}
	huge := declare(t, "a STRING", `{"a":`+nested(1_000_000)+"}\n{\"a\":1}")
	if huge.stats.Malformed != 1 || len(huge.rows) != 2 {
		t.Fatal(huge.stats)
	}
}

func TestFieldOrderMayChangeWithEveryRecord(t *testing.T) {
	got := declare(t, "a INT, b INT, c INT", `{"c":1,"a":2}`+"\n"+`{"b":3,"x":0,"c":4}`+"\n"+`{"a":5,"b":6,"c":7}`+"\n"+`{"c":8,"b":9,"a":10}`)
	wantRows(t, got, `{"a":2,"b":null,"c":1,"_rescued_data":null}`,
		`{"a":null,"b":3,"c":4,"_rescued_data":"{\"x\":0,\"_file_path\":\"DIR/a.json\"}"}`,
		`{"a":5,"b":6,"c":7,"_rescued_data":null}`, `{"a":10,"b":9,"c":8,"_rescued_data":null}`)
}

func TestReadStopsWithItsContext(t *testing.T) {
	l := newLanding(t, map[string]string{"a.json": strings.Repeat("{\"a\":1}\n", 3_000_000)})
	s := l.source(ReadFiles, "format=json", "schema=a INT, _rescued_data STRING")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	schema, err := s.Infer(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Read(ctx, schema, files(t, s), ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatal(r.Err())
	}
	cancel()
	for r.Next() {
	}
	if !errors.Is(r.Err(), context.Canceled) {
		t.Fatal(r.Err())
	}
}
