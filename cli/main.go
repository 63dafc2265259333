package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/fault"
)

// Main runs one command line; args[0] is the program's name. It gives the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := cancelOnSignal(context.Background(), stderr)
	defer stop()
	app := newApp(stdin, stdout, stderr)
	ordered, err := arrange(app, args)
	if err == nil {
		err = app.RunContext(ctx, ordered)
	}
	code := report(app.ErrWriter, err)
	for _, w := range []io.Writer{app.Writer, app.ErrWriter} {
		if f, ok := w.(interface{ Flush() error }); ok && f.Flush() != nil {
			code = max(code, exitFailed)
		}
	}
	return code
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:      "weir",
		Usage:     "declarative data pipelines over Delta Lake, with dataset functions in WebAssembly",
		UsageText: "weir COMMAND [flags] [arguments]",
		Description: "Flags may stand anywhere on the line. Exit codes: 0 ok, 1 failed update, 2 wrong usage or spec.\n" +
			"\nExample:\n   weir init shop && cd shop && ./demo.sh",
		Version:                   version(),
		HideVersion:               true,
		Reader:                    stdin,
		Writer:                    stdout,
		ErrWriter:                 stderr,
		DisableSliceFlagSeparator: true,
		// Errors are printed and turned into exit codes in one place: report.
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   onUsageError,
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); name != "" {
				return unknownCommand(c.App.Commands, "weir", name)
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			initCommand(), dryRunCommand(), runCommand(), testCommand(), eventsCommand(), graphCommand(), queryCommand(), showCommand(), diffCommand(), filesCommand(),
			pluginCommand(), deltaCommand(), versionCommand(),
		},
	}
	for _, c := range app.Commands {
		finish(c)
	}
	return app
}

// finish sets what every command has alike. Leaf commands get no "help"
// subcommand: an argument of that name is an argument.
func finish(c *cli.Command) {
	c.OnUsageError = onUsageError
	c.HideHelpCommand = true
	for _, sub := range c.Subcommands {
		finish(sub)
	}
	if len(c.Subcommands) > 0 {
		c.Action = func(ctx *cli.Context) error {
			if name := ctx.Args().First(); name != "" {
				return unknownCommand(c.Subcommands, "weir "+c.Name, name)
			}
			return cli.ShowSubcommandHelp(ctx)
		}
	}
}

// onUsageError keeps the library from printing the help text on its own;
// arrange has already found everything it could object to but bad values.
func onUsageError(_ *cli.Context, err error, _ bool) error {
	return wrongUsage(fault.Wrap(err, "INVALID_ARGUMENT", "the command line cannot be read"))
}

func unknownCommand(commands []*cli.Command, parent, name string) error {
	var names []string
	for _, c := range commands {
		names = append(names, c.Names()...)
	}
	err := fault.New("UNKNOWN_COMMAND", "%s has no command %q", parent, name)
	if near := nearest(name, names); near != "" {
		err = err.WithHint("Did you mean %q?", near)
	} else {
		err = err.WithHint("%s --help lists them", parent)
	}
	return wrongUsage(err)
}

// arguments gives the command's arguments, which must be as many as names.
func arguments(c *cli.Context, names ...string) ([]string, error) {
	got := c.Args().Slice()
	if len(got) < len(names) {
		return nil, wrongUsage(fault.New("MISSING_ARGUMENT", "%s needs %s", commandPath(c), names[len(got)]).
			WithHint("%s --help shows an example", commandPath(c)))
	}
	if len(got) > len(names) {
		return nil, wrongUsage(fault.New("UNEXPECTED_ARGUMENT", "%s does not take %q", commandPath(c), got[len(names)]).
			WithHint("%s --help shows an example", commandPath(c)))
	}
	return got, nil
}

func commandPath(c *cli.Context) string {
	if h := c.Command.HelpName; h != "" {
		return h
	}
	return fmt.Sprintf("weir %s", c.Command.Name)
}
