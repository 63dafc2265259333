package plugin

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-data/weir/abi"
)

// logged runs a function and gives its log.
func logged(t testing.TB, m *Module, call Call) []string {
	t.Helper()
	var lines []string
	call.OnLog = func(level abi.LogLevel, text string) { lines = append(lines, level.String()+" "+text) }
	in := numbered(t, checked(t), 1)
	if _, err := mapRows(t, m, call, in); err != nil {
		t.Fatal(err)
	}
	return lines
}

// sayConf logs what conf_get of a key gives: its length, then that much of the buffer.
func sayConf(a *asm, key string) []byte {
	return cat(a.text(key), i32(atBuffer), i32(64), a.call("conf_get"), tee(1), i32(0), ltS,
		[]byte{0x04, 0x40}, i32(1), a.text("unset"), a.call("log"), []byte{0x05}, i32(1), i32(atBuffer), get(1), a.call("log"), []byte{0x0b})
}

const confManifest = `{"abi": 1, "module": "m", "functions": [
	{"name": "granted", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}], "output": [], "conf": ["a.key", "group.*"]},
	{"name": "none", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}], "output": []}]}`

func TestConfigurationIsWhatWasGranted(t *testing.T) {
	e := newEngine(t, Options{})
	wasm := guest(confManifest, []string{"conf_get", "log", "input_close"}, func(a *asm) []byte {
		return cat(sayConf(a, "a.key"), sayConf(a, "b.key"), sayConf(a, "group.x"), sayConf(a, "groupx"), sayConf(a, "absent"), i32(0), a.call("input_close"))
	})
	one := load(t, e, wasm, map[string]string{"a.key": "canary-1", "b.key": "secret", "group.x": "in", "groupx": "out"})
	two := load(t, e, wasm, map[string]string{"b.key": "canary-2"})
	for _, c := range []struct {
		m        *Module
		function string
		want     string
	}{
		{one, "granted", "canary-1, unset, in, unset, unset"},
		{one, "none", "unset, unset, unset, unset, unset"},
		{two, "granted", "unset, unset, unset, unset, unset"}, // the same code, another configuration
	} {
		got := strings.ReplaceAll(strings.Join(logged(t, c.m, Call{Function: c.function}), ", "), "INFO ", "")
		if got != c.want {
			t.Errorf("%s sees %s, want %s", c.function, got, c.want)
		}
	}
}

const canaryManifest = `{"abi": 1, "module": "m", "functions": [
	{"name": "a", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}], "output": []},
	{"name": "b", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}], "output": []}]}`

// TestNothingIsLeftInMemory: each call writes a canary all over its memory,
// after counting how many bytes of one it finds. Functions, modules, calls one after
// another and at the same time must find none.
func TestNothingIsLeftInMemory(t *testing.T) {
	canary := func(mark byte) []byte {
		return guest(canaryManifest, []string{"log", "input_close"}, func(a *asm) []byte {
			const from, to = 2 * 65536, 16 * 65536
			isMark := func(m byte) []byte { return cat(get(1), load8, i32(uint32(m)), []byte{0x46}) }
			return cat(
				i32(from), set(1),
				loop(
					isMark(0xC1), isMark(0xC2), []byte{0x72}, when(i32(3), a.text("a canary of somebody else"), a.call("log")),
					get(1), i32(uint32(mark)), store8,
					get(1), i32(1), add, tee(1), i32(to), ltS, []byte{0x0d, 0},
				),
				i32(0), a.call("input_close"))
		})
	}
	e := newEngine(t, Options{})
	modules := []*Module{load(t, e, canary(0xC1), nil), load(t, e, canary(0xC2), nil), load(t, e, canary(0xC1), map[string]string{"k": "v"})}
	var wg sync.WaitGroup
	for range 3 {
		for _, m := range modules {
			for _, f := range []string{"a", "b", "a"} {
				wg.Go(func() {
					if lines := logged(t, m, Call{Function: f}); lines != nil {
						t.Errorf("%s found: %s", f, lines[0])
					}
				})
			}
		}
	}
	wg.Wait()
}

// sayHex logs the 8 bytes that an import wrote to the buffer, in hex.
func sayHex(a *asm, write []byte) []byte {
	a.text("0123456789abcdef")
	at := a.data[len(a.data)-1].at
	return cat(write, drop, i32(0), set(2), loop(
		// buffer[64+2i] = digits[b>>4]; buffer[65+2i] = digits[b&15]
		get(2), i32(1), []byte{0x74}, i32(atBuffer+64), add,
		i32(atBuffer), get(2), add, load8, i32(4), []byte{0x76}, i32(at), add, load8, store8,
		get(2), i32(1), []byte{0x74}, i32(atBuffer+65), add,
		i32(atBuffer), get(2), add, load8, i32(15), []byte{0x71}, i32(at), add, load8, store8,
		get(2), i32(1), add, tee(2), i32(8), ltS, []byte{0x0d, 0},
	), i32(1), i32(atBuffer+64), i32(16), a.call("log"))
}

