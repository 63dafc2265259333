package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/pipeline"
	"github.com/weir-data/weir/host/relation"
)

func showCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "look at a table: columns, nulls, row count, the first rows",
		UsageText: "weir show PATH|NAME [--rows N] [--version N | --timestamp T] [-f weir.yaml] [--output text|json]",
		Description: "A table is named by the folder that holds its _delta_log, or as a dataset or quarantine table of the project.\n" +
			"Empty tables and nulls in keys (NOT NULL, PRIMARY KEY, an expectation IS NOT NULL) are pointed out.\n" +
			"\nExample:\n   weir show silver.orders",
		Flags: projectFlags(append(travelFlags(), &cli.IntFlag{Name: "rows", Value: 5, Usage: "print the first `N` rows"}, outputFlag("text", "json"))...),
		Action: func(c *cli.Context) error {
			if n := c.Int("rows"); n < 0 || n > tableLimit {
				return wrongUsage(fault.New("INVALID_ARGUMENT", "--rows %d is not between 0 and %d", n, tableLimit))
			}
			return withNamedTable(c, func(ctx context.Context, t *delta.Table, keys []string, format string) error {
				s, err := snapshotOf(ctx, c, t)
				if err != nil {
					return err
				}
				look, err := lookAt(ctx, c.Args().First(), s, keys, c.Int("rows"))
				if err != nil {
					return err
				}
				if format == "json" {
					return writeJSON(c.App.Writer, look)
				}
				return writeLook(c.App.Writer, look)
			})
		},
	}
}

// withNamedTable is withTable, which knows the declared key of a dataset, too.
func withNamedTable(c *cli.Context, use func(context.Context, *delta.Table, []string, string) error) error {
	args, err := arguments(c, "the folder or name of a table")
	if err != nil {
		return err
	}
	if isTablePath(args[0]) {
		return withTable(c, func(ctx context.Context, t *delta.Table, format string) error { return use(ctx, t, nil, format) })
	}
	format, err := outputFormat(c, "text", "json")
	if err != nil {
		return err
	}
	return withPipeline(c, func(ctx context.Context, p *pipeline.Pipeline) error {
		t, err := p.Table(args[0])
		if err != nil {
			return wrongUsage(err)
		}
		return use(ctx, t, p.Keys(args[0]), format)
	})
}

// look is what `weir show` tells of a table.
type look struct {
	Table     string            `json:"table"`
	Version   int64             `json:"version"`
	Committed time.Time         `json:"committed"`
	Rows      int64             `json:"rows"`
	Empty     bool              `json:"empty"`
	Columns   []lookColumn      `json:"columns"`
	Sample    []json.RawMessage `json:"sample"`
	Warnings  []string          `json:"warnings,omitempty"`

	header []string
	cells  [][]string
	right  []int
}

type lookColumn struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Nulls int64  `json:"nulls"`
	// Key says that the column may not be NULL, or is part of the primary key.
	Key bool `json:"key,omitempty"`
}

func lookAt(ctx context.Context, name string, s *delta.Snapshot, keys []string, sample int) (*look, error) {
	described, err := s.Describe(ctx)
	if err != nil {
		return nil, err
	}
	nulls, err := s.CountNulls(ctx)
	if err != nil {
		return nil, err
	}
	out := &look{Table: name, Version: s.Version(), Committed: s.Timestamp().UTC(), Rows: nulls.Rows, Empty: nulls.Rows == 0, Sample: []json.RawMessage{}}
	if out.Empty {
		out.Warnings = append(out.Warnings, "the table is EMPTY")
	}
	for i, c := range described.Schema {
		isKey := !c.Nullable || slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(k, c.Name) })
		col := lookColumn{Name: c.Name, Type: c.Type, Nulls: nulls.Nulls[i], Key: isKey}
		if isKey && col.Nulls > 0 {
			out.Warnings = append(out.Warnings, fmt.Sprintf("the key %s is NULL in %d of %s", c.Name, col.Nulls, counted(out.Rows, "row")))
		}
		if !isKey && col.Nulls == out.Rows && out.Rows > 0 {
			out.Warnings = append(out.Warnings, fmt.Sprintf("%s is NULL in every row", c.Name))
		}
		out.Columns = append(out.Columns, col)
	}
	return out, out.takeSample(ctx, s, sample)
}

// takeSample reads the first n rows.
func (l *look) takeSample(ctx context.Context, s *delta.Snapshot, n int) error {
	if n == 0 {
		return nil
	}
	rows, err := s.Scan(ctx, delta.ScanOptions{BatchRows: n})
	if err != nil {
		return err
	}
	defer rows.Release()
	l.takeHeader(rows)
	for len(l.Sample) < n && rows.Next() {
		rec := rows.RecordBatch()
		for i := 0; i < int(rec.NumRows()) && len(l.Sample) < n; i++ {
			l.Sample = append(l.Sample, relation.RowJSON(rec, i))
			line := cells(rec, i, "NULL")
			for k := range line {
				line[k] = printable(line[k])
			}
			l.cells = append(l.cells, line)
		}
	}
	return rows.Err()
}

func (l *look) takeHeader(rows array.RecordReader) {
	for i, f := range rows.Schema().Fields() {
		l.header = append(l.header, printable(f.Name))
		if isNumber(f.Type) {
			l.right = append(l.right, i)
		}
	}
}

func writeLook(w io.Writer, l *look) error {
	if _, err := fmt.Fprintf(w, "%s  version %d, committed %s, %s\n\n", printable(l.Table), l.Version, l.Committed.Format(time.RFC3339), counted(l.Rows, "row")); err != nil {
		return err
	}
	lines := make([][]string, 0, len(l.Columns))
	for _, c := range l.Columns {
		note := ""
		switch {
		case c.Key && c.Nulls > 0:
			note = "NULL!"
		case c.Key:
			note = "key"
		}
		lines = append(lines, []string{printable(c.Name), c.Type, fmt.Sprint(c.Nulls), note})
	}
	if err := writeTable(w, []string{"COLUMN", "TYPE", "NULLS", "KEY"}, lines, 2); err != nil {
		return err
	}
	if len(l.cells) > 0 {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := writeTable(w, l.header, l.cells, l.right...); err != nil {
			return err
		}
	}
	for _, text := range l.Warnings {
		if _, err := fmt.Fprintf(w, "\n! %s", printable(text)); err != nil {
			return err
		}
	}
	if len(l.Warnings) > 0 {
		_, err := fmt.Fprintln(w)
		return err
	}
	return nil
}
