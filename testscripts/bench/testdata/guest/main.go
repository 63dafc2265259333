// Command guest is the module that P2 and P4 measure.
package main

import (
	"strconv"

	"github.com/weir-data/weir/sdk/go"
)

// wideColumns is the width of P4's table; the last three columns are computed.
const wideColumns = 300

func init() { weir.Module("bench", "1.0.0", pipeline) }

func main() {}

func pipeline() {
	weir.TemporaryView("multiply", weir.ReadStream("a").Columns("v"), multiply, weir.Output(weir.Col("v", "bigint")), weir.Reuse())
	renames := make([]string, wideColumns-3)
	for i := range renames {
		renames[i] = "c" + strconv.Itoa(i) + " AS column_" + strconv.Itoa(i)
	}
	weir.TemporaryView("wide", weir.ReadStream("a").Columns("c297", "c298", "c299"), wide, weir.RowAligned(),
		weir.Passthrough(renames...), weir.Output(weir.DDL("tripled bigint, summed bigint, gross double")...))
}

func multiply(c *weir.Call) error {
	in, out := c.Input(0), c.Output()
	for in.Next() {
		v := in.Batch().Column("v").Int64()
		to := out.Column("v").Int64().Extend(v.Len())
		for i, x := range v.Values() {
			to[i] = 3 * x
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}

func wide(c *weir.Call) error {
	in, out := c.Input(0), c.Output()
	for in.Next() {
		b := in.Batch()
		x, y, net := b.Column("c297").Int64().Values(), b.Column("c298").Int64().Values(), b.Column("c299").Float64().Values()
		tripled, summed := out.Column("tripled").Int64().Extend(b.Len()), out.Column("summed").Int64().Extend(b.Len())
		gross := out.Column("gross").Float64().Extend(b.Len())
		for i := range tripled {
			tripled[i], summed[i], gross[i] = 3*x[i], x[i]+y[i], net[i]*1.19
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}
