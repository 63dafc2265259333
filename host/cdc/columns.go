package cdc

import (
	"context"
	"encoding/hex"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/fault"
)

// hashColumn views hashes as a column, without a copy.
func hashColumn(hashes []rowcode.Hash) arrow.Array {
	data := array.NewData(&arrow.FixedSizeBinaryType{ByteWidth: 16}, len(hashes), []*memory.Buffer{nil, memory.NewBufferBytes(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(hashes))), 16*len(hashes)))}, nil, 0, 0)
	defer data.Release()
	return array.NewFixedSizeBinaryData(data)
}

// hashesOf gives the hashes of a column, which must outlive them.
func hashesOf(col arrow.Array) []rowcode.Hash {
	data := col.Data()
	if col.Len() == 0 {
		return nil
	}
	raw := data.Buffers()[1].Bytes()[16*data.Offset() : 16*(data.Offset()+col.Len())]
	return hashesIn(raw)
}

// hashesIn views bytes as hashes: a Hash is 16 bytes of no alignment.
func hashesIn(raw []byte) []rowcode.Hash {
	return unsafe.Slice((*rowcode.Hash)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw)/16)
}

func kindColumn(kinds []byte) arrow.Array {
	data := array.NewData(arrow.PrimitiveTypes.Uint8, len(kinds), []*memory.Buffer{nil, memory.NewBufferBytes(kinds)}, nil, 0, 0)
	defer data.Release()
	return array.NewUint8Data(data)
}

// timeColumn is a column of one value.
func timeColumn(v int64, n int) arrow.Array {
	values := make([]int64, n)
	for i := range values {
		values[i] = v
	}
	data := array.NewData(arrow.PrimitiveTypes.Int64, n, []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(values))}, nil, 0, 0)
	defer data.Release()
	return array.NewInt64Data(data)
}

// indexColumn views indices as an Arrow column.
func indexColumn(rows []int32) arrow.Array {
	data := array.NewData(arrow.PrimitiveTypes.Int32, len(rows), []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(rows))}, nil, 0, 0)
	defer data.Release()
	return array.NewInt32Data(data)
}

// currentColumn tells which rows have no end.
func currentColumn(ends []int32, mem memory.Allocator) arrow.Array {
	b := array.NewBooleanBuilder(mem)
	defer b.Release()
	b.Reserve(len(ends))
	for _, end := range ends {
		b.UnsafeAppend(end == never)
	}
	return b.NewArray()
}

// hexColumn gives hashes as texts.
func hexColumn(hashes []rowcode.Hash, mem memory.Allocator) arrow.Array {
	b := array.NewStringBuilder(mem)
	defer b.Release()
	b.Reserve(len(hashes))
	for i := range hashes {
		b.Append(hex.EncodeToString(hashes[i][:]))
	}
	return b.NewArray()
}

// takeRows gives rows of a batch, in the order asked for. The caller releases it.
func takeRows(ctx context.Context, rec arrow.RecordBatch, rows []int32, mem memory.Allocator) (arrow.RecordBatch, error) {
	cols, err := takeColumns(ctx, rec.Columns(), rows, mem)
	if err != nil {
		return nil, err
	}
	defer releaseAll(cols)
	return array.NewRecordBatch(rec.Schema(), cols, int64(len(rows))), nil
}

// takeColumns does so for columns.
func takeColumns(ctx context.Context, from []arrow.Array, rows []int32, mem memory.Allocator) (cols []arrow.Array, err error) {
	ctx = compute.WithAllocator(ctx, mem)
	at := indexColumn(rows)
	defer at.Release()
	defer func() {
		if err != nil {
			releaseAll(cols)
		}
	}()
	cols = make([]arrow.Array, len(from))
	for i, col := range from {
		if cols[i], err = takeArray(ctx, col, at, mem); err != nil {
			return nil, err
		}
	}
	return cols, nil
}

// joined makes one batch of several of one schema. The caller releases it, and
// them.
func joined(schema *arrow.Schema, batches []arrow.RecordBatch, mem memory.Allocator) (arrow.RecordBatch, error) {
	switch len(batches) {
	case 0:
		b := array.NewRecordBuilder(mem, schema)
		defer b.Release()
		return b.NewRecordBatch(), nil
	case 1:
		batches[0].Retain()
		return batches[0], nil
	}
	rows := int64(0)
	for _, b := range batches {
		rows += b.NumRows()
	}
	cols := make([]arrow.Array, schema.NumFields())
	defer func() { releaseAll(cols) }()
	parts := make([]arrow.Array, len(batches))
	for i := range cols {
		for n, b := range batches {
			parts[n] = b.Column(i)
		}
		var err error
		if cols[i], err = array.Concatenate(parts, mem); err != nil {
			return nil, fault.Wrap(err, "INTERNAL_ERROR", "changes cannot be joined: column %s", schema.Field(i).Name)
		}
	}
	return array.NewRecordBatch(schema, cols, rows), nil
}

// validity gives the validity bitmap of an array from its first value on, nil when all are valid.
func validity(arr arrow.Array, mem memory.Allocator) *memory.Buffer {
	if arr.NullN() == 0 {
		return nil
	}
	buf := memory.NewResizableBuffer(mem)
	buf.Resize(int(bitutil.BytesForBits(int64(arr.Len()))))
	bitutil.CopyBitmap(arr.NullBitmapBytes(), arr.Data().Offset(), arr.Len(), buf.Bytes(), 0)
	return buf
}

func releaseBuffer(b *memory.Buffer) {
	if b != nil {
		b.Release()
	}
}

func dataOf(arrays []arrow.Array) []arrow.ArrayData {
	out := make([]arrow.ArrayData, len(arrays))
	for i, a := range arrays {
		out[i] = a.Data()
	}
	return out
}

func releaseAll(cols []arrow.Array) {
	for _, c := range cols {
		if c != nil {
			c.Release()
		}
	}
}

func releaseBatches(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}

// bytesIn is about how many bytes a batch takes.
func bytesIn(rec arrow.RecordBatch) int64 {
	n := int64(0)
	for _, c := range rec.Columns() {
		n += int64(c.Data().SizeInBytes()) //nolint:gosec // of memory that is there
	}
	return n
}

// widened gives entries of the state the columns of fresh ones: the values they lack are NULL.
func (a *apply) widened(rec arrow.RecordBatch, schema *arrow.Schema) (arrow.RecordBatch, error) {
	if rec.NumCols() == int64(schema.NumFields()) {
		rec.Retain()
		return rec, nil
	}
	cols := make([]arrow.Array, schema.NumFields())
	defer func() { releaseAll(cols) }()
	for i := range cols {
		if i < int(rec.NumCols()) {
			cols[i] = rec.Column(i)
			cols[i].Retain()
		} else {
			cols[i] = array.MakeArrayOfNull(a.mem, schema.Field(i).Type, int(rec.NumRows()))
		}
	}
	return array.NewRecordBatch(schema, cols, rec.NumRows()), nil
}
