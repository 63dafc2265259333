package stream

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// tableReader numbers the rows of a scan or, when feed is set, of a change feed.
type tableReader struct {
	array.RecordReader
	table   string
	version int64 // that the files are read with
	feed    *FeedInput
	schema  *arrow.Schema
	mem     memory.Allocator
	refs    atomic.Int64
	rows    int64
	cur     arrow.RecordBatch

	// Steps may ask for a row's place, and for old images, while another
	// goroutine reads on.
	mu     sync.Mutex
	starts []versionStart
	old    []bool // of a change feed: whether the row is the old image of an update
}

// versionStart says from which row on the changes of a version come.
type versionStart struct{ row, version int64 }

// newTableReader takes the reader of a scan over.
func newTableReader(r array.RecordReader, table string, version int64, schema *arrow.Schema, mem memory.Allocator) *tableReader {
	t := &tableReader{RecordReader: r, table: table, version: version, schema: schema, mem: mem}
	t.refs.Store(1)
	return t
}

func (r *tableReader) Schema() *arrow.Schema { return r.schema }

func (r *tableReader) Next() bool {
	r.drop()
	if !r.RecordReader.Next() {
		return false
	}
	rec := r.RecordReader.RecordBatch()
	if r.feed != nil {
		r.note(rec)
	}
	b := array.NewInt64Builder(r.mem)
	defer b.Release()
	b.Reserve(int(rec.NumRows()))
	for i := range rec.NumRows() {
		b.UnsafeAppend(r.rows + i)
	}
	ordinals := b.NewArray()
	defer ordinals.Release()
	r.rows += rec.NumRows()
	r.cur = array.NewRecordBatch(r.schema, append(slices.Clone(rec.Columns()), ordinals), rec.NumRows())
	return true
}

// note remembers which version the rows of a batch are of, and which of them
// are old images.
func (r *tableReader) note(rec arrow.RecordBatch) {
	n := int(rec.NumRows())
	types, ok1 := rec.Column(int(rec.NumCols()) - 3).(*array.String)
	versions, ok2 := rec.Column(int(rec.NumCols()) - 2).(*array.Int64)
	if !ok1 || !ok2 || n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := versions.Value(0); len(r.starts) == 0 || r.starts[len(r.starts)-1].version != v {
		r.starts = append(r.starts, versionStart{r.rows, v})
	}
	for i := range n {
		if types.Value(i) != "update_preimage" {
			continue
		}
		at := int(r.rows) + i
		if at >= len(r.old) {
			r.old = append(r.old, make([]bool, at+1-len(r.old))...)
		}
		r.old[at] = true
	}
}

// oldImages counts the rows of a batch that are old images of updates.
func (r *tableReader) oldImages(rec arrow.RecordBatch) int64 {
	rows, ok := relation.Int64Column(rec, relation.RowColumn)
	if r.feed == nil || !ok {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := int64(0)
	for i := range rows.Len() {
		if at := rows.Value(i); !rows.IsNull(i) && at >= 0 && at < int64(len(r.old)) && r.old[at] {
			n++
		}
	}
	return n
}

func (r *tableReader) RecordBatch() arrow.RecordBatch { return r.cur }
func (r *tableReader) Record() arrow.RecordBatch      { return r.cur }

// Err says what a file that is gone takes with it.
func (r *tableReader) Err() error {
	err := r.RecordReader.Err()
	if fault.CodeOf(err) != "DELTA_FILE_NOT_FOUND" {
		return err
	}
	where := fault.Where{Dataset: r.table}
	if r.feed != nil && r.feed.Time == nil {
		return fault.Wrap(err, "DELTA_CHANGE_DATA_FILE_NOT_FOUND", "the changes of versions %d to %d were not read before a file of theirs was removed, and are lost to the stream", r.feed.From, r.feed.To).
			WithHint("VACUUM removed it. Run a full refresh, which begins with the rows that the table has, and let the table keep its files longer (delta.deletedFileRetentionDuration)").At(where)
	}
	return fault.Wrap(err, "DELTA_FILE_NOT_FOUND", "a file was removed before the stream read it, and its rows are lost to the stream").
		WithHint("VACUUM removed it. Run a full refresh, which begins with the rows that the table has").At(where)
}

func (r *tableReader) drop() {
	if r.cur != nil {
		r.cur.Release()
		r.cur = nil
	}
}

// Retain adds a holder.
func (r *tableReader) Retain() { r.refs.Add(1) }

// Release drops a holder; the last one ends the scan.
func (r *tableReader) Release() {
	if r.refs.Add(-1) == 0 {
		r.drop()
		r.RecordReader.Release()
	}
}

func (r *tableReader) counts() sourceCounts         { return sourceCounts{rows: r.rows} }
func (r *tableReader) locate(row int64) fault.Where { return fault.Where{File: r.place(row)} }

func (r *tableReader) place(row int64) string {
	version := r.version
	if r.feed != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		i, found := slices.BinarySearchFunc(r.starts, row, func(s versionStart, row int64) int { return int(s.row - row) })
		if !found {
			i--
		}
		if i >= 0 {
			version = r.starts[i].version
		}
	}
	return fmt.Sprintf("%s@v%d", r.table, version)
}

var _ sourceReader = (*tableReader)(nil)