func TestClocksAndRandomnessAreInputs(t *testing.T) {
	clock := func(a *asm, id uint32) []byte {
		return sayHex(a, cat(i32(id), i64(0), i32(atBuffer), a.call("clock_time_get")))
	}
	random := func(a *asm) []byte { return sayHex(a, cat(i32(atBuffer), i32(8), a.call("random_get"))) }
	wasm := guest(canaryManifest, []string{"log", "input_close", "clock_time_get", "random_get", "poll_oneoff"}, func(a *asm) []byte {
		// a subscription of 5 ms: kind 0 at 8, clock id at 16, timeout at 24
		sub := cat(i32(atBuffer+1024+24), i32(5_000_000), store32)
		return cat(
			clock(a, 0), clock(a, 1), clock(a, 1), clock(a, 0), random(a), random(a),
			sub, i32(atBuffer+1024), i32(atBuffer+2048), i32(1), i32(atBuffer+4096), a.call("poll_oneoff"), drop, clock(a, 1),
			i32(0), a.call("input_close"))
	})
	e := newEngine(t, Options{})
	m := load(t, e, wasm, nil)
	batch := time.Date(2026, 7, 30, 6, 0, 0, 0, time.UTC)
	hexLE := func(v int64) string {
		s := ""
		for i := range 8 {
			s += fmt.Sprintf("%02x", byte(v>>(8*i)))
		}
		return "INFO " + s
	}
	call := Call{Function: "a", Context: abi.CallContext{BatchTimestamp: batch}, Seed: 7}
	first := logged(t, m, call)
	if first[0] != hexLE(batch.UnixNano()) || first[3] != first[0] {
		t.Errorf("the wall clock reads %s and %s, want the batch timestamp", first[0], first[3])
	}
	if first[1] != hexLE(0) || first[2] != hexLE(1000) {
		t.Errorf("the monotonic clock reads %s, %s, want 0 and 1 µs", first[1], first[2])
	}
	if first[6] != hexLE(2000+5_000_000) {
		t.Errorf("after a sleep of 5 ms the clock reads %s", first[6])
	}
	if first[4] == first[5] {
		t.Error("the random source repeats itself")
	}
	other := load(t, newEngine(t, Options{}), wasm, nil)
	for name, again := range map[string][]string{"again": logged(t, m, call), "in another engine": logged(t, other, call)} {
		if strings.Join(again, " ") != strings.Join(first, " ") {
			t.Errorf("%s it saw %v, first %v", name, again, first)
		}
	}
	call.Seed = 8
	if second := logged(t, m, call); second[4] == first[4] {
		t.Error("another seed gives the same random numbers")
	}
}

func TestLogMetricsContextAndStreams(t *testing.T) {
	wasm := guest(canaryManifest, []string{"log", "input_close", "metric_add", "context_read", "fd_write", "last_error", "state_read", "result_write", "conf_get"}, func(a *asm) []byte {
		a.data = append(a.data, asmData{atText - 64, "\x00\x50\x00\x00\x0e\x00\x00\x00"}, asmData{0x5000, "line 1\nline 2\n"})
		return cat(
			i32(0), a.text("debug"), a.call("log"), i32(99), a.text("odd level"), a.call("log"),
			i32(1), i32(atText-64), i32(1), i32(atBuffer), a.call("fd_write"), drop,
			i32(2), i32(atText-64), i32(1), i32(atBuffer), a.call("fd_write"), drop,
			a.text("rows"), f64(2.5), a.call("metric_add"), a.text("rows"), f64(1), a.call("metric_add"), a.text("other"), f64(7), a.call("metric_add"),
			i32(atBuffer), i32(1000), a.call("context_read"), set(1), i32(1), i32(atBuffer), get(1), a.call("log"),
			i32(atBuffer), i32(8), a.call("state_read"), drop, i32(atBuffer), i32(1000), a.call("last_error"), set(1), i32(1), i32(atBuffer), get(1), a.call("log"),
			i32(0), a.call("input_close"))
	})
	m := load(t, newEngine(t, Options{}), wasm, nil)
	sums := map[string]float64{}
	lines := logged(t, m, Call{Function: "a", Context: abi.CallContext{Pipeline: "dwh", BatchID: 3}, OnMetric: func(name string, v float64) { sums[name] += v }})
	want := []string{"DEBUG debug", "ERROR odd level", "INFO line 1", "INFO line 2", "WARN line 1", "WARN line 2",
		`INFO {"pipeline":"dwh","update_id":"","flow":"","batch_id":3,"task":0,"full_refresh":false,"batch_timestamp":"0001-01-01T00:00:00.000000Z"}`,
		"INFO [NOT_SUPPORTED] only functions of kind stateful have state"}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("the log is\n%s", strings.Join(lines, "\n"))
	}
	if len(sums) != 2 || sums["rows"] != 3.5 || sums["other"] != 7 {
		t.Errorf("metrics %v", sums)
	}
}

