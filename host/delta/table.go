package delta

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// Table is a Delta table at the root of a store. It need not exist yet. All
// methods may be called concurrently.
type Table struct {
	store   storage.Store
	mem     memory.Allocator
	now     func() time.Time
	outside func(ctx context.Context, uri string) (storage.Object, error)
	engine  Engine // nil: expressions cannot be evaluated

	mu     sync.Mutex
	cached *Snapshot // the newest one seen
	// sidecars are those of the last V2 checkpoint that was read or written.
	sidecars []sidecarPlan
	cleaned  time.Time // up to when the log was cleaned up
}

// Option changes how Open works.
type Option func(*Table)

// WithAllocator sets where Arrow memory comes from; nil keeps the default.
func WithAllocator(mem memory.Allocator) Option {
	return func(t *Table) {
		if mem != nil {
			t.mem = mem
		}
	}
}

// WithClock sets the clock that commits without a timestamp read; nil keeps the system's.
func WithClock(now func() time.Time) Option {
	return func(t *Table) {
		if now != nil {
			t.now = now
		}
	}
}

// WithOutside says how to open files that the log names by an absolute path
// outside the table's root. Without it such files are refused: a log is
// outside input and must not choose what the process reads.
func WithOutside(open func(ctx context.Context, uri string) (storage.Object, error)) Option {
	return func(t *Table) { t.outside = open }
}

// Open gives the table at the root of a store. It reads nothing yet.
func Open(store storage.Store, opts ...Option) *Table {
	t := &Table{store: store, mem: memory.DefaultAllocator, now: time.Now}
	for _, o := range opts {
		o(t)
	}
	return t
}

// guard turns a panic of a decoder that was fed with outside bytes into an
// error; none may cross the boundary of the package.
func guard(err *error, code, what string) {
	if p := recover(); p != nil {
		*err = fault.New(code, "%s cannot be decoded: %v", what, p)
	}
}

// readCommit reads one version of the log.
func (t *Table) readCommit(ctx context.Context, version int64) (*commitActions, error) {
	name := commitName(version)
	o, err := t.store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	data := make([]byte, o.Size())
	_, err = io.ReadFull(o, data)
	if err = errors.Join(err, o.Close()); err != nil {
		return nil, fault.Wrap(err, "DELTA_INVALID_LOG", "cannot read commit %d", version).At(fault.Where{File: name})
	}
	c, err := decodeActions(data)
	if err != nil {
		return nil, fault.Place(err, "DELTA_INVALID_LOG", fault.Where{File: name})
	}
	c.modified = o.ModTime()
	return c, nil
}
