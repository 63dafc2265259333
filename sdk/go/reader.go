package weir

import (
	"runtime"

	"github.com/weir-data/weir/sdk/go/internal/host"
)

// Reader is one input of a call, read batch by batch:
//
//	for in.Next() {
//		b := in.Batch()
//		…
//	}
//	return in.Err()
//
// An input that is not read to its end holds rows back; when the rest is not wanted, Close says so.
type Reader struct {
	index     int
	errs      *stickyError
	fields    []Field
	hasSchema bool
	batch     Batch
	buf       []byte
	pending   int64 // answer of input_next that is not used yet
	peeked    bool
	unchanged bool
	done      bool
	err       error
}

// Next reads the next batch. The batch before, and every view of it, is no longer valid.
func (in *Reader) Next() bool {
	for !in.done {
		// Go's collector and the host's timers run between batches.
		runtime.Gosched()
		m, ok := in.message()
		if !ok {
			break
		}
		switch m.kind {
		case headerSchema:
			if in.fields, in.err = readSchema(m.table); in.err == nil {
				in.hasSchema = true
				continue
			}
		case headerRecordBatch:
			if !in.hasSchema {
				in.err = errorf("[INPUT_INVALID] input ", itoa(int64(in.index)), " starts without a schema")
				break
			}
			b := &in.batch
			b.in, b.start = in, b.start+int64(b.n)
			if b.n, b.columns, in.err = readBatch(m, in.fields, b.columns[:0], in.errs); in.err == nil {
				return true
			}
		case 0:
			continue
		default:
			in.err = errorf("[INPUT_INVALID] input ", itoa(int64(in.index)), " has a message of kind ", itoa(int64(m.kind)))
		}
		in.done = true
	}
	return false
}

// message takes the next message from the host, into a buffer that is used again.
func (in *Reader) message() (m message, ok bool) {
	size := in.peek()
	in.peeked = false
	if size <= 0 {
		in.done = true
		if size == -1 {
			in.err = lastError("reading an input")
		}
		return m, false
	}
	if int64(cap(in.buf)) < size {
		in.buf = make([]byte, size+size/8)
	}
	in.buf = in.buf[:size]
	if host.InputRead(in.index, in.buf) != int32(size) {
		in.err, in.done = lastError("reading an input"), true
		return m, false
	}
	m, in.err = readMessage(in.buf)
	in.done = in.err != nil
	return m, in.err == nil
}

// peek asks for the next message unless that was done before.
func (in *Reader) peek() int64 {
	if !in.peeked && !in.done {
		in.pending, in.peeked = host.InputNext(in.index), true
		in.unchanged = in.pending == -2
	}
	if in.done {
		return 0
	}
	return in.pending
}

// Unchanged reports, before the first Next, that a function with [Reuse] has read this very input in
// an earlier call of its instance: what it kept of it holds, and Next gives nothing.
func (in *Reader) Unchanged() bool {
	in.peek()
	return in.unchanged
}

// Batch gives the batch that Next read.
func (in *Reader) Batch() *Batch { return &in.batch }

// Fields gives the input's columns; before the first Next it reads ahead to its schema.
func (in *Reader) Fields() []Field {
	if !in.hasSchema && !in.done {
		if m, ok := in.message(); ok && m.kind == headerSchema {
			in.fields, in.err = readSchema(m.table)
			in.hasSchema, in.done = in.err == nil, in.err != nil
		} else if ok {
			in.err, in.done = errorf("[INPUT_INVALID] input ", itoa(int64(in.index)), " starts without a schema"), true
		}
	}
	return in.fields
}

// ReadAll reads the rest and keeps it: for side inputs that fit the module's memory.
func (in *Reader) ReadAll() ([]*Batch, error) {
	var all []*Batch
	for in.Next() {
		kept := in.batch
		kept.in = in
		all = append(all, &kept)
		in.buf, in.batch.columns = nil, nil
	}
	return all, in.Err()
}

// Close says that no more of the input is wanted.
func (in *Reader) Close() {
	in.done, in.peeked = true, false
	host.InputClose(in.index)
}

// Err gives what ended the input early, or nil. The call fails with it in any case.
func (in *Reader) Err() error {
	if in.err == nil {
		return in.errs.err
	}
	in.errs.set(in.err)
	return in.err
}

// Batch is a part of an input's rows.
type Batch struct {
	in      *Reader
	start   int64
	n       int
	columns []Column
}

// Len gives the number of rows.
func (b *Batch) Len() int { return b.n }

// Start gives the number of rows of this input before the batch.
func (b *Batch) Start() int64 { return b.start }

// Fields gives the names and types of the columns.
func (b *Batch) Fields() []Field { return b.in.fields }

// Column gives a column by its name. Where no column is spelt so, one that differs in case is taken.
func (b *Batch) Column(name string) Column {
	if c, ok := b.find(name); ok {
		return c
	}
	c := Column{n: b.n, typ: &nullType, path: name, errs: b.in.errs}
	c.errs.set(errorf("[COLUMN_NOT_FOUND] input ", itoa(int64(b.in.index)), " has no column ", name, "; it has ", fieldNames(b.in.fields)))
	return c
}

// Has reports whether there is such a column, for inputs whose shape varies.
func (b *Batch) Has(name string) bool {
	_, ok := b.find(name)
	return ok
}

func (b *Batch) find(name string) (Column, bool) {
	for i, f := range b.in.fields {
		if f.Name == name && i < len(b.columns) {
			return b.columns[i], true
		}
	}
	want := lower(name)
	for i, f := range b.in.fields {
		if lower(f.Name) == want && i < len(b.columns) {
			return b.columns[i], true
		}
	}
	return Column{}, false
}

// RowError reports that row i of the batch could not be transformed. The flow's policy decides what
// becomes of it. A row-aligned function still writes a row there, such as a null, which goes no further;
// any other writes nothing. A code is upper case, as in NO_RATE. Call it before the batch's output is flushed.
func (b *Batch) RowError(i int, code, message string) {
	buf := appendJSONString(append(make([]byte, 0, 128), `{"code":`...), code)
	buf = append(appendJSONString(append(buf, `,"message":`...), message), '}')
	host.RowError(b.in.index, b.start+int64(i), buf)
}

func fieldNames(fields []Field) string {
	var b []byte
	for i, f := range fields {
		if i > 0 {
			b = append(b, ", "...)
		}
		if i == 20 {
			return string(append(b, "…"...))
		}
		b = append(b, f.Name...)
	}
	return string(b)
}
