package plugin

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"golang.org/x/sys/cpu"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/runtime/cache"
)

// Options configures an Engine.
type Options struct {
	// CacheDir keeps compiled code and manifests; "" keeps nothing on disk.
	CacheDir string
	// CacheBytes is what the directory may hold; what was used longest ago goes
	// first. Default 1 GiB.
	CacheBytes int64
	// Limits of every module of this engine, where a module's own say nothing else.
	Limits Limits
	// MemoryBudget is what the linear memories of all instances may take
	// together. Default 4 GiB: 16 instances that use all a module may by default.
	MemoryBudget int64
	// IdleBytes is what of that instances may keep between calls of functions that
	// declared reuse; the ones used longest ago go first. Default 512 MiB.
	IdleBytes int64
	// Compilers is how many modules may be compiled at the same time, since
	// nothing can stop a compiler. Default: half of the processors, at least 1.
	Compilers int
	// Meter rewrites modules before they are compiled. nil is runtime/meter, with
	// each module's limits; another one that leaves loops uncounted takes
	// the limits of time and fuel away.
	Meter Meter
}

// Engine compiles modules and runs their functions. It may be used by many
// goroutines at once.
type Engine struct {
	limits    Limits // as they were given: zero where defaults hold
	meter     Meter
	memory    budget
	compilers chan struct{}
	idle      idle
	disk      *cache.Cache // nil without a directory

	mu    sync.Mutex
	units map[string]*unit // by key
}

// unit is one module's compiled code. Each has a wazero runtime of its own,
// so that closing it gives everything back and its cache entry can be checked
// alone. Modules that are loaded twice, with different configurations, share one.
type unit struct {
	engine *Engine
	key    string // of the code: module, meter, limits, machine
	wasm   []byte
	meter  Meter
	refs   int // under engine.mu

	mu   sync.Mutex // of compiling
	done bool
	err  error
	rt   wazero.Runtime
	code wazero.CompiledModule
	disk wazero.CompilationCache
}

// codeVersion changes when this package compiles modules differently.
const codeVersion = "weir-runtime-3"

// NewEngine makes an engine; Close it when no call runs any more.
func NewEngine(_ context.Context, opt Options) (*Engine, error) {
	e := &Engine{limits: opt.Limits, meter: opt.Meter, units: map[string]*unit{}}
	if e.memory.limit = opt.MemoryBudget; e.memory.limit <= 0 {
		e.memory.limit = 4 << 30
	}
	if e.idle.most = opt.IdleBytes; e.idle.most <= 0 {
		e.idle.most = 512 << 20
	}
	e.memory.relieve = e.idle.relieve
	if opt.Compilers <= 0 {
		opt.Compilers = runtime.GOMAXPROCS(0) / 2
	}
	e.compilers = make(chan struct{}, max(1, opt.Compilers))
	if opt.CacheDir != "" {
		var err error
		if e.disk, err = cache.Open(opt.CacheDir); err != nil {
			return nil, because(err, CodeInternal, "the cache of plugins cannot be opened")
		}
		if opt.CacheBytes > 0 {
			e.disk.Bound(opt.CacheBytes)
		}
	}
	return e, nil
}

