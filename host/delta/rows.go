package delta

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
)

// gather gives the rows of the runs [from, to) of a batch, in that order.
func gather(mem memory.Allocator, rec arrow.RecordBatch, runs [][2]int64) (arrow.RecordBatch, error) {
	if len(runs) == 1 {
		return rec.NewSlice(runs[0][0], runs[0][1]), nil
	}
	rows := int64(0)
	for _, r := range runs {
		rows += r[1] - r[0]
	}
	cols := make([]arrow.Array, rec.NumCols())
	defer releaseArrays(cols)
	for i := range cols {
		var err error
		if cols[i], err = gatherArray(mem, rec.Column(i), runs, rows); err != nil {
			return nil, within(err, "column "+rec.ColumnName(i))
		}
	}
	return array.NewRecordBatch(rec.Schema(), cols, rows), nil
}

// copyRows does the same, and holds nothing of the batch.
func copyRows(mem memory.Allocator, rec arrow.RecordBatch, runs [][2]int64) (arrow.RecordBatch, error) {
	rows := int64(0)
	for _, r := range runs {
		rows += r[1] - r[0]
	}
	cols := make([]arrow.Array, rec.NumCols())
	defer releaseArrays(cols)
	for i := range cols {
		var err error
		if cols[i], err = copyArray(mem, rec.Column(i), runs, rows); err != nil {
			return nil, within(err, "column "+rec.ColumnName(i))
		}
	}
	return array.NewRecordBatch(rec.Schema(), cols, rows), nil
}

// gatherArray does the same for one column; rows is what the runs add up to.
func gatherArray(mem memory.Allocator, arr arrow.Array, runs [][2]int64, rows int64) (arrow.Array, error) {
	if arr.DataType().ID() == arrow.NULL {
		return array.NewNull(int(rows)), nil
	}
	if len(runs) == 1 {
		return array.NewSlice(arr, runs[0][0], runs[0][1]), nil
	}
	return copyArray(mem, arr, runs, rows)
}

// copyArray gives the rows of the runs in memory of their own.
func copyArray(mem memory.Allocator, arr arrow.Array, runs [][2]int64, rows int64) (arrow.Array, error) {
	indices := runIndices(mem, runs, rows)
	defer indices.Release()
	out, err := compute.TakeArrayOpts(compute.WithAllocator(context.Background(), mem), arr, indices, compute.TakeOptions{BoundsCheck: false})
	if err != nil {
		return nil, fault.Wrap(err, "DELTA_GATHER_FAILED", "rows of a column of type %s", arr.DataType())
	}
	return out, nil
}

// concatBatches makes one batch of several and takes them over.
func concatBatches(mem memory.Allocator, schema *arrow.Schema, batches []arrow.RecordBatch) (arrow.RecordBatch, error) {
	if len(batches) == 1 {
		return batches[0], nil
	}
	defer releaseBatches(batches)
	rows := int64(0)
	for _, b := range batches {
		rows += b.NumRows()
	}
	cols := make([]arrow.Array, schema.NumFields())
	defer releaseArrays(cols)
	for i := range cols {
		chunks := make([]arrow.Array, len(batches))
		for j, b := range batches {
			chunks[j] = b.Column(i)
		}
		var err error
		if cols[i], err = array.Concatenate(chunks, mem); err != nil {
			return nil, fault.Wrap(err, "DELTA_GATHER_FAILED", "batches cannot be joined: column %s", schema.Field(i).Name)
		}
	}
	return array.NewRecordBatch(schema, cols, rows), nil
}

// countNulls makes every array below know how many nulls it has. Arrays count
// them when first asked and note the result, which two goroutines must not do at once.
func countNulls(arrays []arrow.Array) {
	for _, a := range arrays {
		a.NullN()
		switch a := a.(type) {
		case *array.Struct:
			for i := range a.NumField() {
				countNulls([]arrow.Array{a.Field(i)})
			}
		case *array.Map:
			countNulls([]arrow.Array{a.ListValues(), a.Keys(), a.Items()})
		case *array.List:
			countNulls([]arrow.Array{a.ListValues()})
		}
	}
}

func runIndices(mem memory.Allocator, runs [][2]int64, rows int64) arrow.Array {
	b := array.NewInt64Builder(mem)
	defer b.Release()
	b.Reserve(int(rows))
	for _, r := range runs {
		for i := r[0]; i < r[1]; i++ {
			b.UnsafeAppend(i)
		}
	}
	return b.NewArray()
}

// batchBytes is about how much memory rows [from, to) take. It adds up: the
// bytes of two neighbouring ranges are those of their union.
func batchBytes(rec arrow.RecordBatch, from, to int64) int64 {
	n := int64(0)
	for _, c := range rec.Columns() {
		n += arrayBytes(c, from, to)
	}
	return n
}

func arrayBytes(arr arrow.Array, from, to int64) int64 {
	if from >= to {
		return 0
	}
	switch a := arr.(type) {
	case *array.String:
		return 4*(to-from) + int64(a.ValueOffset(int(to-1))+len(a.Value(int(to-1)))-a.ValueOffset(int(from)))
	case *array.Binary:
		return 4*(to-from) + int64(a.ValueOffset(int(to-1))+len(a.Value(int(to-1)))-a.ValueOffset(int(from)))
	case *array.Struct:
		n := int64(0)
		for i := range a.NumField() {
			n += arrayBytes(a.Field(i), from, to)
		}
		return n
	case *array.Map:
		first, _ := a.ValueOffsets(int(from))
		_, last := a.ValueOffsets(int(to - 1))
		return 4*(to-from) + arrayBytes(a.Keys(), first, last) + arrayBytes(a.Items(), first, last)
	case *array.List:
		first, _ := a.ValueOffsets(int(from))
		_, last := a.ValueOffsets(int(to - 1))
		return 4*(to-from) + arrayBytes(a.ListValues(), first, last)
	}
	width := int64(1)
	if t, ok := arr.DataType().(arrow.FixedWidthDataType); ok {
		width = max(1, int64(t.BitWidth())/8)
	}
	return width * (to - from)
}
