package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/zeebo/xxh3"

	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
)

var fpRunWritten = failpoint.New("cdc.run_written")

const (
	blockRows  = 1 << 16
	blockBytes = 16 << 20 // what a block of rows with values is cut at, roughly
)

// Write writes the entries of rows, which come ascending by (hash, key, order)
// without repeating one, as a run. Without entries there is no run: the
// RunInfo's Entries are 0, and it has no place in a manifest.
func (s *Store) Write(ctx context.Context, rows array.RecordReader) (RunInfo, error) {
	info, err := s.write(ctx, rows)
	if err == nil && info.Entries > 0 {
		fpRunWritten.Hit()
	}
	return info, err
}

func (s *Store) write(ctx context.Context, rows array.RecordReader) (info RunInfo, err error) {
	if !hasEntries(rows.Schema()) {
		return RunInfo{}, fault.New("INTERNAL_ERROR", "entries of a state do not have the columns %s", rows.Schema())
	}
	name, err := s.runName(ctx)
	if err != nil {
		return RunInfo{}, err
	}
	w := &runWriter{store: s, name: name, schema: Schema(valueFields(rows.Schema())...)}
	defer func() { err = errors.Join(err, w.close(err != nil || info.Entries == 0)) }()
	for rows.Next() {
		if err := ctx.Err(); err != nil {
			return RunInfo{}, err
		}
		if err := w.add(ctx, rows.RecordBatch()); err != nil {
			return RunInfo{}, err
		}
	}
	if err := rows.Err(); err != nil {
		return RunInfo{}, err
	}
	return w.finish(ctx)
}

// runWriter cuts entries into blocks and writes them.
type runWriter struct {
	store  *Store
	name   string
	schema *arrow.Schema

	out     io.Writer
	commit  func() error
	abort   func() error
	file    *ipc.FileWriter
	buffer  bytes.Buffer // what the file writer wrote since the last block
	index   index
	ends    *xxh3.Hasher
	bytes   int64
	entries int64

	pending []arrow.RecordBatch
	rows    int64
	size    int64
	last    []byte // hash, key and order of the last entry
	next    []byte
}

func (w *runWriter) add(ctx context.Context, rec arrow.RecordBatch) error {
	if rec.NumRows() == 0 {
		return nil
	}
	if err := w.ascending(rec); err != nil {
		return err
	}
	rec.Retain()
	w.pending = append(w.pending, rec)
	w.rows += rec.NumRows()
	w.size += sizeOf(rec)
	if w.rows < blockRows && w.size < blockBytes {
		return nil
	}
	return w.flush(ctx)
}

// sizeOf estimates the bytes of a batch; one that is a slice of a larger one counts whole.
func sizeOf(rec arrow.RecordBatch) int64 {
	n := int64(0)
	for _, col := range rec.Columns() {
		n += int64(col.Data().SizeInBytes())
	}
	return n
}

// ascending checks the order of entries: a run out of order would lose them without a word.
func (w *runWriter) ascending(rec arrow.RecordBatch) error {
	hash, ok1 := rec.Column(Hash).(*array.FixedSizeBinary)
	key, ok2 := rec.Column(Key).(*array.Binary)
	order, ok3 := rec.Column(Order).(*array.Binary)
	if !ok1 || !ok2 || !ok3 {
		return fault.New("INTERNAL_ERROR", "entries of a state have columns of other types")
	}
	for i := range int(rec.NumRows()) {
		// The key's length goes between, or (k, ey) and (ke, y) would be the same.
		w.next = append(w.next[:0], hash.Value(i)...)
		w.next = append(w.next, key.Value(i)...)
		split := len(w.next)
		w.next = append(w.next, order.Value(i)...)
		if w.last != nil && !w.less(split) {
			return fault.New("INTERNAL_ERROR", "entries of a state do not ascend at row %d", i)
		}
		w.last = append(w.last[:0], w.next...)
		w.last = binary.LittleEndian.AppendUint32(w.last, uint32(split))
	}
	return nil
}

// less compares the last entry with the next, whose order starts at split.
func (w *runWriter) less(split int) bool {
	n := len(w.last) - 4
	lastSplit := int(binary.LittleEndian.Uint32(w.last[n:]))
	if c := bytes.Compare(w.last[:lastSplit], w.next[:split]); c != 0 {
		return c < 0
	}
	return bytes.Compare(w.last[lastSplit:n], w.next[split:]) < 0
}

