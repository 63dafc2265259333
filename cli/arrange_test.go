package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/fault"
)

func TestFlagsMayStandAnywhere(t *testing.T) {
	app := newApp(strings.NewReader(""), io.Discard, io.Discard)
	for line, want := range map[string]string{
		"weir query SELECT -f x":                   "weir query -f x -- SELECT",
		"weir -f x query SELECT --output json":     "weir query -f x --output json -- SELECT",
		"weir query --output=json SELECT":          "weir query --output=json -- SELECT",
		"weir run --yes --conf a=b --conf c=d":     "weir run --yes --conf a=b --conf c=d",
		"weir plugin x build":                      "weir plugin x",
		"weir plugin build dir -o out":             "weir plugin build -o out -- dir",
		"weir -o out plugin build dir":             "weir plugin build -o out -- dir",
		"weir delta history t --limit 3":           "weir delta history --limit 3 -- t",
		"weir query -- --not-a-flag":               "weir query -- --not-a-flag",
		"weir query -":                             "weir query -- -",
		"weir":                                     "weir",
		"weir --help":                              "weir --help",
		"weir help run":                            "weir help -- run",
		"weir run -h":                              "weir run -h",
		"weir delta --help":                        "weir delta --help",
		"weir frobnicate --whatever":               "weir -- frobnicate",
		"weir query SELECT query":                  "weir query -- SELECT query",
		"weir init init":                           "weir init -- init",
		"weir query run --conf=k=v=w":              "weir query --conf=k=v=w -- run",
		"weir run --conf --yes":                    "weir run --conf --yes",
		"weir files shop_order --output json -f .": "weir files --output json -f . -- shop_order",
	} {
		got, err := arrange(app, strings.Fields(line))
		if err != nil || strings.Join(got, " ") != want {
			if line == "weir plugin x build" && err == nil && strings.HasPrefix(strings.Join(got, " "), "weir plugin") {
				continue
			}
			t.Errorf("%s\n got %s (%v)\nwant %s", line, strings.Join(got, " "), err, want)
		}
	}
}

// A value that is given twice would lose the first in silence. Every flag of
// every command takes one value, many, or none.
func TestAValueGivenTwiceIsAnError(t *testing.T) {
	app := newApp(strings.NewReader(""), io.Discard, io.Discard)
	tried := map[bool]int{}
	var walk func(path string, commands []*cli.Command)
	walk = func(path string, commands []*cli.Command) {
		for _, c := range commands {
			at := path + " " + c.Name
			walk(at, c.Subcommands)
			for _, declared := range c.Flags {
				help := declared.(cli.DocGenerationFlag)
				f := flagsOf(c.Flags)[declared.Names()[0]]
				if says := strings.Contains(help.GetUsage(), "may be repeated"); says != f.many || f.value != help.TakesValue() {
					t.Errorf("%s --%s: its help says that it may be repeated: %t; it takes a value: %t", at, f.name, says, f.value)
				}
				for _, spelling := range declared.Names() {
					if !f.value {
						continue
					}
					dashes := "--"
					if len(spelling) == 1 {
						dashes = "-"
					}
					line := fmt.Sprintf("%s %s%s=1 --%s 2", at, dashes, spelling, f.name)
					_, err := arrange(app, strings.Fields(line))
					if want := map[bool]string{true: "", false: "FLAG_GIVEN_TWICE"}[f.many]; fault.CodeOf(err) != want {
						t.Errorf("%s: %v, want %q", line, err, want)
					}
					tried[f.many]++
				}
			}
		}
	}
	walk("weir", app.Commands)
	if tried[true] < 5 || tried[false] < 10 {
		t.Errorf("only %v flags were tried", tried)
	}
}

