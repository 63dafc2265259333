package cli

import (
	"bufio"
	"context"
	"encoding/csv"
	"io"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/pipeline"
	"github.com/weir-data/weir/host/relation"
)

func queryCommand() *cli.Command {
	return &cli.Command{
		Name:      "query",
		Usage:     "run one read-only SELECT over the pipeline's datasets",
		UsageText: "weir query [-f weir.yaml] [--conf KEY=VALUE] 'SQL' [--output table|json|csv]",
		Description: "Datasets are named by one to three parts: orders, bronze.orders, dwh.bronze.orders.\n" +
			"\nExample:\n   weir query 'SELECT status, count(*) AS n FROM silver.orders GROUP BY status ORDER BY n DESC'",
		Flags: projectFlags(outputFlag("table", "json", "csv")),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, "the SQL text")
			if err != nil {
				return err
			}
			format, err := outputFormat(c, "table", "json", "csv")
			if err != nil {
				return err
			}
			return withPipeline(c, func(ctx context.Context, p *pipeline.Pipeline) error {
				rows, err := p.Query(ctx, args[0])
				if err != nil {
					return err
				}
				defer rows.Release()
				return writeRows(c.App.Writer, format, rows)
			})
		},
	}
}

// writeRows prints all rows of a reader, which stays the caller's.
func writeRows(w io.Writer, format string, rows array.RecordReader) error {
	out := bufio.NewWriter(w)
	var err error
	switch format {
	case "json":
		err = writeRowsJSON(out, rows)
	case "csv":
		err = writeRowsCSV(out, rows)
	default:
		err = writeRowsTable(out, rows)
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

func writeRowsJSON(w *bufio.Writer, rows array.RecordReader) error {
	var line []byte
	for rows.Next() {
		rec := rows.RecordBatch()
		for i := range int(rec.NumRows()) {
			line = append(relation.AppendRowJSON(line[:0], rec, i), '\n')
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
	}
	return rows.Err()
}

// writeRowsCSV writes RFC 4180 with a header; NULL is an empty field, and an
// empty string is one too: JSON tells them apart.
func writeRowsCSV(w io.Writer, rows array.RecordReader) error {
	out := csv.NewWriter(w)
	if err := out.Write(columnNames(rows.Schema())); err != nil {
		return err
	}
	for rows.Next() {
		rec := rows.RecordBatch()
		for i := range int(rec.NumRows()) {
			if err := out.Write(cells(rec, i, "")); err != nil {
				return err
			}
		}
	}
	out.Flush()
	if err := rows.Err(); err != nil {
		return err
	}
	return out.Error()
}

// tableLimit bounds what the table form holds in memory to size its columns.
const tableLimit = 10_000

func writeRowsTable(w *bufio.Writer, rows array.RecordReader) error {
	header := columnNames(rows.Schema())
	var right []int
	for i, f := range rows.Schema().Fields() {
		header[i] = printable(header[i])
		if isNumber(f.Type) {
			right = append(right, i)
		}
	}
	var lines [][]string
	total := 0
	for rows.Next() {
		rec := rows.RecordBatch()
		for i := range int(rec.NumRows()) {
			if total++; total > tableLimit {
				continue
			}
			line := cells(rec, i, "NULL")
			for c := range line {
				line[c] = printable(line[c])
			}
			lines = append(lines, line)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if err := writeTable(w, header, lines, right...); err != nil {
		return err
	}
	note := "(" + strconv.Itoa(total) + " rows"
	if total == 1 {
		note = "(1 row"
	}
	if total > tableLimit {
		note += ", the first " + strconv.Itoa(tableLimit) + " shown; --output json prints all"
	}
	_, err := w.WriteString(note + ")\n")
	return err
}

func columnNames(s *arrow.Schema) []string {
	names := make([]string, s.NumFields())
	for i, f := range s.Fields() {
		names[i] = f.Name
	}
	return names
}

// cells gives row i as text: strings bare, everything else as in JSON.
func cells(rec arrow.RecordBatch, i int, null string) []string {
	out := make([]string, rec.NumCols())
	for c, col := range rec.Columns() {
		switch {
		case col.IsNull(i):
			out[c] = null
		default:
			out[c] = cell(col, i)
		}
	}
	return out
}

func cell(col arrow.Array, i int) string {
	if s, ok := col.(array.StringLike); ok {
		return s.Value(i)
	}
	text := relation.AppendJSON(nil, col, i)
	if len(text) >= 2 && text[0] == '"' && col.DataType().ID() != arrow.STRUCT {
		// Dates, times and binaries: quotes say nothing in a cell.
		return string(text[1 : len(text)-1])
	}
	return string(text)
}

func isNumber(t arrow.DataType) bool {
	return arrow.IsInteger(t.ID()) || arrow.IsFloating(t.ID()) || arrow.IsDecimal(t.ID())
}
