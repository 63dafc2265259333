package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi"
)

func buildEvil(t testing.TB) []byte {
	if _, err := exec.LookPath("clang"); err != nil {
		t.Skip("skipped, which is no pass: there is no clang to build the evil guests in C")
	}
	return built(t, "evil", func(out string) *exec.Cmd {
		return exec.Command("clang", "--target=wasm32", "-O1", "-fno-builtin", "-nostdlib", "-mbulk-memory", "-Wall", "-Wextra", "-Werror", "-Wno-infinite-recursion", "-Wno-unused-function",
			"-I", "../../abi", "-I", "testdata/c", "-Wl,--no-entry", "-o", out, "testdata/evil/evil.c")
	})
}

// evilLimits are small, so that a guest that takes all it can get is soon done.
var evilLimits = Limits{
	GuestTime: 500 * time.Millisecond, MemoryBytes: 64 << 20, OutputRows: 100_000, EmptyBatches: 5000,
	MetricNames: 100, RowErrors: 2, LogBytes: 20_000, SetupTime: 2 * time.Second,
}

// evilRows is the input of evil guests: a column they declared, one they did
// not, with a canary.
const evilRows = `[{"v": 1, "secret": "CANARY"}, {"v": 2, "secret": "CANARY"}, {"v": 3, "secret": "CANARY"}]`

// watch checks afterwards that the process is what it was: a good module runs,
// no linear memory is charged, no goroutine and no mapping is left.
func watch(t *testing.T, e *Engine, good *Module, goodFunction string) func() {
	t.Helper()
	goroutines, maps := runtime.NumGoroutine(), mappings(t)
	return func() {
		t.Helper()
		got, err := mapRows(t, good, Call{Function: goodFunction}, evilInput(t))
		if err != nil || strings.Count(got, "\n") != 3 {
			t.Errorf("afterwards a good module gives %q, %v", got, err)
		}
		if n := e.MemoryInUse(); n != 0 {
			t.Errorf("%d bytes of linear memory are still charged", n)
		}
		if n := runtime.NumGoroutine(); n > goroutines {
			t.Errorf("%d goroutines, before %d", n, goroutines)
		}
		if n := mappings(t); n > maps+20 { // Go's own heap adds some
			t.Errorf("%d mappings, before %d", n, maps)
		}
	}
}

// mappings counts the mappings of the process, 0 where nobody tells.
func mappings(t testing.TB) int {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "\n")
}

func evilInput(t testing.TB) array.RecordReader {
	return rows(t, checked(t), "v BIGINT, secret STRING", evilRows)
}

// stopped is what is known of guests that ran into their time.
type stopped struct {
	name  string
	limit time.Duration
	took  time.Duration
}

func (s stopped) String() string {
	within := "within"
	if s.took > s.limit*3/2+100*time.Millisecond {
		within = "NOT within"
	}
	return fmt.Sprintf("%-24s limit %v, stopped after %v: %s 1.5 × limit + 100 ms", s.name, s.limit, s.took.Round(time.Millisecond), within)
}

// patience is how late a guest may be stopped before a test calls it a
// failure: the machine may be busy with other things.
const patience = 20 * time.Second

type deed struct {
	code  string
	parts []string
}

