package ingest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// randomText makes a text of records, well-formed and not, with line ends of all
// kinds. In documents of many lines the broken ones are balanced: where one ends
// that is not can only be guessed, and is guessed from what lies in the piece.
func randomText(rnd *rand.Rand, format format, multi bool) string {
	pieces := []string{
		`{"a":1}`, `{"a":"x","b":[1,{"c":"}]"}]}`, `[{"a":1},{"a":2}]`, `[`, `]`, `,`, `{"a":"it\"s\\"}`, `{"a":`, `}`, `"`, `x y`, `{"s":'q'}`, ` `, "\t", `[]`, `{}`, `{"ä":"ö"}`, `{"a":"` + strings.Repeat("long ", 12) + `"}`,
	}
	if format == formatJSON && multi {
		pieces = []string{`{"a":1}`, `{"a":"x","b":[1,{"c":"}]"}]}`, `[{"a":1},{"a":2}]`, "[\n{\"a\":\n1\n}\n,\r\n{\"b\":2}]", `{"a":"it\"s\\"}`, `{"a":x}`, `{"a":[{}],}`, `{"s":'q'}`, ` `, "\t", `[]`, `{}`, `{"ä":"ö"}`, `{"a":"` + strings.Repeat("long ", 12) + `"}`}
	}
	if format == formatCSV {
		pieces = []string{`a,b,c`, `1,2,3`, `"q,1",2,3`, `"line`, `end",5,6`, `"d""q",1,2`, `,`, `"`, `#c`, ``, `ä,ö,ü`, `1,2,3,4,5`, `"` + strings.Repeat("long ", 12) + `",2,3`, `"a" ,b,c`, `"a"b,c`, `\`, `"x\"y",1`}
	}
	ends := []string{"\n", "\n", "\n", "\r\n", "\r", ""}
	var b strings.Builder
	if format == formatCSV {
		b.WriteString("a,b,c\n")
	}
	for range rnd.IntN(30) {
		b.WriteString(pieces[rnd.IntN(len(pieces))])
		b.WriteString(ends[rnd.IntN(len(ends))])
	}
	return b.String()
}

// Where a file is cut into pieces shows nowhere: not in the rows, not in their places, not in the schema.
func TestPiecesOfAFileShowNowhere(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for _, set := range [][]string{
		{"format=json"}, {"format=json", "multiLine=true"}, {"format=csv", "comment=#"}, {"format=csv", "multiLine=true"}, {"format=csv", "multiLine=true", `escape="`}, {"format=csv", "header=false", "sep=, "},
	} {
		for round := range 150 {
			kind := format(strings.TrimPrefix(set[0], "format="))
			text := randomText(rnd, kind, slices.Contains(set, "multiLine=true"))
			l := newLanding(t, map[string]string{"a.txt": text})
			s := l.source(ReadFiles, append(set, "schemaHints=a STRING, b STRING", "schemaEvolutionMode=rescue")...)
			fs := files(t, s)
			schema, err := s.Infer(context.Background(), fs)
			if err != nil {
				t.Fatal(err)
			}
			want := read(t, s, schema, fs, ReadOptions{})
			for _, size := range []int{16, 37, 64, 300} {
				s.config.chunkBytes = size
				got := read(t, s, schema, fs, ReadOptions{})
				if got.err != nil || !slices.Equal(got.rows, want.rows) || !slices.Equal(got.places, want.places) {
					t.Fatalf("%v round %d, pieces of %d: %v\n%q\n got %s %v\nwant %s %v", set, round, size, got.err, text, strings.Join(got.rows, "\n"), got.places, strings.Join(want.rows, "\n"), want.places)
				}
				again, err := s.Infer(context.Background(), fs)
				if err != nil || fmt.Sprint(again) != fmt.Sprint(schema) {
					t.Fatalf("%v pieces of %d: %v %v, want %v", set, size, again, err, schema)
				}
			}
		}
	}
}
