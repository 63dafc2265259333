package ingest

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/relation"
)

// decodeJSON decodes one chunk without files or goroutines.
func decodeJSON(t testing.TB, mem memory.Allocator, s *Source, schema *Schema, text []byte) (arrow.RecordBatch, *decoder) {
	t.Helper()
	var fresh atomic.Bool
	base, err := newDecoder(s, schema, mem, &fresh)
	if err != nil {
		t.Fatal(err)
	}
	d := &jsonDecoder{decoder: *base}
	defer d.release()
	ch := &chunk{file: &source{File: File{Path: "/f.json"}}, data: append(bytes.Clone(text), make([]byte, padding)...), n: len(text), line: 1}
	if err := d.decode(ch, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	p := d.flush()
	defer p.release()
	var cols []arrow.Array
	for _, data := range p.data {
		cols = append(cols, array.MakeFromData(data))
	}
	rec := array.NewRecordBatch(arrow.NewSchema(s.dataFields(schema), nil), cols, int64(p.rows))
	for _, c := range cols {
		c.Release()
	}
	d.decoder.out = partial{rescued: p.rescued, malformed: p.malformed, lost: p.lost}
	return rec, &d.decoder
}

// FuzzJSON compares the decoder with encoding/json: what that takes for an
// object is a row that says the same, and nothing makes the decoder fail.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"s":"x","o":{"b":[1,2,{"c":null}]}}`, `{"a":1.5e3,"s":"\u00e9\ud83d\ude00\n"}`, `[{"a":1},{"s":"y"}]`, `{"a":1}{"a":2}`,
		"{\"a\":\"\xff\"}", `{"l":[{"x":1,"y":"z"},{"y":null}],"m":{"k":1,"k":2}}`, `{"a":`, `{"d":1.005,"t":"2026-07-28T02:15:04Z","b":true}`, `{'a':1}`, "\x00", `{"a":1,"a":2}`,
	} {
		f.Add([]byte(seed))
	}
	s, err := Parse(ReadFiles, "/x", opts("format=json", "schema=a BIGINT, s STRING, o STRING, l ARRAY<STRUCT<x INT, y STRING>>, m MAP<STRING,INT>, d DECIMAL(18,2), t TIMESTAMP, b BOOLEAN, _rescued_data STRING", "allowSingleQuotes=false", "allowNonNumericNumbers=false"), Env{Dir: "/"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		defer mem.AssertSize(t, 0)
		rec, d := decodeJSON(t, mem, s, s.declared(), text)
		defer rec.Release()
		for i := range int(rec.NumRows()) {
			row := relation.RowJSON(rec, i)
			if !json.Valid(row) {
				t.Fatalf("row %d is no JSON: %s", i, row)
			}
			if rescued := rec.Column(8).(*array.String); rescued.IsValid(i) && !json.Valid([]byte(rescued.Value(i))) {
				t.Fatalf("rescued data is no JSON: %s", rescued.Value(i))
			}
		}
		if bytes.ContainsAny(text, "\r\n") {
			return
		}
		if !json.Valid(text) || !validUTF8JSON(text) {
			if d.out.malformed == 0 && rec.NumRows() == 1 {
				// Several values on a line are several records; one alone must be valid.
				t.Fatalf("%q is no JSON and yet a row", text)
			}
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil || want == nil {
			return
		}
		if rec.NumRows() != 1 || d.out.malformed != 0 {
			t.Fatalf("%q: %d rows, %d malformed", text, rec.NumRows(), d.out.malformed)
		}
		got := map[string]json.RawMessage{}
		if err := json.Unmarshal(relation.RowJSON(rec, 0), &got); err != nil {
			t.Fatal(err)
		}
		if raw, ok := want["s"]; ok {
			var w string
			if json.Unmarshal(raw, &w) != nil {
				w = string(raw)
			}
			var g *string
			if err := json.Unmarshal(got["s"], &g); err != nil {
				t.Fatal(err)
			}
			if string(raw) == "null" {
				if g != nil {
					t.Fatalf("%q: s is %q", text, *g)
				}
			} else if g == nil || *g != w {
				t.Fatalf("%q: s is %s, want %q", text, got["s"], w)
			}
		}
		if raw, ok := want["a"]; ok {
			var w int64
			if json.Unmarshal(raw, &w) == nil && !bytes.ContainsAny(raw, ".eE") && string(raw) != "null" {
				if string(got["a"]) != fmt.Sprint(w) {
					t.Fatalf("%q: a is %s, want %d", text, got["a"], w)
				}
			} else if string(got["a"]) != "null" {
				t.Fatalf("%q: a is %s, want null", text, got["a"])
			}
		}
	})
}

