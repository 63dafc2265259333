package plugin

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi"
)

// TestSoak runs 24 honest instances and 8 evil ones beside each other, and
// modules that come and go: honest results are exact, and memory, goroutines and
// mappings stay where they were after a tenth of the time. WEIR_SOAK_SANDBOX=10m says for how
// long; without it a few seconds show that the test itself works.
func TestSoak(t *testing.T) {
	duration := 3 * time.Second
	if text := os.Getenv("WEIR_SOAK_SANDBOX"); text != "" {
		var err error
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	} else if testing.Short() {
		t.Skip("skipped in short mode")
	}
	limits := evilLimits
	limits.GuestTime = 2 * time.Second
	e := newEngine(t, Options{Limits: Limits{SetupTime: time.Minute}, CacheDir: codeDir})
	evilCode, goCode := buildEvil(t), buildGo(t, "./testdata/evil/go")
	keep := func(name string, wasm []byte, l Limits) *Module {
		m, err := e.Load(context.Background(), wasm, Config{Name: name, Limits: l})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		return m
	}
	honest := []*Module{keep("honest", evilCode, Limits{GuestTime: time.Hour}), keep("keeping", buildGo(t, "./testdata/go/keeping"), Limits{GuestTime: time.Hour})}
	evil := []*Module{keep("evil", evilCode, limits), keep("evil_go", goCode, limits)}

	goroutines := runtime.NumGoroutine()
	ctx, cancel := context.WithTimeout(context.Background(), duration)
	defer cancel()
	var calls, deeds atomic.Int64
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			m, function, want := honest[0], "honest", 3
			if i%2 == 1 {
				m, function = honest[1], "total"
			}
			for ctx.Err() == nil {
				mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
				got, err := soakCall(t, m, function, mem)
				if err != nil || strings.Count(got, "\n") != want || function == "total" && got != "total=1\ntotal=3\ntotal=6\n" {
					t.Errorf("%s: %q, %v", function, got, err)
				}
				mem.AssertSize(t, 0)
				calls.Add(1)
			}
		})
	}
	for i := range 8 {
		wg.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				m := evil[n%2]
				functions := m.Manifest().Functions
				function := functions[n/2%len(functions)].Name
				mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
				if _, err := soakCall(t, m, function, mem); err == nil && function != "honest" && function != "last" {
					t.Errorf("%s did no harm", function)
				}
				mem.AssertSize(t, 0)
				deeds.Add(1)
				if m, err := e.Load(ctx, evilCode, Config{Name: "guest", Conf: map[string]string{"n": strconv.Itoa(n % 50)}}); err == nil {
					_ = m.Close(context.Background())
				}
			}
		})
	}
	type sample struct {
		resident   int64
		goroutines int
		mappings   int
	}
	var samples []sample
	for tick := time.NewTicker(duration / 20); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
			tick.Stop()
		case <-tick.C:
			debug.FreeOSMemory()
			samples = append(samples, sample{resident(t), runtime.NumGoroutine(), mappings(t)})
		}
	}
	wg.Wait()
	debug.FreeOSMemory()
	t.Logf("%d honest calls, %d evil ones; resident memory over time, in MiB:%s", calls.Load(), deeds.Load(), func() (s string) {
		for _, v := range samples {
			s += " " + strconv.FormatInt(v.resident>>20, 10)
		}
		return s
	}())
	if n := e.MemoryInUse(); n != 0 {
		t.Errorf("%d bytes of linear memory are still charged", n)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, before %d", n, goroutines)
	}
	if len(samples) < 10 {
		return
	}
	early, late := samples[2], samples[len(samples)-1]
	// what the evil ones hold at the moment of a sample differs by so much
	const noise = 8 * (64 + 100) << 20
	if late.resident > early.resident*12/10+noise || late.mappings > early.mappings+200 {
		t.Errorf("from %+v to %+v", early, late)
	}
}

func soakCall(t *testing.T, m *Module, function string, mem memory.Allocator) (string, error) {
	in := rows(t, mem, "v BIGINT, secret STRING", evilRows)
	defer in.Release()
	r, err := m.Map(context.Background(), Call{
		Function: function, Inputs: []array.RecordReader{in}, Mem: mem,
		OnRowError: func(int, int64, string, string) error { return nil }, OnLog: func(abi.LogLevel, string) {},
	})
	if err != nil {
		return "", err
	}
	return read(r)
}

// resident gives the resident memory of the process, 0 where nobody tells.
func resident(t *testing.T) int64 {
	text, err := os.ReadFile(filepath.FromSlash("/proc/self/statm"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
