package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/abi"
)

const reuseManifest = `{"abi": 1, "module": "m", "functions": [
	{"name": "f", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}, {"dataset": "rates", "mode": "batch"}], "output": [], "reuse": true},
	{"name": "other", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}, {"dataset": "rates", "mode": "batch"}], "output": [], "reuse": true},
	{"name": "fresh", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}, {"dataset": "rates", "mode": "batch"}], "output": []}]}`

// reuser logs what input 1 first answered and the number of the call in its
// instance, and traps in the call with that number.
func reuser(trapAt uint32, read bool) []byte {
	return guest(reuseManifest, []string{"input_next", "input_close", "log"}, func(a *asm) []byte {
		const counter = 8192
		var inputs []byte
		if read {
			inputs = cat(
				i32(1), a.call("input_next"), wrap, tee(1), i32(0xfffffffe), []byte{0x46}, // == -2
				[]byte{0x04, 0x40}, i32(1), a.text("unchanged"), a.call("log"),
				[]byte{0x05}, i32(1), a.text("read"), a.call("log"), []byte{0x0b},
				loop(i32(1), a.call("input_next"), wrap, []byte{0x0d, 0}), // to the end
			)
		}
		return cat(
			inputs,
			i32(counter), i32(counter), load32, i32(1), add, store32,
			i32(counter), i32(counter), load32, i32(48), add, store8, // as a digit, for the log
			i32(1), i32(counter), i32(1), a.call("log"),
			i32(counter), i32(counter), load8, i32(48), []byte{0x6b}, store32,
			i32(counter), load32, i32(trapAt), []byte{0x46}, when(unreachable),
			i32(0), a.call("input_close"))
	})
}

// calledWith runs a function over one row and some version of the rates.
func calledWith(t testing.TB, m *Module, function, version string) (string, error) {
	t.Helper()
	var lines []string
	mem := checked(t)
	call := Call{Function: function, Mem: mem, Inputs: []array.RecordReader{numbered(t, mem, 3)}, OnLog: func(_ abi.LogLevel, s string) { lines = append(lines, s) }}
	if version != "-" {
		call.Versions = []string{"", version}
	}
	_, err := mapRows(t, m, call, numbered(t, mem, 1))
	return strings.Join(lines, " "), err
}

func TestReuseKeepsWhatWasRead(t *testing.T) {
	e := newEngine(t, Options{})
	m := load(t, e, reuser(99, true), nil)
	for i, c := range []struct{ function, version, want string }{
		{"f", "v1", "read 1"},
		{"f", "v1", "unchanged 2"},
		{"f", "v1", "unchanged 3"},
		{"other", "v1", "read 1"}, // an instance belongs to one function
		{"f", "v2", "read 1"},     // another version: another instance
		{"f", "v1", "read 1"},     // and the old one is gone
		{"f", "v1", "unchanged 2"},
		{"f", "", "read 1"}, // unlike any other
		{"f", "", "read 2"},
		{"f", "-", "read 1"}, // the caller wants a fresh one
		{"fresh", "v1", "read 1"},
		{"fresh", "v1", "read 1"}, // it did not declare reuse
	} {
		got, err := calledWith(t, m, c.function, c.version)
		if err != nil || got != c.want {
			t.Errorf("%d: %s with %s: %q, %v; want %q", i, c.function, c.version, got, err, c.want)
		}
	}
	second := load(t, e, reuser(99, true), nil)
	if got, err := calledWith(t, second, "f", ""); err != nil || got != "read 1" {
		t.Errorf("a module loaded again: %q, %v", got, err)
	}
}

func TestAnInputThatWasNotReadIsNotUnchanged(t *testing.T) {
	m := load(t, newEngine(t, Options{}), reuser(99, false), nil)
	for want := range 3 {
		got, err := calledWith(t, m, "f", fmt.Sprint("v", want)) // it never looks, so any version will do
		if err != nil || got != fmt.Sprint(want+1) {
			t.Errorf("%q, %v", got, err)
		}
	}
}

func TestAfterAFailureTheInstanceIsGone(t *testing.T) {
	m := load(t, newEngine(t, Options{}), reuser(3, true), nil)
	for i, want := range []string{"read 1", "unchanged 2", "unchanged 3", "read 1", "unchanged 2"} {
		got, err := calledWith(t, m, "f", "v1")
		if got != want || (err != nil) != (i == 2) {
			t.Errorf("%d: %q, %v; want %q", i, got, err, want)
		}
	}
}

