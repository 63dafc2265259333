package pipeline

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/stream"
)

// generationKey is where a column of a Delta table keeps its expression: other
// writers compute and check by it.
const generationKey = "delta.generationExpression"

// generateStep gives the declared columns that are GENERATED ALWAYS AS (…) and
// that the query lacks. One that the query gives is checked when it is written.
type generateStep struct {
	dataset *dataset
	engine  *lazyEngine
	stream  bool
}

// Schema gives the columns of in and the generated ones.
func (s *generateStep) Schema(ctx context.Context, in *arrow.Schema) (*arrow.Schema, error) {
	if inner := s.inner(in); inner != nil {
		return inner.Schema(ctx, in)
	}
	return in, nil
}

// Run adds the generated columns to each batch.
func (s *generateStep) Run(ctx context.Context, t *stream.Task, in array.RecordReader) (array.RecordReader, error) {
	if inner := s.inner(in.Schema()); inner != nil {
		return inner.Run(ctx, t, in)
	}
	return in, nil
}

// inner is the SELECT over columns like these, nil when none is missing.
func (s *generateStep) inner(in *arrow.Schema) *sqlStep {
	var text strings.Builder
	for _, c := range s.dataset.columns {
		if _, ok := fieldFold(in, c.Name); c.Generated == "" || ok {
			continue
		}
		text.WriteString(", CAST((" + c.Generated + "\n) AS " + typeName(c.Type) + ") AS `" + strings.ReplaceAll(c.Name, "`", "``") + "`")
	}
	if text.Len() == 0 {
		return nil
	}
	step := &sqlStep{engine: s.engine, query: sql.Query{Text: "SELECT *" + text.String() + " FROM source"}, from: "source"}
	if s.stream {
		step.query.Stream = "source"
	}
	return step
}

// generates tells whether the dataset declares generated columns.
func (d *dataset) generates() bool {
	for _, c := range d.columns {
		if c.Generated != "" {
			return true
		}
	}
	return false
}

// generated adds its expression to a column's field.
func generated(f arrow.Field, c sql.Column) arrow.Field {
	if c.Generated != "" {
		keys, values := f.Metadata.Keys(), f.Metadata.Values()
		f.Metadata = arrow.NewMetadata(append(keys[:len(keys):len(keys)], generationKey), append(values[:len(values):len(values)], c.Generated))
	}
	return f
}
