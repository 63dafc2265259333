package cdctest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/delta"
)

// Fields makes the columns of changes: those of the target, then the sequence,
// and the flags that are asked for: "delete", "truncate".
func Fields(columns []arrow.Field, sequence arrow.DataType, flags ...string) *arrow.Schema {
	fields := append(slices.Clone(columns), arrow.Field{Name: cdc.SequenceColumn, Type: sequence, Nullable: true})
	for _, flag := range flags {
		fields = append(fields, arrow.Field{Name: "__weir_cdc_" + flag, Type: arrow.FixedWidthTypes.Boolean, Nullable: true})
	}
	return arrow.NewSchema(fields, nil)
}

// Changes makes a batch from JSON, one object for each row. It is released when the test ends.
func Changes(t testing.TB, s *arrow.Schema, rows ...string) arrow.RecordBatch {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, s, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rec.Release)
	return rec
}

// Rows gives the rows of the table as texts, name=value each, in order.
func (x *Target) Rows(ctx context.Context) ([]string, error) {
	out := []string{}
	err := x.EachRow(ctx, func(rec arrow.RecordBatch, i int) {
		var b strings.Builder
		for c, f := range rec.Schema().Fields() {
			if c > 0 {
				b.WriteByte(' ')
			}
			value := "null"
			if rec.Column(c).IsValid(i) {
				value = rec.Column(c).ValueStr(i)
			}
			fmt.Fprintf(&b, "%s=%s", f.Name, value)
		}
		out = append(out, b.String())
	})
	slices.Sort(out)
	return out, err
}

// EachRow visits the rows of the table in no order.
func (x *Target) EachRow(ctx context.Context, visit func(rec arrow.RecordBatch, i int)) error {
	snap, err := x.Snapshot(ctx)
	if err != nil || snap == nil {
		return err
	}
	r, err := snap.Scan(ctx, delta.ScanOptions{})
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
		for i := range int(r.RecordBatch().NumRows()) {
			visit(r.RecordBatch(), i)
		}
	}
	return r.Err()
}
