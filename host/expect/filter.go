package expect

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// Unmarked gives the columns of a relation without the mask.
func Unmarked(in *arrow.Schema) *arrow.Schema {
	fields := slices.DeleteFunc(slices.Clone(in.Fields()), func(f arrow.Field) bool { return f.Name == relation.MaskColumn })
	meta := in.Metadata()
	return arrow.NewSchema(fields, &meta)
}

// Filter gives the rows of in that the rules let through, without the mask: what
// Apply does, for rows that are on their way. sink.Keep is not used. counted
// gets the counts when the rows end with none of the Fail rules violated; a
// violation is the reader's error. in is the caller's and outlives the reader.
func Filter(ctx context.Context, rules []Rule, in array.RecordReader, sink Sink, counted func(Counts)) (array.RecordReader, error) {
	f := &filter{in: in, schema: Unmarked(in.Schema()), counted: counted}
	f.refs.Store(1)
	sink.Keep = f.keep
	a, err := newApplication(ctx, rules, sink)
	if err != nil {
		return nil, err
	}
	f.app = a
	return f, nil
}

type filter struct {
	in      array.RecordReader
	schema  *arrow.Schema
	app     *application
	counted func(Counts)
	kept    arrow.RecordBatch
	err     error
	ended   bool
	refs    atomic.Int64
}

func (f *filter) Schema() *arrow.Schema          { return f.schema }
func (f *filter) RecordBatch() arrow.RecordBatch { return f.kept }
func (f *filter) Record() arrow.RecordBatch      { return f.kept }
func (f *filter) Err() error                     { return f.err }
func (f *filter) Retain()                        { f.refs.Add(1) }

// Release drops a holder.
func (f *filter) Release() {
	if f.refs.Add(-1) == 0 {
		f.drop()
	}
}

func (f *filter) drop() {
	if f.kept != nil {
		f.kept.Release()
		f.kept = nil
	}
}

// keep takes the rows of a batch that stay, without the mask.
func (f *filter) keep(_ context.Context, rec arrow.RecordBatch) error {
	cols := make([]arrow.Array, 0, f.schema.NumFields())
	for i, field := range rec.Schema().Fields() {
		if field.Name != relation.MaskColumn {
			cols = append(cols, rec.Column(i))
		}
	}
	if len(cols) != f.schema.NumFields() {
		return fault.New("INTERNAL_ERROR", "the rows have %d columns, not %d", len(cols), f.schema.NumFields())
	}
	f.kept = array.NewRecordBatch(f.schema, cols, rec.NumRows())
	return nil
}

func (f *filter) Next() bool {
	f.drop()
	for f.err == nil && !f.ended {
		if f.err = f.app.ctx.Err(); f.err != nil {
			return false
		}
		if !f.in.Next() {
			f.end()
			return false
		}
		if f.err = f.app.batch(f.in.RecordBatch()); f.err != nil {
			f.drop()
			return false
		}
		if f.kept != nil {
			return true
		}
	}
	return false
}

func (f *filter) end() {
	f.ended = true
	f.app.settle()
	if f.err = f.in.Err(); f.err != nil {
		return
	}
	if f.err = f.app.violation(); f.err == nil {
		f.counted(f.app.counts)
	}
}
