package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/pipeline"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/cloud"
)

func deltaCommand() *cli.Command {
	return &cli.Command{
		Name:        "delta",
		Usage:       "look into a Delta table, change it, and take care of it",
		UsageText:   "weir delta describe | history | changes | delete | update | alter | optimize | vacuum | restore | fsck PATH|NAME",
		Description: "A table is named by the folder that holds its _delta_log, or as a dataset of the project.\n\nExample:\n   weir delta describe lake/dwh_dev/bronze/shop_order",
		Subcommands: []*cli.Command{
			deltaDescribeCommand(), deltaHistoryCommand(), deltaChangesCommand(),
			deltaDeleteCommand(), deltaUpdateCommand(), deltaAlterCommand(), deltaOptimizeCommand(), deltaVacuumCommand(), deltaRestoreCommand(), deltaFsckCommand(),
		},
	}
}

func deltaDescribeCommand() *cli.Command {
	return &cli.Command{
		Name:      "describe",
		Usage:     "print version, protocol, size, schema and properties",
		UsageText: "weir delta describe PATH|NAME [--version N | --timestamp T] [-f weir.yaml] [--output text|json]",
		Description: "Features of the protocol that this version cannot read are named in the error.\n" +
			"\nExample:\n   weir delta describe bronze.shop_order --output json",
		Flags: projectFlags(append(travelFlags(), outputFlag("text", "json"))...),
		Action: func(c *cli.Context) error {
			return withTable(c, func(ctx context.Context, t *delta.Table, format string) error {
				s, err := snapshotOf(ctx, c, t)
				if err != nil {
					return err
				}
				d, err := s.Describe(ctx)
				if err != nil {
					return err
				}
				if format == "json" {
					return writeJSON(c.App.Writer, d)
				}
				return writeDescription(c.App.Writer, d)
			})
		},
	}
}

func deltaHistoryCommand() *cli.Command {
	return &cli.Command{
		Name:      "history",
		Usage:     "print the versions of a table, newest first",
		UsageText: "weir delta history PATH|NAME [--limit N] [-f weir.yaml] [--output text|json]",
		Description: "Versions whose log was cleaned up are not listed.\n" +
			"\nExample:\n   weir delta history silver.orders --limit 10",
		Flags: projectFlags(
			&cli.IntFlag{Name: "limit", Usage: "print at most `N` versions (0: all)"},
			outputFlag("text", "json"),
		),
		Action: func(c *cli.Context) error {
			limit := c.Int("limit")
			if limit < 0 {
				return wrongUsage(fault.New("INVALID_ARGUMENT", "--limit %d is negative", limit))
			}
			return withTable(c, func(ctx context.Context, t *delta.Table, format string) error {
				entries, err := t.History(ctx, limit)
				if err != nil {
					return err
				}
				if format == "json" {
					for _, e := range entries {
						if err := writeJSON(c.App.Writer, e); err != nil {
							return err
						}
					}
					return nil
				}
				return writeHistory(c.App.Writer, entries)
			})
		},
	}
}

// withTable opens the table that the one argument names: a folder with a
// Delta log, else a dataset of the project.
func withTable(c *cli.Context, use func(context.Context, *delta.Table, string) error) error {
	args, err := arguments(c, "the folder or name of a table")
	if err != nil {
		return err
	}
	format, err := outputFormat(c, "text", "json")
	if err != nil {
		return err
	}
	name := args[0]
	if cloud.IsURL(name) {
		return withBucket(c.Context, name, format, use)
	}
	if info, err := os.Stat(filepath.Join(name, "_delta_log")); err == nil && info.IsDir() {
		store, err := storage.OpenDir(name)
		if err != nil {
			return err
		}
		engine := &tableEngine{}
		return errors.Join(use(c.Context, delta.Open(store, engine.option()), format), engine.close())
	}
	if strings.ContainsRune(name, filepath.Separator) {
		return wrongUsage(fault.New("DELTA_TABLE_NOT_FOUND", "there is no Delta table in %s", name).
			WithHint("Name the folder that holds _delta_log, or a dataset of the project"))
	}
	return withPipeline(c, func(ctx context.Context, p *pipeline.Pipeline) error {
		t, err := p.Table(name)
		if err != nil {
			return wrongUsage(err)
		}
		return use(ctx, t, format)
	})
}

// isTablePath tells whether a table is named by where it lies, and not as a dataset.
func isTablePath(name string) bool {
	if cloud.IsURL(name) || strings.ContainsRune(name, filepath.Separator) {
		return true
	}
	info, err := os.Stat(filepath.Join(name, "_delta_log"))
	return err == nil && info.IsDir()
}

// withBucket opens the table in a folder of an object store.
func withBucket(ctx context.Context, url, format string, use func(context.Context, *delta.Table, string) error) error {
	store, err := cloud.Open(ctx, url)
	if fault.CodeOf(err) == "INVALID_STORE_URL" {
		return wrongUsage(err)
	}
	if err != nil {
		return err
	}
	engine := &tableEngine{}
	return errors.Join(use(ctx, delta.Open(store, engine.option()), format), engine.close(), store.Close())
}

func writeDescription(w io.Writer, d *delta.Description) error {
	var b strings.Builder
	pair := func(k, v string) { fmt.Fprintf(&b, "%-12s %s\n", k, printable(v)) }
	pair("version", fmt.Sprintf("%d (%s)", d.Version, d.Timestamp.UTC().Format(time.RFC3339)))
	pair("id", d.ID)
	if d.Description != "" {
		pair("comment", d.Description)
	}
	pair("protocol", fmt.Sprintf("reader %d, writer %d", d.MinReader, d.MinWriter))
	if len(d.Features) > 0 {
		pair("features", strings.Join(d.Features, ", "))
	}
	pair("files", fmt.Sprintf("%d (%d bytes)", d.Files, d.SizeBytes))
	if d.LiveRows != nil {
		pair("live rows", strconv.FormatInt(*d.LiveRows, 10))
	} else {
		pair("live rows", "unknown: "+d.RowsUnknown)
	}
	if d.DVRows > 0 {
		pair("deleted rows", fmt.Sprintf("%d, by deletion vectors", d.DVRows))
	}
	if len(d.PartitionColumns) > 0 {
		pair("partitioned", strings.Join(d.PartitionColumns, ", "))
	}
	for _, k := range slices.Sorted(maps.Keys(d.DomainMetadata)) {
		pair("domain", k+" = "+d.DomainMetadata[k])
	}
	for _, k := range slices.Sorted(maps.Keys(d.Properties)) {
		pair("property", k+" = "+d.Properties[k])
	}
	for _, col := range d.Schema {
		null := ""
		if !col.Nullable {
			null = " NOT NULL"
		}
		fmt.Fprintf(&b, "  %-28s %s%s\n", printable(col.Name), col.Type, null)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeHistory(w io.Writer, entries []delta.HistoryEntry) error {
	rows := make([][]string, 0, len(entries))
	for _, e := range entries {
		var txns []string
		for _, t := range e.Txns {
			txns = append(txns, fmt.Sprintf("%s=%d", t.AppID, t.Version))
		}
		rows = append(rows, []string{
			strconv.FormatInt(e.Version, 10), e.Timestamp.UTC().Format(time.RFC3339), printable(e.Operation),
			strconv.Itoa(e.AddedFiles), strconv.Itoa(e.RemovedFiles), printable(strings.Join(txns, " ")),
		})
	}
	return writeTable(w, []string{"VERSION", "TIMESTAMP", "OPERATION", "ADDED", "REMOVED", "TRANSACTION"}, rows, 0, 3, 4)
}
