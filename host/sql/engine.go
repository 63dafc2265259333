package sql

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
)

// Options are the limits of an engine.
type Options struct {
	MemoryLimit string           // such as "2GB"; empty: DuckDB's default, 80 % of memory
	TempDir     string           // where large sorts spill; empty: they fail instead
	Threads     int              // 0: one per processor
	TimeZone    string           // session time zone; empty: UTC
	BatchRows   int              // rows of a result batch; 0: 65,536
	Alloc       memory.Allocator // of result batches; nil: the default one
}

// Engine is one DuckDB instance: it holds no tables, reads and writes no files
// but those it spills to TempDir, and loads no extensions. Its methods may be
// called concurrently; each query has a connection of its own.
type Engine struct {
	db        *database
	alloc     memory.Allocator
	batchRows int
	zone      string // of the session
	detours   bool   // columns may go around DuckDB; tests compare with when none does

	mu    sync.Mutex
	plans map[string]*plan
}

// maxPlans bounds the plans kept; a pipeline has one per flow and schema.
const maxPlans = 256

// Open starts an engine.
func Open(ctx context.Context, opt Options) (*Engine, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var settings [][2]string
	if opt.MemoryLimit != "" {
		settings = append(settings, [2]string{"memory_limit", opt.MemoryLimit})
	}
	if opt.Threads > 0 {
		settings = append(settings, [2]string{"threads", fmt.Sprint(opt.Threads)})
	}
	if opt.TempDir != "" {
		if err := os.MkdirAll(opt.TempDir, 0o700); err != nil {
			return nil, fault.Wrap(err, "INVALID_SQL_OPTION", "the temp directory cannot be made")
		}
	}
	zone := opt.TimeZone
	if zone == "" {
		zone = "UTC"
	}
	setup := append([]string{"SET GLOBAL TimeZone = " + quoteText(zone), "SET preserve_insertion_order = true",
		"SET default_null_order = 'nulls_first_on_asc_last_on_desc'",
		// It turns a window into a join of its input with itself: a reader can be read once.
		"SET disabled_optimizers = 'window_self_join'"}, sandbox(opt.TempDir)...)
	db, err := openDatabase(settings, setup)
	if err != nil {
		return nil, err
	}
	e := &Engine{db: db, alloc: opt.Alloc, batchRows: opt.BatchRows, plans: map[string]*plan{}, zone: zone, detours: true}
	if e.alloc == nil {
		e.alloc = memory.DefaultAllocator
	}
	if e.batchRows <= 0 {
		e.batchRows = 1 << 16
	}
	return e, nil
}

// Close ends the engine. Readers still out keep it alive until their release.
func (e *Engine) Close() error {
	e.db.close()
	return nil
}

// Describe plans the query over inputs of these schemas and gives the schema
// of Run's reader, hidden columns included: for a streaming query the user's
// columns, then __weir_row, then __weir_mask when there are expectations.
func (e *Engine) Describe(ctx context.Context, q Query, inputs map[string]*arrow.Schema) (*arrow.Schema, error) {
	p, err := e.plan(ctx, q, inputs)
	if err != nil {
		return nil, err
	}
	return p.schema, nil
}

// Run starts the query and gives its rows as they come; the caller releases
// the reader. The input readers stay the caller's, who must not read them
// until the result is released. Rows of a streaming query come in the order of
// their __weir_row. When ctx ends the query stops with its error.
func (e *Engine) Run(ctx context.Context, q Query, inputs map[string]array.RecordReader) (array.RecordReader, error) {
	if q.Guest != nil {
		return e.runGuest(ctx, q, inputs)
	}
	if q.Clock.IsZero() {
		if q.Stream != "" {
			return nil, fault.New("INTERNAL_ERROR", "a streaming query runs without the batch timestamp")
		}
		q.Clock = time.Now()
	}
	return e.runPlan(ctx, q, inputs)
}

func (e *Engine) runPlan(ctx context.Context, q Query, inputs map[string]array.RecordReader) (array.RecordReader, error) {
	schemas := make(map[string]*arrow.Schema, len(inputs))
	for name, in := range inputs {
		schemas[name] = in.Schema()
	}
	p, err := e.plan(ctx, q, schemas)
	if err != nil {
		return nil, err
	}
	return e.start(ctx, p, q.Clock, inputs)
}

// plan gives the plan of a query, made now or kept from before.
func (e *Engine) plan(ctx context.Context, q Query, schemas map[string]*arrow.Schema) (*plan, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	key := planKey(q, schemas)
	if q.Guest == nil {
		e.mu.Lock()
		p := e.plans[key]
		e.mu.Unlock()
		if p != nil {
			return p, nil
		}
	}
	c, err := e.db.connect()
	if err != nil {
		return nil, err
	}
	defer c.release()
	defer c.watch(ctx)()
	p, err := (&planner{ctx: ctx, conn: c, q: q, detours: e.detours && q.Guest == nil}).make(schemas)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	if q.Guest != nil {
		return p, nil // its parameters are part of it
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.plans) >= maxPlans {
		clear(e.plans)
	}
	e.plans[key] = p
	return p, nil
}

// planKey tells plans apart; the clock is not part of a plan.
func planKey(q Query, schemas map[string]*arrow.Schema) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q %d %q %v %v %q\n", q.Text, q.Stream, q.File, q.Line, q.Expectations, q.NullPass, q.GuestRules, q.Keys)
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		fmt.Fprintf(&b, "%q %s\n", name, schemas[name])
	}
	return b.String()
}
