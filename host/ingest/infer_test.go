package ingest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// A malformed record says nothing about the schema, wherever it breaks off and
// whatever stands beside it: a file of lines is the same as a file for each.
func TestABrokenRecordTellsNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	documents := []string{
		`{"a":1,"s":"x","o":{"b":[1,2,{"c":null}]}}`, `{"a":1.5e3,"s":"\u00e9\ud83d\ude00\n"}`, `{"l":[{"x":1,"y":"z"},{"y":null}],"m":{"k":1,"k":2}}`,
		`{"d":1.005,"t":"2026-07-28T02:15:04Z","b":true}`, `{"n":NaN,"é":"ü","deep":[[[{"q":{}}]]]}`, `{"a":"text","new":-0.5}`,
	}
	infer := func(files2 map[string]string) string {
		l := newLanding(t, files2)
		s := l.source(ReadFiles, "format=json")
		schema, err := s.Infer(context.Background(), files(t, s))
		if err != nil {
			return "nothing"
		}
		return columns(schema)
	}
	for range 60 {
		var lines []string
		apart := map[string]string{}
		for i := range 1 + rng.IntN(6) {
			line := []byte(documents[rng.IntN(len(documents))])
			for range rng.IntN(3) {
				at := rng.IntN(len(line))
				switch rng.IntN(3) {
				case 0:
					line = line[:at] // cut off
				case 1:
					line[at] = ("{}[]\",:x1\x00\xff")[rng.IntN(11)]
				default:
					line = append(line[:at], line[min(at+1+rng.IntN(3), len(line)):]...)
				}
				if len(line) == 0 {
					break
				}
			}
			lines = append(lines, string(line))
			apart[fmt.Sprintf("%d.json", i)] = string(line) + "\n"
		}
		together := strings.Join(lines, "\n") + "\n"
		if got, want := infer(map[string]string{"a.json": together}), infer(apart); got != want {
			t.Fatalf("%q\n together %s\n apart %s", together, got, want)
		}
	}
}
