package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

func deltaDeleteCommand() *cli.Command {
	return &cli.Command{
		Name:      "delete",
		Usage:     "delete the rows that meet a condition",
		UsageText: "weir delta delete PATH|NAME (--where CONDITION | --all) [-f weir.yaml] [--output text|json]",
		Description: "Rows go by deletion vectors where the table has them (delta.enableDeletionVectors), else their files are rewritten. Rows for which the condition is NULL stay.\n" +
			"\nExample:\n   weir delta delete silver.orders --where \"order_id = 17\"",
		Flags: projectFlags(append(whereFlags("delete"), outputFlag("text", "json"))...),
		Action: func(c *cli.Context) error {
			where, err := whereOf(c)
			if err != nil {
				return err
			}
			return withTable(c, func(ctx context.Context, t *delta.Table, format string) error {
				res, err := t.Delete(ctx, delta.DeleteOptions{Where: where, DMLOptions: delta.DMLOptions{EngineInfo: engineInfo}})
				return writeDML(c, format, "deleted", &res, err)
			})
		},
	}
}

// whereFlags name the rows that change. All of them must be asked for.
func whereFlags(verb string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "where", Usage: verb + " rows for which the `CONDITION` is true, in SQL"},
		&cli.BoolFlag{Name: "all", Usage: verb + " all rows"},
	}
}

func whereOf(c *cli.Context) (string, error) {
	where := c.String("where")
	if c.Bool("all") == (where != "") {
		return "", wrongUsage(fault.New("INVALID_ARGUMENT", "%s needs a condition", commandPath(c)).WithHint("Give one of --where and --all"))
	}
	return where, nil
}

// dmlLine is what `weir delta delete` and `weir delta update` print.
type dmlLine struct {
	Version     int64 `json:"version"`
	Committed   bool  `json:"committed"`
	RowsDeleted int64 `json:"rows_deleted"`
	RowsUpdated int64 `json:"rows_updated"`
	RowsCopied  int64 `json:"rows_copied"`
}

func writeDML(c *cli.Context, format, did string, res *delta.DMLResult, err error) error {
	warnOfCheckpoint(c.App.ErrWriter, res.CheckpointError)
	if err != nil {
		return err
	}
	if format == "json" {
		return writeJSON(c.App.Writer, dmlLine{res.Version, res.Committed, res.Deleted, res.Updated, res.Copied})
	}
	return writeDMLText(c.App.Writer, did, res)
}

func writeDMLText(w io.Writer, did string, res *delta.DMLResult) error {
	if !res.Committed {
		_, err := fmt.Fprintf(w, "nothing to do: no row of version %d meets the condition\n", res.Version)
		return err
	}
	_, err := fmt.Fprintf(w, "version %d: %s %s, wrote %d anew that shared a file with them\n", res.Version, did, counted(res.Deleted+res.Updated, "row"), res.Copied)
	return err
}
