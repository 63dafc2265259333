package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/pipeline"
)

func graphCommand() *cli.Command {
	return &cli.Command{
		Name:      "graph",
		Usage:     "print the datasets and what flows between them",
		UsageText: "weir graph [-f weir.yaml] [--conf KEY=VALUE] [--output text|json|mermaid]",
		Description: "Upstream comes before downstream. The mermaid form can be pasted into a Markdown page.\n" +
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
	}
	edgeLine struct {
		Kind string `json:"kind"` // edge
		pipeline.Edge
	}
)

func writeGraphJSON(w io.Writer, g *pipeline.Graph) error {
	for _, n := range g.Nodes {
		if err := writeJSON(w, nodeLine{"node", n.ID, n.Kind, n.Label, n.Comment, n.File, n.Line, n.Function}); err != nil {
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
		b.WriteByte('\n')
		for _, e := range g.Edges {
			if e.To == n.ID {
				fmt.Fprintf(&b, "  ← %s (%s)\n", printable(label[e.From]), e.Mode)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
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
	text := `"` + strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;").Replace(printable(n.Label)) + `"`
	switch n.Kind {
	case "files":
		return "[/" + text + "/]"
	case "temporary_view":
		return "(" + text + ")"
	default:
		return "[(" + text + ")]"
	}
}
