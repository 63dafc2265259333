package pipeline

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/stream"
	"github.com/weir-data/weir/runtime/plugin"
)

// guestQueries runs the queries of a function in one task. It sees the batch
// inputs that the function declared, at the versions that the task pins, with the
// columns that it declared.
type guestQueries struct {
	step *pluginStep
	task *stream.Task // nil while the function's output is learned
}

// Query implements plugin.Querier.
func (g *guestQueries) Query(ctx context.Context, q plugin.Query) (array.RecordReader, error) {
	params := make([]sql.Param, len(q.Params))
	for i, p := range q.Params {
		params[i] = sql.Param(p)
	}
	query := sql.Query{
		Text: q.SQL, Clock: time.Unix(0, 0), Guest: &sql.Guest{Params: params, Rows: q.Rows, Bytes: q.Bytes, Time: q.Time},
	}
	if g.task != nil {
		query.Clock = g.task.Timestamp
	}
	names, err := g.step.engine.guestRelations(ctx, query)
	if err != nil {
		return nil, err
	}
	filters, err := g.step.engine.filters(ctx, query, func(name string) (*arrow.Schema, error) {
		side, _, err := g.granted(name)
		if err != nil {
			return nil, err
		}
		return side.schema(ctx)
	})
	if err != nil {
		return nil, err
	}
	inputs := map[string]array.RecordReader{}
	var opened openReaders
	for _, name := range names {
		readers, err := g.open(ctx, name, filters[name], q.Empty)
		opened = append(opened, readers...)
		if err != nil {
			opened.release()
			return nil, err
		}
		inputs[name] = readers[len(readers)-1]
	}
	out, err := g.step.engine.run(ctx, query, inputs)
	if err != nil {
		opened.release()
		return nil, err
	}
	return releasing(out, opened.release), nil
}

// filteredInput is a relation of which not all need be read.
type filteredInput interface {
	openWhere(ctx context.Context, t *stream.Task, where *delta.Predicate) (array.RecordReader, error)
}

// open opens the input of a name with the columns that the function may see, without
// files that hold no row for where; the last reader is the one to read.
func (g *guestQueries) open(ctx context.Context, name string, where *delta.Predicate, empty bool) (openReaders, error) {
	side, columns, err := g.granted(name)
	if err != nil {
		return nil, err
	}
	var r array.RecordReader
	if empty || g.task == nil {
		schema, err := side.schema(ctx)
		if err != nil {
			return nil, err
		}
		if r, err = array.NewRecordReader(schema, nil); err != nil {
			return nil, fault.Wrap(err, "INTERNAL_ERROR", "no rows do not fit their schema")
		}
	} else {
		if f, ok := side.(filteredInput); ok && where != nil {
			r, err = f.openWhere(ctx, g.task, where)
		} else {
			r, err = side.open(ctx, g.task)
		}
		if err != nil {
			return nil, err
		}
	}
	schema, places := pick(r.Schema(), func(column string) bool {
		if columns == nil {
			return !relation.Hidden(column)
		}
		return slices.ContainsFunc(columns, func(c string) bool { return strings.EqualFold(c, column) })
	})
	return openReaders{r, mapped(r, schema, func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		return columnsOf(rec, schema, places), nil
	})}, nil
}

// granted finds what a name of a query stands for: a batch input, by the name under
// which the function declared it. Of several with that name all columns are granted.
func (g *guestQueries) granted(name string) (side batchInput, columns []string, err error) {
	f := g.step.function
	var known []string
	all := false
	for i, in := range f.Inputs {
		if g.step.sides[i] == nil { // the stream
			continue
		}
		known = append(known, in.Dataset)
		if !strings.EqualFold(in.Dataset, name) {
			continue
		}
		side = g.step.sides[i]
		columns = append(columns, in.Columns...)
		all = all || in.Columns == nil
	}
	if side == nil {
		e := fault.New("TABLE_OR_VIEW_NOT_FOUND", "%s.%s has no batch input %s to query", g.step.module.name, f.Name, name)
		if len(known) > 0 {
			e = e.WithHint("It declares %s", strings.Join(known, ", "))
		} else {
			e = e.WithHint("A function queries what it declares as inputs of mode batch; it declares none")
		}
		return nil, nil, e
	}
	if all {
		return side, nil, nil
	}
	return side, slices.Clip(append([]string{}, columns...)), nil
}
