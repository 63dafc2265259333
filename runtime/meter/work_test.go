package meter

import (
	"context"
	"runtime"
	"testing"

	"github.com/tetratelabs/wazero"
)

// shapes are modules made to be slow to compile, each along one axis.
func shapes() map[string][]byte {
	one := func(locals int, code ...[]byte) []byte {
		m := &wasmModule{memory: op(0, 1)}
		m.fn("", "", locals, code...)
		return m.bytes()
	}
	touch := func(n int) []byte {
		return each(n, func(i int) []byte { return cat(get(i), constI32(1), add, set(i)) })
	}
	again := cat(get(0), brIf(0))
	nested := func(depth int, inner []byte, tail []byte) []byte {
		return cat(repeat(depth, op(opLoop, emptyBlock)), inner, repeat(depth, tail, op(opEnd)))
	}
	out := map[string][]byte{
		"loops one after another":        one(4, repeat(2000, loop(again))),
		"loops that jump back from ifs":  one(4, repeat(2000, loop(get(0), when(br(1))))),
		"ifs one after another":          one(4, repeat(4000, get(0), when(constI32(1), set(0)))),
		"blocks in blocks":               one(1, repeat(900, op(opBlock, emptyBlock)), repeat(900, again, op(opEnd))),
		"copies":                         one(3, repeat(3000, get(0), get(1), get(2), op(opMisc, miscMemoryCopy, 0, 0))),
		"calls":                          one(1, repeat(40_000, call(0))),
		"loops in loops":                 one(1, nested(60, nil, again)),
		"loops in loops, a local each":   one(60, each(60, func(i int) []byte { return cat(op(opLoop, emptyBlock), get(i), constI32(1), add, set(i)) }), repeat(60, again, op(opEnd))),
		"loops in loops, many locals":    one(1000, nested(50, touch(1000), again)),
		"wrapped loops, many locals":     one(500, repeat(8, nested(wrapDepth, touch(500), again))),
		"ifs in ifs, many locals":        one(1000, repeat(50, get(0), op(opIf, emptyBlock)), touch(1000), repeat(50, op(opEnd))),
		"ifs, many locals":               one(500, repeat(60, get(0), when(touch(500)))),
		"loops, many locals":             one(500, repeat(60, loop(touch(500), again))),
		"a br_table to one label":        one(1, block(get(0), brTable(9000, func(int) int { return 0 }))),
		"stores":                         one(4, repeat(70_000, get(0), get(1), op(0x36, 2, 0))),
		"additions":                      one(4, repeat(140_000, get(0), get(1), add, set(0))),
		"a dispatch like those of Go":    one(18, op(opLoop, emptyBlock), repeat(900, op(opBlock, emptyBlock)), get(0), brTable(900, func(i int) int { return i }), each(900, func(i int) []byte { return cat(op(opEnd), get(0), constI32(1), add, set(1), get(1), when(br(900-i))) }), op(opEnd)),
		"a br_table to each label":       one(1, repeat(900, op(opBlock, emptyBlock)), get(0), brTable(900, func(i int) int { return i }), repeat(900, op(opEnd), get(0), set(0))),
		"a deep stack":                   one(1, repeat(20_000, get(0), op(0x28, 2, 0)), repeat(19_999, add), set(0)),
		"many results through a block":   manyResults(),
		"many mutable globals and calls": manyGlobals(),
	}
	empty := &wasmModule{}
	for range 5000 {
		empty.funcs = append(empty.funcs, wasmFunc{typ: empty.typ("", ""), code: op(1)})
	}
	out["empty functions"] = empty.bytes()
	return out
}

func manyGlobals() []byte {
	m := &wasmModule{}
	for range 900 {
		m.globals = append(m.globals, cat(op(i32, 1), constI32(0), op(opEnd)))
	}
	m.fn("", "", 0, repeat(1000, call(0)))
	return m.bytes()
}

func manyResults() []byte {
	m := &wasmModule{}
	many := string(repeat(900, op(i32)))
	t := m.typ("", many)
	m.fn("", "", 1, repeat(20, op(opBlock), u(int(t)), repeat(900, get(0)), get(0), brIf(0), op(opEnd), repeat(900, drop)))
	return m.bytes()
}

// BenchmarkCompileWork measures what the constants of work.go claim: an
// estimate is no more than a few times under the truth, whatever the shape.
func BenchmarkCompileWork(b *testing.B) {
	modules := shapes()
	modules["Go"] = goModule(b, "testdata/gokernels")
	for name, wasm := range modules {
		b.Run(name, func(b *testing.B) {
			out, report, err := Rewrite(wasm, Limits{Targets: 1 << 30, CompileWork: 1 << 60})
			if err != nil {
				b.Fatal(err)
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var took [2]float64
			for range b.N {
				for i, module := range [][]byte{wasm, out} {
					r := wazero.NewRuntime(context.Background())
					start := threadTime()
					if _, err := r.CompileModule(context.Background(), module); err != nil {
						b.Fatal(err)
					}
					took[i] += float64(threadTime()-start) / float64(b.N)
					_ = r.Close(context.Background())
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(took[0]/1e6, "ms-plain")
			b.ReportMetric(took[1]/1e6, "ms-metered")
			b.ReportMetric(float64(report.CompileWork)/1e6, "ms-estimated")
			b.ReportMetric(took[1]/float64(report.CompileWork), "x-estimate")
		})
	}
}