// flush writes what is pending in blocks.
func (w *runWriter) flush(ctx context.Context) error {
	if w.rows == 0 {
		return nil
	}
	step := w.rows
	if w.size > blockBytes {
		step = max(1, w.rows*blockBytes/w.size)
	}
	step = min(step, blockRows)
	var spans []span
	left := step
	for src, rec := range w.pending {
		for from := int64(0); from < rec.NumRows(); {
			n := min(left, rec.NumRows()-from)
			spans = append(spans, span{int32(src), int32(from), int32(n)})
			from, left = from+n, left-n
			if left == 0 {
				if err := w.block(ctx, spans); err != nil {
					return err
				}
				spans, left = spans[:0], step
			}
		}
	}
	if len(spans) > 0 {
		if err := w.block(ctx, spans); err != nil {
			return err
		}
	}
	w.drop()
	return nil
}

func (w *runWriter) drop() {
	for _, rec := range w.pending {
		rec.Release()
	}
	w.pending, w.rows, w.size = w.pending[:0], 0, 0
}

// block writes one block.
func (w *runWriter) block(ctx context.Context, spans []span) error {
	rec, err := gatherRecord(w.store.mem, w.schema, spans, len(w.pending), func(src, col int) (arrow.ArrayData, bool) {
		return w.pending[src].Column(col).Data(), false
	})
	if err != nil {
		return err
	}
	defer rec.Release()
	if err := w.start(ctx); err != nil {
		return err
	}
	if err := w.file.Write(rec); err != nil {
		return err
	}
	p := w.buffer.Bytes()
	if w.index.head == 0 {
		// The magic (8 bytes) and the schema: a marker, a length, and so many bytes.
		w.index.head = 16 + int64(binary.LittleEndian.Uint32(p[12:]))
		_, _ = w.ends.Write(p[:w.index.head]) // a hash takes everything
		w.bytes = w.index.head
	}
	start := int(w.bytes - (w.bytesOut()))
	body := start + 8 + int(binary.LittleEndian.Uint32(p[start+4:]))
	b := blockInfo{rows: rec.NumRows(), from: w.bytes, headerSum: xxh3.Hash(p[start:body]), contentSum: xxh3.Hash(p[body:])}
	b.body = b.from + int64(body-start)
	b.to = b.body + int64(len(p)-body)
	w.index.blocks = append(w.index.blocks, b)
	w.bytes, w.entries = b.to, w.entries+b.rows
	return w.drain()
}

// bytesOut is where the buffer starts in the file.
func (w *runWriter) bytesOut() int64 {
	if len(w.index.blocks) == 0 {
		return 0
	}
	return w.bytes
}

func (w *runWriter) drain() error {
	_, err := w.out.Write(w.buffer.Bytes())
	w.buffer.Reset()
	return err
}

func (w *runWriter) start(ctx context.Context) error {
	if w.file != nil {
		return nil
	}
	out, err := w.store.create(ctx, w.name)
	if err != nil {
		return err
	}
	w.out, w.commit, w.abort, w.ends = out, out.Commit, out.Abort, xxh3.New()
	w.file, err = ipc.NewFileWriter(&w.buffer, ipc.WithSchema(w.schema), ipc.WithAllocator(w.store.mem))
	return err
}

func (w *runWriter) finish(ctx context.Context) (RunInfo, error) {
	if err := w.flush(ctx); err != nil || w.entries == 0 {
		return RunInfo{}, err
	}
	file := w.file
	w.file = nil
	if err := file.Close(); err != nil {
		return RunInfo{}, err
	}
	_, _ = w.ends.Write(w.buffer.Bytes())
	w.index.sum = w.ends.Sum64()
	w.bytes += int64(w.buffer.Len())
	if err := w.drain(); err != nil {
		return RunInfo{}, err
	}
	if err := w.commit(); err != nil {
		return RunInfo{}, err
	}
	w.store.mu.Lock()
	w.store.fresh[w.name] = struct{}{}
	w.store.mu.Unlock()
	return RunInfo{Name: w.name, Entries: w.entries, Bytes: w.bytes, Index: w.index.encode()}, nil
}

func (w *runWriter) close(failed bool) error {
	w.drop()
	var err error
	if w.file != nil {
		err = w.file.Close()
	}
	if failed && w.abort != nil {
		err = errors.Join(err, w.abort())
	}
	return err
}
