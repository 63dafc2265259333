package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/sql"
)

// lazyEngine starts the SQL engine at its first use: most verbs need none.
type lazyEngine struct {
	opts   Options
	memory string // the engine's share of the budget

	mu     sync.Mutex
	engine *sql.Engine
	spill  string
	closed bool
}

func (e *lazyEngine) get(ctx context.Context) (*sql.Engine, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.engine != nil || e.closed {
		if e.closed {
			return nil, fault.New("INTERNAL_ERROR", "the pipeline is closed")
		}
		return e.engine, nil
	}
	// A folder of its own: two engines must not share their spill files.
	parent := e.opts.TempDir
	if parent == "" && e.opts.CacheDir != "" {
		parent = filepath.Join(e.opts.CacheDir, "spill")
	}
	if parent != "" {
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return nil, fault.Wrap(err, "CACHE_UNAVAILABLE", "the SQL engine has no place to spill to")
		}
	}
	removeStale(parent)
	spill, err := os.MkdirTemp(parent, fmt.Sprintf("%s%d-", spillPrefix, os.Getpid()))
	if err != nil {
		return nil, fault.Wrap(err, "CACHE_UNAVAILABLE", "the SQL engine has no place to spill to")
	}
	engine, err := sql.Open(ctx, sql.Options{MemoryLimit: e.memory, TempDir: spill, Threads: e.opts.Threads, TimeZone: "UTC"})
	if err != nil {
		_ = os.RemoveAll(spill)
		return nil, err
	}
	e.engine, e.spill = engine, spill
	return engine, nil
}

// spillPrefix begins the names of spill folders; the process that uses one follows.
const spillPrefix = "weir-sql-"

// removeStale removes the spill folders of processes that are gone: one that
// was killed could not. What cannot be removed costs room and nothing else.
func removeStale(parent string) {
	if parent == "" {
		parent = os.TempDir()
	}
	folders, _ := filepath.Glob(filepath.Join(parent, spillPrefix+"*-*"))
	for _, folder := range folders {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(folder), spillPrefix), "-")
		if pid, err := strconv.Atoi(number); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(folder)
		}
	}
}

func (e *lazyEngine) describe(ctx context.Context, q sql.Query, inputs map[string]*arrow.Schema) (*arrow.Schema, error) {
	engine, err := e.get(ctx)
	if err != nil {
		return nil, err
	}
	return engine.Describe(ctx, q, inputs)
}

func (e *lazyEngine) run(ctx context.Context, q sql.Query, inputs map[string]array.RecordReader) (array.RecordReader, error) {
	engine, err := e.get(ctx)
	if err != nil {
		return nil, err
	}
	return engine.Run(ctx, q, inputs)
}

func (e *lazyEngine) volatile(ctx context.Context, q sql.Query, inputs map[string]*arrow.Schema) (string, error) {
	engine, err := e.get(ctx)
	if err != nil {
		return "", err
	}
	return engine.Volatile(ctx, q, inputs)
}

func (e *lazyEngine) relations(ctx context.Context, text string) ([]string, error) {
	engine, err := e.get(ctx)
	if err != nil {
		return nil, err
	}
	return engine.Relations(ctx, text)
}

func (e *lazyEngine) guestRelations(ctx context.Context, q sql.Query) ([]string, error) {
	engine, err := e.get(ctx)
	if err != nil {
		return nil, err
	}
	return engine.GuestRelations(ctx, q)
}

func (e *lazyEngine) filters(ctx context.Context, q sql.Query, schema func(name string) (*arrow.Schema, error)) (map[string]*delta.Predicate, error) {
	engine, err := e.get(ctx)
	if err != nil {
		return nil, err
	}
	return engine.Filters(ctx, q, schema)
}

func (e *lazyEngine) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.engine == nil {
		return nil
	}
	err := e.engine.Close()
	e.engine = nil
	// Left behind, the folder costs room in a cache and nothing else.
	_ = os.RemoveAll(e.spill)
	return err
}
