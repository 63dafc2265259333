package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/pipeline"
	"github.com/weir-data/weir/host/stream"
)

func runCommand() *cli.Command {
	return &cli.Command{
		Name:  "run",
		Usage: "run one update: process everything new, then stop",
		UsageText: "weir run [-f weir.yaml] [--conf KEY=VALUE] [--refresh a,b | --refresh-failed]\n" +
			"         [--full-refresh a,b | --full-refresh-all] [--yes] [--accept-loss] [--file F] [--wait]\n" +
			"         [--accept-snapshot [DATASET:]VERSION] [--memory-limit SIZE] [--output text|json]",
		Description: "Refreshes every dataset, or the ones named. A full refresh starts a dataset again from nothing: its rows are\n" +
			"replaced by what its source holds now. It asks first, unless --yes is given, and is refused when it would\n" +
			"lose rows for good, unless --accept-loss is given. An interrupt cancels the update: what is committed stays.\n" +
			"\nExample:\n   weir run --conf dwh.batch_id=2026-07-29 --refresh bronze.shop_order",
		Flags: projectFlags(
			&cli.StringSliceFlag{Name: "refresh", Usage: "refresh only these `DATASETS` (comma-separated; may be repeated)"},
			&cli.StringSliceFlag{Name: "full-refresh", Usage: "start these `DATASETS` again from nothing (comma-separated; may be repeated)"},
			&cli.BoolFlag{Name: "full-refresh-all", Usage: "start every dataset again from nothing"},
			&cli.BoolFlag{Name: "refresh-failed", Usage: "refresh what failed, was skipped or was canceled when it was last selected"},
			&cli.BoolFlag{Name: "accept-loss", Usage: "let a full refresh lose what its source no longer holds"},
			&cli.StringSliceFlag{Name: "accept-snapshot", Usage: "let the snapshot of this `[DATASET:]VERSION` pass although it has lost more rows than it may (may be repeated)"},
			&cli.StringFlag{Name: "file", Usage: "refresh the datasets that this SQL `FILE` or module defines"},
			&cli.BoolFlag{Name: "yes", Usage: "do not ask before a full refresh"},
			&cli.BoolFlag{Name: "wait", Usage: "wait for a running update of this pipeline instead of failing"},
			memoryFlag(),
			outputFlag("text", "json"),
		),
		Action: runUpdate,
	}
}

func runUpdate(c *cli.Context) error {
	if _, err := arguments(c); err != nil {
		return err
	}
	format, err := outputFormat(c, "text", "json")
	if err != nil {
		return err
	}
	opt := pipeline.RunOptions{
		Refresh:         splitNames(c.StringSlice("refresh")),
		FullRefresh:     splitNames(c.StringSlice("full-refresh")),
		FullRefreshAll:  c.Bool("full-refresh-all"),
		AcceptLoss:      c.Bool("accept-loss"),
		AcceptSnapshots: c.StringSlice("accept-snapshot"),
		RefreshFailed:   c.Bool("refresh-failed"),
		File:            c.String("file"),
		Wait:            c.Bool("wait"),
	}
	if opt.RefreshFailed && (opt.FullRefreshAll || len(opt.Refresh) > 0 || len(opt.FullRefresh) > 0 || opt.File != "") {
		return wrongUsage(fault.New("INVALID_ARGUMENT", "--refresh-failed is a selection of its own; it cannot be joined with --refresh, --full-refresh, --full-refresh-all or --file"))
	}
	if opt.FullRefreshAll && (len(opt.Refresh) > 0 || len(opt.FullRefresh) > 0 || opt.File != "") {
		return wrongUsage(fault.New("INVALID_ARGUMENT", "--full-refresh-all is everything; it cannot be joined with --refresh, --full-refresh or --file"))
	}
	if err := confirmFullRefresh(c, opt); err != nil {
		return err
	}
	return withOptions(c, pipeline.Options{File: opt.File}, func(ctx context.Context, p *pipeline.Pipeline) error {
		seen := newProgress(c.App.ErrWriter)
		opt.Observer = seen.observe
		if format == "json" {
			opt.Observer = firstLine(c.App.Writer, p.Spec().Name, seen.observe)
		}
		result, err := p.Run(ctx, opt)
		seen.done()
		if err != nil {
			return startFailure(err)
		}
		if format == "json" {
			err = writeResultJSON(c.App.Writer, result)
		} else {
			err = writeResultText(c.App.Writer, result)
		}
		if err != nil {
			return err
		}
		for _, w := range result.Warnings {
			fmt.Fprintln(c.App.ErrWriter, "warning: "+printable(w))
		}
		if result.State == pipeline.Completed {
			return nil
		}
		for _, f := range result.Flows {
			if f.Err != nil && f.State != pipeline.Canceled {
				printFailure(c.App.ErrWriter, f.Dataset, f.Err)
			}
		}
		if result.State == pipeline.Canceled {
			return canceled(ctx, result)
		}
		return toldFailure(fault.New("UPDATE_FAILED", "update %s ended %s", result.UpdateID, result.State))
	})
}

// startFailure gives an update that could not start its exit code: 2 when the
// project is wrong, 1 when the moment is (another update runs, the storage fails).
func startFailure(err error) error {
	if environmental[fault.CodeOf(err)] || fault.CodeOf(err) == "" {
		return err
	}
	return wrongUsage(err)
}

