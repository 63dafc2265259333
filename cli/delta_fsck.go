package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

func deltaFsckCommand() *cli.Command {
	return &cli.Command{
		Name:      "fsck",
		Usage:     "compare a table with what its log says of it",
		UsageText: "weir delta fsck PATH|NAME [--version N] [--names-only | --decode] [--limit N] [-f weir.yaml] [--output text|json]",
		Description: "Every file that the log names must be there with its size and its rows, deletion vectors must be readable and fit, and checkpoints and checksums must tell what the commits tell.\n" +
			"Prints what is wrong, and fails if anything is. Nothing is changed.\n" +
			"\nExample:\n   weir delta fsck silver.orders",
		Flags: projectFlags(
			&cli.Int64Flag{Name: "version", Usage: "the table at version `N`"},
			&cli.BoolFlag{Name: "names-only", Usage: "compare names and sizes, and open no data file"},
			&cli.BoolFlag{Name: "decode", Usage: "read every value of every live file"},
			&cli.IntFlag{Name: "limit", Usage: "end after `N` problems", Value: 1000},
			outputFlag("text", "json"),
		),
		Action: func(c *cli.Context) error {
			opt := delta.CheckOptions{NamesOnly: c.Bool("names-only"), Decode: c.Bool("decode"), Limit: c.Int("limit")}
			if c.IsSet("version") {
				v := c.Int64("version")
				opt.Version = &v
			}
			if opt.NamesOnly && opt.Decode {
				return wrongUsage(fault.New("INVALID_ARGUMENT", "--names-only and --decode exclude each other"))
			}
			if opt.Limit < 1 {
				return wrongUsage(fault.New("INVALID_ARGUMENT", "--limit %d is less than one", opt.Limit))
			}
			return withTable(c, func(ctx context.Context, t *delta.Table, format string) error {
				r, err := t.Check(ctx, opt)
				if err != nil {
					return err
				}
				if format == "json" {
					err = writeJSON(c.App.Writer, r)
				} else {
					err = writeFsck(c.App.Writer, r)
				}
				if err == nil && !r.Clean() {
					err = fault.New("DELTA_TABLE_DAMAGED", "%s in version %d", counted(len(r.Problems), "problem"), r.Version)
				}
				return err
			})
		},
	}
}

func writeFsck(w io.Writer, r *delta.CheckReport) error {
	for _, p := range r.Problems {
		where := p.File
		if where == "" && p.Version != nil {
			where = fmt.Sprintf("version %d", *p.Version)
		}
		if _, err := fmt.Fprintln(w, printable(fmt.Sprintf("[%s] %s: %s", p.Code, where, p.Message))); err != nil {
			return err
		}
	}
	verdict := "clean"
	if !r.Clean() {
		verdict = counted(len(r.Problems), "problem")
		if r.Cut {
			verdict += " and more"
		}
	}
	_, err := fmt.Fprintf(w, "version %d: %s. %s (%d bytes) with %s, %d deleted by %s; %s, %s, %s\n",
		r.Version, verdict, counted(r.Files, "file"), r.Bytes, counted(r.Rows, "row"), r.DeletedRows, counted(r.DeletionVectors, "vector"),
		counted(r.ChangeFiles, "change file"), counted(r.Checkpoints, "checkpoint"), counted(r.Checksums, "checksum"))
	return err
}
