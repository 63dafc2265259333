package main

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/runtime/wire"
)

// runP2 measures a task of one row in an instance that is kept from task to
// task: a multiplication, against wazero's own call of the same function of the
// same module; and the conversion by rates that the instance has read before,
// against the multiplication.
func runP2(ctx context.Context, dir string, s settings) ([]figure, error) {
	wasm, err := buildGo(ctx, dir, "./testscripts/bench/testdata/guest")
	if err != nil {
		return nil, err
	}
	g, err := loadGuest(ctx, dir, wasm, "bench")
	if err != nil {
		return nil, err
	}
	defer g.close(ctx)
	sap, err := loadSAP(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer sap.close(ctx)
	row, err := oneRow()
	if err != nil {
		return nil, err
	}
	item, err := itemTable(1, 1)
	if err != nil {
		return nil, err
	}
	rates, err := rateTable()
	if err != nil {
		return nil, err
	}
	bare, closeBare, err := bareCall(ctx, wasm, row)
	if err != nil {
		return nil, err
	}
	defer closeBare()

	const calls = 3000
	times := func(call func() error) side {
		return side{prepare: call, run: func() error {
			for range calls {
				if err := call(); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	multiply := times(func() error { return g.call(ctx, "multiply", []string{""}, row) })
	convert := times(func() error { return sap.call(ctx, "vbap_typed", []string{"", "7"}, item, rates) })
	first, err := perCall(s, calls, multiply, times(bare))
	if err != nil {
		return nil, err
	}
	second, err := perCall(s, calls, convert, multiply)
	if err != nil {
		return nil, err
	}
	first.Case, first.Must, first.Aim, first.Peer = "a row, no side input", 15, 5, "wazero's bare call of the same function"
	second.Case, second.Must, second.Aim, second.Peer = fmt.Sprintf("a row, %d unchanged rates", rates.rows()), 2, 1.2, "the row without side input"
	return []figure{first, second}, nil
}

// perCall races two sides and gives the times of one of their calls, in microseconds.
func perCall(s settings, calls float64, ours, theirs side) (figure, error) {
	a, b, err := race(s.repeats+2, ours, theirs)
	for _, c := range []*cost{&a, &b} {
		c.wall, c.cpu = c.wall*1e6/calls, c.cpu*1e6/calls
	}
	f := figure{}.slower(a, b)
	f.Unit = "µs"
	return f, err
}

// oneRow is an input of one row.
func oneRow() (batches, error) {
	schema, err := schemaOf("v bigint")
	if err != nil {
		return batches{}, err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Int64Builder).Append(7)
	return batches{schema, []arrow.RecordBatch{b.NewRecordBatch()}}, nil
}

// bareCall gives a call of the module's function 0 in plain wazero: the module
// as it was compiled, and the least host that the function runs with, which
// copies messages made before and looks at nothing.
func bareCall(ctx context.Context, wasm []byte, input batches) (call func() error, closeAll func(), err error) {
	messages, err := encoded(input)
	if err != nil {
		return nil, nil, err
	}
	rt := wazero.NewRuntime(ctx)
	closeAll = func() { _ = rt.Close(ctx) }
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		return nil, nil, err
	}
	code, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		return nil, nil, err
	}
	next, written := 0, 0
	host := map[string]func(m api.Module, stack []uint64){
		"input_next": func(_ api.Module, stack []uint64) {
			stack[0] = 0
			if next < len(messages) {
				stack[0] = uint64(len(messages[next]))
				next++
			}
		},
		"input_read": func(m api.Module, stack []uint64) {
			m.Memory().Write(uint32(stack[1]), messages[next-1])
			stack[0] = uint64(len(messages[next-1]))
		},
		"output_write": func(_ api.Module, stack []uint64) {
			written += int(uint32(stack[2]))
			stack[0] = 0
		},
	}
	b := rt.NewHostModuleBuilder(abi.ImportModule)
	for _, f := range code.ImportedFunctions() {
		module, name, _ := f.Import()
		if module != abi.ImportModule {
			continue
		}
		run := host[name]
		if run == nil {
			run = func(api.Module, []uint64) { panic("the function calls " + name) }
		}
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, stack []uint64) { run(m, stack) }),
			f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return nil, nil, err
	}
	m, err := rt.InstantiateModule(ctx, code, wazero.NewModuleConfig().WithName("").WithStartFunctions(abi.ExportInitialize))
	if err != nil {
		return nil, nil, err
	}
	export := m.ExportedFunction(abi.ExportCall)
	stack := make([]uint64, 1)
	return func() error {
		next, written, stack[0] = 0, 0, 0
		if err := export.CallWithStack(ctx, stack); err != nil {
			return err
		}
		if stack[0] != 0 || written == 0 {
			return fmt.Errorf("the function gave %d and wrote %d bytes", stack[0], written)
		}
		return nil
	}, closeAll, nil
}

// encoded gives the messages of an input.
func encoded(input batches) ([][]byte, error) {
	e, err := wire.NewEncoder(input.schema, nil)
	if err != nil {
		return nil, err
	}
	defer e.Release()
	out := [][]byte{e.Schema()}
	for _, rec := range input.list {
		size, err := e.Layout(rec, 0, rec.NumRows())
		if err != nil {
			return nil, err
		}
		message := make([]byte, size)
		e.Put(message)
		out = append(out, message)
	}
	return out, nil
}
