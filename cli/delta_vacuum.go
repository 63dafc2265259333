package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

func deltaVacuumCommand() *cli.Command {
	return &cli.Command{
		Name:      "vacuum",
		Usage:     "delete files that no version within the retention needs",
		UsageText: "weir delta vacuum PATH|NAME [--dry-run] [--retention D] [--allow-short-retention] [-f weir.yaml] [--output text|json]",
		Description: "Data files, deletion vectors and change files that no version needs which was current within the retention (delta.deletedFileRetentionDuration, a week unless set) are deleted,\n" +
			"if they are as old as that. Older versions cannot be read any more after it. A shorter retention than the table's is refused unless it is allowed:\n" +
			"it takes files from those who read or write the table at the time.\n" +
			"\nExample:\n   weir delta vacuum silver.orders --dry-run",
		Flags: projectFlags(
			&cli.BoolFlag{Name: "dry-run", Usage: "print what would be deleted, and delete nothing"},
			&cli.DurationFlag{Name: "retention", Usage: "keep what was needed within `D`, such as 168h (default: the table's)"},
			&cli.BoolFlag{Name: "allow-short-retention", Usage: "take --retention as it is, 0 too"},
			outputFlag("text", "json"),
		),
		Action: func(c *cli.Context) error {
			opt := delta.VacuumOptions{Retention: c.Duration("retention"), AllowShort: c.Bool("allow-short-retention"), DryRun: c.Bool("dry-run")}
			if opt.AllowShort && !c.IsSet("retention") {
				return wrongUsage(fault.New("INVALID_ARGUMENT", "--allow-short-retention without a --retention").WithHint("Say how long files are kept"))
			}
			return withTable(c, func(ctx context.Context, t *delta.Table, format string) error {
				out := bufio.NewWriter(c.App.Writer)
				if opt.DryRun {
					opt.Each = func(f storage.Info) error {
						if format == "json" {
							return writeJSON(out, vacuumFile{f.Name, f.Size, f.ModTime.UTC()})
						}
						_, err := fmt.Fprintln(out, printable(f.Name))
						return err
					}
				}
				res, err := t.Vacuum(ctx, opt)
				if err == nil && format == "json" {
					err = writeJSON(out, vacuumLine{res.Version, opt.DryRun, res.Cutoff.UTC(), res.Listed, res.Files, res.Bytes})
				} else if err == nil {
					did := "deleted"
					if opt.DryRun {
						did = "would delete"
					}
					_, err = fmt.Fprintf(out, "%s %d of %s (%d bytes); versions current since %s stay readable\n",
						did, res.Files, counted(res.Listed, "file"), res.Bytes, res.Cutoff.UTC().Format(time.RFC3339))
				}
				return errors.Join(err, out.Flush())
			})
		},
	}
}

// vacuumFile is a file that would be deleted, vacuumLine the last line.
type (
	vacuumFile struct {
		Path     string    `json:"path"`
		Bytes    int64     `json:"bytes"`
		Modified time.Time `json:"modified"`
	}
	vacuumLine struct {
		Version int64     `json:"version"`
		DryRun  bool      `json:"dry_run"`
		Cutoff  time.Time `json:"cutoff"`
		Listed  int64     `json:"files_listed"`
		Files   int64     `json:"files"`
		Bytes   int64     `json:"bytes"`
	}
)
