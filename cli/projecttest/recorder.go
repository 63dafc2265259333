package projecttest

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// recorder is a testscript.T outside of `go test`: it keeps what is logged and
// how the script ended.
type recorder struct {
	log             strings.Builder
	failed, skipped bool
}

// stop unwinds a script that has ended early.
type stop struct{}

// Run runs f at once and on this goroutine.
func (r *recorder) Run(_ string, f func(testscript.T)) {
	defer func() {
		switch p := recover().(type) {
		case nil, stop:
		default:
			// Such as the condition [short], which only `go test` knows.
			r.failed = true
			r.Log(p)
		}
	}()
	f(r)
}

func (r *recorder) Log(args ...any) { fmt.Fprintln(&r.log, args...) }

func (r *recorder) Fatal(args ...any) {
	r.Log(args...)
	r.FailNow()
}

func (r *recorder) FailNow() {
	r.failed = true
	panic(stop{})
}

func (r *recorder) Skip(args ...any) {
	r.Log(args...)
	r.skipped = true
	panic(stop{})
}

// Parallel does nothing: scripts run one after the other.
func (r *recorder) Parallel() {}

// Verbose is always true: the log is kept, and shown when it is wanted.
func (r *recorder) Verbose() bool { return true }

func (r *recorder) state() State {
	switch {
	case r.failed:
		return Failed
	case r.skipped:
		return Skipped
	}
	return Passed
}
