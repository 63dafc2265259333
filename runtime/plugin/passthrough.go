package plugin

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// aligner joins the output of a row-aligned function with the columns of
// input 0 that went around the guest. It copies no column: batches of the
// output are cut where batches of the input end, and the carried columns are
// slices.
type aligner struct {
	schema *arrow.Schema // of the whole output
	before []int         // columns of input 0 that stand before the guest's
	after  []int         // and after them

	chunks []chunk
	head   int   // first chunk with rows left
	done   int64 // rows written
	given  int64 // rows taken by the guest
}

// chunk is one message's rows of input 0, not written yet.
type chunk struct {
	rec       arrow.RecordBatch
	at, count int64
}

// take remembers rows that the guest was given.
func (a *aligner) take(rec arrow.RecordBatch, offset, length int64) {
	if a.head > 64 && a.head > len(a.chunks)/2 { // a guest that stays behind must not make the list grow
		a.chunks = append(a.chunks[:0], a.chunks[a.head:]...)
		a.head = 0
	}
	rec.Retain()
	a.chunks = append(a.chunks, chunk{rec, offset, length})
	a.given += length
}

// join consumes a batch of the guest's and gives the pieces, each with the
// number of its first row.
func (a *aligner) join(batch arrow.RecordBatch, yield func(rec arrow.RecordBatch, firstRow int64) error) error {
	defer batch.Release()
	n := batch.NumRows()
	if n > a.given-a.done {
		return errorf(CodeOutputInvalid, "it wrote output row %d and was given only %d rows of input 0; a row-aligned function writes a row for each row it took", a.done+n-1, a.given)
	}
	for from := int64(0); from < n; {
		c := &a.chunks[a.head]
		k := min(n-from, c.count)
		piece := a.piece(batch, from, k, c)
		first := a.done
		a.done += k
		c.at += k
		if c.count -= k; c.count == 0 {
			c.rec.Release()
			if a.head++; a.head == len(a.chunks) {
				a.chunks, a.head = a.chunks[:0], 0
			}
		}
		from += k
		if err := yield(piece, first); err != nil {
			return err
		}
	}
	return nil
}

func (a *aligner) piece(batch arrow.RecordBatch, from, n int64, c *chunk) arrow.RecordBatch {
	columns := make([]arrow.Array, 0, a.schema.NumFields())
	carry := func(list []int) {
		for _, i := range list {
			columns = append(columns, array.NewSlice(c.rec.Column(i), c.at, c.at+n))
		}
	}
	carry(a.before)
	for i := range int(batch.NumCols()) {
		columns = append(columns, array.NewSlice(batch.Column(i), from, from+n))
	}
	carry(a.after)
	rec := array.NewRecordBatch(a.schema, columns, n)
	for _, col := range columns {
		col.Release()
	}
	return rec
}

// missing gives the number of rows that were given and never written.
func (a *aligner) missing() int64 { return a.given - a.done }

func (a *aligner) release() {
	for _, c := range a.chunks[a.head:] {
		c.rec.Release()
	}
	a.chunks, a.head, a.done, a.given = nil, 0, 0, 0
}

// without gives the batch without some rows (in order), or nil when none is
// left. The batch is consumed.
func without(mem memory.Allocator, batch arrow.RecordBatch, rows []int64) (arrow.RecordBatch, error) {
	if len(rows) == 0 {
		return batch, nil
	}
	defer batch.Release()
	var keep [][2]int64
	from := int64(0)
	for _, r := range append(rows, batch.NumRows()) {
		if r > from {
			keep = append(keep, [2]int64{from, r})
		}
		from = r + 1
	}
	if len(keep) == 0 {
		return nil, nil
	}
	if len(keep) == 1 {
		return batch.NewSlice(keep[0][0], keep[0][1]), nil
	}
	columns := make([]arrow.Array, 0, batch.NumCols())
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	total := int64(0)
	for _, k := range keep {
		total += k[1] - k[0]
	}
	for i := range int(batch.NumCols()) {
		pieces := make([]arrow.Array, len(keep))
		for j, k := range keep {
			pieces[j] = array.NewSlice(batch.Column(i), k[0], k[1])
		}
		col, err := array.Concatenate(pieces, mem)
		for _, p := range pieces {
			p.Release()
		}
		if err != nil {
			return nil, because(err, CodeInternal, "taking rows with errors out of the output")
		}
		columns = append(columns, col)
	}
	return array.NewRecordBatch(batch.Schema(), columns, total), nil
}
