package main

import (
	"context"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/runtime/plugin"
)

// runP2 measures a batch of one row through an instance that runs already,
// against wazero's own call of an export of the same module.
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
	schema, err := schemaOf("v bigint")
	if err != nil {
		return nil, err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Int64Builder).Append(7)
	row := b.NewRecordBatch()
	defer row.Release()
	out, err := g.Map(ctx, plugin.Call{Function: "multiply", Inputs: []array.RecordReader{newEndless(row)}})
	if err != nil {
		return nil, err
	}
	defer out.Release()
	calls := s.scaled(50_000)
	next := func() error {
		for range calls {
			if !out.Next() {
				return out.Err()
			}
		}
		return nil
	}
	bare, closeBare, err := bareCall(ctx, wasm)
	if err != nil {
		return nil, err
	}
	defer closeBare()
	ours, theirs, err := race(s.repeats+2, side{run: next}, side{run: func() error {
		for range calls {
			if err := bare(); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	for _, c := range []*cost{&ours, &theirs} { // of one call, in microseconds
		c.wall, c.cpu = c.wall*1e6/float64(calls), c.cpu*1e6/float64(calls)
	}
	first := figure{Case: "one row, no side input", Must: 15, Aim: 5, Peer: "wazero's bare call"}.slower(ours, theirs)
	first.Unit = "µs"
	return []figure{first, {
		Case: "one row, 207000 unchanged rates", Better: "lower", Must: 2, Aim: 1.2,
		Skipped: "the runtime starts an instance for each task; it keeps none for functions with reuse yet",
	}}, nil
}

// endless gives one batch over and over.
type endless struct {
	array.RecordReader
	rec  arrow.RecordBatch
	left int
}

func newEndless(rec arrow.RecordBatch) *endless {
	empty, _ := array.NewRecordReader(rec.Schema(), nil) // fails only for batches of another schema
	return &endless{empty, rec, math.MaxInt}
}

func (e *endless) Next() bool                     { e.left--; return e.left >= 0 }
func (e *endless) RecordBatch() arrow.RecordBatch { return e.rec }

// bareCall starts the module in wazero with nothing around it, imports that do
// nothing, and gives a call of its export.
func bareCall(ctx context.Context, wasm []byte) (call func() error, closeAll func(), err error) {
	rt := wazero.NewRuntime(ctx)
	closeAll = func() { _ = rt.Close(ctx) }
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	code, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		return nil, nil, err
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		return nil, nil, err
	}
	b := rt.NewHostModuleBuilder(abi.ImportModule)
	for _, f := range code.ImportedFunctions() {
		if module, name, _ := f.Import(); module == abi.ImportModule {
			b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) {}), f.ParamTypes(), f.ResultTypes()).Export(name)
		}
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return nil, nil, err
	}
	m, err := rt.InstantiateModule(ctx, code, wazero.NewModuleConfig().WithName("").WithStartFunctions(abi.ExportInitialize))
	if err != nil {
		return nil, nil, err
	}
	export := m.ExportedFunction("bare")
	stack := make([]uint64, 1)
	return func() error {
		stack[0] = 3
		return export.CallWithStack(ctx, stack)
	}, closeAll, nil
}
