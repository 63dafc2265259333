package pipeline

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/stream"
)

// sqlStep runs a SELECT over the rows of a task.
type sqlStep struct {
	engine *lazyEngine
	query  sql.Query
	from   string                // what the query calls the rows of the step before
	sides  map[string]batchInput // by alias
}

// Schema gives the columns of the SELECT; in is nil for a batch query.
func (s *sqlStep) Schema(ctx context.Context, in *arrow.Schema) (*arrow.Schema, error) {
	inputs, err := s.schemas(ctx, in)
	if err != nil {
		return nil, err
	}
	return s.engine.describe(ctx, s.query, inputs)
}

// schemas gives the columns of what the SELECT reads.
func (s *sqlStep) schemas(ctx context.Context, in *arrow.Schema) (map[string]*arrow.Schema, error) {
	inputs := map[string]*arrow.Schema{}
	if in != nil {
		inputs[s.from] = in
	}
	for alias, side := range s.sides {
		schema, err := side.schema(ctx)
		if err != nil {
			return nil, err
		}
		inputs[alias] = schema
	}
	return inputs, nil
}

// Run starts the SELECT; in is nil for a batch query.
func (s *sqlStep) Run(ctx context.Context, t *stream.Task, in array.RecordReader) (array.RecordReader, error) {
	inputs := map[string]array.RecordReader{}
	if in != nil {
		inputs[s.from] = in
	}
	var opened openReaders
	for alias, side := range s.sides {
		r, err := side.open(ctx, t)
		if err != nil {
			opened.release()
			return nil, err
		}
		opened = append(opened, r)
		inputs[alias] = r
	}
	q := s.query
	q.Clock = t.Timestamp
	out, err := s.engine.run(ctx, q, inputs)
	if err != nil {
		opened.release()
		return nil, err
	}
	return releasing(out, opened.release), nil
}
