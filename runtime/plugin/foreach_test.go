package plugin

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/abi"
)

// handle runs a handler, which takes its inputs over, and gives what it wrote, a line a row.
func handle(t *testing.T, m *Module, call Call) (string, error) {
	t.Helper()
	defer func() {
		for _, in := range call.Inputs {
			in.Release()
		}
	}()
	var b strings.Builder
	err := m.ForeachBatch(t.Context(), call, func(output int, batch arrow.RecordBatch) error {
		for i := range int(batch.NumRows()) {
			fmt.Fprintf(&b, "%d:", output)
			for c, f := range batch.Schema().Fields() {
				fmt.Fprintf(&b, " %s=%s", f.Name, batch.Column(c).ValueStr(i))
			}
			b.WriteByte('\n')
		}
		return nil
	})
	return b.String(), err
}

// covers A132: a handler of micro-batches writes several outputs and knows the
// number of the batch; a rerun gives the same.
func TestAHandlerWritesSeveralOutputs(t *testing.T) {
	m := load(t, newEngine(t, Options{CacheDir: codeDir}), buildGo(t, pluginsDir+"fixtures/fanout"), nil)
	mem := checked(t)
	var bad []int64
	call := func(batch int64) Call {
		bad = nil
		in := rows(t, mem, "order_id STRING, customer STRING, n BIGINT, other STRING", `[
			{"order_id": "a", "customer": "x", "n": 1}, {"order_id": null, "customer": "x", "n": 2}]`, `[
			{"order_id": "b", "customer": "y", "n": 3}, {"order_id": "a", "customer": "z", "n": 4}]`)
		return Call{Function: "fanout", Mem: mem, Inputs: []array.RecordReader{in}, Context: abi.CallContext{BatchID: batch},
			OnRowError: func(_ int, row int64, _, _ string) error { bad = append(bad, row); return nil }}
	}
	for range 2 {
		got, err := handle(t, m, call(7))
		want := `0: order_id=a customer=x n=1 batch_id=7
0: order_id=b customer=y n=3 batch_id=7
0: order_id=a customer=z n=4 batch_id=7
1: order_id=a customer=z n=4
1: order_id=b customer=y n=3
`
		if err != nil || got != want || fmt.Sprint(bad) != "[1]" {
			t.Fatalf("%v, %v\n%swant\n%s", err, bad, got, want)
		}
	}
	c := call(7)
	defer c.Inputs[0].Release()
	outputs, err := m.Outputs(t.Context(), "fanout", []*arrow.Schema{c.Inputs[0].Schema()})
	if err != nil || len(outputs) != 2 || outputs[0].NumFields() != 4 || outputs[1].NumFields() != 3 || outputs[0].Field(3).Name != "batch_id" {
		t.Fatal(outputs, err)
	}
	// What the caller refuses ends the call.
	refused := errors.New("no room")
	if err := m.ForeachBatch(t.Context(), c, func(int, arrow.RecordBatch) error { return refused }); !errors.Is(err, refused) {
		t.Error(err)
	}
	if _, err := m.Map(t.Context(), c); err == nil {
		t.Error("a handler ran as a transformation")
	}
}

// handlerManifest declares a handler of the outputs given.
func handlerManifest(outputs string) string {
	return `{"abi": 1, "module": "m", "functions": [{"name": "f", "kind": "foreach_batch", "inputs": [{"dataset": "a", "mode": "stream"}]` + outputs + `}]}`
}

func TestWhatAHandlerDoesWrongHasAName(t *testing.T) {
	one := `, "outputs": [{"dataset": "a", "mode": "append"}]`
	to := func(output uint32) func(a *asm) []byte {
		return func(a *asm) []byte {
			return cat(i32(output), i32(0), i32(0), a.call("output_write"), drop, i32(0), a.call("input_close"))
		}
	}
	for name, c := range map[string]struct {
		outputs string
		call    func(a *asm) []byte
		code    string
		part    string
	}{
		"an output it has not":       {one, to(1), CodeOutputInvalid, "output_write to output 1; the function has 1"},
		"an output below the first":  {one, to(0xffffffff), CodeOutputInvalid, "output_write to output"},
		"no schema":                  {one, func(a *asm) []byte { return cat(i32(0), a.call("input_close")) }, CodeOutputInvalid, "wrote no schema to output 0"},
		"a schema to the first only": {`, "outputs": [{"dataset": "a", "mode": "append"}, {"dataset": "b", "mode": "append"}]`, echo(nil), CodeOutputInvalid, "wrote no schema to output 1"},
		"no outputs":                 {"", echo(nil), CodeNotSupported, "names its outputs"},
	} {
		m := load(t, newEngine(t, Options{}), guest(handlerManifest(c.outputs), append([]string{"input_close"}, echoImports...), c.call), nil)
		in := rows(t, checked(t), "id BIGINT", `[{"id": 1}]`)
		_, err := handle(t, m, Call{Function: "f", Inputs: []array.RecordReader{in}})
		if code(err) != c.code || !strings.Contains(fmt.Sprint(err), c.part) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