// Close releases the code of all modules. No call may run.
func (e *Engine) Close(ctx context.Context) error {
	e.idle.purge(nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	var first error
	for _, u := range e.units {
		if err := u.close(ctx); err != nil && first == nil {
			first = err
		}
	}
	e.units = map[string]*unit{}
	return first
}

// MemoryInUse is the linear memory of all instances there are, in bytes, those
// that are kept between calls included.
func (e *Engine) MemoryInUse() int64 { return e.memory.used.Load() }

// meterOf gives what rewrites a module of these limits.
func (e *Engine) meterOf(l Limits) Meter {
	if e.meter != nil {
		return e.meter
	}
	return shaped{l.Shape}
}

// unit finds or makes the unit of a module and takes a reference to it.
func (e *Engine) unit(hash string, wasm []byte, m Meter) *unit {
	key := cache.Key(hash, codeVersion, m.Version(), wazeroVersion(), runtime.GOOS, runtime.GOARCH, cpuFeatures())
	e.mu.Lock()
	defer e.mu.Unlock()
	u := e.units[key]
	if u == nil {
		u = &unit{engine: e, key: key, wasm: wasm, meter: m}
		e.units[key] = u
	}
	u.refs++
	return u
}

func (u *unit) retain() {
	u.engine.mu.Lock()
	u.refs++
	u.engine.mu.Unlock()
}

func (u *unit) release(ctx context.Context) error {
	u.engine.mu.Lock()
	defer u.engine.mu.Unlock()
	if u.refs--; u.refs > 0 || u.engine.units[u.key] != u {
		return nil
	}
	delete(u.engine.units, u.key)
	return u.close(ctx)
}

func (u *unit) close(ctx context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.done, u.err = true, errorf(CodeInternal, "the module is closed")
	var first error
	if u.rt != nil {
		first = u.rt.Close(ctx)
	}
	if u.disk != nil {
		if err := u.disk.Close(ctx); err != nil && first == nil {
			first = err
		}
	}
	u.rt, u.code, u.disk = nil, nil, nil
	return first
}

// compile compiles the module, once, however many ask for it.
func (u *unit) compile(ctx context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.done {
		return u.err
	}
	err := u.compileLocked(ctx)
	if err != nil && ctx.Err() != nil {
		return err // the caller gave up; the next one tries again
	}
	u.done, u.err = true, err
	return err
}

func (u *unit) compileLocked(ctx context.Context) error {
	select {
	case u.engine.compilers <- struct{}{}:
		defer func() { <-u.engine.compilers }()
	case <-ctx.Done():
		return ctx.Err()
	}
	wasm, err := u.rewrite()
	if err != nil {
		return err
	}
	if u.engine.disk != nil {
		entry, err := u.engine.disk.Code(u.key)
		if err == nil {
			sealed := entry.Sealed()
			if err = u.compileWith(ctx, wasm, entry.Dir()); err == nil {
				if !sealed {
					_ = entry.Seal() // a full disk costs the next start its time, nothing else
				}
				return nil
			}
			_ = entry.Discard()
		}
	}
	return u.compileWith(ctx, wasm, "")
}

// rewrite joins the module's data and meters it. A fault in the rewriter refuses the module.
func (u *unit) rewrite() (wasm []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errorf(CodeInternal, "metering panicked: %v\n%s", r, debug.Stack())
		}
	}()
	if wasm, err = u.meter.Rewrite(joinData(u.wasm)); err != nil {
		return nil, meterError(err)
	}
	return wasm, nil
}

// compileWith makes the runtime and compiles; with a directory, wazero looks
// for code there first and leaves it there.
func (u *unit) compileWith(ctx context.Context, wasm []byte, dir string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errorf(CodeInternal, "compiling panicked: %v\n%s", r, debug.Stack())
		}
		if err != nil {
			if u.rt != nil {
				_ = u.rt.Close(ctx)
			}
			if u.disk != nil {
				_ = u.disk.Close(ctx)
			}
			u.rt, u.code, u.disk = nil, nil, nil
		}
	}()
	config := wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false)
	if dir != "" {
		if u.disk, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
			return because(err, CodeInternal, "the cache of compiled code")
		}
		config = config.WithCompilationCache(u.disk)
	}
	u.rt = wazero.NewRuntimeWithConfig(ctx, config)
	if err := exportHost(ctx, u.rt, abi.ImportModule, weirImports); err != nil {
		return because(err, CodeInternal, "the host's functions")
	}
	if err := exportHost(ctx, u.rt, abi.WASIModule, wasiImports); err != nil {
		return because(err, CodeInternal, "the host's WASI functions")
	}
	if err := exportMeter(ctx, u.rt); err != nil {
		return because(err, CodeInternal, "the host's meter")
	}
	if u.code, err = u.rt.CompileModule(ctx, wasm); err != nil {
		return because(err, CodeInvalidModule, "it does not compile")
	}
	return nil
}

// initialMemory is what each instance starts with, in bytes.
func (u *unit) initialMemory() uint64 {
	if m := u.code.ExportedMemories()[abi.ExportMemory]; m != nil {
		return uint64(m.Min()) * page
	}
	return 0
}

var wazeroVersion = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "github.com/tetratelabs/wazero" {
				return d.Version
			}
		}
	}
	return "unknown"
})

// cpuFeatures names what compiled code may depend on.
func cpuFeatures() string { return fmt.Sprintf("%+v %+v", cpu.X86, cpu.ARM64) }
