package stream

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/ingest"
)

// Source is where the rows of a flow come from: NewFileSource or NewDeltaSource.
type Source interface {
	// kind is the word for the source in offset entries.
	kind() string
	// capture looks at what the source holds now beyond what ck's offset log
	// names. Later batches of the same run take from this and nothing newer.
	capture(ctx context.Context, ck *checkpoint) (backlog, error)
	// schema gives the columns a batch is read with. record stores a new
	// version of an inferred schema; batch is who makes it.
	schema(ctx context.Context, versions *schemaVersions, batch int64, off *sourceOffset) (readSchema, error)
	// split makes the shares of the tasks. It depends on nothing but off.
	split(ctx context.Context, off *sourceOffset) ([]Input, error)
	// read decodes one share. The rows carry host/relation's hidden columns.
	read(ctx context.Context, in Input, schema readSchema, mem memory.Allocator) (sourceReader, error)
}

// backlog is what a run found in its source and has not put in a batch yet.
type backlog interface {
	// next gives the offset of one more batch within the limits, nil at the end.
	next(ctx context.Context) (*sourceOffset, error)
	left() Backlog
}

// readSchema is what a batch is read with.
type readSchema struct {
	arrow   *arrow.Schema
	files   *ingest.Schema // of a file source
	version int            // of the schema store, 0 when not from there
}

// sourceReader is a decoded share. Counts and places are known at its end.
type sourceReader interface {
	array.RecordReader
	counts() sourceCounts
	// locate says in words where the row of that ordinal came from.
	locate(row int64) string
}

type sourceCounts struct {
	rescued, malformed int64
	files              []fileOutcome // those that were not simply read
}

// fileOutcome is how one file of a batch ended.
type fileOutcome struct {
	Path  string    `json:"path"`
	State IngestionState `json:"state"`
}

// Input is the share of a batch that one task reads.
type Input struct {
	Files []ingest.File `json:"files,omitempty"`
	Table *TableInput   `json:"table,omitempty"`
}

// TableInput is the share of a Delta source: files of the table, read with the
// schema it had at the version.
type TableInput struct {
	TableVersion
	Adds []delta.AddFile `json:"adds"`
}
