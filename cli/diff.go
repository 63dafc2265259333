package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/pipeline"
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/cloud"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "compare two tables, or two versions of one, row by row",
		UsageText: "weir diff A[@VERSION] B[@VERSION] [--key a,b] [--except c,d] [--limit N] [-f weir.yaml] [--output text|json]",
		Description: "For a pipeline that runs beside the one it replaces. Rows have no order; equal rows count as often as they are\n" +
			"there. With --key, rows of one key that differ are told as changes, column by column. Exit codes: 0 equal, 1 different.\n" +
			"\nExample:\n   weir diff /mnt/old/orders silver.orders --key id --except _loaded_at",
		Flags: projectFlags(
			&cli.StringSliceFlag{Name: "key", Usage: "the `COLUMNS` that identify a row (comma-separated; may be repeated)"},
			&cli.StringSliceFlag{Name: "except", Usage: "`COLUMNS` that are not compared (comma-separated; may be repeated)"},
			&cli.IntFlag{Name: "limit", Value: 20, Usage: "print the first `N` differences (0: all); they are counted all the same"},
			outputFlag("text", "json"),
		),
		Action: runDiff,
	}
}

func runDiff(c *cli.Context) error {
	args, err := arguments(c, "the first table", "the second table")
	if err != nil {
		return err
	}
	format, err := outputFormat(c, "text", "json")
	if err != nil {
		return err
	}
	if c.Int("limit") < 0 {
		return wrongUsage(fault.New("INVALID_ARGUMENT", "--limit %d is negative", c.Int("limit")))
	}
	diff := func(ctx context.Context, p *pipeline.Pipeline) error {
		d := &differ{keys: splitNames(c.StringSlice("key")), out: &diffWriter{w: c.App.Writer, json: format == "json", limit: c.Int("limit")}}
		defer d.close()
		for i, name := range args {
			if d.sides[i], err = d.open(ctx, p, name); err != nil {
				return err
			}
		}
		if err := d.align(splitNames(c.StringSlice("except"))); err != nil {
			return wrongUsage(err)
		}
		return d.run(ctx)
	}
	if slices.ContainsFunc(args, func(name string) bool { path, _, _ := atVersion(name); return !isTablePath(path) }) {
		return withPipeline(c, diff)
	}
	return diff(c.Context, nil)
}

// atVersion splits NAME@3 or NAME@v3; version is -1 when none stands there.
func atVersion(name string) (table string, version int64, err error) {
	i := strings.LastIndexByte(name, '@')
	if i < 0 || strings.ContainsRune(name[i:], filepath.Separator) {
		return name, -1, nil
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(name[i+1:], "v"), 10, 64)
	if err != nil || n < 0 {
		return name, -1, wrongUsage(fault.New("INVALID_ARGUMENT", "%q: behind the @ stands no version", name).WithHint("Write %s@3", name[:i]))
	}
	return name[:i], n, nil
}

// side is one of the two tables.
type side struct {
	name     string
	snapshot *delta.Snapshot
	rows     int64
	columns  []string // those compared, in the common order
}

// differ compares two tables.
type differ struct {
	keys   []string
	sides  [2]side
	names  []string // of the columns compared, keys first
	asText []bool   // those whose types have nothing in common but their texts
	out    *diffWriter
	closes []func() error
}

func (d *differ) close() {
	for _, f := range slices.Backward(d.closes) {
		_ = f() // what was read is read
	}
}

func (d *differ) open(ctx context.Context, p *pipeline.Pipeline, name string) (side, error) {
	table, version, err := atVersion(name)
	if err != nil {
		return side{}, err
	}
	var t *delta.Table
	switch {
	case cloud.IsURL(table):
		store, err := cloud.Open(ctx, table)
		if err != nil {
			return side{}, err
		}
		d.closes = append(d.closes, store.Close)
		t = delta.Open(store)
	case isTablePath(table):
		store, err := storage.OpenDir(table)
		if err != nil {
			return side{}, err
		}
		t = delta.Open(store)
	default:
		if t, err = p.Table(table); err != nil {
			return side{}, wrongUsage(err)
		}
	}
	s := side{name: name}
	if version >= 0 {
		s.snapshot, err = t.SnapshotAt(ctx, version)
	} else {
		s.snapshot, err = t.Snapshot(ctx)
	}
	if err != nil {
		return s, err
	}
	counts, err := s.snapshot.RowCounts(ctx)
	s.rows = counts.Live()
	return s, err
}

