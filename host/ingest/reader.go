package ingest

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// ReadOptions tunes Read; the zero value is fine.
type ReadOptions struct {
	// BatchRows bounds the rows of a batch; 0 is 65536.
	BatchRows int
	// Alloc is where batches live; nil is Go's heap.
	Alloc memory.Allocator
	// Parallel is the number of decoding goroutines; 0 is one a processor.
	Parallel int
}

// Reader is an array.RecordReader over the rows of some files.
type Reader struct{}

// Retain adds a holder.
func (r *Reader) Retain() {}

// Release drops a holder; the last one stops the work.
func (r *Reader) Release() {}

// Schema gives the columns.
func (r *Reader) Schema() *arrow.Schema { return nil }

// Next moves to the next batch.
func (r *Reader) Next() bool { return false }

// RecordBatch gives the current batch, valid until Next or Release.
func (r *Reader) RecordBatch() arrow.RecordBatch { return nil }

// Record is RecordBatch.
func (r *Reader) Record() arrow.RecordBatch { return nil }

// Err tells why Next stopped early; a *UnknownFieldError when there are new columns.
func (r *Reader) Err() error { return nil }

// Stats counts what was read; complete when Next has returned false.
func (r *Reader) Stats() Stats { return Stats{} }

// Locate tells where row number row (its __weir_row) came from.
func (r *Reader) Locate(row int64) Position { return Position{} }

// Stats counts rows and files of a read.
type Stats struct {
	// Rows is the number of rows delivered.
	Rows int64
	// Rescued is the number of rows with rescued data, malformed ones included.
	Rescued int64
	// Malformed is the number of records that were no JSON or CSV.
	Malformed int64
	// Dropped is the number of malformed records left out under DROPMALFORMED.
	Dropped int64
	// Lost is the number of values that had no column and no rescue column.
	Lost    int64
	PerFile []FileStats
}

// FileState is the outcome of a file, in the words of cloud_files_state.
type FileState string

// The outcomes.
const (
	FileIngested         FileState = "INGESTED"
	FileSkippedCorrupted FileState = "SKIPPED_CORRUPTED"
	FileSkippedMissing   FileState = "SKIPPED_MISSING"
)

// FileStats is what became of one file.
type FileStats struct {
	Path  string
	Rows  int64
	State FileState
}

// Position is a place in a source file.
type Position struct {
	File string
	// Record counts from 1: the line for line-based files, else the document or record.
	Record int64
	// Byte is the offset in the (decompressed) file, -1 when no longer known.
	Byte int64
}
