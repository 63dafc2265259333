package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

const badManifest = `{"abi": 1, "module": "m", "functions": [
	{"name": "f", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}], "output": [{"name": "id", "type": "bigint"}, {"name": "name", "type": "string"}]},
	{"name": "aligned", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}], "row_aligned": true, "output": [{"name": "id", "type": "bigint"}, {"name": "name", "type": "string"}]},
	{"name": "lies", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}], "output": [{"name": "id", "type": "string"}, {"name": "name", "type": "string"}]},
	{"name": "strict", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}], "output": [{"name": "id", "type": "bigint"}, {"name": "name", "type": "string", "nullable": false}]},
	{"name": "silent", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}]}]}`

func TestWhatAGuestDoesWrongHasAName(t *testing.T) {
	all := append([]string{"fail", "row_error", "input_close", "proc_exit", "log", "query", "metric_add", "last_error"}, echoImports...)
	for name, c := range map[string]struct {
		function string
		call     func(a *asm) []byte
		code     string
		parts    []string
	}{
		"trap":              {"f", func(*asm) []byte { return unreachable }, CodeTrap, []string{"m1.f: ", "weir_call: unreachable"}},
		"division by zero":  {"f", func(*asm) []byte { return cat(i32(1), i32(0), []byte{0x6d}) }, CodeTrap, []string{"integer divide by zero"}},
		"out of bounds":     {"f", func(*asm) []byte { return cat(i32(0xfffffff0), load32) }, CodeTrap, []string{"out of bounds memory access"}},
		"endless recursion": {"f", func(a *asm) []byte { return cat(i32(0), []byte{0x10}, leb(uint64(len(a.imports)+1))) }, CodeTrap, []string{"stack overflow"}},
		"fail": {"f", func(a *asm) []byte { return cat(a.text("rates are missing"), a.call("fail"), i32(1)) },
			CodeFailed, []string{"rates are missing"}},
		"fail, and 0 returned": {"f", func(a *asm) []byte { return cat(a.text("still"), a.call("fail"), i32(0)) }, CodeFailed, []string{"still"}},
		"fail in bad UTF-8":    {"f", func(a *asm) []byte { return cat(a.text("x\xff\xfey"), a.call("fail"), i32(1)) }, CodeFailed, []string{"x\uFFFDy"}},
		"a result and no word": {"f", func(a *asm) []byte { return cat(a.text("{}"), a.call("query"), drop, i32(9)) },
			CodeFailed, []string{"returned 9", "[NOT_SUPPORTED] query"}},
		"proc_exit": {"f", func(a *asm) []byte { return cat(i32(3), a.call("proc_exit"), i32(0)) }, CodeTrap, []string{"proc_exit(3)"}},
		"a pointer outside": {"f", func(a *asm) []byte { return cat(i32(0), i32(0xffff0000), i32(0x20000), a.call("output_write")) },
			CodeTrap, []string{"output_write: 131072 bytes at 4294901760 lie outside"}},
		"a length outside": {"f", func(a *asm) []byte { return cat(i32(1), i32(16), i32(0xffffffff), a.call("log"), i32(0)) }, CodeTrap, []string{"log: 4294967295 bytes at 16"}},
		"garbage":          {"f", func(a *asm) []byte { return cat(i32(0), a.text("this is no Arrow message"), a.call("output_write")) }, CodeOutputInvalid, []string{"FF FF FF FF"}},
		"a second schema": {"f", func(a *asm) []byte {
			return cat(i32(0), a.call("input_next"), wrap, set(1), i32(0), i32(atBuffer), get(1), a.call("input_read"), drop,
				i32(0), i32(atBuffer), get(1), a.call("output_write"), drop, i32(0), i32(atBuffer), get(1), a.call("output_write"))
		}, CodeOutputInvalid, []string{"second schema"}},
		"a message in two pieces": {"f", func(a *asm) []byte {
			return cat(i32(0), a.call("input_next"), wrap, set(1), i32(0), i32(atBuffer), get(1), a.call("input_read"), drop,
				i32(0), i32(atBuffer), i32(16), a.call("output_write"))
		}, CodeOutputInvalid, []string{"in a message of 16"}},
		"another output":            {"f", func(a *asm) []byte { return cat(i32(1), i32(0), i32(0), a.call("output_write")) }, CodeOutputInvalid, []string{"output 1"}},
		"a schema that lies":        {"lies", echo(nil), CodeSchemaMismatch, []string{"column id: has type bigint instead of string"}},
		"a null where none may be":  {"strict", echo(nil), CodeOutputInvalid, []string{"column name: a null in a column that has none"}},
		"no schema at all":          {"silent", func(a *asm) []byte { return cat(i32(0), a.call("input_close")) }, CodeOutputInvalid, []string{"wrote no schema"}},
		"returning before the end":  {"f", func(*asm) []byte { return i32(0) }, CodeOutputInvalid, []string{"before the end of input 0", "input_close"}},
		"fewer rows than the input": {"aligned", echo(func(a *asm) []byte { return cat(get(1), i32(400), ltS, eqz, when(br1)) }), CodeOutputInvalid, []string{"took 3 rows of input 0 and wrote 1"}},
		"more rows than the input": {"aligned", echo(func(a *asm) []byte { return cat(i32(0), i32(atBuffer), get(1), a.call("output_write"), drop) }),
			CodeOutputInvalid, []string{"second schema"}},
		"an unknown input":               {"f", func(a *asm) []byte { return cat(i32(5), a.call("input_next"), wrap) }, CodeFailed, []string{"no such input"}},
		"a row error without text":       {"f", echo(func(a *asm) []byte { return cat(i32(0), i64(0), i32(0), i32(0), a.call("row_error")) }), CodeOutputInvalid, []string{"row 0", "was given 0 rows"}},
		"a row error of no input":        {"f", echo(func(a *asm) []byte { return cat(i32(4), i64(0), i32(0), i32(0), a.call("row_error")) }), CodeOutputInvalid, []string{"input 4"}},
		"a row error of a row to come":   {"f", echo(func(a *asm) []byte { return cat(i32(0), i64(1<<40), i32(0), i32(0), a.call("row_error")) }), CodeOutputInvalid, []string{"row 1099511627776"}},
		"a row error of a negative row":  {"f", echo(func(a *asm) []byte { return cat(i32(0), i64(-1), i32(0), i32(0), a.call("row_error")) }), CodeOutputInvalid, []string{"row -1"}},
		"a row error that is no JSON":    {"f", echo(rowErrorFor(0, "oops")), CodeOutputInvalid, []string{"INVALID_ROW_ERROR"}},
		"a row error with a wrong code":  {"f", echo(rowErrorFor(0, `{"code": "no rate"}`)), CodeOutputInvalid, []string{"upper-case name"}},
		"a row error nobody listens for": {"f", echo(rowErrorFor(1, `{"code": "NO_RATE", "message": "of XYZ"}`)), CodeFailed, []string{"row 1 of input 0: [NO_RATE] of XYZ"}},
		"a metric without a name":        {"f", func(a *asm) []byte { return cat(i32(0), i32(0), f64(1), a.call("metric_add"), i32(0)) }, CodeOutputInvalid, []string{"metric"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, Options{})
			m, err := e.Load(context.Background(), guest(badManifest, all, c.call), Config{Name: "m1"})
			if err != nil {
				t.Fatal(err)
			}
			in := rows(t, checked(t), "id BIGINT, name STRING", `[{"id": 1, "name": "a"}, {"id": 2}]`, `[{"id": 3, "name": "c"}]`)
			_, err = mapRows(t, m, Call{Function: c.function}, in)
			wantError(t, err, c.code, append(c.parts, "m1."+c.function)...)
			if err := m.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// rowErrorFor reports an error for one row once the guest was given it.
func rowErrorFor(row int64, text string) func(a *asm) []byte {
	return func(a *asm) []byte {
		// local 2 counts the messages; message 1 is the first batch
		return cat(get(2), i32(1), []byte{0x46}, when(i32(0), i64(row), a.text(text), a.call("row_error")), get(2), i32(1), add, set(2))
	}
}

func TestRowErrors(t *testing.T) {
	m := load(t, newEngine(t, Options{}), guest(badManifest, append([]string{"row_error"}, echoImports...), echo(func(a *asm) []byte {
		return cat(rowErrorFor(1, `{"code": "NO_RATE", "message": "of XYZ"}`)(a), get(2), i32(2), []byte{0x46},
			when(i32(0), i64(1), a.text(`{"code": "AGAIN", "message": ""}`), a.call("row_error")))
	})), nil)
	for function, want := range map[string]string{
		"f":       "id=0 name=n0\nid=1 name=n1\nid=2 name=n2\nid=3 name=n3\n", // the guest emitted it nevertheless: its business
		"aligned": "id=0 name=n0 __weir_row=0\nid=2 name=n2 __weir_row=2\nid=3 name=n3 __weir_row=3\n",
	} {
		var heard []string
		got, err := mapRows(t, m, Call{Function: function, Carry: []string{"__weir_row"}, OnRowError: func(input int, row int64, code, message string) error {
			heard = append(heard, strings.Join([]string{string(rune('0' + input)), string(rune('0' + row)), code, message}, " "))
			return nil
		}}, numbered(t, checked(t), 3, 1))
		if err != nil || got != want {
			t.Errorf("%s gave %v\n%s", function, err, got)
		}
		if s := strings.Join(heard, "; "); s != "0 1 NO_RATE of XYZ" {
			t.Errorf("%s: heard %s; the first error of a row counts", function, s)
		}
	}
	stop := errors.New("the flow's policy is fail")
	_, err := mapRows(t, m, Call{Function: "f", OnRowError: func(int, int64, string, string) error { return stop }}, numbered(t, checked(t), 3))
	if !errors.Is(err, stop) {
		t.Errorf("the listener's error came out as %v", err)
	}
}

func TestARowErrorAfterItsRowWasWrittenIsTooLate(t *testing.T) {
	late := func(a *asm) []byte {
		// write first, then report row 0
		return cat(i32(0), i32(atBuffer), get(1), a.call("output_write"), drop, rowErrorFor(0, `{"code": "LATE"}`)(a), []byte{0x0c, 0})
	}
	m := load(t, newEngine(t, Options{}), guest(badManifest, append([]string{"row_error"}, echoImports...), echo(late)), nil)
	_, err := mapRows(t, m, Call{Function: "aligned", OnRowError: func(int, int64, string, string) error { return nil }}, numbered(t, checked(t), 3))
	wantError(t, err, CodeOutputInvalid, "row 0 of input 0, which was written already")
}

func TestAllRowsOfABatchMayBeErrors(t *testing.T) {
	m := load(t, newEngine(t, Options{}), guest(badManifest, append([]string{"row_error"}, echoImports...), echo(func(a *asm) []byte {
		e := `{"code": "BAD"}`
		return cat(get(2), i32(1), []byte{0x46}, when(
			i32(0), i64(0), a.text(e), a.call("row_error"), i32(0), i64(1), a.text(e), a.call("row_error")), get(2), i32(1), add, set(2))
	})), nil)
	got, err := mapRows(t, m, Call{Function: "aligned", OnRowError: func(int, int64, string, string) error { return nil }}, numbered(t, checked(t), 2, 1))
	if err != nil || got != "id=2 name=n2\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// failing is a source that breaks after some batches.
type failing struct {
	array.RecordReader
	left int
	err  error
}

func (f *failing) Next() bool {
	f.left--
	return f.left >= 0 && f.RecordReader.Next()
}

func (f *failing) Err() error {
	if f.left < 0 {
		return f.err
	}
	return f.RecordReader.Err()
}

func TestTheErrorOfAnInputComesOutAsItIs(t *testing.T) {
	broken := errors.New("gzip: truncated")
	for name, call := range map[string]func(a *asm) []byte{
		"a guest that gives up": echo(nil),
		"a guest that takes it for the end": func(a *asm) []byte {
			return cat(loop(i32(0), a.call("input_next"), wrap, tee(1), i32(1), ltS, when(i32(0), ret), br0), i32(0))
		},
	} {
		m := load(t, newEngine(t, Options{}), guest(badManifest, echoImports, call), nil)
		_, err := mapRows(t, m, Call{Function: "f"}, &failing{numbered(t, checked(t), 3, 3), 1, broken})
		if !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// panicking is a source with a bug.
type panicking struct{ array.RecordReader }

func (panicking) Next() bool { panic("index out of range") }

func TestAPanicOfASourceIsNotTheGuestsFault(t *testing.T) {
	m := load(t, newEngine(t, Options{}), guest(badManifest, echoImports, echo(nil)), nil)
	_, err := mapRows(t, m, Call{Function: "f"}, panicking{numbered(t, checked(t), 3)})
	wantError(t, err, CodeInternal, "index out of range")
}

func TestInputCloseEndsTheInput(t *testing.T) {
	m := load(t, newEngine(t, Options{}), guest(badManifest, append([]string{"input_close"}, echoImports...), echo(func(a *asm) []byte {
		return cat(get(2), i32(1), add, tee(2), i32(2), []byte{0x46}, when(
			i32(0), i32(atBuffer), get(1), a.call("output_write"), drop, i32(0), a.call("input_close"), ret))
	})), nil)
	got, err := mapRows(t, m, Call{Function: "f"}, numbered(t, checked(t), 2, 2))
	if err != nil || got != "id=0 name=n0\nid=1 name=n1\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestATrapInOneCallLeavesOthersRunning(t *testing.T) {
	e := newEngine(t, Options{})
	bad := load(t, e, guest(badManifest, echoImports, func(*asm) []byte { return unreachable }), nil)
	good := load(t, e, guest(badManifest, echoImports, echo(nil)), nil)
	mem := checked(t)
	in := numbered(t, mem, 1, 1)
	r, err := good.Map(context.Background(), Call{Function: "f", Inputs: []array.RecordReader{in}, Mem: mem})
	in.Release()
	if err != nil || !r.Next() {
		t.Fatal(err)
	}
	_, err = mapRows(t, bad, Call{Function: "f"}, numbered(t, mem, 1))
	wantError(t, err, CodeTrap)
	if !r.Next() || r.Next() || r.Err() != nil {
		t.Errorf("the other call: %v", r.Err())
	}
	r.Release()
}

func TestLimitsAreNamedWithTheirValue(t *testing.T) {
	all := append([]string{"log", "metric_add", "row_error"}, echoImports...)
	spin := func(body func(a *asm) []byte) func(a *asm) []byte {
		return func(a *asm) []byte { return cat(loop(body(a), br0), i32(0)) }
	}
	for name, c := range map[string]struct {
		limits Limits
		call   func(a *asm) []byte
		text   string
	}{
		"output bytes": {Limits{OutputBytes: 900}, echo(nil), "output_bytes = 900"},
		"output rows":  {Limits{OutputRows: 5}, echo(nil), "output_rows = 5"},
		"batch rows":   {Limits{OutputBatchRows: 2}, echo(nil), "output_batch_rows = 2"},
		"a row":        {Limits{BatchBytes: 100}, echo(nil), "batch_bytes = 100"},
		"metrics": {Limits{MetricNames: 3}, spin(func(a *asm) []byte {
			return cat(i32(atBuffer), get(1), i32(1), add, tee(1), store32, i32(atBuffer), i32(4), f64(1), a.call("metric_add"))
		}), "metrics = 3"},
		"row errors": {Limits{RowErrors: 1}, echo(func(a *asm) []byte {
			return cat(get(2), i32(1), []byte{0x46}, when(i32(0), i64(0), a.text(`{"code": "X"}`), a.call("row_error"), i32(0), i64(1), a.text(`{"code": "X"}`), a.call("row_error")), get(2), i32(1), add, set(2))
		}), "row_errors = 1"},
	} {
		t.Run(name, func(t *testing.T) {
			m := load(t, newEngine(t, Options{Limits: c.limits}), guest(badManifest, all, c.call), nil)
			_, err := mapRows(t, m, Call{Function: "f", OnRowError: func(int, int64, string, string) error { return nil }}, numbered(t, checked(t), 3, 3))
			wantError(t, err, CodeLimit, c.text)
		})
	}
}

func TestLargeBatchesAreCut(t *testing.T) {
	for name, limits := range map[string]Limits{"by rows": {BatchRows: 7}, "by bytes": {BatchBytes: 800}} {
		m := load(t, newEngine(t, Options{Limits: limits}), guest(badManifest, echoImports, echo(nil)), nil)
		mem := checked(t)
		in := numbered(t, mem, 100)
		r, err := m.Map(context.Background(), Call{Function: "aligned", Inputs: []array.RecordReader{in}, Mem: mem, Carry: []string{"__weir_row"}})
		in.Release()
		if err != nil {
			t.Fatal(err)
		}
		batches, next := 0, int64(0)
		for r.Next() {
			batches++
			rec := r.RecordBatch()
			for i := range int(rec.NumRows()) {
				if rec.Column(0).(*array.Int64).Value(i) != next || rec.Column(2).(*array.Int64).Value(i) != next {
					t.Fatalf("%s: row %d is %v", name, next, rec)
				}
				next++
			}
		}
		if r.Err() != nil || next != 100 || batches < 4 {
			t.Errorf("%s: %d rows in %d batches, %v", name, next, batches, r.Err())
		}
		r.Release()
	}
}

func TestInputsAreCheckedAgainstTheManifest(t *testing.T) {
	m := load(t, newEngine(t, Options{}), guest(echoManifest, echoImports, echo(nil)), nil)
	mem := checked(t)
	in := rows(t, mem, "id BIGINT, NAME STRING", `[{"id": 1, "NAME": "x"}]`)
	got, err := mapRows(t, m, Call{Function: "aligned", Mem: mem}, in) // SQL does not care for case; the guest sees its own spelling
	if err != nil || got != "key=1 name=x\n" {
		t.Errorf("%q, %v", got, err)
	}
	_, err = mapRows(t, m, Call{Function: "aligned", Mem: mem, Carry: []string{"nope"}}, rows(t, mem, "id BIGINT, name STRING", `[]`))
	wantError(t, err, CodeSchemaMismatch, `no column "nope"`)
	_, err = mapRows(t, m, Call{Function: "echo", Mem: mem, Inputs: []array.RecordReader{rows(t, mem, "x INT", `[]`)}}, rows(t, mem, "id BIGINT", `[]`))
	wantError(t, err, CodeSchemaMismatch, "2 inputs and declares 1")
	date64 := arrow.NewSchema([]arrow.Field{{Name: "d", Type: arrow.PrimitiveTypes.Date64}}, nil)
	empty, err := array.NewRecordReader(date64, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = mapRows(t, m, Call{Function: "echo", Mem: mem}, empty)
	wantError(t, err, CodeSchemaMismatch, "column d", "date64")
}

func TestTextsAndManifestsHaveLimits(t *testing.T) {
	e := newEngine(t, Options{Limits: Limits{ManifestBytes: 100, TextBytes: 20}})
	_, err := e.Load(context.Background(), guest(badManifest, nil, func(*asm) []byte { return i32(0) }), Config{Name: "m"})
	wantError(t, err, CodeLimit, "manifest_bytes = 100")

	e = newEngine(t, Options{Limits: Limits{TextBytes: 20}})
	long := strings.Repeat("é", 200)
	m := load(t, e, guest(badManifest, append([]string{"fail"}, echoImports...), func(a *asm) []byte { return cat(a.text(long), a.call("fail"), i32(1)) }), nil)
	_, err = mapRows(t, m, Call{Function: "f"}, numbered(t, checked(t), 1))
	wantError(t, err, CodeFailed, strings.Repeat("é", 10)+"…")

	m = load(t, e, guest(badManifest, append([]string{"row_error"}, echoImports...), echo(rowErrorFor(0, `{"code": "X", "message": "`+long+`"}`))), nil)
	_, err = mapRows(t, m, Call{Function: "f", OnRowError: func(int, int64, string, string) error { return nil }}, numbered(t, checked(t), 1))
	wantError(t, err, CodeLimit, "text_bytes = 20")

	m = load(t, e, guest(badManifest, append([]string{"row_error"}, echoImports...), echo(rowErrorFor(0, `{"code": "X", "message": "`+long[:100]+`"}`))), nil)
	heard := ""
	if _, err = mapRows(t, m, Call{Function: "f", OnRowError: func(_ int, _ int64, _, message string) error { heard = message; return nil }}, numbered(t, checked(t), 1)); err != nil {
		t.Fatal(err)
	}
	if heard != strings.Repeat("é", 10)+"…" {
		t.Errorf("heard %q", heard)
	}
}
