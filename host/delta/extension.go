package delta

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// extension is a batch with columns more or less. It borrows the arrays.
type extension struct {
	fields []arrow.Field
	cols   []arrow.Array
	rows   int64
	made   arrow.RecordBatch
}

func newExtension(rec arrow.RecordBatch) *extension {
	return &extension{fields: slices.Clone(rec.Schema().Fields()), cols: slices.Clone(rec.Columns()), rows: rec.NumRows()}
}

func (e *extension) add(name string, arr arrow.Array) {
	e.fields = append(e.fields, arrow.Field{Name: name, Type: arr.DataType(), Nullable: true})
	e.cols = append(e.cols, arr)
}

func (e *extension) drop(i int) {
	e.fields, e.cols = slices.Delete(e.fields, i, i+1), slices.Delete(e.cols, i, i+1)
}

// batch gives the batch, which lives until release.
func (e *extension) batch() arrow.RecordBatch {
	e.made = array.NewRecordBatch(arrow.NewSchema(e.fields, nil), e.cols, e.rows)
	return e.made
}

func (e *extension) release() {
	if e.made != nil {
		e.made.Release()
	}
}

func constantStrings(mem memory.Allocator, value string, n int) arrow.Array {
	b := array.NewStringBuilder(mem)
	defer b.Release()
	b.Reserve(n)
	b.ReserveData(n * len(value))
	for range n {
		b.Append(value)
	}
	return b.NewArray()
}
