package plugin

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/runtime/wire"
)

// input feeds one input of a call: Schema first, then the source's batches,
// cut to what a message may hold.
type input struct {
	source    array.RecordReader
	encoder   *wire.Encoder
	limits    Limits
	allowance *allowance                                        // of the task: waiting for the source is not the guest's time
	onChunk   func(rec arrow.RecordBatch, offset, length int64) // of a row-aligned call

	size    int64 // of the current message; 0 is none
	schema  bool  // the Schema message was given
	isBatch bool  // the current message is a batch
	// unchanged says that the instance has read this very input in an earlier call.
	unchanged bool
	ended     bool
	closed    bool
	query     bool // of a query of the guest's, not of the function's declaration
	released  bool
	err       error // of the source

	rec     arrow.RecordBatch
	at      int64 // rows of rec given so far
	rows    int64 // rows given so far, all batches
	maxRows int64
	largest int64 // rows of the largest message

	// replay keeps what the source gave while the call may still be run again;
	// lost says that it cannot be, since something given was not kept.
	replay    []arrow.RecordBatch
	replaying int
	keep      bool
	lost      bool
	room      *int64 // bytes of batches that the inputs of a call may keep
}

// unchangedInput is what input_next gives for an input that is unchanged.
const unchangedInput = -2

// next moves to the next message and gives its size, 0 at the end.
func (i *input) next() (int64, error) {
	i.size = 0
	switch {
	case i.err != nil:
		return 0, i.err
	case i.closed || i.ended:
		return 0, nil
	case i.unchanged && !i.schema:
		i.ended = true
		return unchangedInput, nil
	case !i.schema:
		i.schema, i.isBatch = true, false
		i.size = int64(len(i.encoder.Schema()))
		return i.size, nil
	}
	for i.rec == nil || i.at == i.rec.NumRows() {
		if err := i.advance(); err != nil || i.ended {
			return 0, err
		}
	}
	n := min(i.rec.NumRows()-i.at, i.maxRows)
	size, err := i.encoder.Layout(i.rec, i.at, n)
	for err == nil && size > i.limits.BatchBytes && n > 1 {
		n = max(1, min(n/2, n*i.limits.BatchBytes/size))
		size, err = i.encoder.Layout(i.rec, i.at, n)
	}
	if err != nil {
		return 0, because(err, CodeSchemaMismatch, "an input cannot cross to the guest")
	}
	if size > i.limits.BatchBytes {
		return 0, overLimit("batch_bytes", i.limits.BatchBytes, fmt.Sprintf("input row %d of %d bytes", i.rows, size))
	}
	if i.onChunk != nil {
		i.onChunk(i.rec, i.at, n)
	}
	i.at += n
	i.rows += n
	i.largest = max(i.largest, n)
	i.size, i.isBatch = size, true
	return size, nil
}

// advance takes the next batch of the source, or of what is replayed.
func (i *input) advance() error {
	i.drop()
	if i.replaying < len(i.replay) {
		i.rec = i.replay[i.replaying]
		i.rec.Retain()
		i.replaying++
		return nil
	}
	i.allowance.leave()
	more := i.source.Next()
	if err := i.allowance.back(); err != nil {
		return err
	}
	if !more {
		i.ended = true
		i.err = i.source.Err()
		i.endQuery()
		return i.err
	}
	i.rec = i.source.RecordBatch()
	i.rec.Retain()
	if !i.keep {
		return nil
	}
	if *i.room -= held(i.rec); *i.room < 0 {
		i.forget()
	} else {
		i.rec.Retain()
		i.replay = append(i.replay, i.rec)
		i.replaying++
	}
	return nil
}

// held is the memory that a batch keeps from being freed.
func held(rec arrow.RecordBatch) int64 {
	size := uint64(0)
	for _, c := range rec.Columns() {
		size += c.Data().SizeInBytes()
	}
	return int64(size)
}

// read writes the current message to dst.
func (i *input) read(dst []byte) {
	if i.isBatch {
		i.encoder.Put(dst)
	} else {
		copy(dst, i.encoder.Schema())
	}
}

// close is the guest's: it wants no more.
func (i *input) close() {
	i.closed, i.size = true, 0
	i.drop()
	i.forget()
	i.endQuery()
}

// endQuery gives back what a query holds as soon as nothing more of it is read.
func (i *input) endQuery() {
	if i.query {
		i.release()
	}
}

// release lets go of the source and of what it gave.
func (i *input) release() {
	i.drop()
	i.forget()
	if !i.released {
		i.released = true
		i.source.Release()
	}
}

// finished reports whether the guest saw the end or closed the input.
func (i *input) finished() bool { return i.ended || i.closed }

// drop lets go of the current batch.
func (i *input) drop() {
	i.encoder.Release()
	if i.rec != nil {
		i.rec.Release()
		i.rec = nil
	}
	i.at = 0
}

// forget gives up the means to run the call again.
func (i *input) forget() {
	i.keep, i.lost = false, true
	for _, r := range i.replay {
		r.Release()
	}
	i.replay, i.replaying = nil, 0
}

// rewind starts the input over, with what it gave so far and then the source.
func (i *input) rewind() {
	i.drop()
	i.size, i.schema, i.isBatch, i.closed, i.rows, i.replaying = 0, false, false, false, 0, 0
	i.ended, i.unchanged = false, false
}