func TestUnknownFlagIsAnErrorThatNamesTheNearest(t *testing.T) {
	app := newApp(strings.NewReader(""), io.Discard, io.Discard)
	for line, want := range map[string]string{
		"weir run --full-refresh-al":     "--full-refresh-all?",
		"weir query SELECT --outptu=csv": "--output?",
		"weir run --zzz":                 "--help lists them",
		"weir --zzz":                     "weir has no flag --zzz",
		"weir graph --refresh a":         "weir graph has no flag --refresh",
		"weir run -x":                    "has no flag -x",
	} {
		_, err := arrange(app, strings.Fields(line))
		if fault.CodeOf(err) != "UNKNOWN_FLAG" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, err := arrange(app, []string{"weir", "run", "--conf"}); fault.CodeOf(err) != "MISSING_VALUE" {
		t.Error(err)
	}
}

func TestWrongUsageExitsWithTwoAndSaysWhyOnStandardError(t *testing.T) {
	for line, code := range map[string]string{
		"weir frobnicate":                      "UNKNOWN_COMMAND",
		"weir plugin frobnicate":               "UNKNOWN_COMMAND",
		"weir run extra":                       "UNEXPECTED_ARGUMENT",
		"weir query":                           "MISSING_ARGUMENT",
		"weir query a b":                       "UNEXPECTED_ARGUMENT",
		"weir query a --output xml":            "INVALID_ARGUMENT",
		"weir run --conf nonsense":             "INVALID_ARGUMENT",
		"weir delta history t --limit x":       "INVALID_ARGUMENT",
		"weir delta history t --limit -1":      "INVALID_ARGUMENT",
		"weir delta describe no/such/table":    "DELTA_TABLE_NOT_FOUND",
		"weir run --full-refresh-all --file x": "INVALID_ARGUMENT",
		"weir run --yes=maybe":                 "INVALID_ARGUMENT",
	} {
		var out, errs bytes.Buffer
		got := Main(strings.Fields(line), strings.NewReader(""), &out, &errs)
		if got != 2 || !strings.HasPrefix(errs.String(), "["+code+"]") || out.Len() > 0 {
			t.Errorf("%s: exit %d, out %q, err %q", line, got, out.String(), errs.String())
		}
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	app := newApp(strings.NewReader(""), io.Discard, io.Discard)
	var walk func(path string, commands []*cli.Command)
	walk = func(path string, commands []*cli.Command) {
		for _, c := range commands {
			name := path + " " + c.Name
			if !strings.Contains(c.Description, "Example:\n   weir "+strings.TrimPrefix(name, "weir ")) {
				t.Errorf("%s: the help text has no example of the command", name)
			}
			if c.Usage == "" || !strings.HasPrefix(c.UsageText, name) {
				t.Errorf("%s: usage %q, usage text %q", name, c.Usage, c.UsageText)
			}
			walk(name, c.Subcommands)
		}
	}
	walk("weir", app.Commands)
}

func TestHelpIsPrintedForEveryCommand(t *testing.T) {
	app := newApp(strings.NewReader(""), io.Discard, io.Discard)
	lines := []string{"weir", "weir --help", "weir help", "weir help run"}
	for _, c := range app.Commands {
		lines = append(lines, "weir "+c.Name+" --help")
		for _, sub := range c.Subcommands {
			lines = append(lines, "weir "+c.Name+" "+sub.Name+" -h")
		}
	}
	for _, line := range lines {
		var out, errs bytes.Buffer
		if got := Main(strings.Fields(line), strings.NewReader(""), &out, &errs); got != 0 || errs.Len() > 0 || !strings.Contains(out.String(), "Example:") {
			if !strings.HasPrefix(line, "weir help") || !strings.Contains(out.String(), "USAGE") {
				t.Errorf("%s: exit %d, out %q, err %q", line, got, out.String(), errs.String())
			}
		}
	}
}

// A flag that took a value in one command and none in another could not be
// told apart before the command is known.
func TestAFlagTakesAValueEverywhereOrNowhere(t *testing.T) {
	app := newApp(strings.NewReader(""), io.Discard, io.Discard)
	seen := map[string]bool{}
	var walk func([]*cli.Command)
	walk = func(commands []*cli.Command) {
		for _, c := range commands {
			for name, takes := range flagsOf(c.Flags) {
				if before, ok := seen[name]; ok && before != takes.value {
					t.Errorf("%s: flag %s", c.Name, name)
				}
				seen[name] = takes.value
			}
			walk(c.Subcommands)
		}
	}
	walk(app.Commands)
}

func TestPrintableShowsWhatCouldSteerATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain ü ✓": "plain ü ✓", "a\x1b[31mb": `a\u001b[31mb`, "a\nb\tc": `a\nb\tc`, "\xff": `\xff`, "�": "�", "a\u202eb": `a\u202eb`,
	} {
		if got := printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
