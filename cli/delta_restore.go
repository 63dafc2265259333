package cli

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

func deltaRestoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "restore",
		Usage:     "make a table what it was at an older version",
		UsageText: "weir delta restore PATH|NAME (--version N | --timestamp T) [-f weir.yaml] [--output text|json]",
		Description: "Commits a version with the rows, schema and properties of the older one; history and transactions are kept, and the restore can be undone by another.\n" +
			"A version whose files were vacuumed is refused.\n" +
			"\nExample:\n   weir delta restore silver.orders --version 12",
		Flags: projectFlags(append(travelFlags(), outputFlag("text", "json"))...),
		Action: func(c *cli.Context) error {
			at, err := timeFlag(c, "timestamp")
			if err != nil {
				return err
			}
			if c.IsSet("version") == c.IsSet("timestamp") {
				return wrongUsage(fault.New("INVALID_ARGUMENT", "a restore needs a version or a time").WithHint("Give one of --version and --timestamp"))
			}
			return withTable(c, func(ctx context.Context, t *delta.Table, format string) error {
				res, err := t.Restore(ctx, delta.RestoreOptions{Version: c.Int64("version"), Time: at, EngineInfo: engineInfo})
				warnOfCheckpoint(c.App.ErrWriter, res.CheckpointError)
				if err != nil {
					return err
				}
				if format == "json" {
					return writeJSON(c.App.Writer, restoreLine{res.Version, res.Restored, !res.Unchanged, res.AddedFiles, res.RestoredBytes, res.RemovedFiles, res.RemovedBytes})
				}
				if res.Unchanged {
					_, err = fmt.Fprintf(c.App.Writer, "nothing to do: version %d is as version %d was\n", res.Version, res.Restored)
				} else {
					_, err = fmt.Fprintf(c.App.Writer, "version %d is as version %d was: %s (%d bytes) came back, %d (%d bytes) went\n",
						res.Version, res.Restored, counted(res.AddedFiles, "file"), res.RestoredBytes, res.RemovedFiles, res.RemovedBytes)
				}
				return err
			})
		},
	}
}

// restoreLine is what `weir delta restore` prints.
type restoreLine struct {
	Version       int64 `json:"version"`
	Restored      int64 `json:"restored_version"`
	Committed     bool  `json:"committed"`
	FilesRestored int64 `json:"files_restored"`
	BytesRestored int64 `json:"bytes_restored"`
	FilesRemoved  int64 `json:"files_removed"`
	BytesRemoved  int64 `json:"bytes_removed"`
}
