package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

func deltaChangesCommand() *cli.Command {
	return &cli.Command{
		Name:      "changes",
		Usage:     "print what a table's change data feed holds",
		UsageText: "weir delta changes PATH|NAME [--from N] [--to N] [--from-timestamp T] [--to-timestamp T] [--list] [-f weir.yaml] [--output text|json]",
		Description: "Counts the changed rows of a range of versions, both ends included, by what happened to them; with --list prints them, one JSON object a line:\n" +
			"the table's columns, _change_type, _commit_version and _commit_timestamp. The feed (delta.enableChangeDataFeed) must have been on in every version of the range.\n" +
			"\nExample:\n   weir delta changes silver.orders --from 5 --list",
		Flags: projectFlags(
			&cli.Int64Flag{Name: "from", Usage: "begin with version `N`"},
			&cli.Int64Flag{Name: "to", Usage: "end with version `N` (default: the newest)"},
			&cli.StringFlag{Name: "from-timestamp", Usage: "begin with the first version at or after the time `T`"},
			&cli.StringFlag{Name: "to-timestamp", Usage: "end with the last version at or before the time `T`"},
			&cli.BoolFlag{Name: "list", Usage: "print the rows, not their number"},
			outputFlag("text", "json"),
		),
		Action: func(c *cli.Context) error {
			opt, err := changesOptions(c)
			if err != nil {
				return err
			}
			return withTable(c, func(ctx context.Context, t *delta.Table, format string) error {
				if c.Bool("list") {
					return printChanges(ctx, c.App.Writer, t, opt)
				}
				s, err := countChanges(ctx, t, opt)
				if err != nil {
					return err
				}
				if format == "json" {
					return writeJSON(c.App.Writer, s)
				}
				return s.write(c.App.Writer)
			})
		},
	}
}

func changesOptions(c *cli.Context) (opt delta.ChangesOptions, err error) {
	opt.From, opt.To = c.Int64("from"), -1
	for _, end := range []string{"from", "to"} {
		if c.IsSet(end) && c.IsSet(end+"-timestamp") {
			return opt, wrongUsage(fault.New("INVALID_ARGUMENT", "--%s and --%s-timestamp name two versions", end, end).WithHint("Give one of them"))
		}
		if c.Int64(end) < 0 {
			return opt, wrongUsage(fault.New("INVALID_ARGUMENT", "--%s %d is negative", end, c.Int64(end)))
		}
	}
	if c.IsSet("to") {
		opt.To = c.Int64("to")
	}
	if opt.FromTime, err = timeFlag(c, "from-timestamp"); err == nil {
		opt.ToTime, err = timeFlag(c, "to-timestamp")
	}
	return opt, err
}

func printChanges(ctx context.Context, w io.Writer, t *delta.Table, opt delta.ChangesOptions) error {
	r, err := t.Changes(ctx, opt)
	if err != nil {
		return err
	}
	defer r.Release()
	out := bufio.NewWriter(w)
	if err := writeRowsJSON(out, r); err != nil {
		return err
	}
	return out.Flush()
}

// changesSummary is what `weir delta changes` prints without --list.
type changesSummary struct {
	From         int64            `json:"from"`
	To           int64            `json:"to"`
	Rows         int64            `json:"rows"`
	ByChangeType map[string]int64 `json:"by_change_type"`
}

func countChanges(ctx context.Context, t *delta.Table, opt delta.ChangesOptions) (*changesSummary, error) {
	opt, err := t.ResolveChanges(ctx, opt)
	if err != nil {
		return nil, err
	}
	opt.Columns = []string{}
	r, err := t.Changes(ctx, opt)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	s := &changesSummary{From: opt.From, To: opt.To, ByChangeType: map[string]int64{}}
	for r.Next() {
		kinds := r.RecordBatch().Column(0).(*array.String)
		for i := range kinds.Len() {
			s.ByChangeType[kinds.Value(i)]++
		}
		s.Rows += int64(kinds.Len())
	}
	return s, r.Err()
}

func (s *changesSummary) write(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "versions %d to %d: %d changed rows\n", s.From, s.To, s.Rows); err != nil {
		return err
	}
	var rows [][]string
	for _, kind := range slices.Sorted(maps.Keys(s.ByChangeType)) {
		rows = append(rows, []string{printable(kind), strconv.FormatInt(s.ByChangeType[kind], 10)})
	}
	if rows == nil {
		return nil
	}
	return writeTable(w, []string{"CHANGE", "ROWS"}, rows, 1)
}
