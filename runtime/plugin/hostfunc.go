package plugin

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weir-data/weir/runtime/meter"
)

// hostFunc is one function that a guest may import. Params and results are
// one letter a value: i (i32), l (i64), d (f64).
type hostFunc struct {
	name, params, results string
	run                   func(in *instance, m api.Module, stack []uint64)
}

var letters = map[rune]struct {
	name string
	typ  api.ValueType
}{'i': {"i32", api.ValueTypeI32}, 'l': {"i64", api.ValueTypeI64}, 'd': {"f64", api.ValueTypeF64}}

func (f hostFunc) signature() string {
	list := func(s string) string {
		var out []string
		for _, c := range s {
			out = append(out, letters[c].name)
		}
		return "(" + strings.Join(out, ", ") + ")"
	}
	return list(f.params) + " -> " + list(f.results)
}

func values(s string) []api.ValueType {
	var out []api.ValueType
	for _, c := range s {
		out = append(out, letters[c].typ)
	}
	return out
}

// guestContext is the context of every call into a guest. It carries the
// instance, so that one set of host functions serves all instances of a module.
type guestContext struct {
	context.Context
	in *instance
}

type instanceKey struct{}

// Value lets the instance be found through contexts derived from this one.
func (c *guestContext) Value(key any) any {
	if _, ok := key.(instanceKey); ok {
		return c.in
	}
	return c.Context.Value(key)
}

func instanceOf(ctx context.Context) *instance {
	if g, ok := ctx.(*guestContext); ok {
		return g.in
	}
	in, _ := ctx.Value(instanceKey{}).(*instance)
	return in
}

// exportHost makes a host module of the functions. They go through
// WithGoModuleFunction: the reflective way costs 700 ns and five allocations a call.
func exportHost(ctx context.Context, rt wazero.Runtime, module string, functions []hostFunc) error {
	b := rt.NewHostModuleBuilder(module)
	for _, f := range functions {
		run := f.run
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
			in := instanceOf(ctx)
			defer in.unwind()
			in.charge(0)
			run(in, m, stack)
		}), values(f.params), values(f.results)).Export(f.name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// exportMeter makes the module that metered code asks for fuel. It is called
// ten thousand times a second, and calls nothing that could panic but on purpose.
func exportMeter(ctx context.Context, rt wazero.Runtime) error {
	value := []api.ValueType{api.ValueTypeI64}
	_, err := rt.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
			stack[0] = uint64(instanceOf(ctx).refuel(int64(stack[0])))
		}), value, value).Export(meter.ImportRefuel).Instantiate(ctx)
	return err
}

// errUnwind is what a host function panics with to end the call; the reason
// is in the instance. wazero turns it into an error of the call.
var errUnwind = errors.New("the host ended the call")

// stop ends the call of the guest with an error of the host's.
func (in *instance) stop(err error) {
	if in.fault == nil {
		in.fault = err
	}
	panic(errUnwind)
}

// unwind is deferred around every host function: a panic that is not stop's is
// a fault of the host or of a source, and must not be taken for a trap of the guest.
func (in *instance) unwind() {
	r := recover()
	if r == nil {
		return
	}
	if r != any(errUnwind) {
		in.fault = errorf(CodeInternal, "a host function panicked: %v\n%s", r, debug.Stack())
	}
	panic(errUnwind)
}

// memory gives a piece of guest memory, as a view that is good until the
// guest runs again. A piece that is not there ends the call.
func (in *instance) memory(m api.Module, what string, ptr, size uint64) []byte {
	ptr, size = uint64(uint32(ptr)), uint64(uint32(size))
	if size == 0 {
		return nil
	}
	in.charge(int64(size))
	b, ok := m.Memory().Read(uint32(ptr), uint32(size))
	if !ok {
		in.stop(errorf(CodeTrap, "%s: %d bytes at %d lie outside the guest's memory of %d", what, size, ptr, m.Memory().Size()))
	}
	return b
}

// give writes data into the guest's buffer, as much as it takes, and returns
// the whole length: the convention of conf_get and its kin.
func (in *instance) give(m api.Module, what string, data []byte, ptr, capacity uint64) uint64 {
	copy(in.memory(m, what, ptr, capacity), data)
	return api.EncodeI32(int32(len(data)))
}

var minusOne32 = api.EncodeI32(-1)

const minusOne64 = ^uint64(0)

// refuse remembers the text for last_error and gives -1.
func (in *instance) refuse(text string) uint64 {
	in.lastError = text
	return minusOne32
}