func TestTheLogIsCutWithANote(t *testing.T) {
	wasm := guest(canaryManifest, []string{"log", "input_close"}, func(a *asm) []byte {
		return cat(i32(0), set(1), loop(i32(1), i32(0), i32(1000), a.call("log"), get(1), i32(1), add, tee(1), i32(100), ltS, []byte{0x0d, 0}), i32(0), a.call("input_close"))
	})
	m := load(t, newEngine(t, Options{Limits: Limits{LogBytes: 3000, TextBytes: 500}}), wasm, nil)
	lines := logged(t, m, Call{Function: "a"})
	if len(lines) != 6 || !strings.Contains(lines[5], "log_bytes = 3000") || len(lines[0]) > 520 {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

func TestMetricsOfAFailedCallAreForgotten(t *testing.T) {
	m := load(t, newEngine(t, Options{}), guest(badManifest, append([]string{"metric_add"}, echoImports...), func(a *asm) []byte {
		return cat(a.text("x"), f64(1), a.call("metric_add"), unreachable)
	}), nil)
	_, err := mapRows(t, m, Call{Function: "f", OnMetric: func(string, float64) { t.Error("a metric of a failed call") }}, numbered(t, checked(t), 1))
	wantError(t, err, CodeTrap)
}

// hungry wants a page for each 64 bytes of a message, and traps when it gets
// none: how large a batch it can take depends on the limit.
func hungry(a *asm) []byte {
	size := []byte{0x3f, 0}
	more := cat(get(1), i32(64), []byte{0x6d}, i32(16), add, size, []byte{0x6b}, tee(3)) // pages it lacks
	return cat(i32(0), more, ltS, when(get(3), grow, i32(0), ltS, when(unreachable)))
}

func TestAGuestOutOfMemoryRunsAgainWithHalvedBatches(t *testing.T) {
	e := newEngine(t, Options{Limits: Limits{MemoryBytes: 50 * 65536}})
	m := load(t, e, guest(badManifest, echoImports, echo(hungry)), nil)
	for _, function := range []string{"f", "aligned"} {
		var lines []string
		got, err := mapRows(t, m, Call{Function: function, OnLog: func(_ abi.LogLevel, s string) { lines = append(lines, s) }}, numbered(t, checked(t), 200))
		if err != nil || strings.Count(got, "\n") != 200 || !strings.HasSuffix(got, "id=199 name=n199\n") {
			t.Errorf("%s: %d rows, %v", function, strings.Count(got, "\n"), err)
		}
		if len(lines) != 1 || !strings.Contains(lines[0], "at most 100 rows") {
			t.Errorf("%s: log %q", function, lines)
		}
	}
	// a batch that is too large by more than a half, and one after output went out, fail
	_, err := mapRows(t, m, Call{Function: "f"}, numbered(t, checked(t), 5000))
	wantError(t, err, CodeTrap, "memory = 3276800")
	_, err = mapRows(t, m, Call{Function: "f"}, numbered(t, checked(t), 1, 200))
	wantError(t, err, CodeTrap, "used up")
}

func TestAModuleCannotRaiseItsMemoryAboveTheLimit(t *testing.T) {
	e := newEngine(t, Options{Limits: Limits{MemoryBytes: 32 * 65536}})
	a := guestAsm(badManifest, []string{"input_close"}, func(a *asm) []byte {
		return cat(i32(1000), grow, i32(0), ltS, eqz, when(unreachable), i32(16), grow, i32(0), ltS, when(unreachable), i32(1), grow, i32(0), ltS, eqz, when(unreachable), i32(0), a.call("input_close"))
	})
	a.maxPages = 65536
	if _, err := mapRows(t, load(t, e, a.bytes(), nil), Call{Function: "f"}, numbered(t, checked(t), 1)); err != nil {
		t.Error(err)
	}
}