func validUTF8JSON(b []byte) bool { return strings.ToValidUTF8(string(b), "") == string(b) }

// FuzzJSONOptions drives the liberties, documents of many lines, inference and
// evolution with the same bytes: nothing panics, nothing leaks, every row is JSON.
func FuzzJSONOptions(f *testing.F) {
	f.Add([]byte(`{a:'x',"b":007,/*c*/"d":NaN}`))
	f.Add([]byte("[\n{\"a\":1},\n{\"b\":[{}]}\n]"))
	f.Add([]byte(`{"A":1,"a":{"b":{"c":[1,"x",null]}}}`))
	sources := map[string]*Source{}
	for _, set := range [][]string{
		{"multiLine=true"}, {"allowComments=true", "allowUnquotedFieldNames=true", "allowNumericLeadingZeros=true", "allowBackslashEscapingAnyCharacter=true", "allowUnquotedControlChars=true"},
		{"multiLine=true", "allowComments=true", "allowUnquotedControlChars=true", "prefersDecimal=true", "inferTimestamp=true"}, {"readerCaseSensitive=false", "schemaEvolutionMode=rescue"},
	} {
		s, err := Parse(ReadFiles, "/x", opts(append(set, "format=json", "schemaHints=h STRUCT<x INT>")...), Env{Dir: "/"})
		if err != nil {
			f.Fatal(err)
		}
		sources[strings.Join(set, " ")] = s
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, s := range sources {
			sh := &shape{}
			ch := &chunk{file: &source{}, data: append(bytes.Clone(text), make([]byte, padding)...), n: len(text), line: 1}
			if err := s.inferJSON(ch, sh); err != nil {
				t.Fatal(err)
			}
			schema, err := s.assemble(sh, &shape{})
			if err != nil {
				t.Fatal(err)
			}
			for _, schema := range []*Schema{schema, {Fields: []Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64, Origin: Inferred}}}} {
				mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
				rec, d := decodeJSON(t, mem, s, schema, text)
				for i := range int(rec.NumRows()) {
					if row := relation.RowJSON(rec, i); !json.Valid(row) {
						t.Fatalf("row %d is no JSON: %s", i, row)
					}
				}
				if n := d.news; n.top != nil || len(n.below) > 0 {
					if next, _ := s.evolved(schema, orEmpty(n.top), n.below); next != nil {
						if err := s.checkTypes(next); err != nil {
							t.Fatal(err)
						}
					}
				}
				rec.Release()
				mem.AssertSize(t, 0)
			}
		}
	})
}

func orEmpty(sh *shape) *shape {
	if sh == nil {
		return &shape{}
	}
	return sh
}

// FuzzCSV compares the splitter with encoding/csv where both follow RFC 4180.
func FuzzCSV(f *testing.F) {
	f.Add("a,b\n1,\"x\"\"y\"\n\"p\nq\",\r\n")
	f.Add("\"a\"b,c\n")
	f.Add(",,\n\n\"\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		rules := defaults(ReadFiles).csv
		rules.escape = '"'
		s := csvScan{b: append([]byte(text), make([]byte, padding)...), end: len(text), rules: &rules, multi: true}
		var got [][]string
		bad := false
		for p := 0; p < s.end; {
			if q := s.pass(p); q != p {
				if q < p {
					t.Fatal("no progress")
				}
				p = q
				continue
			}
			end, why := s.record(p)
			bad = bad || why != ""
			var fields []string
			for _, f := range s.fields {
				fields = append(fields, string(s.value(f)))
			}
			got = append(got, fields)
			next := s.afterLine(end)
			if next <= p {
				t.Fatalf("no progress at %d of %q", p, text)
			}
			p = next
		}
		// encoding/csv turns \r\n into \n and reads a bare \r as text; blanks and lines of them differ too.
		if bad || strings.ContainsAny(text, "\r\x00 \t\v\f\u0085\u00a0") || strings.ContainsFunc(text, func(r rune) bool { return r > 0x7f }) {
			return
		}
		r := csv.NewReader(strings.NewReader(text))
		r.FieldsPerRecord = -1
		want, err := r.ReadAll()
		if err != nil {
			return
		}
		if !slices.EqualFunc(got, want, func(a, b []string) bool { return slices.Equal(a, b) }) {
			t.Fatalf("%q\n got %q\nwant %q", text, got, want)
		}
	})
}

