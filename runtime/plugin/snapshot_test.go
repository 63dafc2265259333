package plugin

import (
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/abi"
)

const providerManifest = `{"abi": 1, "module": "m", "functions": [
	{"name": "next", "kind": "snapshot", "inputs": [{"dataset": "a", "mode": "batch"}], "output": [], "version": "int"},
	{"name": "learned", "kind": "snapshot", "inputs": [{"dataset": "a", "mode": "batch"}]}]}`

// covers A78
func TestProvidersSayTheirVersionOnceAndFirst(t *testing.T) {
	const one, done = `{"version": {"type": "int", "value": 1}}`, `{"done": true}`
	refusal := errors.New("not the next one")
	says := func(a *asm, text string) []byte { return cat(a.text(text), a.call("result_write"), drop) }
	for name, c := range map[string]struct {
		body  func(a *asm) []byte
		hears error
		code  string
		text  string
	}{
		"nothing":    {func(*asm) []byte { return nil }, nil, CodeOutputInvalid, "without saying which version"},
		"a version":  {func(a *asm) []byte { return says(a, one) }, nil, "", ""},
		"the end":    {func(a *asm) []byte { return says(a, done) }, nil, "", ""},
		"both":       {func(a *asm) []byte { return cat(says(a, one), says(a, done)) }, nil, CodeOutputInvalid, "said twice"},
		"nonsense":   {func(a *asm) []byte { return says(a, "{}") }, nil, CodeOutputInvalid, "the version of a snapshot is refused"},
		"a bad date": {func(a *asm) []byte { return says(a, `{"version": {"type": "date", "value": "29.07.2026"}}`) }, nil, CodeOutputInvalid, "29.07.2026"},
		"output first": {func(a *asm) []byte {
			return cat(i32(0), i32(atBuffer), i32(8), a.call("output_write"), drop, says(a, one))
		}, nil, CodeOutputInvalid, "before it said which version"},
		"one that the host refuses": {func(a *asm) []byte { return says(a, one) }, refusal, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := load(t, newEngine(t, Options{}), guest(providerManifest, []string{"result_write", "output_write"}, func(a *asm) []byte {
				return cat(c.body(a), i32(0))
			}), nil)
			var heard []abi.SnapshotResult
			_, err := mapRows(t, m, Call{Function: "next", OnSnapshot: func(s abi.SnapshotResult) error {
				heard = append(heard, s)
				return c.hears
			}}, numbered(t, checked(t), 1))
			switch {
			case c.code != "":
				wantError(t, err, c.code, c.text)
			case c.hears != nil:
				if !errors.Is(err, c.hears) {
					t.Errorf("got %v", err)
				}
			case err != nil || len(heard) != 1 || (heard[0].Version == nil) != (name == "the end"):
				t.Errorf("heard %v, %v", heard, err)
			}
		})
	}
}

func TestAProviderThatGivesNothingYetNeedsItsColumnsDeclared(t *testing.T) {
	m := load(t, newEngine(t, Options{}), guest(providerManifest, []string{"result_write"}, func(a *asm) []byte {
		return cat(a.text(`{"done": true}`), a.call("result_write"))
	}), nil)
	_, err := m.Schema(t.Context(), "learned", []*arrow.Schema{arrow.NewSchema(nil, nil)})
	wantError(t, err, CodeOutputInvalid, "declare its output")
	empty, err := array.NewRecordReader(arrow.NewSchema(nil, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := mapRows(t, m, Call{Function: "next"}, empty); err != nil || rows != "" {
		t.Errorf("rows %s, %v", rows, err)
	}
}
