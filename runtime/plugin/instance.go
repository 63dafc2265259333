package plugin

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/weir-data/weir/abi"
)

// instance is one instance of a module, for one call. It is used by one
// goroutine at a time.
type instance struct {
	ctx    *guestContext
	mod    api.Module
	linear *linear
	limits Limits

	allowance *allowance // of what it runs
	granted   int64      // fuel when it last asked
	owed      int64      // fuel for the host's work since the last check
	conf      map[string]string

	clock  clock
	random random
	lines  [2]lineWriter

	describing bool
	result     []byte // what weir_describe wrote
	call       *run   // the call it runs, nil outside of one

	onLog     func(abi.LogLevel, string)
	early     []logLine // logged before there was somebody to tell
	logged    int64
	logCut    bool
	lastError string
	failed    bool
	failText  string
	dying     string
	fault     error // why the host ended the call
}

type logLine struct {
	level abi.LogLevel
	text  string
}

// instantiate makes an instance that has run nothing but _initialize.
func (u *unit) instantiate(ctx context.Context, conf map[string]string, limits Limits) (_ *instance, err error) {
	in := &instance{
		limits: limits, conf: conf,
		linear: &linear{limit: uint64(limits.MemoryBytes), budget: &u.engine.memory},
		random: newRandom("initialize", initSeed),
		lines:  [2]lineWriter{{level: abi.LogInfo}, {level: abi.LogWarn}},
	}
	in.ctx = &guestContext{Context: ctx, in: in}
	defer func() {
		if r := recover(); r != nil {
			err = errorf(CodeInternal, "instantiating panicked: %v\n%s", r, debug.Stack())
		}
		if err != nil {
			in.close()
			in.linear.Free()
		}
	}()
	in.use(setupAllowance(limits))
	if err := in.linear.begin(u.initialMemory()); err != nil {
		return nil, err
	}
	withMemory := experimental.WithMemoryAllocator(in.ctx, in.linear)
	in.mod, err = u.rt.InstantiateModule(withMemory, u.code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, in.explain(err, "instantiating it")
	}
	if start := in.mod.ExportedFunction(abi.ExportInitialize); start != nil {
		if err := start.CallWithStack(in.ctx, nil); err != nil {
			return nil, in.explain(err, abi.ExportInitialize)
		}
	}
	if err := in.settle(); err != nil {
		return nil, err
	}
	return in, nil
}

// invoke calls an export that gives an i32, and turns whatever went wrong
// into one error.
func (in *instance) invoke(export string, args ...uint64) (err error) {
	defer func() {
		_ = in.settle() // of a call that failed anyway
		for i := range in.lines {
			in.lines[i].flush(in)
		}
		if r := recover(); r != nil {
			err = errorf(CodeInternal, "%s panicked: %v\n%s", export, r, debug.Stack())
		}
	}()
	stack := make([]uint64, max(1, len(args)))
	copy(stack, args)
	if err := in.mod.ExportedFunction(export).CallWithStack(in.ctx, stack); err != nil {
		return in.explain(err, export)
	}
	if err := in.settle(); err != nil {
		return err
	}
	code := int32(stack[0])
	switch {
	case in.failed:
		return errorf(CodeFailed, "%s", in.failText)
	case code != 0:
		return errorf(CodeFailed, "%s returned %d and gave no reason%s", export, code, in.lastWords())
	}
	return nil
}

func (in *instance) lastWords() string {
	if in.lastError == "" {
		return ""
	}
	return "; the last import that failed: " + in.lastError
}

// explain gives the reason a call ended early: the host's own, or the trap.
func (in *instance) explain(err error, what string) error {
	for i := range in.lines {
		in.lines[i].flush(in)
	}
	if in.fault != nil {
		var e *Error
		if errors.As(in.fault, &e) && e.Code == CodeTrap && in.dying != "" {
			return errorf(CodeTrap, "%s: %s", e.Message, in.dying)
		}
		return in.fault
	}
	trap, frames, _ := strings.Cut(err.Error(), "\n")
	if i := strings.Index(trap, "wasm error: "); i >= 0 {
		trap = trap[i+len("wasm error: "):]
	}
	if errors.Is(err, errUnwind) {
		trap = "the host ended it"
	}
	if in.linear.exhausted() {
		trap += " (" + in.linear.reason() + ")"
	}
	if in.dying != "" {
		trap += ": " + in.dying
	}
	if f := firstFrames(frames, 3); f != "" {
		trap += " (in " + f + ")"
	}
	return errorf(CodeTrap, "%s: %s", what, trap)
}

// overflowed reports that the guest's own runtime ran out of stack, which
// smaller batches do not mend.
func (in *instance) overflowed() bool { return strings.Contains(in.dying, "stack overflow") }

// firstFrames gives the names of the innermost functions of a trap's stack.
func firstFrames(trace string, n int) string {
	var out []string
	for line := range strings.SplitSeq(trace, "\n") {
		line = strings.TrimSpace(line)
		if name, _, ok := strings.Cut(line, "("); ok && strings.HasPrefix(line, ".") && len(out) < n {
			out = append(out, clip(strings.TrimPrefix(name, "."), 80))
		}
	}
	return strings.Join(out, " < ")
}

// log hands a line to the listener, or keeps it until there is one, up to the
// limit of a call.
func (in *instance) log(level abi.LogLevel, text string) {
	if in.logged += int64(len(text)); in.logged > in.limits.LogBytes {
		if in.logCut {
			return
		}
		in.logCut = true
		level, text = abi.LogWarn, fmt.Sprintf("the log of this call is over the limit log_bytes = %d; the rest is dropped", in.limits.LogBytes)
	}
	if in.onLog == nil {
		in.early = append(in.early, logLine{level, text})
		return
	}
	in.allowance.leave()
	in.onLog(level, text)
	_ = in.allowance.back() // lines are also told when no guest runs that could be stopped; the next check is
}

// listen sets who hears the log, and tells what was logged before.
func (in *instance) listen(f func(abi.LogLevel, string)) {
	if f == nil {
		f = func(abi.LogLevel, string) {}
	}
	in.onLog = f
	for _, l := range in.early {
		f(l.level, l.text)
	}
	in.early = nil
}

func (in *instance) close() {
	if in.mod != nil {
		_ = in.mod.Close(context.WithoutCancel(in.ctx.Context))
		in.mod = nil
	}
}
