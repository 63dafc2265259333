package delta

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
)

// Engine evaluates SQL expressions in Spark's meaning for the package, which
// knows no SQL: CHECK constraints, invariants, generated columns, defaults and
// the conditions of Delete, Update and Overwrite.
type Engine interface {
	// Compile prepares expressions over the columns of schema. A text that is no
	// expression, or names a column that is not there, is an error that says so.
	Compile(ctx context.Context, schema *arrow.Schema, exprs []string) (Program, error)
}

// Program is a list of compiled expressions. It is for one goroutine at a time.
type Program interface {
	// Types gives the Arrow type of each expression.
	Types() []arrow.DataType
	// Eval gives one column for each expression, with as many rows as rec has
	// and in their order. The caller releases the result.
	Eval(ctx context.Context, rec arrow.RecordBatch) (arrow.RecordBatch, error)
	// Close gives back what the program holds; Eval must not be called after it.
	Close() error
}

// WithEngine sets what evaluates SQL expressions. Without it a write that needs
// one is refused with DELTA_ENGINE_REQUIRED.
func WithEngine(e Engine) Option {
	return func(t *Table) { t.engine = e }
}

// Pruner is an ability of an Engine: to tell what a condition says about the
// values of columns, so that files that cannot hold a row for it are not read.
// Where it cannot tell it gives nil, or Unknown in a part.
type Pruner interface {
	Predicate(ctx context.Context, schema *arrow.Schema, condition string) (*Predicate, error)
}

// ColumnUser is an ability of a Program: to name the columns its expressions
// read. Eval then takes batches with these columns alone.
type ColumnUser interface {
	Columns() []string
}
