package cdc

import (
	"context"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
)

// takeArray gives values of a column, at places that are a column of INT32
// without NULLs. Codes and texts are most of what a batch moves, and are moved
// here: Arrow's own kernel grows its buffer value by value.
func takeArray(ctx context.Context, col, at arrow.Array, mem memory.Allocator) (arrow.Array, error) {
	rows := at.(*array.Int32).Int32Values()
	switch t := col.DataType().(type) {
	case *arrow.NullType:
		return array.NewNull(at.Len()), nil
	case *arrow.StringType, *arrow.BinaryType:
		return takeTexts(col, rows, mem)
	case *arrow.FixedSizeBinaryType:
		if t.ByteWidth == 16 && col.NullN() == 0 {
			return takeHashes(col, rows, mem), nil
		}
	}
	out, err := compute.TakeArrayOpts(compute.WithAllocator(ctx, mem), col, at, compute.TakeOptions{BoundsCheck: false})
	if err != nil {
		return nil, fault.Wrap(err, "INTERNAL_ERROR", "rows of a column of type %s cannot be taken", col.DataType())
	}
	return out, nil
}

func takeTexts(col arrow.Array, rows []int32, mem memory.Allocator) (arrow.Array, error) {
	data := col.Data()
	var raw []byte
	if b := data.Buffers()[2]; b != nil {
		raw = b.Bytes()
	}
	var from []int32
	if b := data.Buffers()[1]; b != nil && b.Len() > 0 {
		from = arrow.Int32Traits.CastFromBytes(b.Bytes())[data.Offset():]
	}
	offsets := memory.NewResizableBuffer(mem)
	defer offsets.Release()
	offsets.Resize(4 * (len(rows) + 1))
	to := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
	to[0] = 0
	total := int64(0)
	for i, row := range rows {
		total += int64(from[row+1] - from[row])
		if total > math.MaxInt32 {
			return nil, fault.New("CDC_VALUES_TOO_LARGE", "the texts of one column of a part of the batch take more than 2 GiB").
				WithHint("Make micro-batches smaller with maxFilesPerTrigger or maxBytesPerTrigger")
		}
		to[i+1] = int32(total) //nolint:gosec // it was checked
	}
	values := memory.NewResizableBuffer(mem)
	defer values.Release()
	values.Resize(int(total))
	out := values.Bytes()
	for i, row := range rows {
		copy(out[to[i]:to[i+1]], raw[from[row]:from[row+1]])
	}
	valid, nulls := takeValidity(col, rows, mem)
	defer releaseBuffer(valid)
	taken := array.NewData(col.DataType(), len(rows), []*memory.Buffer{valid, offsets, values}, nil, nulls, 0)
	defer taken.Release()
	return array.MakeFromData(taken), nil
}

// takeValidity gives the bitmap of values that are taken, nil when none is NULL.
func takeValidity(col arrow.Array, rows []int32, mem memory.Allocator) (*memory.Buffer, int) {
	if col.NullN() == 0 {
		return nil, 0
	}
	valid := memory.NewResizableBuffer(mem)
	valid.Resize(int(bitutil.BytesForBits(int64(len(rows)))))
	bits := valid.Bytes()
	clear(bits)
	nulls := 0
	for i, row := range rows {
		if col.IsValid(int(row)) {
			bitutil.SetBit(bits, i)
		} else {
			nulls++
		}
	}
	return valid, nulls
}

func takeHashes(col arrow.Array, rows []int32, mem memory.Allocator) arrow.Array {
	buf := memory.NewResizableBuffer(mem)
	defer buf.Release()
	buf.Resize(16 * len(rows))
	from, to := hashesOf(col), hashesIn(buf.Bytes())
	for i, row := range rows {
		to[i] = from[row]
	}
	data := array.NewData(col.DataType(), len(rows), []*memory.Buffer{nil, buf}, nil, 0, 0)
	defer data.Release()
	return array.NewFixedSizeBinaryData(data)
}