// TestEvilGuests is one case for each function of testdata/evil/evil.c.
func TestEvilGuests(t *testing.T) {
	outOfTime := deed{CodeLimit, []string{"time = 500ms"}}
	deeds := map[string]deed{
		"spin": outOfTime, "exponential": outOfTime, "deep_spin": outOfTime, "fill": outOfTime, "copy": outOfTime, "log_flood": outOfTime,
		"one_row_error": outOfTime, "state_flood": outOfTime, "random_flood": outOfTime, "write_flood": outOfTime,
		"read_flood": outOfTime, "fail_flood": outOfTime,

		"recurse":                   {"", nil}, // its stack overflows, or its time is over first
		"memory_bomb":               {CodeTrap, []string{"unreachable", "memory = 67108864"}},
		"trap_after_output":         {CodeTrap, []string{"unreachable"}},
		"output_longer_than_memory": {CodeTrap, []string{"output_write", "lie outside"}},
		"pointer_past_the_end":      {CodeTrap, []string{"512 bytes at 4294967040 lie outside"}},
		"negative_length":           {CodeTrap, []string{"log: 4294967295 bytes", "lie outside"}},
		"negative_read":             {CodeTrap, []string{"input_read", "lie outside"}},
		"more_rows":                 {CodeOutputInvalid, []string{"output row 3", "only 3 rows"}},
		"fewer_rows":                {CodeOutputInvalid, []string{"took 3 rows of input 0 and wrote 2"}},
		"rows_ahead":                {CodeOutputInvalid, []string{"output row 0", "only 0 rows"}},
		"another_schema":            {CodeSchemaMismatch, []string{"output is refused"}},
		"no_schema":                 {CodeOutputInvalid, []string{"output is refused"}},
		"huge_row_count":            {CodeLimit, []string{"output_batch_rows = 4194304"}},
		"negative_row_count":        {CodeOutputInvalid, []string{"output is refused"}},
		"null_count_lie":            {CodeOutputInvalid, []string{"output is refused"}},
		"buffer_outside":            {CodeOutputInvalid, []string{"output is refused"}},
		"zero_columns":              {CodeSchemaMismatch, []string{"output is refused"}},
		"endless_output":            {CodeLimit, []string{"output_rows = 100000"}},
		"zero_rows":                 {CodeLimit, []string{"empty_batches = 5000"}},
		"metric_flood":              {CodeLimit, []string{"metrics = 100"}},
		"row_errors":                {CodeLimit, []string{"row_errors = 2"}},
		"row_error_text":            {CodeLimit, []string{"text_bytes = 8192"}},
		"many_inputs":               {CodeFailed, []string{"opened 0"}},
		"not_granted":               {CodeFailed, []string{"saw 0"}},
		"sleep":                     {CodeFailed, []string{"slept hours: 24"}},
		"clock":                     {CodeFailed, []string{"time seen to pass: 1000"}}, // the two reads of the monotonic clock
		"outside_world":             {CodeFailed, []string{"found of the outside: 0"}},
		"exports_of_the_host":       {CodeFailed, []string{"worked: 0"}},
		"leave":                     {CodeTrap, []string{"proc_exit(0)"}},
	}
	e := newEngine(t, Options{Limits: evilLimits, CacheDir: codeDir})
	t.Setenv("WEIR_CANARY", "CANARY") // what outside_world would see
	m, err := e.Load(context.Background(), buildEvil(t), Config{Name: "evil", Conf: map[string]string{"canary.secret": "CANARY"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close(context.Background()) }()
	if _, err := mapRows(t, m, Call{Function: "honest"}, evilInput(t)); err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Manifest().Functions {
		d, ok := deeds[f.Name]
		if !ok {
			if f.Name != "honest" && f.Name != "last" {
				t.Errorf("nothing is expected of %s", f.Name)
			}
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			d.test(t, e, m, f.Name, "honest")
		})
	}
}

// test runs a function of an evil module and looks what became of it.
func (d deed) test(t *testing.T, e *Engine, m *Module, function, good string) {
	t.Helper()
	healthy := watch(t, e, m, good)
	committed, logged := false, int64(0)
	var usage Usage
	_, err := mapRows(t, m, Call{
		Function:   function,
		OnRowError: func(int, int64, string, string) error { return nil },
		OnMetric:   func(string, float64) { committed = true },
		OnLog:      func(_ abi.LogLevel, s string) { logged += int64(len(s)) },
		OnUsage:    func(u Usage) { usage = u },
	}, evilInput(t))
	if d.code != "" {
		wantError(t, err, d.code, append(d.parts, m.name+"."+function)...)
	}
	var named *Error
	if !errors.As(err, &named) {
		t.Errorf("%T is no *Error", err)
	} else if d.code == CodeLimit && (named.Limit == "" || named.Value == 0) {
		t.Errorf("the error does not say which limit: %+v", named)
	} else if named.Limit == "time" {
		s := stopped{function, m.limits.GuestTime, usage.GuestTime}
		t.Log(s)
		if s.took > patience {
			t.Errorf("it ran for %v", s.took)
		}
	}
	if committed {
		t.Error("metrics of a failed call were told")
	}
	if logged > m.limits.LogBytes+200 {
		t.Errorf("%d bytes of log", logged)
	}
	healthy()
}

// TestEvilGoGuests is one case for each function of testdata/evil/go.
func TestEvilGoGuests(t *testing.T) {
	deeds := map[string]deed{
		"spin":        {CodeLimit, []string{"time = 500ms"}},
		"recursion":   {CodeTrap, []string{"out of memory", "memory = 67108864"}}, // its stack is in its memory
		"memory_bomb": {CodeTrap, []string{"out of memory", "memory = 67108864"}},
		"goroutines":  {"", nil}, // out of time or of memory, whichever comes first
		"sleeps":      {CodeFailed, []string{"slept a day"}},
		"deadlock":    {CodeTrap, []string{"all goroutines are asleep"}},
		"panics":      {CodeFailed, []string{"on purpose"}},
		"nil_pointer": {CodeFailed, []string{"nil pointer"}},
		"outside":     {CodeFailed, []string{"saw nothing"}},
	}
	e := newEngine(t, Options{Limits: evilLimits, CacheDir: codeDir})
	modules := map[time.Duration]*Module{}
	for _, limit := range []time.Duration{500 * time.Millisecond, time.Minute} {
		m, err := e.Load(context.Background(), buildGo(t, "./testdata/evil/go"), Config{Name: "evil_go", Limits: Limits{GuestTime: limit, SetupTime: 10 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = m.Close(context.Background()) }()
		modules[limit] = m
	}
	good := load(t, e, buildEvil(t), nil)
	for name, d := range deeds {
		t.Run(name, func(t *testing.T) {
			healthy := watch(t, e, good, "honest")
			limit := time.Minute
			if d.code == CodeLimit || d.code == "" {
				limit = 500 * time.Millisecond
			}
			_, err := mapRows(t, modules[limit], Call{Function: name}, evilInput(t))
			if err == nil {
				t.Fatal("no error")
			}
			t.Log(err)
			if d.code != "" {
				wantError(t, err, d.code, append(d.parts, "evil_go."+name)...)
			}
			healthy()
		})
	}
}

// TestEightSpinnersOnTwoProcessors: other flows go on, the collector runs, and
// each spinner is stopped near its limit.
func TestEightSpinnersOnTwoProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	const limit = time.Second
	e := newEngine(t, Options{CacheDir: codeDir})
	wasm := buildEvil(t)
	evil, err := e.Load(context.Background(), wasm, Config{Name: "evil", Limits: Limits{GuestTime: limit}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = evil.Close(context.Background()) }()
	honest := load(t, e, wasm, nil)

	ended := make(chan stopped)
	spinners := []string{"spin", "exponential", "deep_spin", "fill", "copy", "random_flood", "write_flood", "spin"}
	for _, function := range spinners {
		go func() {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			in := rows(t, mem, "v BIGINT, secret STRING", evilRows)
			var usage Usage
			r, err := evil.Map(context.Background(), Call{Function: function, Inputs: []array.RecordReader{in}, Mem: mem, OnUsage: func(u Usage) { usage = u }})
			in.Release()
			if err == nil {
				_, err = read(r)
			}
			if code(err) != CodeLimit {
				t.Errorf("%s: %v", function, err)
			}
			ended <- stopped{function, limit, usage.GuestTime}
		}()
	}
	collected := make(chan []time.Duration)
	stop := make(chan struct{})
	go func() {
		var took []time.Duration
		for {
			select {
			case <-stop:
				collected <- took
				return
			case <-time.After(50 * time.Millisecond):
				start := time.Now()
				runtime.GC()
				took = append(took, time.Since(start))
			}
		}
	}()
	calls := 0
	for running := len(spinners); running > 0; {
		select {
		case s := <-ended:
			running--
			t.Log(s)
			if s.took > patience {
				t.Errorf("%s ran for %v", s.name, s.took)
			}
			continue
		default:
		}
		if _, err := mapRows(t, honest, Call{Function: "honest"}, evilInput(t)); err != nil {
			t.Fatal(err)
		}
		calls++
	}
	close(stop)
	collections := <-collected
	t.Logf("meanwhile an honest flow made %d calls, and the collector ran %d times, the longest %v", calls, len(collections), slices.Max(append(collections, 0)))
	if calls < 3 || len(collections) < 1 {
		t.Errorf("only %d calls of an honest flow and %d collections", calls, len(collections))
	}
}
