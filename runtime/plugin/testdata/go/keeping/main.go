// Command keeping is a guest of the Go SDK that carries something from call to
// call: a total in its state, and a side input in a kept instance.
package main

import (
	"strconv"

	"github.com/weir-data/weir/sdk/go"
)

func init() { weir.Module("keeping", "1.0.0", pipeline) }

func main() {}

func pipeline() {
	weir.TemporaryView("total", weir.ReadStream("a").Columns("v"), total, weir.Stateful(), weir.Output(weir.Col("total", "bigint")))
	weir.TemporaryView("lookup", weir.ReadStream("a").Columns("v"), lookup, weir.Reuse(),
		weir.With(weir.Read("b").Columns("k", "label")), weir.Output(weir.Col("label", "string")))
}

// total writes, for each row, the sum of all rows of all micro-batches so far.
func total(c *weir.Call) error {
	sum := int64(0)
	if state := c.State(); state != nil {
		var err error
		if sum, err = strconv.ParseInt(string(state), 10, 64); err != nil {
			return err
		}
	}
	in, out := c.Input(0), c.Output()
	for in.Next() {
		v, to := in.Batch().Column("v").Int64(), out.Column("total").Int64()
		for i := range in.Batch().Len() {
			sum += v.At(i)
			to.Append(sum)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	if in.Err() != nil {
		return in.Err()
	}
	return c.SetState(strconv.AppendInt(nil, sum, 10))
}

// labels is what lookup keeps, and read how often it read them.
var (
	labels map[int64]string
	read   int
)

func lookup(c *weir.Call) error {
	if side := c.Input(1); !side.Unchanged() {
		labels = map[int64]string{}
		read++
		for side.Next() {
			b := side.Batch()
			for i := range b.Len() {
				labels[b.Column("k").Int64().At(i)] = b.Column("label").String().At(i)
			}
		}
		if side.Err() != nil {
			return side.Err()
		}
	}
	in, out := c.Input(0), c.Output()
	for in.Next() {
		v, to := in.Batch().Column("v").Int64(), out.Column("label").String()
		for i := range in.Batch().Len() {
			to.Append(labels[v.At(i)] + " read " + strconv.Itoa(read))
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}
