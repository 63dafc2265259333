package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/pipeline"
)

func graphCommand() *cli.Command {
	return &cli.Command{
		Name:      "graph",
		Usage:     "print the datasets and what flows between them",
		UsageText: "weir graph [-f weir.yaml] [--conf KEY=VALUE] [--output text|json|mermaid]",
		Description: "Upstream comes before downstream. Of tables it tells rows and the time of the last commit, of flows what became\n" +
			"of them in the last update that ran them. The mermaid form can be pasted into a Markdown page.\n" +
			"\nExample:\n   weir graph --output mermaid",
		Flags: projectFlags(outputFlag("text", "json", "mermaid")),
		Action: func(c *cli.Context) error {
			if _, err := arguments(c); err != nil {
				return err
			}
			format, err := outputFormat(c, "text", "json", "mermaid")
			if err != nil {
				return err
			}
			write := map[string]func(io.Writer, *pipeline.Graph) error{
				"text": writeGraphText, "json": writeGraphJSON, "mermaid": writeGraphMermaid,
			}[format]
			return withPipeline(c, func(ctx context.Context, p *pipeline.Pipeline) error {
				g, err := p.Graph(ctx)
				if err != nil {
					return wrongUsage(err)
				}
				return write(c.App.Writer, g)
			})
		},
	}
}

// The lines of `weir graph --output json`.
type (
	nodeLine struct {
		Kind     string `json:"kind"` // node
		ID       string `json:"id"`
		Type     string `json:"type"`
		Label    string `json:"label"`
		Comment  string `json:"comment,omitempty"`
		File     string `json:"file,omitempty"`
		Line     int    `json:"line,omitempty"`
		Function string `json:"function,omitempty"`

		Table *pipeline.TableState `json:"table,omitempty"`
		Flows []pipeline.FlowState `json:"flows,omitempty"`
	}
	edgeLine struct {
		Kind string `json:"kind"` // edge
		pipeline.Edge
	}
)

func writeGraphJSON(w io.Writer, g *pipeline.Graph) error {
	for _, n := range g.Nodes {
		if err := writeJSON(w, nodeLine{"node", n.ID, n.Kind, n.Label, n.Comment, n.File, n.Line, n.Function, n.Table, n.Flows}); err != nil {
			return err
		}
	}
	for _, e := range g.Edges {
		if err := writeJSON(w, edgeLine{"edge", e}); err != nil {
			return err
		}
	}
	return nil
}

func writeGraphText(w io.Writer, g *pipeline.Graph) error {
	label := map[string]string{}
	for _, n := range g.Nodes {
		label[n.ID] = n.Label
	}
	var b strings.Builder
	for _, n := range g.Nodes {
		fmt.Fprintf(&b, "%s  [%s]", printable(n.Label), strings.ReplaceAll(n.Kind, "_", " "))
		if n.Function != "" {
			fmt.Fprintf(&b, "  by %s", n.Function)
		}
		if n.Table != nil {
			fmt.Fprintf(&b, "  %s, committed %s", counted(n.Table.Rows, "row"), n.Table.Committed.Format(time.RFC3339))
		}
		b.WriteByte('\n')
		for _, e := range g.Edges {
			if e.To == n.ID {
				fmt.Fprintf(&b, "  ← %s (%s)\n", printable(label[e.From]), e.Mode)
			}
		}
		for _, f := range n.Flows {
			if f.State != "" {
				fmt.Fprintf(&b, "  %s\n", printable(became(&n, &f)))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// became says what became of a flow: COMPLETED, 3 written, 1 dropped.
func became(n *pipeline.Node, f *pipeline.FlowState) string {
	line := f.State
	if len(n.Flows) > 1 {
		line = f.Name + ": " + line
	}
	switch {
	case f.State != "COMPLETED":
	case f.Upserted != nil && f.Deleted != nil:
		line += fmt.Sprintf(", %d upserted, %d deleted", *f.Upserted, *f.Deleted)
	default:
		line += fmt.Sprintf(", %d written", f.Written)
	}
	if f.Dropped > 0 {
		line += fmt.Sprintf(", %d dropped", f.Dropped)
	}
	if f.Quarantined > 0 {
		line += fmt.Sprintf(", %d quarantined", f.Quarantined)
	}
	for _, rule := range slices.Sorted(maps.Keys(f.Failed)) {
		line += fmt.Sprintf(", %s failed for %d", rule, f.Failed[rule])
	}
	if f.Error != "" {
		line += ": " + f.Error
	}
	return line
}

func writeGraphMermaid(w io.Writer, g *pipeline.Graph) error {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	id := map[string]string{}
	for i, n := range g.Nodes {
		id[n.ID] = fmt.Sprintf("n%d", i)
		fmt.Fprintf(&b, "  n%d%s\n", i, mermaidBox(n))
	}
	for _, e := range g.Edges {
		arrow := "-->"
		if e.Mode == "batch" {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  %s %s %s\n", id[e.From], arrow, id[e.To])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mermaidBox gives tables a cylinder, files a slanted box and views a rounded one.
func mermaidBox(n pipeline.Node) string {
	safe := strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;")
	text := safe.Replace(printable(n.Label))
	if n.Table != nil {
		text += "<br/>" + counted(n.Table.Rows, "row")
	}
	for _, f := range n.Flows {
		if f.State == "" {
			continue
		}
		text += "<br/>" + f.State
		if len(n.Flows) > 1 {
			text += " " + safe.Replace(printable(f.Name))
		}
		if f.Dropped > 0 {
			text += fmt.Sprintf(", %d dropped", f.Dropped)
		}
	}
	text = `"` + text + `"`
	switch n.Kind {
	case "files":
		return "[/" + text + "/]"
	case "temporary_view", "view":
		return "(" + text + ")"
	case "sink":
		return "[" + text + "]"
	default:
		return "[(" + text + ")]"
	}
}
