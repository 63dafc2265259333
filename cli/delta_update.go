package cli

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

func deltaUpdateCommand() *cli.Command {
	return &cli.Command{
		Name:      "update",
		Usage:     "change columns of the rows that meet a condition",
		UsageText: "weir delta update PATH|NAME --set COLUMN=EXPRESSION … (--where CONDITION | --all) [-f weir.yaml] [--output text|json]",
		Description: "Expressions read the old values of the row. Constraints of the table are held, and generated columns computed anew.\n" +
			"\nExample:\n   weir delta update silver.orders --set \"city = 'Köln'\" --where \"city = 'Cologne'\"",
		Flags: projectFlags(append(whereFlags("change"),
			&cli.GenericFlag{Name: "set", Usage: "give a column a new value, `COLUMN=EXPRESSION` (may be repeated)", Value: &assignments{}},
			outputFlag("text", "json"))...),
		Action: func(c *cli.Context) error {
			where, err := whereOf(c)
			if err != nil {
				return err
			}
			set := c.Generic("set").(*assignments)
			if len(set.to) == 0 {
				return wrongUsage(fault.New("INVALID_ARGUMENT", "an update needs a --set").WithHint("Give --set COLUMN=EXPRESSION"))
			}
			return withTable(c, func(ctx context.Context, t *delta.Table, format string) error {
				res, err := t.Update(ctx, delta.UpdateOptions{Where: where, Set: set.to, DMLOptions: delta.DMLOptions{EngineInfo: engineInfo}})
				return writeDML(c, format, "changed", &res, err)
			})
		},
	}
}

// assignments are the values of --set. An expression may hold commas, at which
// a flag of texts would be split.
type assignments struct{ to map[string]string }

func (a *assignments) Set(text string) error {
	column, expr, ok := strings.Cut(text, "=")
	column, expr = strings.TrimSpace(column), strings.TrimSpace(expr)
	if !ok || column == "" || expr == "" {
		return fault.New("INVALID_ARGUMENT", "%q is no COLUMN=EXPRESSION", text)
	}
	if _, twice := a.to[column]; twice {
		return fault.New("INVALID_ARGUMENT", "column %s is set twice", column)
	}
	if a.to == nil {
		a.to = map[string]string{}
	}
	a.to[column] = expr
	return nil
}

func (a *assignments) String() string { return "" }
