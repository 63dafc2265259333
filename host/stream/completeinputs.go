package stream

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
)

// queryInputs stands for the source of a batch query, which has none: it counts
// what the query reads of its inputs.
type queryInputs struct {
	refresh *Refresh
	pins    refreshPins

	mu  sync.Mutex
	sum sourceCounts
	in  struct{ files, bytes int64 }
}

// The source has no rows of its own.
var noRows = arrow.NewSchema(nil, nil)

func (q *queryInputs) Retain()                        {}
func (q *queryInputs) Release()                       {}
func (q *queryInputs) Schema() *arrow.Schema          { return noRows }
func (q *queryInputs) Next() bool                     { return false }
func (q *queryInputs) RecordBatch() arrow.RecordBatch { return nil }
func (q *queryInputs) Record() arrow.RecordBatch      { return nil }
func (q *queryInputs) Err() error                     { return nil }
func (q *queryInputs) place(int64) string             { return "" }
func (q *queryInputs) locate(int64) fault.Where       { return fault.Where{} }

func (q *queryInputs) counts() sourceCounts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sum
}

// read adds what a reader of one input saw.
func (q *queryInputs) read(c sourceCounts, files int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sum.rows += c.rows
	q.sum.rescued += c.rescued
	q.sum.malformed += c.malformed
	q.sum.dropped += c.dropped
	q.sum.lost += c.lost
	q.sum.files = append(q.sum.files, c.files...)
	q.in.files += int64(files)
	q.in.bytes += bytes
}

// absent gives the reader of a table that was not there when the refresh was planned.
func (q *queryInputs) absent(name string) (array.RecordReader, error) {
	schema := q.refresh.Absent[name]
	if schema == nil {
		return nil, mixedUp(name)
	}
	return array.NewRecordReader(schema, nil)
}

// OpenFiles reads the files of a batch query's input, as the refresh pins them.
// The caller releases the reader.
func (t *Task) OpenFiles(ctx context.Context, name string) (array.RecordReader, error) {
	if t.hooks == nil || t.hooks.query == nil {
		return nil, fault.New("INTERNAL_ERROR", "the task does not run a batch query")
	}
	q := t.hooks.query
	in, pin := q.refresh.Files[name], q.pins.Files[name]
	if in == nil || in.schema == nil {
		return nil, mixedUp(name)
	}
	r, err := in.Source.Read(ctx, in.schema, ingestFiles(pin.Files), ingest.ReadOptions{Alloc: t.hooks.means.mem, Parallel: t.hooks.means.decoders})
	if err != nil {
		return nil, err
	}
	_, bytes := (&sourceOffset{Files: pin.Files}).size()
	files := fileReader{r}
	return counting(r, func(int64) { q.read(files.counts(), len(pin.Files), bytes) }), nil
}

// counting calls then with the number of rows read once the reader is released.
func counting(r array.RecordReader, then func(rows int64)) array.RecordReader {
	c := &countingReader{RecordReader: r, then: then}
	c.refs.Store(1)
	return c
}

type countingReader struct {
	array.RecordReader
	rows int64
	refs atomic.Int64
	then func(rows int64)
}

func (c *countingReader) Next() bool {
	if !c.RecordReader.Next() {
		return false
	}
	c.rows += c.RecordReader.RecordBatch().NumRows()
	return true
}

func (c *countingReader) Retain() { c.refs.Add(1) }

func (c *countingReader) Release() {
	if c.refs.Add(-1) == 0 {
		c.then(c.rows)
		c.RecordReader.Release()
	}
}
