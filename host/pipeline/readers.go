package pipeline

import (
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// openReaders are readers to release together, the last opened first: it may
// read from those before it.
type openReaders []array.RecordReader

func (o openReaders) release() {
	for i := len(o) - 1; i >= 0; i-- {
		o[i].Release()
	}
}

// releasing gives a reader that calls then once it is released, after the
// reader itself is.
func releasing(r array.RecordReader, then func()) array.RecordReader {
	w := &releasingReader{RecordReader: r, then: then}
	w.refs.Store(1)
	return w
}

type releasingReader struct {
	array.RecordReader
	refs atomic.Int64
	then func()
}

// Retain adds a holder.
func (r *releasingReader) Retain() { r.refs.Add(1) }

// Release drops a holder; the last one releases the reader and what it reads.
func (r *releasingReader) Release() {
	if r.refs.Add(-1) == 0 {
		r.RecordReader.Release()
		r.then()
	}
}

// mapped gives a reader whose batches are each made from one of r's by f,
// which gives a batch that the reader owns. It does not own r.
func mapped(r array.RecordReader, schema *arrow.Schema, f func(arrow.RecordBatch) (arrow.RecordBatch, error)) *mappedReader {
	m := &mappedReader{in: r, schema: schema, f: f}
	m.refs.Store(1)
	return m
}

type mappedReader struct {
	in     array.RecordReader
	schema *arrow.Schema
	f      func(arrow.RecordBatch) (arrow.RecordBatch, error)
	now    arrow.RecordBatch
	err    error
	refs   atomic.Int64
}

// Retain adds a holder.
func (m *mappedReader) Retain() { m.refs.Add(1) }

// Release drops a holder.
func (m *mappedReader) Release() {
	if m.refs.Add(-1) == 0 {
		m.drop()
	}
}

func (m *mappedReader) drop() {
	if m.now != nil {
		m.now.Release()
		m.now = nil
	}
}

// Schema gives the schema of the batches.
func (m *mappedReader) Schema() *arrow.Schema { return m.schema }

// Next moves to the next batch.
func (m *mappedReader) Next() bool {
	m.drop()
	if m.err != nil || !m.in.Next() {
		return false
	}
	m.now, m.err = m.f(m.in.RecordBatch())
	return m.err == nil
}

// RecordBatch gives the current batch, valid until the next call of Next.
func (m *mappedReader) RecordBatch() arrow.RecordBatch { return m.now }

// Record is RecordBatch under its older name.
func (m *mappedReader) Record() arrow.RecordBatch { return m.now }

// Err gives what stopped the reader, if anything did.
func (m *mappedReader) Err() error {
	if m.err != nil {
		return m.err
	}
	return m.in.Err()
}

// pick gives the fields whose names keep lets through, with their places.
func pick(s *arrow.Schema, keep func(string) bool) (*arrow.Schema, []int) {
	var fields []arrow.Field
	var places []int
	for i, f := range s.Fields() {
		if keep(f.Name) {
			fields = append(fields, f)
			places = append(places, i)
		}
	}
	meta := s.Metadata()
	return arrow.NewSchema(fields, &meta), places
}

// columnsOf gives the batch with the picked columns only; the caller releases it.
func columnsOf(rec arrow.RecordBatch, schema *arrow.Schema, places []int) arrow.RecordBatch {
	cols := make([]arrow.Array, len(places))
	for i, at := range places {
		cols[i] = rec.Column(at)
	}
	return array.NewRecordBatch(schema, cols, rec.NumRows())
}
