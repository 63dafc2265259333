package sql

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// emptyBatch has a schema and no rows.
func emptyBatch(schema *arrow.Schema) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	return b.NewRecordBatch()
}

// emptyReader gives no rows.
func emptyReader(schema *arrow.Schema) array.RecordReader {
	r, err := array.NewRecordReader(schema, nil)
	if err != nil {
		panic(fmt.Sprintf("no rows do not fit their schema: %v", err))
	}
	return r
}
