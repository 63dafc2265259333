package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

func deltaOptimizeCommand() *cli.Command {
	return &cli.Command{
		Name:      "optimize",
		Usage:     "rewrite small files as larger ones, and rows in their clustering order",
		UsageText: "weir delta optimize PATH|NAME [--where CONDITION] [--full] [--target-size BYTES] [--purge-ratio R] [-f weir.yaml] [--output text|json]",
		Description: "Files below three quarters of the target are packed into files of equal size near it (delta.targetFileSize, 128 MiB unless set), partition by partition.\n" +
			"Files of which a share of the rows is deleted are rewritten without them, and those of a clustered table in the order of its clustering columns.\n" +
			"Rows only move: no version reads other rows than before. A second run finds nothing to do.\n" +
			"\nExample:\n   weir delta optimize silver.orders",
		Flags: projectFlags(
			&cli.StringFlag{Name: "where", Usage: "only partitions for which the `CONDITION` on partition columns holds"},
			&cli.BoolFlag{Name: "full", Usage: "cluster files anew that are clustered already"},
			&cli.Int64Flag{Name: "target-size", Usage: "make files of about `BYTES` (0: the table's)"},
			&cli.Float64Flag{Name: "purge-ratio", Usage: "rewrite files from a share `R` of deleted rows on; a negative one rewrites none for that", Value: 0.05},
			outputFlag("text", "json"),
		),
		Action: func(c *cli.Context) error {
			opt := delta.OptimizeOptions{
				Partitions: c.String("where"), Full: c.Bool("full"), TargetSize: c.Int64("target-size"), PurgeRatio: c.Float64("purge-ratio"), EngineInfo: engineInfo,
			}
			if opt.TargetSize < 0 {
				return wrongUsage(fault.New("INVALID_ARGUMENT", "--target-size %d is negative", opt.TargetSize))
			}
			if opt.PurgeRatio > 1 {
				return wrongUsage(fault.New("INVALID_ARGUMENT", "--purge-ratio %g is more than all rows", opt.PurgeRatio).WithHint("Give a share from 0 to 1"))
			}
			if opt.PurgeRatio == 0 {
				opt.PurgeRatio = leastRatio
			}
			return withTable(c, func(ctx context.Context, t *delta.Table, format string) error {
				res, err := t.Optimize(ctx, opt)
				warnOfCheckpoint(c.App.ErrWriter, res.CheckpointError)
				if err != nil {
					return err
				}
				o := optimizeLine{
					Version: res.Version, Commits: res.Commits, Partitions: res.Partitions, Rows: res.Rows,
					FilesRemoved: res.RemovedFiles, BytesRemoved: res.RemovedBytes, FilesAdded: res.AddedFiles, BytesAdded: res.AddedBytes,
					VectorsPurged: res.PurgedVectors, RowsPurged: res.DeletedRows, FilesConflicted: res.Conflicts,
				}
				if format == "json" {
					return writeJSON(c.App.Writer, o)
				}
				return o.write(c.App.Writer)
			})
		},
	}
}

// engineInfo is how our commits name who made them; leastRatio is a share that any deleted row has.
const (
	engineInfo = "weir"
	leastRatio = 1e-18
)

// optimizeLine is what `weir delta optimize` prints.
type optimizeLine struct {
	Version         int64 `json:"version"`
	Commits         int   `json:"commits"`
	Partitions      int64 `json:"partitions"`
	FilesRemoved    int64 `json:"files_removed"`
	BytesRemoved    int64 `json:"bytes_removed"`
	FilesAdded      int64 `json:"files_added"`
	BytesAdded      int64 `json:"bytes_added"`
	Rows            int64 `json:"rows"`
	VectorsPurged   int64 `json:"vectors_purged"`
	RowsPurged      int64 `json:"rows_purged"`
	FilesConflicted int64 `json:"files_conflicted"`
}

func (o *optimizeLine) write(w io.Writer) error {
	if o.Commits == 0 {
		_, err := fmt.Fprintf(w, "nothing to do: version %d is well packed\n", o.Version)
		return err
	}
	_, err := fmt.Fprintf(w, "version %d: %s (%d bytes) became %d (%d bytes), %s in %s, by %s\n",
		o.Version, counted(o.FilesRemoved, "file"), o.BytesRemoved, o.FilesAdded, o.BytesAdded, counted(o.Rows, "row"), counted(o.Partitions, "partition"), counted(o.Commits, "commit"))
	if err == nil && o.VectorsPurged > 0 {
		_, err = fmt.Fprintf(w, "purged %s of %s\n", counted(o.RowsPurged, "deleted row"), counted(o.VectorsPurged, "deletion vector"))
	}
	if err == nil && o.FilesConflicted > 0 {
		_, err = fmt.Fprintf(w, "rewrote %s in vain, since others changed them meanwhile\n", counted(o.FilesConflicted, "file"))
	}
	return err
}

// warnOfCheckpoint tells that commits stand though a checkpoint could not be written.
func warnOfCheckpoint(w io.Writer, err error) {
	if err != nil {
		fmt.Fprintln(w, "warning: "+printable("the commit stands, but not the checkpoint that was due: "+err.Error()))
	}
}
