package sql

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
)

// Options are the limits of an engine.
type Options struct {
	MemoryLimit string // such as "2GB"; empty: DuckDB's default (80 % of memory)
	TempDir     string // where large sorts spill; empty: they fail instead
	Threads     int    // 0: one per processor
	TimeZone    string // session time zone; empty: UTC
}

// Engine is one DuckDB instance.
type Engine struct{}

// Open starts an engine.
func Open(ctx context.Context, opt Options) (*Engine, error) {
	return nil, fault.New("NOT_SUPPORTED", "the SQL engine is not there yet")
}

// Close ends the engine; readers must be released before.
func (e *Engine) Close() error { return nil }

// Describe gives the schema Run's reader would have, hidden columns included.
func (e *Engine) Describe(ctx context.Context, q Query, inputs map[string]*arrow.Schema) (*arrow.Schema, error) {
	return nil, fault.New("NOT_SUPPORTED", "the SQL engine is not there yet")
}

// Run starts the query; the caller releases the reader. Input readers stay the
// caller's: Run reads them until the returned reader is released.
func (e *Engine) Run(ctx context.Context, q Query, inputs map[string]array.RecordReader) (array.RecordReader, error) {
	return nil, fault.New("NOT_SUPPORTED", "the SQL engine is not there yet")
}

// Relations lists the relations a SELECT reads, as dotted names, in order of
// appearance, without its own CTEs.
func (e *Engine) Relations(ctx context.Context, text string) ([]string, error) {
	return nil, fault.New("NOT_SUPPORTED", "the SQL engine is not there yet")
}
