package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/pipeline"
)

func eventsCommand() *cli.Command {
	return &cli.Command{
		Name:  "events",
		Usage: "print the pipeline's event log",
		UsageText: "weir events [-f weir.yaml] [--update-id ID|last] [--type T,…] [--level L,…] [--dataset NAME] [--since TIME]\n" +
			"            [--limit N] [--follow] [--output text|json]",
		Description: "Oldest first. With --follow it goes on printing what is written until it is interrupted or the update that\n" +
			"--update-id names has ended.\n" +
			"\nExample:\n   weir events --update-id last --level WARN,ERROR",
		Flags: projectFlags(
			&cli.StringFlag{Name: "update-id", Usage: "only events of the update `ID`; last is the newest one"},
			&cli.StringSliceFlag{Name: "type", Usage: "only events of these `TYPES` (comma-separated; may be repeated), such as flow_progress"},
			&cli.StringSliceFlag{Name: "level", Usage: "only events of these `LEVELS` (comma-separated; may be repeated): INFO, WARN, ERROR, METRICS"},
			&cli.StringFlag{Name: "dataset", Usage: "only events about this dataset, by its `NAME` of one to three parts"},
			&cli.StringFlag{Name: "since", Usage: "only events since `T`, a time as 2026-11-30T13:45:00Z or a duration as 90m"},
			&cli.IntFlag{Name: "limit", Value: 1000, Usage: "the newest `N` events at most (0: all)"},
			&cli.BoolFlag{Name: "follow", Usage: "go on with what is written from now on"},
			outputFlag("text", "json"),
		),
		Action: func(c *cli.Context) error {
			if _, err := arguments(c); err != nil {
				return err
			}
			format, err := outputFormat(c, "text", "json")
			if err != nil {
				return err
			}
			filter, err := eventFilter(c)
			if err != nil {
				return err
			}
			return withPipeline(c, func(ctx context.Context, p *pipeline.Pipeline) error {
				if filter.Dataset != "" {
					if filter.Dataset, err = p.DatasetName(filter.Dataset); err != nil {
						return wrongUsage(err)
					}
				}
				write := writeEventText
				if format == "json" {
					write = func(w io.Writer, e *events.Event) error { return writeJSON(w, e) }
				}
				return printEvents(ctx, p, filter, c.Bool("follow"), func(e *events.Event) error { return write(c.App.Writer, e) })
			})
		},
	}
}

func eventFilter(c *cli.Context) (events.Filter, error) {
	f := events.Filter{UpdateID: c.String("update-id"), Dataset: c.String("dataset"), Limit: c.Int("limit"), Types: splitNames(c.StringSlice("type"))}
	for _, t := range f.Types {
		if !slices.Contains(events.Types, t) {
			return f, wrongUsage(fault.New("INVALID_ARGUMENT", "--type %q is no event type", t).WithHint("Use some of %s", strings.Join(events.Types, ", ")))
		}
	}
	for _, l := range splitNames(c.StringSlice("level")) {
		level := events.Level(strings.ToUpper(l))
		if !slices.Contains(events.Levels, level) {
			return f, wrongUsage(fault.New("INVALID_ARGUMENT", "--level %q is no level", l).WithHint("Use some of INFO, WARN, ERROR, METRICS"))
		}
		f.Levels = append(f.Levels, level)
	}
	if f.Limit < 0 {
		return f, wrongUsage(fault.New("INVALID_ARGUMENT", "--limit %d is negative", f.Limit))
	}
	if ago, err := time.ParseDuration(c.String("since")); err == nil {
		f.Since = time.Now().Add(-ago)
		return f, nil
	}
	var err error
	f.Since, err = timeFlag(c, "since")
	return f, err
}

// followEvery is how long --follow waits before it looks again.
const followEvery = 500 * time.Millisecond

// printEvents prints what there is and, when following, what comes.
func printEvents(ctx context.Context, p *pipeline.Pipeline, f events.Filter, follow bool, print func(*events.Event) error) error {
	for {
		found, err := p.Events(ctx, f)
		if err != nil {
			return err
		}
		ended := false
		for i := range found {
			e := &found[i]
			if err := print(e); err != nil {
				return err
			}
			f.After = e.Sequence.Control
			if f.UpdateID == pipeline.LastUpdate {
				f.UpdateID = e.Origin.UpdateID
			}
			d, ok := events.DetailsOf[events.StateDetails](e)
			ended = ended || ok && e.Type == events.UpdateProgress && f.UpdateID != "" && d.Ended()
		}
		if !follow || ended {
			return nil
		}
		f.Limit = 0
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
	}
}

func writeEventText(w io.Writer, e *events.Event) error {
	about := e.Origin.DatasetName
	if about == "" {
		about = "-"
	}
	message := e.Message
	if e.Error != nil && len(e.Error.Exceptions) > 0 && !strings.Contains(message, e.Error.Exceptions[0].Message) {
		message += ": " + e.Error.Exceptions[0].Message
	}
	_, err := fmt.Fprintf(w, "%s  %-7s  %-20s  %s  %s\n", e.Timestamp.Format("2006-01-02T15:04:05.000000Z"), e.Level, e.Type, printable(about), printable(message))
	return err
}