// environmental are the codes of starting that blame neither command line nor project.
var environmental = map[string]bool{
	"UPDATE_ALREADY_RUNNING": true, "FULL_REFRESH_LOSES_DATA": true, "INTERNAL_ERROR": true, "CANCELED": true,
	"STORAGE_IO_ERROR": true, "STORAGE_FULL": true, "STORAGE_PERMISSION_DENIED": true, "STORAGE_LOCKED": true, "CATALOG_UNAVAILABLE": true,
}

func splitNames(lists []string) []string {
	var names []string
	for _, list := range lists {
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// confirmFullRefresh asks a person; who cannot be asked has to say --yes.
func confirmFullRefresh(c *cli.Context, opt pipeline.RunOptions) error {
	if c.Bool("yes") || (!opt.FullRefreshAll && len(opt.FullRefresh) == 0) {
		return nil
	}
	if !isTerminal(c.App.Reader) {
		return wrongUsage(fault.New("FULL_REFRESH_NOT_CONFIRMED", "a full refresh replaces rows by what the sources hold now, and nobody can be asked").
			WithHint("Say --yes if that is meant"))
	}
	what := "every dataset"
	if !opt.FullRefreshAll {
		what = strings.Join(opt.FullRefresh, ", ")
	}
	fmt.Fprintf(c.App.ErrWriter, "A full refresh replaces all rows of %s by what the sources hold now. Continue? [y/N] ", what)
	answer, _ := bufio.NewReader(c.App.Reader).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return wrongUsage(fault.New("CANCELED", "nothing was done"))
}

// firstLine writes the update's id as soon as it is known, so that others can
// follow it in the event log.
func firstLine(w io.Writer, name string, observe func(pipeline.Progress)) func(pipeline.Progress) {
	told := false
	return func(p pipeline.Progress) {
		if !told {
			told = true
			_ = writeJSON(w, createdLine{"create_update", name, p.UpdateID}) // the next line fails as well, and is told
		}
		observe(p)
	}
}

// The lines of `weir run --output json`: one with the update's id, one a flow,
// then one for the update.
type (
	createdLine struct {
		Kind     string `json:"kind"` // create_update
		Pipeline string `json:"pipeline"`
		UpdateID string `json:"update_id"`
	}
	flowResultLine struct {
		Kind     string `json:"kind"` // flow
		UpdateID string `json:"update_id"`
		pipeline.FlowResult
	}
	updateLine struct {
		Kind       string         `json:"kind"` // update
		Pipeline   string         `json:"pipeline"`
		PipelineID string         `json:"pipeline_id"`
		UpdateID   string         `json:"update_id"`
		State      pipeline.State `json:"state"`
		Started    time.Time      `json:"started"`
		Ended      time.Time      `json:"ended"`
		Retries    int            `json:"retries,omitempty"`
		Warnings   []string       `json:"warnings,omitempty"`
	}
)

func writeResultJSON(w io.Writer, r *pipeline.Result) error {
	for _, f := range r.Flows {
		if err := writeJSON(w, flowResultLine{"flow", r.UpdateID, f}); err != nil {
			return err
		}
	}
	return writeJSON(w, updateLine{"update", r.Pipeline, r.PipelineID, r.UpdateID, r.State, r.Started, r.Ended, r.Retries, r.Warnings})
}

func writeResultText(w io.Writer, r *pipeline.Result) error {
	header := []string{"DATASET", "STATE", "BATCHES", "FILES", "READ", "WRITTEN", "DROPPED", "QUARANTINED", "RESCUED"}
	merges := slices.ContainsFunc(r.Flows, func(f pipeline.FlowResult) bool { return f.Changes != nil })
	if merges {
		header = append(header, "UPSERTED", "DELETED")
	}
	rows := make([][]string, 0, len(r.Flows))
	for _, f := range r.Flows {
		name := f.Dataset
		if f.Flow != "" && f.Flow != f.Dataset && !strings.HasSuffix(f.Dataset, "."+f.Flow) {
			name += " (" + f.Flow + ")"
		}
		n := func(v int64) string { return strconv.FormatInt(v, 10) }
		row := []string{name, string(f.State), n(f.Batches), n(f.Files), n(f.RowsRead), n(f.RowsWritten), n(f.Dropped), n(f.Quarantined), n(f.Rescued)}
		switch {
		case f.Changes != nil:
			row[5] = "-" // rows of the table come and go
			row = append(row, n(f.Changes.Upserted), n(f.Changes.Deleted))
		case merges:
			row = append(row, "-", "-")
		}
		rows = append(rows, row)
	}
	if err := writeTable(w, header, rows, 2, 3, 4, 5, 6, 7, 8, 9, 10); err != nil {
		return err
	}
	var b strings.Builder
	for _, f := range r.Flows {
		for _, e := range f.Expectations {
			if e.Failed > 0 {
				fmt.Fprintf(&b, "%s: expectation %s failed for %d of %d rows (%s)\n", e.Dataset, e.Name, e.Failed, e.Failed+e.Passed, e.Action)
			}
		}
	}
	for _, f := range r.Flows {
		if c := f.Changes; c != nil && *c != (stream.Counts{}) {
			fmt.Fprintf(&b, "%s: rows %d inserted, %d updated (%d closed), %d removed; %d unchanged\n", f.Dataset, c.Inserted, c.Updated, c.Closed, c.Removed, c.Unchanged)
		}
	}
	fmt.Fprintf(&b, "update %s %s in %s\n", r.UpdateID, r.State, r.Ended.Sub(r.Started).Round(time.Millisecond))
	_, err := io.WriteString(w, b.String())
	return err
}