// align finds the columns that both tables have, and tells where the schemas differ.
func (d *differ) align(except []string) error {
	a, b := d.sides[0].snapshot.Schema(), d.sides[1].snapshot.Schema()
	var pairs [][2]arrow.Field
	for _, f := range a.Fields() {
		if containsFold(except, f.Name) {
			continue
		}
		g, both := fieldFold(b, f.Name)
		switch {
		case !both:
			d.out.schema("only in A", f.Name, coltype.String(f.Type), "")
		case arrow.TypeEqual(f.Type, g.Type):
			pairs = append(pairs, [2]arrow.Field{f, g})
		default:
			d.out.schema("other type", f.Name, coltype.String(f.Type), coltype.String(g.Type))
			if !arrow.IsNested(f.Type.ID()) && !arrow.IsNested(g.Type.ID()) {
				pairs = append(pairs, [2]arrow.Field{f, g})
			}
		}
	}
	for _, g := range b.Fields() {
		if _, both := fieldFold(a, g.Name); !both && !containsFold(except, g.Name) {
			d.out.schema("only in B", g.Name, "", coltype.String(g.Type))
		}
	}
	for _, k := range d.keys {
		if !slices.ContainsFunc(pairs, func(p [2]arrow.Field) bool { return strings.EqualFold(p[0].Name, k) }) {
			return fault.New("INVALID_ARGUMENT", "--key: %q is no column of both tables", k)
		}
	}
	if len(pairs) == 0 {
		return fault.New("INVALID_ARGUMENT", "the tables have no column in common that could be compared")
	}
	slices.SortStableFunc(pairs, func(x, y [2]arrow.Field) int { return d.keyRank(x[0].Name) - d.keyRank(y[0].Name) })
	for _, p := range pairs {
		d.names = append(d.names, p[0].Name)
		d.sides[0].columns = append(d.sides[0].columns, p[0].Name)
		d.sides[1].columns = append(d.sides[1].columns, p[1].Name)
		d.asText = append(d.asText, !alike(p[0].Type, p[1].Type))
	}
	return nil
}

// alike tells whether values of the two types can be equal; of others the texts
// are compared.
func alike(a, b arrow.DataType) bool {
	number := func(t arrow.DataType) bool {
		return arrow.IsInteger(t.ID()) || arrow.IsFloating(t.ID()) || arrow.IsDecimal(t.ID())
	}
	moment := func(t arrow.DataType) bool { return t.ID() == arrow.DATE32 || t.ID() == arrow.TIMESTAMP }
	return arrow.TypeEqual(a, b) || number(a) && number(b) || moment(a) && moment(b)
}

// keyRank puts the keys first, in the order they were given.
func (d *differ) keyRank(column string) int {
	if i := slices.IndexFunc(d.keys, func(k string) bool { return strings.EqualFold(k, column) }); i >= 0 {
		return i
	}
	return len(d.keys)
}

func containsFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

func fieldFold(s *arrow.Schema, name string) (arrow.Field, bool) {
	for _, f := range s.Fields() {
		if strings.EqualFold(f.Name, name) {
			return f, true
		}
	}
	return arrow.Field{}, false
}

// run lets DuckDB group the rows of both tables, which it can do on disk, and
// reads the groups that are not equally often on both sides, in order.
func (d *differ) run(ctx context.Context) error {
	spill, err := os.MkdirTemp("", "weir-diff-")
	if err != nil {
		return fault.Wrap(err, "CACHE_UNAVAILABLE", "there is no place for what does not fit into memory")
	}
	defer func() { _ = os.RemoveAll(spill) }()
	engine, err := sql.Open(ctx, sql.Options{TempDir: spill})
	if err != nil {
		return err
	}
	err = d.compare(ctx, engine)
	return errors.Join(err, engine.Close())
}

// differences is the query: the columns are called c0, c1, … so that no name of theirs means anything.
func (d *differ) differences() string {
	columns, values := make([]string, len(d.names)), make([]string, len(d.names))
	for i := range d.names {
		columns[i] = fmt.Sprintf("c%d", i)
		values[i] = columns[i]
		if d.asText[i] {
			values[i] = fmt.Sprintf("CAST(c%[1]d AS STRING) AS c%[1]d", i)
		}
	}
	return fmt.Sprintf("SELECT %[1]s, sum(in_a) AS in_a, sum(in_b) AS in_b "+
		"FROM (SELECT %[2]s, 1 AS in_a, 0 AS in_b FROM a UNION ALL SELECT %[2]s, 0 AS in_a, 1 AS in_b FROM b) AS both_sides "+
		"GROUP BY %[1]s HAVING sum(in_a) <> sum(in_b) ORDER BY %[1]s, in_a", strings.Join(columns, ", "), strings.Join(values, ", "))
}