// The output does not depend on the parallelism, nor on the size of the batches but for where they are cut.
func TestParallelIsSerial(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	l := newLanding(t, nil)
	for i := range 150 {
		docs := bytes.SplitAfter(orderDocuments(1+rnd.IntN(60)), []byte("\n"))
		name := fmt.Sprintf("%03d.json", i)
		if i%10 == 3 {
			name += ".gz"
		}
		if i%7 == 2 {
			docs = append(docs, []byte("broken {\n"), []byte(`{"order_id":7,"extra":[1]}`))
		}
		l.put(name, string(bytes.Join(docs, nil)))
	}
	l.put("070-large.json", string(orderDocuments(12_000)))
	s := l.source(ReadFiles, "format=json", "schemaHints="+orderHints, "schemaEvolutionMode=rescue")
	fs := files(t, s)
	if !fs[slices.IndexFunc(fs, func(f File) bool { return strings.Contains(f.Path, "large") })].large() {
		t.Fatal("the large file is not")
	}
	schema, err := s.Infer(context.Background(), fs)
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, s, schema, fs, ReadOptions{Parallel: 1})
	if want.err != nil || want.stats.Malformed == 0 || len(want.sizes) < 2 {
		t.Fatal(want.err, want.stats.Rows, want.sizes)
	}
	for _, o := range []ReadOptions{{Parallel: 2}, {Parallel: 7}, {Parallel: 1, BatchRows: 100}, {Parallel: 5, BatchRows: 9999}} {
		got := read(t, s, schema, fs, o)
		if !slices.Equal(got.rows, want.rows) || !slices.Equal(got.paths, want.paths) || !slices.Equal(got.places, want.places) {
			t.Fatalf("%+v gives other rows", o)
		}
		if fmt.Sprint(got.stats) != fmt.Sprint(want.stats) {
			t.Fatalf("%+v: %+v, want %+v", o, got.stats, want.stats)
		}
		if o.BatchRows == 0 && !slices.Equal(got.sizes, want.sizes) {
			t.Fatalf("%+v: batches %v, want %v", o, got.sizes, want.sizes)
		}
		if o.BatchRows > 0 && slices.Max(got.sizes) > int64(o.BatchRows) {
			t.Fatal(got.sizes)
		}
	}
}

func (s *File) large() bool { return (&source{File: *s}).large() }

// In the steady state a row costs no allocation.
func TestRowsAreNotAllocated(t *testing.T) {
	l := newLanding(t, nil)
	s := l.source(ReadFiles, "format=json", "schema=order_id STRING, order_ts TIMESTAMP, customer_id BIGINT, customer_name STRING, currency STRING, total_amount DECIMAL(18,2), paid BOOLEAN, items ARRAY<STRUCT<sku STRING, name STRING, quantity BIGINT, price DOUBLE>>, ship_to STRUCT<street STRING, city STRING, zip STRING, country STRING>, _rescued_data STRING")
	var fresh atomic.Bool
	base, err := newDecoder(s, s.declared(), memory.DefaultAllocator, &fresh)
	if err != nil {
		t.Fatal(err)
	}
	d := &jsonDecoder{decoder: *base}
	text := orderDocuments(2000)
	ch := &chunk{file: &source{File: File{Path: "/f.json"}}, data: append(text, make([]byte, padding)...), n: len(text), line: 1}
	perRun := testing.AllocsPerRun(5, func() {
		if err := d.decode(ch, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		p := d.flush()
		p.release()
	})
	if perRow := perRun / 2000; perRow > 0.2 {
		t.Fatalf("%.2f allocations a row", perRow)
	}
	d.release()
}
