package stream

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
)

// Source is where the rows of a flow come from: NewFileSource or NewDeltaSource.
type Source interface {
	// kind is the word for the source in offset entries.
	kind() string
	// capture looks at what the source holds now beyond what the offset log
	// names. Later batches of the same run take from this and nothing newer.
	capture(ctx context.Context, ck *checkpoint) (backlog, error)
	// empty gives the offset of a batch that reads nothing and moves nothing on.
	empty(ctx context.Context, ck *checkpoint) (*sourceOffset, error)
	// schema gives the columns a batch is read with, and records the first
	// version of an inferred schema as made by the batch. off is nil when there
	// is no batch and only the columns are asked for.
	schema(ctx context.Context, versions *schemaVersions, batch int64, off *sourceOffset) (readSchema, error)
	// split makes the shares of the tasks. It depends on nothing but its arguments.
	split(ctx context.Context, off *sourceOffset, taskBytes int64) ([]Input, error)
	// missing tells what the flow has read and the source no longer holds.
	missing(ctx context.Context, ck *checkpoint) (Loss, error)
	// read decodes one share. The rows carry host/relation's hidden columns.
	read(ctx context.Context, in Input, schema readSchema, with means) (sourceReader, error)
}

// evolving is a source whose schema can grow.
type evolving interface {
	// evolve looks at a whole batch for columns that the schema lacks; nil when
	// there are none.
	evolve(ctx context.Context, off *sourceOffset, schema readSchema, mem memory.Allocator) (*ingest.UnknownFieldError, error)
}

// backlog is what a run found in its source and has not put in a batch yet.
type backlog interface {
	// next gives the offset of one more batch within the limits, nil at the end.
	next(ctx context.Context) (*sourceOffset, error)
	left() Backlog
}

// means is what a reader may use. None of it changes what is read.
type means struct {
	mem      memory.Allocator
	decoders int // goroutines that decode; 0 is one a processor
}

// readSchema is what a batch is read with.
type readSchema struct {
	arrow   *arrow.Schema
	files   *ingest.Schema // of a file source
	version int            // of files
}

// sourceReader is a decoded share.
type sourceReader interface {
	array.RecordReader
	// counts is complete at the end of the rows.
	counts() sourceCounts
	// locate says where the row of that ordinal came from, place says it in words.
	locate(row int64) fault.Where
	place(row int64) string
}

type sourceCounts struct {
	rows, rescued, malformed int64
	dropped                  int64         // malformed records that were left out
	lost                     int64         // values without a column, in a source that rescues none
	files                    []fileOutcome // those that were not simply read
	// starts is the ordinal of the first row of each file, nil when not known.
	starts []int64
}

// fileOutcome is how one file of a batch ended.
type fileOutcome struct {
	Path  string         `json:"path"`
	State IngestionState `json:"state"`
}

// Input is the share of a batch that one task reads.
type Input struct {
	Files []InputFile `json:"files,omitempty"`
	Table *TableInput `json:"table,omitempty"`
}

// TableInput is the share of a Delta source: files of the table, read with the
// schema it had at the version.
type TableInput struct {
	TableVersion
	Adds []delta.AddFile `json:"adds,omitempty"`
	// Feed is set when the rows are changes.
	Feed *FeedInput `json:"feed,omitempty"`
}

// FeedInput is the share of a change feed: the changes of versions From to To
// or, with Adds, rows that count as inserted by From.
type FeedInput struct {
	From int64      `json:"from"`
	To   int64      `json:"to"`
	Time *time.Time `json:"time,omitempty"` // of From, with Adds

	Files int64 `json:"files,omitempty"` // that the changes are in
	Bytes int64 `json:"bytes,omitempty"`
}
