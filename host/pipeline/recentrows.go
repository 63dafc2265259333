package pipeline

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// recentBytes bounds the rows that are kept for the case that a function
// refuses one: a function tells so soon after it read the row.
const recentBytes = 64 << 20

// recentRows keeps the batches that a function read last of an input that is
// read whole and may give its rows in another order another time.
type recentRows struct {
	batches []arrow.RecordBatch
	first   int64 // number of the first row kept
	next    int64
	bytes   int64
}

// watch gives r and keeps what it reads.
func (k *recentRows) watch(r array.RecordReader) array.RecordReader {
	return mapped(r, r.Schema(), func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		rec.Retain()
		k.batches = append(k.batches, rec)
		k.next += rec.NumRows()
		k.bytes += batchBytes(rec)
		for k.bytes > recentBytes && len(k.batches) > 1 {
			k.drop()
		}
		rec.Retain()
		return rec, nil
	})
}

func (k *recentRows) drop() {
	old := k.batches[0]
	k.batches = k.batches[1:]
	k.first += old.NumRows()
	k.bytes -= batchBytes(old)
	old.Release()
}

func (k *recentRows) release() {
	for len(k.batches) > 0 {
		k.drop()
	}
}

// json gives a row that was read as JSON.
func (k *recentRows) json(row int64) ([]byte, error) {
	at := k.first
	for _, rec := range k.batches {
		if row >= at && row < at+rec.NumRows() {
			return relation.RowJSON(rec, int(row-at)), nil
		}
		at += rec.NumRows()
	}
	return nil, fault.New("PLUGIN_FAILED", "row %d was refused long after it was read, and is not at hand any more", row+1).
		WithHint("Refuse a row before reading on, or set on_row_error to skip")
}

func batchBytes(rec arrow.RecordBatch) (n int64) {
	for _, c := range rec.Columns() {
		n += int64(c.Data().SizeInBytes()) //nolint:gosec // far from the limits of int64
	}
	return n
}
