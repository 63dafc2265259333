package plugin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/abi"
)

const pluginsDir = "../../plugins/"

// TestASAPItemBecomesEuro runs the real plugin on the host: projection,
// pass-through, a side input, row errors, a carried column.
func TestASAPItemBecomesEuro(t *testing.T) {
	m := load(t, newEngine(t, Options{CacheDir: codeDir}), buildGo(t, pluginsDir+"sap"), nil)
	mem := checked(t)
	items := rows(t, mem, "VBELN STRING, POSNR STRING, NETWR DECIMAL(18,2), WAERK STRING, ERDAT DATE, change_type STRING, change_seq BIGINT, __weir_row BIGINT", `[
		{"VBELN": "1", "POSNR": "10", "NETWR": "100.00", "WAERK": "USD", "ERDAT": "2026-07-30", "change_type": "I", "change_seq": 1, "__weir_row": 0},
		{"VBELN": "1", "POSNR": "20", "NETWR": "7.77", "WAERK": "EUR", "ERDAT": "2026-07-30", "change_type": "U", "change_seq": 2, "__weir_row": 1},
		{"VBELN": "2", "POSNR": "10", "NETWR": "5.00", "WAERK": "XXX", "ERDAT": "2026-07-30", "change_type": "I", "change_seq": 3, "__weir_row": 2},
		{"VBELN": "3", "POSNR": "10", "NETWR": null, "WAERK": "USD", "ERDAT": "2026-07-30", "change_type": "D", "change_seq": 4, "__weir_row": 3}]`)
	rates := rows(t, mem, "rate_date DATE, currency STRING, rate DECIMAL(18,6)", `[{"rate_date": "2026-07-29", "currency": "USD", "rate": "1.250000"}]`)
	var bad []string
	got, err := mapRows(t, m, Call{Function: "vbap_typed", Mem: mem, Inputs: []array.RecordReader{rates}, Carry: []string{"__weir_row"},
		Context: abi.CallContext{BatchTimestamp: time.Date(2026, 7, 30, 0, 0, 0, 0, time.UTC)},
		OnRowError: func(input int, row int64, code, _ string) error {
			bad = append(bad, fmt.Sprint(input, " ", row, " ", code))
			return nil
		}}, items)
	want := `order_id=1 line_number=10 change_type=I change_seq=1 net_amount_eur=80 __weir_row=0
order_id=1 line_number=20 change_type=U change_seq=2 net_amount_eur=7.77 __weir_row=1
order_id=3 line_number=10 change_type=D change_seq=4 net_amount_eur=(null) __weir_row=3
`
	if err != nil || got != want {
		t.Errorf("%v\n%swant\n%s", err, got, want)
	}
	if s := strings.Join(bad, "; "); s != "0 2 UNKNOWN_CURRENCY" {
		t.Errorf("row errors: %s", s)
	}
}

