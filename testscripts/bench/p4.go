package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/runtime/plugin"
)

const wideColumns = 300

// runP4 measures a wide table through a plugin that renames 297 of its columns
// and computes three, against the same in SQL alone: the step itself, Arrow to
// Arrow, and the step with the writing of the table's files.
func runP4(ctx context.Context, dir string, s settings) ([]figure, error) {
	wasm, err := buildGo(ctx, dir, "./testscripts/bench/testdata/guest")
	if err != nil {
		return nil, err
	}
	g, err := loadGuest(ctx, dir, wasm, "bench")
	if err != nil {
		return nil, err
	}
	defer g.close(ctx)
	engine, err := sql.Open(ctx, sql.Options{})
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	table, err := wideTable(s.scaled(160_000))
	if err != nil {
		return nil, err
	}
	query := sql.Query{Text: wideSelect(), Stream: "a", Clock: time.Unix(1_800_000_000, 0).UTC()}
	steps := [2]step{
		func(in array.RecordReader) (array.RecordReader, error) {
			return g.Map(ctx, plugin.Call{Function: "wide", Inputs: []array.RecordReader{in}, Carry: []string{sql.RowColumn}})
		},
		func(in array.RecordReader) (array.RecordReader, error) {
			return engine.Run(ctx, query, map[string]array.RecordReader{"a": in})
		},
	}
	var sides [2][2]side
	for i, st := range steps {
		sides[0][i] = side{run: func() error {
			return st.over(table, func(out array.RecordReader) error { return drain(out, table.rows()) })
		}}
		store, err := storage.OpenDir(filepath.Join(dir, fmt.Sprint("table", i)))
		if err != nil {
			return nil, err
		}
		sides[1][i] = side{run: func() error {
			return st.over(table, func(out array.RecordReader) error { return writeFiles(ctx, delta.Open(store), out) })
		}}
	}
	var figures []figure
	for i, name := range []string{"with its table's files", "the step alone"} {
		at := 1 - i
		a, b, err := race(s.repeats, sides[at][0], sides[at][1])
		if err != nil {
			return nil, err
		}
		figures = append(figures, figure{
			Case: fmt.Sprintf("%d × %d, %s", table.rows(), wideColumns, name), Must: 1.15, Aim: 1, Peer: "the same flow in SQL (DuckDB)",
		}.slower(a, b))
	}
	return figures, nil
}

// step is a flow's only step.
type step func(in array.RecordReader) (array.RecordReader, error)

func (s step) over(table batches, use func(array.RecordReader) error) error {
	in, err := table.reader()
	if err != nil {
		return err
	}
	defer in.Release()
	out, err := s(in)
	if err != nil {
		return err
	}
	defer out.Release()
	return use(out)
}

// writeFiles writes the rows to data files, which stay uncommitted.
func writeFiles(ctx context.Context, t *delta.Table, rows array.RecordReader) error {
	w, err := t.Write(ctx, delta.WriteOptions{Schema: rows.Schema(), Name: "wide"})
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := w.Write(ctx, rows.RecordBatch()); err != nil {
			return errors.Join(err, w.Abort(ctx))
		}
	}
	if err := rows.Err(); err != nil {
		return errors.Join(err, w.Abort(ctx))
	}
	_, err = w.Close(ctx)
	return err
}

// wideSelect is the SQL of the guest's function.
func wideSelect() string {
	var b strings.Builder
	b.WriteString("SELECT ")
	for i := range wideColumns - 3 {
		fmt.Fprintf(&b, "c%d AS column_%d, ", i, i)
	}
	b.WriteString("3 * c297 AS tripled, c297 + c298 AS summed, c299 * CAST(1.19 AS DOUBLE) AS gross FROM a")
	return b.String()
}

// wideTable makes a table of numbers, texts, amounts and days, as SAP's are.
func wideTable(rows int) (batches, error) {
	var ddl strings.Builder
	kinds := []string{"bigint", "string", "decimal(15,2)", "date"}
	for i := range wideColumns - 3 {
		fmt.Fprintf(&ddl, "c%d %s, ", i, kinds[i%4])
	}
	ddl.WriteString("c297 bigint, c298 bigint, c299 double, " + sql.RowColumn + " bigint")
	schema, err := schemaOf(ddl.String())
	if err != nil {
		return batches{}, err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	out := batches{schema: schema}
	for n := range rows {
		for i, f := range b.Fields() {
			v := int64(n*(i+1)) % 10_007
			switch f := f.(type) {
			case *array.Int64Builder:
				f.Append(v)
			case *array.StringBuilder:
				f.Append(fmt.Sprintf("V%05d", v%1000))
			case *array.Decimal128Builder:
				f.Append(decimal128.FromI64(v))
			case *array.Date32Builder:
				f.Append(arrow.Date32(20_000 + v%365))
			case *array.Float64Builder:
				f.Append(float64(v) / 100)
			}
		}
		if (n+1)%(batchRows/4) == 0 || n+1 == rows {
			out.list = append(out.list, b.NewRecordBatch())
		}
	}
	return out, nil
}
