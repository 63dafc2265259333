package cli

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/relation"
)

func TestMadeUpRowsAreTheSameEachTime(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	columns, err := coltype.ParseDDL("a STRING, b DECIMAL(18,2) NOT NULL, c DATE, d TIMESTAMP, e ARRAY<STRUCT<x: INT, y: DOUBLE>>, f MAP<STRING,INT>, g BOOLEAN, h BINARY, i TINYINT, j SMALLINT, k BIGINT, l FLOAT")
	if err != nil {
		t.Fatal(err)
	}
	var fields []arrow.Field
	for _, c := range columns {
		fields = append(fields, c.Arrow())
	}
	schema := arrow.NewSchema(fields, nil)
	text := func() string {
		r, err := sampleReader(mem, schema, 100)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release()
		var out []byte
		for r.Next() {
			for i := range int(r.RecordBatch().NumRows()) {
				out = relation.AppendRowJSON(out, r.RecordBatch(), i)
				if r.RecordBatch().Column(1).IsNull(i) {
					t.Fatal("a null in a column that allows none")
				}
			}
		}
		return string(out)
	}
	if a, b := text(), text(); a != b || a == "" {
		t.Fatalf("%s\n%s", a, b)
	}
}
