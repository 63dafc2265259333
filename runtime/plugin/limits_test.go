package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/abi"
)

func TestLimitsAreReadFromASpec(t *testing.T) {
	l, err := ParseLimits(map[string]any{
		"memory": "64MB", "batch_bytes": "1.5 MiB", "time": "1m30s", "output_rows": 1_000_000, "fuel": "2_000_000", "row_errors": int64(7),
		"log_bytes": "4096", "nesting": 12, "functions": uint64(3), "metrics": 5.0,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Limits{MemoryBytes: 64_000_000, BatchBytes: 3 << 19, GuestTime: 90 * time.Second, OutputRows: 1_000_000, Fuel: 2_000_000, RowErrors: 7, LogBytes: 4096, MetricNames: 5}
	want.Shape.Nesting, want.Shape.Functions = 12, 3
	if l != want {
		t.Errorf("got %+v\nwant %+v", l, want)
	}
	texts := map[string]string{"memory": "1GiB"}
	if l, err := ParseLimits(texts); err != nil || l.MemoryBytes != 1<<30 {
		t.Errorf("%+v, %v", l, err)
	}
	for setting, part := range map[string]string{
		"memroy=1":          `no limit "memroy"; there are memory, table_size`,
		"memory=lots":       `the limit memory cannot be "lots": a size`,
		"memory=8GiB":       "between 64KiB and 4GiB",
		"memory=0":          "between",
		"memory=-1":         "between",
		"memory=NaN":        "a size",
		"memory=1e300":      "a size",
		"time=300":          "as in 90s",
		"time=-5s":          "between",
		"output_rows=10KiB": "a number",
		"output_rows=1.5":   "a number",
		"output_rows=":      "a number",
	} {
		name, value, _ := strings.Cut(setting, "=")
		_, err := ParseLimits(map[string]string{name: value})
		wantError(t, err, CodeInvalidLimit, part)
	}
}

func TestEveryLimitHasANameAndADefault(t *testing.T) {
	names := map[string]bool{}
	for _, v := range DefaultLimits().List() {
		if names[v.Name] || v.Value <= 0 {
			t.Errorf("%s is %d, or is there twice", v.Name, v.Value)
		}
		names[v.Name] = true
		again, err := ParseLimits(map[string]string{v.Name: v.Text})
		if err != nil {
			t.Errorf("%s = %s: %v", v.Name, v.Text, err)
		} else if got := *limitNamed(v.Name).field(&again); got != v.Value {
			t.Errorf("%s = %s is read as %d instead of %d", v.Name, v.Text, got, v.Value)
		}
	}
	// each field of the struct is one of them, but those of Shape that are set from others
	if fields := strings.Count(fmt.Sprintf("%+v", Limits{}), ":"); fields != len(names)+1+4 {
		t.Errorf("the struct has %d numbers and there are %d limits", fields, len(names))
	}
}

func TestTheDocumentationListsTheLimits(t *testing.T) {
	text, err := os.ReadFile("../../docs/sandbox.md")
	if err != nil {
		t.Fatal(err)
	}
	standard := DefaultLimits()
	for _, l := range ownLimits {
		if row := fmt.Sprintf("| `%s` | %s | ", l.name, l.text(*l.field(&standard))); !strings.Contains(string(text), row) {
			t.Errorf("docs/sandbox.md has no row %q", row)
		}
	}
}

func TestAModulesLimitsStandBeforeTheEngines(t *testing.T) {
	e := newEngine(t, Options{Limits: Limits{OutputRows: 2, MemoryBytes: 32 << 20}})
	wasm := guest(badManifest, echoImports, echo(nil))
	generous, err := e.Load(context.Background(), wasm, Config{Name: "m", Limits: Limits{OutputRows: 10, MemoryBytes: 64 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = generous.Close(context.Background()) }()
	if l := generous.Limits(); l.OutputRows != 10 || l.BatchBytes != 16<<20 || l.LogBytes != DefaultLimits().LogBytes {
		t.Errorf("%+v", l)
	}
	if _, err := mapRows(t, generous, Call{Function: "f"}, numbered(t, checked(t), 3)); err != nil {
		t.Error(err)
	}
	_, err = mapRows(t, load(t, e, wasm, nil), Call{Function: "f"}, numbered(t, checked(t), 3))
	wantError(t, err, CodeLimit, "output_rows = 2")
	_, err = e.Load(context.Background(), wasm, Config{Name: "m", Limits: func() (l Limits) { l.Shape.Functions = 2; return }()})
	wantError(t, err, CodeLimit, "functions = 2")
}

// slow is a source that takes its time.
type slow struct {
	array.RecordReader
	by time.Duration
}

func (s *slow) Next() bool {
	time.Sleep(s.by)
	return s.RecordReader.Next()
}

func TestWaitingIsNotTheGuestsTime(t *testing.T) {
	e := newEngine(t, Options{})
	wasm := guest(badManifest, echoImports, echo(nil))
	limited := func(l Limits) *Module {
		m, err := e.Load(context.Background(), wasm, Config{Name: "m", Limits: l})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		return m
	}
	var usage Usage
	read := func(m *Module) error {
		mem := checked(t)
		in := &slow{numbered(t, mem, 1, 1, 1), 60 * time.Millisecond}
		defer in.Release()
		r, err := m.Map(context.Background(), Call{Function: "f", Inputs: []array.RecordReader{in}, Mem: mem, OnUsage: func(u Usage) { usage = u }})
		if err != nil {
			return err
		}
		defer r.Release()
		for r.Next() {
			time.Sleep(60 * time.Millisecond)
		}
		return r.Err()
	}
	// 240 ms of source and 180 ms of sink are over this limit
	if err := read(limited(Limits{GuestTime: 200 * time.Millisecond})); err != nil {
		t.Error(err)
	}
	if usage.HostTime < 400*time.Millisecond || usage.GuestTime > 200*time.Millisecond || usage.Rows != 3 || usage.Fuel <= 0 || usage.Memory != 16*65536 || usage.Bytes == 0 {
		t.Errorf("%+v", usage)
	}
	wantError(t, read(limited(Limits{HostTime: 100 * time.Millisecond})), CodeLimit, "host_time = 100ms", "sources and sink")
	if usage.Rows != 1 {
		t.Errorf("of a failed call: %+v", usage)
	}
}

func TestFuelIsTheSameEachTimeAndHasALimit(t *testing.T) {
	e := newEngine(t, Options{})
	wasm := guest(badManifest, echoImports, echo(func(*asm) []byte {
		return cat(i32(0), set(3), loop(get(3), i32(1), add, tee(3), i32(100_000), ltS, []byte{0x0d, 0}))
	}))
	m := load(t, e, wasm, nil)
	var used []int64
	for range 3 {
		_, err := mapRows(t, m, Call{Function: "f", OnUsage: func(u Usage) { used = append(used, u.Fuel) }}, numbered(t, checked(t), 3))
		if err != nil {
			t.Fatal(err)
		}
	}
	if used[0] != used[1] || used[0] != used[2] || used[0] < 100_000 {
		t.Fatalf("fuel %v", used)
	}
	for _, limit := range []int64{used[0], used[0] - 1, 50_000} {
		m, err := e.Load(context.Background(), wasm, Config{Name: "m", Limits: Limits{Fuel: limit}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = mapRows(t, m, Call{Function: "f"}, numbered(t, checked(t), 3))
		if limit == used[0] {
			if err != nil {
				t.Errorf("with just what it needs: %v", err)
			}
		} else {
			wantError(t, err, CodeLimit, fmt.Sprintf("fuel = %d", limit))
		}
		_ = m.Close(context.Background())
	}
	setup := guestAsm(oneFunction, echoImports, echo(nil))
	setup.code["_initialize"] = loop(br0)
	_, err := e.Load(context.Background(), setup.bytes(), Config{Name: "m", Limits: Limits{SetupFuel: 5000}})
	wantError(t, err, CodeLimit, "setup_fuel = 5000")
}

func TestPlanningDoesNotWaitForAGuest(t *testing.T) {
	m := load(t, newEngine(t, Options{Limits: Limits{SetupTime: 100 * time.Millisecond}}), guest(badManifest, echoImports, func(*asm) []byte { return cat(loop(br0), i32(0)) }), nil)
	_, err := m.Schema(context.Background(), "silent", []*arrow.Schema{schemaOf(t, "id BIGINT")})
	wantError(t, err, CodeLimit, "test.silent", "setup_time = 100ms")
}

func TestLimitsOfInputsAndRowErrors(t *testing.T) {
	const two = `{"abi": 1, "module": "m", "functions": [{"name": "f", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}, {"dataset": "b", "mode": "batch"}], "output": []}]}`
	m := load(t, newEngine(t, Options{Limits: Limits{OpenInputs: 1}}), guest(two, nil, func(*asm) []byte { return i32(0) }), nil)
	_, err := mapRows(t, m, Call{Function: "f", Inputs: []array.RecordReader{numbered(t, checked(t), 1)}}, numbered(t, checked(t), 1))
	wantError(t, err, CodeLimit, "a function of 2 inputs", "open_inputs = 1")

	long := `{"code": "X", "message": "` + strings.Repeat("x", 100) + `"}`
	m = load(t, newEngine(t, Options{Limits: Limits{RowErrorBytes: 100}}), guest(badManifest, append([]string{"row_error"}, echoImports...), echo(rowErrorFor(0, long))), nil)
	_, err = mapRows(t, m, Call{Function: "f", OnRowError: func(int, int64, string, string) error { return nil }}, numbered(t, checked(t), 1))
	wantError(t, err, CodeLimit, "row_error_bytes = 100")
}

// TestBothAttemptsShareOneAllowance: a guest that runs out of memory is run
// again once, and not with new fuel.
func TestBothAttemptsShareOneAllowance(t *testing.T) {
	wasm := guest(badManifest, append([]string{"log"}, echoImports...), echo(func(a *asm) []byte {
		return cat(
			i32(1), a.text("an attempt"), a.call("log"),
			i32(0), set(3), loop(get(3), i32(1), add, tee(3), i32(100_000), ltS, []byte{0x0d, 0}),
			i32(10_000), grow, drop, get(1), i32(900), ltS, eqz, when(unreachable)) // the batch, not the schema
	}))
	e := newEngine(t, Options{Limits: Limits{MemoryBytes: 32 << 20}})
	run := func(fuel int64) (attempts int, used int64, err error) {
		m, err := e.Load(context.Background(), wasm, Config{Name: "m", Limits: Limits{Fuel: fuel}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = m.Close(context.Background()) }()
		_, err = mapRows(t, m, Call{Function: "f", OnUsage: func(u Usage) { used = u.Fuel }, OnLog: func(_ abi.LogLevel, s string) {
			if s == "an attempt" {
				attempts++
			}
		}}, numbered(t, checked(t), 200))
		return attempts, used, err
	}
	attempts, used, err := run(0)
	wantError(t, err, CodeTrap, "memory = 33554432")
	if attempts != 4 { // schema and batch, twice
		t.Errorf("%d messages were read", attempts)
	}
	_, _, err = run(used * 3 / 4)
	wantError(t, err, CodeLimit, "fuel = ")
}

func FuzzParseLimits(f *testing.F) {
	for _, v := range DefaultLimits().List() {
		f.Add(v.Name, v.Text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		l, err := ParseLimits(map[string]string{name: text})
		if err != nil {
			return
		}
		d := limitNamed(name)
		if v := *d.field(&l); v < d.least || v > d.most {
			t.Errorf("%s = %q is read as %d", name, text, v)
		}
	})
}

func TestInstancesShareOneBudgetOfMemory(t *testing.T) {
	e := newEngine(t, Options{MemoryBudget: 40 * page})
	big := guest(badManifest, echoImports, echo(func(*asm) []byte { return cat(i32(30), grow, i32(0), ltS, when(unreachable)) })) // 16 pages and 30 more
	m := load(t, e, big, nil)
	_, err := mapRows(t, m, Call{Function: "f"}, numbered(t, checked(t), 1))
	wantError(t, err, CodeTrap, "together", "memory_budget = 2621440")
	if n := e.MemoryInUse(); n != 0 {
		t.Errorf("%d bytes are still charged", n)
	}

	small := load(t, e, guest(badManifest, echoImports, echo(nil)), nil)
	open := func() (array.RecordReader, error) {
		mem := checked(t)
		in := numbered(t, mem, 1, 1)
		defer in.Release()
		r, err := small.Map(context.Background(), Call{Function: "f", Inputs: []array.RecordReader{in}, Mem: mem})
		if err == nil && !r.Next() {
			err = r.Err()
			r.Release()
		}
		return r, err
	}
	one, err := open()
	if err != nil {
		t.Fatal(err)
	}
	two, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if n := e.MemoryInUse(); n != 32*page {
		t.Errorf("two instances are charged %d bytes", n)
	}
	_, err = open()
	wantError(t, err, CodeLimit, "memory_budget = 2621440")
	var named *Error
	if !errors.As(err, &named) || named.Limit != "memory_budget" || named.Value != 40*page {
		t.Errorf("%+v", named)
	}
	one.Release()
	if r, err := open(); err != nil {
		t.Errorf("after one ended: %v", err)
	} else {
		r.Release()
	}
	two.Release()
	if n := e.MemoryInUse(); n != 0 {
		t.Errorf("%d bytes are still charged", n)
	}
}

func TestTheBudgetIsExactUnderConcurrency(t *testing.T) {
	b := &budget{limit: 1000}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10_000 {
				if b.take(7) {
					if n := b.used.Load(); n > 1000+8*7 { // others may be trying
						t.Error("over the budget", n)
					}
					b.give(7)
				}
			}
		})
	}
	wg.Wait()
	if n := b.used.Load(); n != 0 {
		t.Errorf("%d left", n)
	}
}

func TestCancellingStopsAGuestThatAsksForNothing(t *testing.T) {
	m := load(t, newEngine(t, Options{}), guest(badManifest, echoImports, func(*asm) []byte { return cat(loop(br0), i32(0)) }), nil)
	mem := checked(t)
	in := numbered(t, mem, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	r, err := m.Map(ctx, Call{Function: "f", Inputs: []array.RecordReader{in}, Mem: mem})
	in.Release()
	if err != nil {
		t.Fatal(err)
	}
	_, err = read(r)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
