package plugins

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/runtime/plugin"
)

// load builds a plugin and loads it into the real runtime.
func load(t testing.TB, name string, conf map[string]string) *plugin.Module {
	t.Helper()
	ctx := context.Background()
	wasm := build(t, name)
	e, err := plugin.NewEngine(ctx, plugin.Options{CacheDir: cacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	m, err := e.Load(ctx, wasm, plugin.Config{Name: name, Conf: conf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(ctx), e.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	return m
}

// cacheDir is shared by all tests: a module is compiled once.
func cacheDir(t testing.TB) string {
	dir := builds.dir + "/cache"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func checked(t testing.TB) memory.Allocator {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

func schemaOf(t testing.TB, ddl string) *arrow.Schema {
	t.Helper()
	fields, err := coltype.ParseDDL(ddl)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		out[i] = f.Arrow()
	}
	return arrow.NewSchema(out, nil)
}

// table makes a reader of batches, each a JSON list of objects.
func table(t testing.TB, mem memory.Allocator, ddl string, batches ...string) array.RecordReader {
	t.Helper()
	schema := schemaOf(t, ddl)
	var recs []arrow.RecordBatch
	for _, b := range batches {
		rec, _, err := array.RecordFromJSON(mem, schema, strings.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		defer rec.Release()
		recs = append(recs, rec)
	}
	r, err := array.NewRecordReader(schema, recs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type rowError struct {
	row  int64
	code string
}

// run calls a function and gives its rows as JSON, one a line, and its row errors.
func run(t testing.TB, m *plugin.Module, function string, mem memory.Allocator, inputs ...array.RecordReader) (rows string, rowErrors []rowError, err error) {
	t.Helper()
	for _, in := range inputs {
		defer in.Release()
	}
	out, err := m.Map(context.Background(), plugin.Call{
		Function: function, Seed: 7, Inputs: inputs, Mem: mem,
		Context: abi.CallContext{Pipeline: "p", Flow: "f", BatchID: 3, BatchTimestamp: time.Date(2026, 7, 30, 6, 0, 0, 0, time.UTC)},
		OnRowError: func(_ int, row int64, code, _ string) error {
			rowErrors = append(rowErrors, rowError{row, code})
			return nil
		},
	})
	if err != nil {
		return "", nil, err
	}
	defer out.Release()
	var b strings.Builder
	for out.Next() {
		if err := array.RecordToJSON(out.RecordBatch(), &b); err != nil {
			t.Fatal(err)
		}
	}
	return b.String(), rowErrors, out.Err()
}

// covers A202
func TestConversionInTheSandboxEqualsBig(t *testing.T) {
	m := load(t, "sap", map[string]string{"sap.max_rate_age_days": "5"})
	mem, r := checked(t), rand.New(rand.NewPCG(3, 4))
	currencies := []string{"USD", "JPY", "CHF", "IDR", "EUR", "XXX"}

	rates, table := map[string]map[int]*big.Rat{}, newTable(mem, schemaOf(t, "currency string, rate decimal(18,6), rate_date date"))
	for _, c := range currencies[:4] {
		rates[c] = map[int]*big.Rat{}
		for day := 20000; day < 20300; day += 1 + r.IntN(9) {
			v := 1 + r.Int64N([]int64{2e6, 4e10}[r.IntN(2)])
			rates[c][day] = big.NewRat(v, 1e6)
			table.add(c, decimal128.FromI64(v), arrow.Date32(day))
		}
	}
	items := newTable(mem, schemaOf(t, "VBELN string, POSNR int, NETWR decimal(15,2), WAERK string, ERDAT date, change_type string, change_seq bigint, MANDT string"))
	var want strings.Builder
	var wantErrors []rowError
	for i := range 5000 {
		if i%1500 == 1499 {
			items.cut()
		}
		currency, day, cents := currencies[r.IntN(len(currencies))], 19990+r.IntN(320), r.Int64N(2e12)-1e12
		if i%97 == 0 {
			items.add(fmt.Sprint(i), int32(1), nil, currency, arrow.Date32(day), "D", int64(i), "100")
			fmt.Fprintf(&want, "{\"change_seq\":%d,\"change_type\":\"D\",\"line_number\":1,\"net_amount_eur\":null,\"order_id\":\"%d\"}\n", i, i)
			continue
		}
		items.add(fmt.Sprint(i), int32(1), decimal128.FromI64(cents), currency, arrow.Date32(day), "I", int64(i), "100")
		got := convertBig(rates, big.NewRat(cents, 100), currency, day, 5)
		if got[0] >= 'A' {
			wantErrors = append(wantErrors, rowError{int64(i), got})
			continue
		}
		fmt.Fprintf(&want, "{\"change_seq\":%d,\"change_type\":\"I\",\"line_number\":1,\"net_amount_eur\":\"%s\",\"order_id\":\"%d\"}\n", i, got, i)
	}
	rows, rowErrors, err := run(t, m, "vbap_typed", mem, items.reader(t), table.reader(t))
	if err != nil {
		t.Fatal(err)
	}
	if rows != want.String() {
		t.Errorf("rows differ from math/big: %s", firstDifference(rows, want.String()))
	}
	if fmt.Sprint(rowErrors) != fmt.Sprint(wantErrors) {
		t.Errorf("row errors\n%v\nwant\n%v", rowErrors, wantErrors)
	}
}

// convertBig converts by the definition; an upper-case result is the code of a row error.
func convertBig(rates map[string]map[int]*big.Rat, amount *big.Rat, currency string, day, maxAge int) string {
	rate := big.NewRat(1, 1)
	if currency != "EUR" {
		series := rates[currency]
		if series == nil {
			return "UNKNOWN_CURRENCY"
		}
		at := day
		for ; at >= 0 && series[at] == nil; at-- {
		}
		if at < 0 {
			return "NO_RATE"
		}
		if day-at > maxAge {
			return "RATE_TOO_OLD"
		}
		rate = series[at]
	}
	// Half away from zero: twice the magnitude in cents plus one, halved and cut.
	x := new(big.Rat).Quo(amount, rate)
	twice := new(big.Rat).Mul(new(big.Rat).Abs(x), big.NewRat(200, 1))
	twice.Add(twice, big.NewRat(1, 1))
	cents := new(big.Int).Quo(twice.Num(), new(big.Int).Mul(twice.Denom(), big.NewInt(2)))
	if x.Sign() < 0 {
		cents.Neg(cents)
	}
	return strings.TrimRight(strings.TrimRight(new(big.Rat).SetFrac(cents, big.NewInt(100)).FloatString(2), "0"), ".")
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("row %d: got %s, want %s", i, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d rows, want %d", len(g), len(w))
}

// testTable collects rows into batches.
type testTable struct {
	schema  *arrow.Schema
	builder *array.RecordBuilder
	batches []arrow.RecordBatch
}

func newTable(mem memory.Allocator, schema *arrow.Schema) *testTable {
	return &testTable{schema: schema, builder: array.NewRecordBuilder(mem, schema)}
}

func (t *testTable) add(values ...any) {
	for i, v := range values {
		switch b := t.builder.Field(i).(type) {
		case *array.StringBuilder:
			b.Append(v.(string))
		case *array.Int32Builder:
			b.Append(v.(int32))
		case *array.Int64Builder:
			b.Append(v.(int64))
		case *array.Date32Builder:
			b.Append(v.(arrow.Date32))
		case *array.Decimal128Builder:
			if v == nil {
				b.AppendNull()
			} else {
				b.Append(v.(decimal128.Num))
			}
		}
	}
}

func (t *testTable) cut() { t.batches = append(t.batches, t.builder.NewRecordBatch()) }

func (t *testTable) reader(tb testing.TB) array.RecordReader {
	tb.Helper()
	t.cut()
	r, err := array.NewRecordReader(t.schema, t.batches)
	if err != nil {
		tb.Fatal(err)
	}
	for _, b := range t.batches {
		b.Release()
	}
	t.builder.Release()
	return r
}

func TestEveryTypeSurvivesTheSandbox(t *testing.T) {
	m := load(t, "fixtures/echo", nil)
	for ddl, batches := range map[string][]string{
		"a boolean, b tinyint, c smallint, d int, e bigint":                          {`[{"a":true,"b":-128,"c":null,"d":2147483647,"e":-9223372036854775808},{}]`, `[]`, `[{"a":false}]`},
		"a uint8, b uint16, c uint32, d uint64":                                      {`[{"a":255,"b":65535,"c":4294967295,"d":18446744073709551615},{}]`},
		"a float, b double, v void":                                                  {`[{"a":1.5,"b":-1e300},{}]`},
		"a decimal(38,10), b decimal256(50,3)":                                       {`[{"a":"1234567890123456789012345678.0123456789","b":"-12345678901234567890.125"},{}]`},
		"a string, b large_string, c binary, d large_binary, e fixed_size_binary(3)": {`[{"a":"Zürich","b":"x","c":"AP8=","d":"AA==","e":"YWJj"},{}]`, `[{"a":""}]`},
		"a date, b timestamp, c timestamp_ntz, d timestamp(ms,'Europe/Zurich'), e timestamp_ntz(ns)": {
			`[{"a":"1969-12-31","b":"2026-07-30T06:00:00.000001Z","c":"1900-01-01T00:00:00","d":"2026-07-30T06:00:00Z","e":"2026-07-30T06:00:00.123456789"},{}]`},
		"a time, b time(s), c time(ms), d time(ns), e duration, f duration(s)": {`[{"a":"06:00:00.000001","b":"23:59:59","c":"00:00:00.001","d":"00:00:00.000000001","e":"5us","f":"7s"},{}]`},
		"a array<int>, b large_array<string>, c fixed_size_array<bigint,2>":    {`[{"a":[1,null,3],"b":["x"],"c":[1,null]},{},{"a":[],"b":[],"c":[3,4]}]`},
		"a map<string,array<decimal(5,2)>>":                                    {`[{"a":[{"key":"k","value":["1.25",null]}]},{},{"a":[]}]`},
		"a struct<x: int, y: struct<z: string>>, b array<struct<sku: string, tags: array<string>>>": {
			`[{"a":{"x":1,"y":{"z":"q"}},"b":[{"sku":"s","tags":["t","u"]},null]},{},{"a":{"x":null,"y":null},"b":[]}]`, `[{"b":[{"sku":"r"}]}]`},
	} {
		t.Run(ddl, func(t *testing.T) {
			mem := checked(t)
			in := table(t, mem, ddl, batches...)
			in.Retain()
			defer in.Release()
			var want strings.Builder
			again := table(t, mem, ddl, batches...)
			defer again.Release()
			for again.Next() {
				if err := array.RecordToJSON(again.RecordBatch(), &want); err != nil {
					t.Fatal(err)
				}
			}
			got, _, err := run(t, m, "echo", mem, in)
			if err != nil {
				t.Fatal(err)
			}
			if got != want.String() {
				t.Errorf("%s", firstDifference(got, want.String()))
			}
			schema, err := m.Schema(context.Background(), "echo", []*arrow.Schema{schemaOf(t, ddl)})
			if err != nil || !schema.Equal(schemaOf(t, ddl)) {
				t.Errorf("the schema came back as %v, %v", schema, err)
			}
		})
	}
}

func TestReplaysEqualWhateverTheModuleDoes(t *testing.T) {
	m, mem := load(t, "fixtures/nondet", nil), checked(t)
	var first string
	for i := range 4 {
		rows, _, err := run(t, m, "nondet", mem, table(t, mem, "order_id string", `[{"order_id":"a"},{"order_id":"b"}]`, `[{"order_id":"c"}]`))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = rows
		}
		if rows != first {
			t.Errorf("run %d: %s", i, firstDifference(rows, first))
		}
	}
	if !strings.Contains(first, `"wall":"2026-07-30T06:00:00Z"`) {
		t.Errorf("the clock does not read the batch timestamp: %s", first)
	}
}

func TestFunctionsSeeNothingOfEachOther(t *testing.T) {
	m := load(t, "fixtures/canary", map[string]string{"canary.a.secret": "of a", "canary.b.secret": "of b"})
	mem := checked(t)
	for range 2 {
		for _, who := range []string{"a", "b"} {
			rows, _, err := run(t, m, "canary_"+who, mem, table(t, mem, "order_id string", `[{"order_id":"1"}]`))
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("{\"calls\":1,\"memory\":null,\"order_id\":\"1\",\"other_secret\":null,\"own_secret\":\"of %s\"}\n", who)
			if rows != want {
				t.Errorf("%s saw %s", who, rows)
			}
		}
	}
}

func TestFailuresHaveNames(t *testing.T) {
	for mode, want := range map[string]string{
		"trap": "[PLUGIN_TRAP]", "exit": "[PLUGIN_TRAP]", "panic": "[PANIC] a panic was asked for, in main.misbehave at main.go:",
		"fail": "[ASKED_TO_FAIL] the configuration asked for a failure", "lie": "[COLUMN_TYPE] output column n: is bigint, not int", "short": "PLUGIN",
	} {
		t.Run(mode, func(t *testing.T) {
			m, mem := load(t, "fixtures/failing", map[string]string{"failing.mode": mode, "failing.at": "1"}), checked(t)
			_, _, err := run(t, m, "failing", mem, table(t, mem, "order_id string", `[{"order_id":"1"},{"order_id":"2"}]`))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
	m, mem := load(t, "fixtures/failing", map[string]string{"failing.mode": "row_error", "failing.every": "2"}), checked(t)
	rows, rowErrors, err := run(t, m, "failing", mem, table(t, mem, "order_id string", `[{"order_id":"0"},{"order_id":"1"}]`, `[{"order_id":"2"},{"order_id":"3"}]`))
	if err != nil || rows != "{\"n\":1,\"order_id\":\"1\"}\n{\"n\":3,\"order_id\":\"3\"}\n" || fmt.Sprint(rowErrors) != "[{0 ASKED_TO_FAIL} {2 ASKED_TO_FAIL}]" {
		t.Errorf("%v %v %v", rows, rowErrors, err)
	}
}

func TestMistakesInDeclarationsAreAFailureOfLoading(t *testing.T) {
	ctx := context.Background()
	e, err := plugin.NewEngine(ctx, plugin.Options{CacheDir: cacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(ctx)
	_, err = e.Load(ctx, build(t, "fixtures/failing"), plugin.Config{Name: "failing", Conf: map[string]string{"failing.describe": "fail"}})
	for _, want := range []string{"[INVALID_DECLARATION] module failing: ", "a Source that is not made by", "needs a function"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func TestOrdersAndLinesInTheSandbox(t *testing.T) {
	m, mem := load(t, "webshop", nil), checked(t)
	const documents = "order_id string, order_ts timestamp, customer_id string, currency string, total_amount decimal(18,2), items array<struct<price: double, qty: bigint, sku: string>>, _rescued_data string"
	batches := []string{
		`[{"order_id":"o1","order_ts":"2026-07-28T02:15:04Z","customer_id":"c1","currency":"USD","total_amount":"123.45","items":[{"sku":"A","qty":2,"price":10.5},{"sku":"B","qty":1,"price":102.45}]}]`,
		`[{"_rescued_data":"{}"},{"order_id":"o2","items":[]}]`}
	rows, rowErrors, err := run(t, m, "silver.shop_order", mem, table(t, mem, documents, batches...))
	want := `{"currency":"USD","customer_id":"c1","line_count":2,"order_id":"o1","order_ts":"2026-07-28T02:15:04Z","total_amount":"123.45"}
{"currency":null,"customer_id":null,"line_count":0,"order_id":"o2","order_ts":null,"total_amount":null}
`
	if err != nil || rows != want || fmt.Sprint(rowErrors) != "[{1 MISSING_ORDER_ID}]" {
		t.Errorf("%v %v %v", rows, rowErrors, err)
	}
	rows, rowErrors, err = run(t, m, "silver.shop_order_line", mem, table(t, mem, documents, batches...))
	want = `{"currency":"USD","line_amount":"21","line_number":1,"order_id":"o1","price":"10.5","quantity":2,"sku":"A"}
{"currency":"USD","line_amount":"102.45","line_number":2,"order_id":"o1","price":"102.45","quantity":1,"sku":"B"}
`
	if err != nil || rows != want || fmt.Sprint(rowErrors) != "[{1 MISSING_ORDER_ID}]" {
		t.Errorf("%v %v %v", rows, rowErrors, err)
	}
}

func TestHeadersAreRenamedAroundTheSandbox(t *testing.T) {
	m, mem := load(t, "sap", nil), checked(t)
	rows, _, err := run(t, m, "vbak_typed", mem, table(t, mem, "VBELN string, KUNNR string, ERDAT date, LOEKZ string, AUART string, change_type string, change_seq bigint",
		`[{"VBELN":"1","KUNNR":"C","ERDAT":"2024-10-11","LOEKZ":"X","AUART":"TA","change_type":"U","change_seq":7}]`, `[]`))
	want := `{"change_seq":7,"change_type":"U","customer_id":"C","deletion_flag":"X","order_date":"2024-10-11","order_id":"1"}` + "\n"
	if err != nil || rows != want {
		t.Errorf("%v %v", rows, err)
	}
}
