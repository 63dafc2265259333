package cli

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/cli/projecttest"
	"github.com/weir-data/weir/host/fault"
)

func testCommand() *cli.Command {
	return &cli.Command{
		Name:      "test",
		Usage:     "run the project's test scripts, each on a lake of its own",
		UsageText: "weir test [FILE…] [-f weir.yaml] [-v] [--update] [--output text|json]",
		Description: "A script is a txtar file of testscript; without arguments all tests/*.txtar of the project run. It starts in a new folder\n" +
			"that holds the spec, its SQL files and its modules, and whatever files stand in the script: landing files, expected rows.\n" +
			"`weir` in a script is this program. --update writes what `cmp` found different into the script.\n" +
			"\nExample:\n   weir test tests/events.txtar",
		Flags: projectFlags(
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show what each script did, not only the failed ones"},
			&cli.BoolFlag{Name: "update", Usage: "write what came out into the scripts"},
			outputFlag("text", "json"),
		),
		Action: func(c *cli.Context) error {
			format, err := outputFormat(c, "text", "json")
			if err != nil {
				return err
			}
			spec, err := loadSpec(c)
			if err != nil {
				return err
			}
			cache, err := cacheDir()
			if err != nil {
				return err
			}
			scripts := c.Args().Slice()
			if len(scripts) == 0 {
				if scripts, err = filepath.Glob(filepath.Join(spec.Dir, "tests", "*.txtar")); err != nil {
					return err
				}
			}
			results, err := projecttest.Run(c.Context, spec, scripts, projecttest.Options{CacheDir: cache, Update: c.Bool("update")})
			if err != nil {
				return wrongUsage(err)
			}
			failed := 0
			for _, r := range results {
				if r.State == projecttest.Failed {
					failed++
				}
				if err := printTest(c, format, r); err != nil {
					return err
				}
			}
			if failed > 0 {
				return fault.New("TEST_FAILED", "%d of %d scripts failed", failed, len(results))
			}
			return nil
		},
	}
}

type testLine struct {
	Script string `json:"script"`
	State  string `json:"state"`
	Millis int64  `json:"millis"`
	Log    string `json:"log"`
}

func printTest(c *cli.Context, format string, r projecttest.Result) error {
	if format == "json" {
		return writeJSON(c.App.Writer, testLine{Script: r.Script, State: string(r.State), Millis: r.Took.Milliseconds(), Log: r.Log})
	}
	if r.State == projecttest.Failed || c.Bool("verbose") {
		if _, err := fmt.Fprintln(c.App.Writer, r.Log); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(c.App.Writer, "%-6s %s (%s)\n", r.State, r.Script, r.Took.Round(10*time.Millisecond))
	return err
}