func TestKeptInstancesAreBoundedAndGiveWay(t *testing.T) {
	size := int64(16 * page)
	wasm := reuser(99, true)
	e := newEngine(t, Options{IdleBytes: 2 * size, MemoryBudget: 3 * size})
	var modules []*Module
	for i := range 4 {
		modules = append(modules, load(t, e, wasm, map[string]string{"i": fmt.Sprint(i)}))
		if got, err := calledWith(t, modules[i], "f", "v1"); err != nil || got != "read 1" {
			t.Fatalf("%q, %v", got, err)
		}
		if n := e.MemoryInUse(); n > 2*size {
			t.Errorf("%d bytes are kept", n)
		}
	}
	if got, err := calledWith(t, modules[0], "f", "v1"); err != nil || got != "read 1" {
		t.Errorf("the oldest was kept: %q, %v", got, err)
	}
	if got, err := calledWith(t, modules[3], "f", "v1"); err != nil || got != "unchanged 2" {
		t.Errorf("the newest was not kept: %q, %v", got, err)
	}
	// three that run at once take what two keep
	var open []array.RecordReader
	for range 3 {
		mem := checked(t)
		a := guestAsm(badManifest, echoImports, echo(nil))
		in := numbered(t, mem, 1, 1)
		r, err := load(t, e, a.bytes(), nil).Map(context.Background(), Call{Function: "f", Inputs: []array.RecordReader{in}, Mem: mem})
		in.Release()
		if err != nil || !r.Next() {
			t.Fatal(err, r.Err())
		}
		open = append(open, r)
	}
	for _, r := range open {
		r.Release()
	}
	if n := e.MemoryInUse(); n != 0 {
		t.Errorf("%d bytes are still charged", n)
	}
}

func TestReuseUnderConcurrency(t *testing.T) {
	e := newEngine(t, Options{IdleBytes: 3 * 16 * page})
	m, err := e.Load(context.Background(), reuser(5, true), Config{Name: "m"})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				got, err := calledWith(t, m, "f", fmt.Sprint("v", i%2))
				if err != nil && !strings.HasSuffix(got, " 5") {
					t.Errorf("%q, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	if err := m.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if n := e.MemoryInUse(); n != 0 {
		t.Errorf("%d bytes are still charged", n)
	}
}

const statefulManifest = `{"abi": 1, "module": "m", "functions": [
	{"name": "count", "kind": "stateful", "inputs": [{"dataset": "a", "mode": "stream"}], "output": []},
	{"name": "map", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}], "output": []}]}`

func TestStateIsReadAndHandedOver(t *testing.T) {
	m := load(t, newEngine(t, Options{}), guest(statefulManifest, []string{"state_read", "state_write", "input_close"}, func(a *asm) []byte {
		// appends an x to the state, twice: the second write counts, and both see the old state
		twice := cat(
			i32(atBuffer), i32(1000), a.call("state_read"), set(1),
			i32(atBuffer), get(1), add, i32('x'), store8,
			i32(atBuffer), get(1), i32(1), add, a.call("state_write"), drop)
		return cat(twice, twice, get(1), i32(3), []byte{0x46}, when(unreachable), i32(0), a.call("input_close"))
	}), nil)
	var state []byte
	told := 0
	run := func(function string) error {
		_, err := mapRows(t, m, Call{Function: function, State: state, OnState: func(s []byte) error { state = s; told++; return nil }}, numbered(t, checked(t), 1))
		return err
	}
	for want := 1; want <= 3; want++ {
		if err := run("count"); err != nil || string(state) != strings.Repeat("x", want) || told != want {
			t.Fatalf("call %d: state %q, told %d times, %v", want, state, told, err)
		}
	}
	wantError(t, run("count"), CodeTrap) // at a state of 3
	if told != 3 || string(state) != "xxx" {
		t.Errorf("a failed call handed over %q", state)
	}
}

func TestStateIsForStatefulFunctionsAndHasALimit(t *testing.T) {
	e := newEngine(t, Options{Limits: Limits{StateBytes: 100}})
	m := load(t, e, guest(statefulManifest, []string{"state_read", "state_write", "input_close"}, func(a *asm) []byte {
		return cat(i32(atBuffer), i32(101), a.call("state_write"), i32(0), ltS, eqz, when(unreachable), i32(0), a.call("input_close"))
	}), nil)
	if _, err := mapRows(t, m, Call{Function: "map", State: []byte("secret"), OnState: func([]byte) error { t.Error("state of a map"); return nil }}, numbered(t, checked(t), 1)); err != nil {
		t.Error(err)
	}
	_, err := mapRows(t, m, Call{Function: "count"}, numbered(t, checked(t), 1))
	wantError(t, err, CodeLimit, "state_bytes = 100")
	_, err = mapRows(t, m, Call{Function: "count", State: make([]byte, 101)}, numbered(t, checked(t), 1))
	wantError(t, err, CodeLimit, "state_bytes = 100")
	refused := fmt.Errorf("the offset log is full")
	m = load(t, newEngine(t, Options{}), guest(statefulManifest, []string{"state_write", "input_close"}, func(a *asm) []byte {
		return cat(i32(0), i32(4), a.call("state_write"), drop, i32(0), a.call("input_close"))
	}), nil)
	_, err = mapRows(t, m, Call{Function: "count", OnState: func([]byte) error { return refused }}, numbered(t, checked(t), 1))
	if !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}
