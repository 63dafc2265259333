package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/fault"
)

// arrange puts a command line in the one order that urfave/cli reads in full:
// commands, flags, "--", arguments. The library stops at the first argument
// and ignores later flags in silence; here a flag may stand anywhere, and one
// that the command does not have is an error.
func arrange(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return []string{app.Name}, nil
	}
	words := args[1:]
	everywhere := allFlags(app)
	path, command, unknown := findCommand(app, words, everywhere)
	if unknown {
		// Whatever follows belongs to no command; the app's action names it.
		return append([]string{args[0], "--"}, path...), nil
	}
	known := flagsOf(app.Flags)
	if command != nil {
		known = flagsOf(command.Flags)
	}
	var flags, rest []string
	given := map[string]bool{}
	skip := len(path)
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			rest = append(rest, words[i+1:]...)
			break
		}
		if !isFlag(w) {
			if skip > 0 {
				skip--
			} else {
				rest = append(rest, w)
			}
			continue
		}
		name, _, hasValue := strings.Cut(strings.TrimLeft(w, "-"), "=")
		flag, ok := known[name]
		if !ok {
			return nil, unknownFlag(path, w, known)
		}
		if flag.value && !flag.many && given[flag.name] {
			return nil, wrongUsage(fault.New("FLAG_GIVEN_TWICE", "flag --%s is given twice, and takes one value", flag.name).
				WithHint("Leave one of them out"))
		}
		given[flag.name] = true
		flags = append(flags, w)
		if flag.value && !hasValue {
			if i+1 == len(words) {
				return nil, wrongUsage(fault.New("MISSING_VALUE", "flag %s needs a value", w))
			}
			i++
			flags = append(flags, words[i])
		}
	}
	out := append([]string{args[0]}, path...)
	out = append(out, flags...)
	if len(rest) > 0 {
		out = append(append(out, "--"), rest...)
	}
	return out, nil
}

// findCommand gives the command that the line names and the words naming it.
// Unknown is true when its first word that is no flag names no command.
func findCommand(app *cli.App, words []string, known map[string]shape) (path []string, command *cli.Command, unknown bool) {
	commands := app.Commands
	for i := 0; i < len(words) && len(commands) > 0; i++ {
		w := words[i]
		if w == "--" {
			break
		}
		if isFlag(w) {
			name, _, hasValue := strings.Cut(strings.TrimLeft(w, "-"), "=")
			if known[name].value && !hasValue {
				i++
			}
			continue
		}
		if command == nil && w == "help" {
			return []string{"help"}, nil, false
		}
		at := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(w) })
		if at < 0 {
			return append(path, w), command, command == nil
		}
		command = commands[at]
		path = append(path, w)
		commands = command.Subcommands
	}
	return path, command, false
}

// shape is how a flag is written.
type shape struct {
	name  string // the first of its spellings
	value bool   // it takes one
	many  bool   // and may be repeated
}

// flagsOf maps each spelling of the flags to its shape.
func flagsOf(flags []cli.Flag) map[string]shape {
	known := map[string]shape{"help": {name: "help"}, "h": {name: "help"}}
	for _, f := range flags {
		s := shape{name: f.Names()[0], value: true}
		switch f.(type) {
		case *cli.BoolFlag:
			s.value = false
		case *cli.StringSliceFlag, *cli.GenericFlag:
			s.many = true
		}
		for _, name := range f.Names() {
			known[name] = s
		}
	}
	return known
}

// allFlags is flagsOf over every command; a flag takes a value everywhere or nowhere.
func allFlags(app *cli.App) map[string]shape {
	known := flagsOf(app.Flags)
	var walk func([]*cli.Command)
	walk = func(commands []*cli.Command) {
		for _, c := range commands {
			for name, s := range flagsOf(c.Flags) {
				if !known[name].value {
					known[name] = s
				}
			}
			walk(c.Subcommands)
		}
	}
	walk(app.Commands)
	return known
}

func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' }

func unknownFlag(path []string, word string, known map[string]shape) error {
	where := strings.Join(append([]string{"weir"}, path...), " ")
	bare, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	err := fault.New("UNKNOWN_FLAG", "%s has no flag %s", where, word[:len(word)-len(strings.TrimLeft(word, "-"))]+bare)
	names := make([]string, 0, len(known))
	for n := range known {
		if len(n) > 1 {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	if near := nearest(bare, names); near != "" {
		return wrongUsage(err.WithHint("Did you mean --%s?", near))
	}
	return wrongUsage(err.WithHint("%s --help lists them", where))
}

// nearest gives the name at the smallest edit distance of at most a third of
// the word, or "".
func nearest(word string, names []string) string {
	best, at := len(word)/3+1, ""
	for _, n := range names {
		if d := distance(word, n); d < best {
			best, at = d, n
		}
	}
	return at
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
