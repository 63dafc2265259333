package expect

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Sink takes what Apply lets through.
type Sink struct {
	// Keep gets the rows that pass, hidden columns included, in input order.
	// It must retain what it keeps beyond the call.
	Keep func(ctx context.Context, rec arrow.RecordBatch) error
	// Quarantine gets the rows set aside with, per row, the names of the
	// quarantine rules it violates. Nil only when no rule quarantines.
	Quarantine func(ctx context.Context, rec arrow.RecordBatch, rules [][]string) error
	// Locate turns a __weir_row into words for an error; may be nil.
	Locate func(row int64) string
}

// RuleCounts is what one rule saw.
type RuleCounts struct {
	Name           string
	Passed, Failed int64
}

// Counts sums up a run of Apply.
type Counts struct {
	Rows        int64 // read
	Kept        int64
	Dropped     int64 // rows left out by Drop rules, each once
	Quarantined int64
	Rules       []RuleCounts
}

// Apply reads in to its end and sorts its rows by the rules.
func Apply(ctx context.Context, rules []Rule, in array.RecordReader, sink Sink) (Counts, error) {
	return Counts{}, nil
}
