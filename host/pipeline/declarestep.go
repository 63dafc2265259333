package pipeline

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/stream"
)

// declareStep puts a query's columns into the order, spelling and nullability
// that the dataset's column list declares. It changes no value.
type declareStep struct{ dataset *dataset }

// Schema gives the declared columns, then the hidden ones.
func (s *declareStep) Schema(_ context.Context, in *arrow.Schema) (*arrow.Schema, error) {
	out, _, err := s.columns(in)
	return out, err
}

// columns gives the schema and the place in the input of each of its columns.
func (s *declareStep) columns(in *arrow.Schema) (*arrow.Schema, []int, error) {
	data, err := declared(s.dataset, relation.DataSchema(in))
	if err != nil {
		return nil, nil, err
	}
	fields := data.Fields()
	var places []int
	for _, f := range fields {
		for i, g := range in.Fields() {
			if strings.EqualFold(f.Name, g.Name) {
				places = append(places, i)
				break
			}
		}
	}
	for i, f := range in.Fields() {
		if relation.Hidden(f.Name) {
			fields = append(fields, f)
			places = append(places, i)
		}
	}
	return arrow.NewSchema(fields, nil), places, nil
}

// Run gives the columns of each batch in the declared order.
func (s *declareStep) Run(_ context.Context, _ *stream.Task, in array.RecordReader) (array.RecordReader, error) {
	schema, places, err := s.columns(in.Schema())
	if err != nil {
		return nil, err
	}
	return mapped(in, schema, func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		out := columnsOf(rec, schema, places)
		if err := s.checkNulls(out); err != nil {
			out.Release()
			return nil, err
		}
		return out, nil
	}), nil
}

// fillStep gives the declared columns that a flow's query lacks: NULL in every row.
type fillStep struct {
	dataset *dataset
	alloc   memory.Allocator
}

// Schema gives the columns of in and the missing ones.
func (s *fillStep) Schema(_ context.Context, in *arrow.Schema) (*arrow.Schema, error) {
	fields := in.Fields()
	for _, c := range s.dataset.columns {
		if _, ok := fieldFold(in, c.Name); !ok && c.Type != nil && c.Generated == "" {
			fields = append(fields, arrow.Field{Name: c.Name, Type: c.Type, Nullable: true})
		}
	}
	meta := in.Metadata()
	return arrow.NewSchema(fields, &meta), nil
}

// Run adds the columns to each batch.
func (s *fillStep) Run(ctx context.Context, _ *stream.Task, in array.RecordReader) (array.RecordReader, error) {
	schema, err := s.Schema(ctx, in.Schema())
	if err != nil {
		return nil, err
	}
	mem := s.alloc
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	return mapped(in, schema, func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		columns := slices.Clone(rec.Columns())
		for _, f := range schema.Fields()[len(columns):] {
			null := array.MakeArrayOfNull(mem, f.Type, int(rec.NumRows()))
			defer null.Release()
			columns = append(columns, null)
		}
		return array.NewRecordBatch(schema, columns, rec.NumRows()), nil
	}), nil
}

// checkNulls refuses a NULL in a NOT NULL column, except in rows that an
// expectation keeps out of the table.
func (s *declareStep) checkNulls(rec arrow.RecordBatch) error {
	mask, masked := relation.Int64Column(rec, relation.MaskColumn)
	for i, f := range rec.Schema().Fields() {
		if f.Nullable || relation.Hidden(f.Name) || rec.Column(i).NullN() == 0 {
			continue
		}
		for row := range int(rec.NumRows()) {
			if rec.Column(i).IsNull(row) && !(masked && mask.Value(row)&s.keptOut() != 0) {
				return fault.New("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "column %q is declared NOT NULL and a row has no value there", f.Name).
					WithHint("Drop or quarantine such rows with EXPECT (%s IS NOT NULL)", f.Name)
			}
		}
	}
	return nil
}

// keptOut has the bits of the rules whose violators do not reach the table.
func (s *declareStep) keptOut() int64 {
	var bits int64
	for i, r := range s.dataset.rules {
		if r.Action != expect.Warn {
			bits |= 1 << i
		}
	}
	return bits
}
