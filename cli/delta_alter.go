package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

func deltaAlterCommand() *cli.Command {
	flag := func(name, usage string) cli.Flag {
		return &cli.GenericFlag{Name: name, Usage: usage + " (may be repeated)", Value: &repeated{}}
	}
	return &cli.Command{
		Name:      "alter",
		Usage:     "change columns and properties of a table",
		UsageText: "weir delta alter PATH|NAME [--set K=V] [--rename COLUMN=NAME] [--drop COLUMN] [--widen COLUMN=TYPE] [--add \"COLUMN TYPE\"] … [-f weir.yaml] [--output text|json]",
		Description: "All changes are one version of the table; no data file is rewritten. Columns are named as before the change, fields of structs as in address.city, and what lies in arrays and maps by element, key and value; a name with a dot stands in backticks.\n" +
			"\nExample:\n   weir delta alter silver.orders --set delta.columnMapping.mode=name --rename city=town",
		Flags: projectFlags(
			flag("set", "set the property `KEY=VALUE`"),
			flag("unset", "take the property `KEY` away"),
			flag("add", "add a column, `\"COLUMN TYPE\"`"),
			flag("rename", "give a column another name, `COLUMN=NAME`"),
			flag("drop", "drop the `COLUMN`"),
			flag("widen", "give a column a wider type, `COLUMN=TYPE`"),
			flag("not-null", "forbid nulls in the `COLUMN`"),
			flag("nullable", "allow nulls in the `COLUMN`"),
			flag("comment", "give a column a comment, `COLUMN=TEXT`"),
			outputFlag("text", "json")),
		Action: func(c *cli.Context) error {
			change, added, err := alterationOf(c)
			if err != nil {
				return wrongUsage(err)
			}
			return withTable(c, func(ctx context.Context, t *delta.Table, format string) error {
				if change.Read, err = t.Snapshot(ctx); err != nil {
					return err
				}
				if len(added) > 0 {
					change.Schema = arrow.NewSchema(append(change.Read.Schema().Fields(), added...), nil)
				}
				res, err := t.Commit(ctx, *change)
				warnOfCheckpoint(c.App.ErrWriter, res.CheckpointError)
				if err != nil {
					return err
				}
				if format == "json" {
					return writeJSON(c.App.Writer, map[string]int64{"version": res.Version})
				}
				_, err = fmt.Fprintf(c.App.Writer, "version %d: changed\n", res.Version)
				return err
			})
		},
	}
}

// alterationOf reads the flags.
func alterationOf(c *cli.Context) (*delta.Commit, []arrow.Field, error) {
	out := &delta.Commit{Operation: "ALTER TABLE", EngineInfo: engineInfo, Properties: map[string]string{}, Unset: repeatedOf(c, "unset")}
	ch := &out.Change
	var added []arrow.Field
	count := len(out.Unset)
	// each takes the values of a flag, cut at the first "=" outside a quoted name where pair asks for it.
	each := func(name string, pair bool, use func(left, right string) error) error {
		for _, text := range repeatedOf(c, name) {
			count++
			left, right := text, ""
			if pair {
				i := pairAt(text)
				if i < 0 {
					return fault.New("INVALID_ARGUMENT", "--%s %q has no =", name, text)
				}
				left, right = text[:i], text[i+1:]
			}
			if err := use(left, right); err != nil {
				return err
			}
		}
		return nil
	}
	column := func(add func(path []string, right string) error) func(string, string) error {
		return func(left, right string) error {
			path, err := delta.ParseColumn(left)
			if err != nil {
				return err
			}
			return add(path, right)
		}
	}
	for _, f := range []struct {
		name string
		pair bool
		use  func(left, right string) error
	}{
		{"set", true, func(k, v string) error { out.Properties[strings.TrimSpace(k)] = strings.TrimSpace(v); return nil }},
		{"add", false, func(ddl, _ string) error {
			fields, err := coltype.ParseDDL(ddl)
			for _, f := range fields {
				added = append(added, f.Arrow())
			}
			return err
		}},
		{"rename", true, column(func(path []string, to string) error {
			name, err := delta.ParseColumn(to)
			if err == nil && len(name) != 1 {
				err = fault.New("INVALID_ARGUMENT", "a column stays in its place: %q is no name", to)
			}
			if err == nil {
				ch.Rename = append(ch.Rename, delta.Rename{From: path, To: name[0]})
			}
			return err
		})},
		{"drop", false, column(func(path []string, _ string) error { ch.Drop = append(ch.Drop, path); return nil })},
		{"widen", true, column(func(path []string, text string) error {
			t, err := coltype.Parse(text)
			ch.Widen = append(ch.Widen, delta.Widening{Column: path, To: t})
			return err
		})},
		{"not-null", false, column(func(path []string, _ string) error { ch.NotNull = append(ch.NotNull, path); return nil })},
		{"nullable", false, column(func(path []string, _ string) error { ch.Nullable = append(ch.Nullable, path); return nil })},
		{"comment", true, column(func(path []string, text string) error {
			ch.Comments = append(ch.Comments, delta.ColumnComment{Column: path, Comment: text})
			return nil
		})},
	} {
		if err := each(f.name, f.pair, f.use); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case count == 0:
		return nil, nil, fault.New("INVALID_ARGUMENT", "nothing is to be changed").WithHint("Give --set, --rename or another change")
	case len(added) > 0 && count > len(added)+len(out.Properties)+len(out.Unset):
		return nil, nil, fault.New("INVALID_ARGUMENT", "--add and changes of other columns do not go together").WithHint("Make them two commands")
	}
	return out, added, nil
}

// pairAt gives where the "=" of a pair is, -1 for none. A name in backticks may hold one.
func pairAt(text string) int {
	quoted := false
	for i := range len(text) {
		switch text[i] {
		case '`':
			quoted = !quoted
		case '=':
			if !quoted {
				return i
			}
		}
	}
	return -1
}

// repeated are the values of a flag that may be given more than once, which may hold commas.
type repeated struct{ texts []string }

// Set takes one more value.
func (r *repeated) Set(text string) error { r.texts = append(r.texts, text); return nil }

func (r *repeated) String() string { return "" }

func repeatedOf(c *cli.Context, name string) []string { return c.Generic(name).(*repeated).texts }
