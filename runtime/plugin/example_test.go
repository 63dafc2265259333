package plugin_test

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/runtime/plugin"
)

// Load a module once, then run its functions as often as there are tasks.
func Example() {
	ctx := context.Background()
	engine, err := plugin.NewEngine(ctx, plugin.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = engine.Close(ctx) }()

	_, err = engine.Load(ctx, []byte("not a module"), plugin.Config{Name: "sap"})
	fmt.Println(err)
	// Output: [PLUGIN_INVALID_MODULE] sap: it is not a WebAssembly module: it does not begin with \0asm
}

// What a task does: the output counts only once the reader ended without an error.
func ExampleModule_Map() {
	run := func(ctx context.Context, m *plugin.Module, items, rates array.RecordReader) error {
		out, err := m.Map(ctx, plugin.Call{
			Function:   "vbap_typed",
			Context:    abi.CallContext{Flow: "silver.vbap", BatchID: 7, BatchTimestamp: time.Now()},
			Seed:       7,
			Inputs:     []array.RecordReader{items, rates},
			OnRowError: func(input int, row int64, code, message string) error { return nil }, // skip
			Carry:      []string{"__weir_row"},
		})
		if err != nil {
			return err
		}
		defer out.Release()
		for out.Next() {
			fmt.Println(out.RecordBatch().NumRows())
		}
		return out.Err()
	}
	_ = run
}