// TestAReplayGivesTheSameBytes: a guest that ranges over Go maps and reads
// clocks and random numbers gives the same rows each time, in every engine.
func TestAReplayGivesTheSameBytes(t *testing.T) {
	wasm := buildGo(t, pluginsDir+"fixtures/nondet")
	run := func(m *Module, seed uint64) string {
		t.Helper()
		in := rows(t, checked(t), "order_id STRING", `[{"order_id": "a"}, {"order_id": "b"}, {"order_id": "c"}]`, `[{"order_id": "d"}]`)
		got, err := mapRows(t, m, Call{Function: "nondet", Seed: seed, Context: abi.CallContext{BatchTimestamp: time.Date(2026, 7, 30, 0, 0, 0, 0, time.UTC)}}, in)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	one, two := load(t, newEngine(t, Options{CacheDir: codeDir}), wasm, nil), load(t, newEngine(t, Options{CacheDir: codeDir}), wasm, nil)
	first := run(one, 1)
	if !strings.Contains(first, "wall=2026-07-30T00:00:00Z") {
		t.Errorf("the wall clock is not the batch's:\n%s", first)
	}
	for name, again := range map[string]string{"again": run(one, 1), "in another engine": run(two, 1)} {
		if again != first {
			t.Errorf("%s:\n%s first:\n%s", name, again, first)
		}
	}
	if other := run(one, 2); other == first {
		t.Error("another seed made no difference")
	}
}

func TestAGoModulesFunctionsDoNotSeeEachOther(t *testing.T) {
	conf := map[string]string{"canary.a.secret": "A", "canary.b.secret": "B", "canary.key": "id"}
	m := load(t, newEngine(t, Options{CacheDir: codeDir}), buildGo(t, pluginsDir+"fixtures/canary"), conf)
	for range 2 {
		for _, who := range []string{"a", "b"} {
			got, err := mapRows(t, m, Call{Function: "canary_" + who}, rows(t, checked(t), "id STRING", `[{"id": "x"}]`))
			want := fmt.Sprintf("id=x memory=(null) calls=1 own_secret=%s other_secret=(null)\n", strings.ToUpper(who))
			if err != nil || got != want {
				t.Errorf("%v\n%swant\n%s", err, got, want)
			}
		}
	}
}

func TestHowAGoModuleFails(t *testing.T) {
	e := newEngine(t, Options{CacheDir: codeDir})
	wasm := buildGo(t, pluginsDir+"fixtures/failing")
	load(t, e, wasm, nil) // keeps the code compiled between the cases
	for mode, c := range map[string]struct{ code, text string }{
		"exit":  {CodeTrap, "proc_exit(3)"},
		"panic": {CodeFailed, "panic"},
		"fail":  {CodeFailed, ""},
		"lie":   {"", ""},
		"short": {"", ""},
	} {
		t.Run(mode, func(t *testing.T) {
			m := load(t, e, wasm, map[string]string{"failing.mode": mode, "failing.key": "id", "failing.at": "1"})
			in := rows(t, checked(t), "id STRING", `[{"id": "x"}, {"id": "y"}, {"id": "z"}]`)
			_, err := mapRows(t, m, Call{Function: "failing"}, in)
			if err == nil {
				t.Fatal("no error")
			}
			if c.code != "" {
				wantError(t, err, c.code, c.text, "failing")
			}
			t.Log(err)
		})
	}
}

// TestAGoModuleCarriesOverWhatItMay: state from micro-batch to micro-batch, and
// a side input in a kept instance.
func TestAGoModuleCarriesOverWhatItMay(t *testing.T) {
	m := load(t, newEngine(t, Options{CacheDir: codeDir}), buildGo(t, "./testdata/go/keeping"), nil)
	var state []byte
	for _, c := range []struct{ batch, want string }{
		{`[{"v": 1}, {"v": 2}]`, "total=1\ntotal=3\n"},
		{`[]`, ""},
		{`[{"v": 10}]`, "total=13\n"},
	} {
		got, err := mapRows(t, m, Call{Function: "total", State: state, OnState: func(s []byte) error { state = s; return nil }}, rows(t, checked(t), "v BIGINT", c.batch))
		if err != nil || got != c.want {
			t.Errorf("%q, %v; want %q", got, err, c.want)
		}
	}
	if string(state) != "13" {
		t.Errorf("the state is %q", state)
	}
	for i, c := range []struct{ version, label, want string }{
		{"1", "one", "label=one read 1\n"},
		{"1", "not read", "label=one read 1\n"},
		{"2", "two", "label=two read 1\n"}, // a fresh instance
		{"", "three", "label=three read 1\n"},
	} {
		mem := checked(t)
		side := rows(t, mem, "k BIGINT, label STRING", `[{"k": 7, "label": "`+c.label+`"}]`)
		got, err := mapRows(t, m, Call{Function: "lookup", Mem: mem, Versions: []string{"", c.version}, Inputs: []array.RecordReader{side}}, rows(t, mem, "v BIGINT", `[{"v": 7}]`))
		if err != nil || got != c.want {
			t.Errorf("%d: %q, %v; want %q", i, got, err, c.want)
		}
	}
}
