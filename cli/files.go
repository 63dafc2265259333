package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/pipeline"
	"github.com/weir-data/weir/host/stream"
)

func filesCommand() *cli.Command {
	return &cli.Command{
		Name:      "files",
		Usage:     "list the files a flow knows, with state and times",
		UsageText: "weir files FLOW [-f weir.yaml] [--output text|json]",
		Description: "Tells what Lakeflow's cloud_files_state tells. A flow is named like its dataset unless it has a name of its own.\n" +
			"\nExample:\n   weir files bronze.shop_order --output json",
		Flags: projectFlags(outputFlag("text", "json")),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, "the name of a flow")
			if err != nil {
				return err
			}
			format, err := outputFormat(c, "text", "json")
			if err != nil {
				return err
			}
			return withPipeline(c, func(ctx context.Context, p *pipeline.Pipeline) error {
				states, err := p.Files(ctx, args[0])
				if err != nil {
					return wrongUsage(err)
				}
				if format == "json" {
					return writeFilesJSON(c.App.Writer, states)
				}
				return writeFilesText(c.App.Writer, states)
			})
		},
	}
}

func writeFilesJSON(w io.Writer, states iter.Seq2[stream.FileState, error]) error {
	out := bufio.NewWriter(w)
	for f, err := range states {
		if err != nil {
			return err
		}
		if err := writeJSON(out, f); err != nil {
			return err
		}
	}
	return out.Flush()
}

// writeFilesText prints a line as it comes: a flow may know millions of files.
func writeFilesText(w io.Writer, states iter.Seq2[stream.FileState, error]) error {
	out := bufio.NewWriter(w)
	n := 0
	for f, err := range states {
		if err != nil {
			return err
		}
		n++
		committed := "-"
		if !f.CommitTime.IsZero() {
			committed = f.CommitTime.UTC().Format(time.RFC3339)
		}
		if _, err := fmt.Fprintf(out, "%-17s batch %-6d %10d bytes  found %s  committed %-20s  %s\n", f.State, f.Batch, f.Size,
			f.DiscoveryTime.UTC().Format(time.RFC3339), committed, printable(f.Path)); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(out, "%d files\n", n); err != nil {
		return err
	}
	return out.Flush()
}
