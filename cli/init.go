package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/cli/scaffold"
	"github.com/weir-data/weir/host/fault"
)

func initCommand() *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "write a new project that runs as it is",
		UsageText: "weir init [DIR] [--template demo|empty] [--output text|json]",
		Description: "The demo has landing files, three plugins in Go and a script that shows them at work; empty has a small\n" +
			"pipeline from bronze to gold, one plugin and one test. The Go SDK is written beside them, so that plugins build without a registry.\n" +
			"\nExample:\n   weir init shop --template demo",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "template", Usage: "what to write: " + strings.Join(scaffold.Templates(), ", "), Value: "demo"},
			outputFlag("text", "json"),
		},
		Action: func(c *cli.Context) error {
			dir := "."
			switch c.Args().Len() {
			case 0:
			case 1:
				dir = c.Args().First()
			default:
				return wrongUsage(fault.New("UNEXPECTED_ARGUMENT", "weir init does not take %q", c.Args().Get(1)))
			}
			format, err := outputFormat(c, "text", "json")
			if err != nil {
				return err
			}
			abs, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			template := c.String("template")
			written, err := scaffold.Write(dir, template, projectName(filepath.Base(abs)))
			if err != nil {
				return wrongUsage(err)
			}
			if format == "json" {
				return writeJSON(c.App.Writer, initLine{Dir: abs, Template: template, Files: len(written)})
			}
			next := "weir plugin build plugins/first && weir run"
			if template == "demo" {
				next = "./demo.sh"
			}
			if dir != "." {
				next = "cd " + dir + " && " + next
			}
			_, err = fmt.Fprintf(c.App.Writer, "wrote %d files to %s\nnext: %s\n", len(written), dir, next)
			return err
		},
	}
}

type initLine struct {
	Dir      string `json:"dir"`
	Template string `json:"template"`
	Files    int    `json:"files"`
}

// projectName makes a folder's name a pipeline's: lower-case letters, digits and _.
func projectName(base string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '_':
			return r
		}
		return '_'
	}, base)
	name = strings.Trim(name, "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "weir_" + name
	}
	return strings.TrimSuffix(name, "_")
}
