// Command liar is a module whose manifest promises a BIGINT where its function
// writes text: it tells being described from being called by the clock.
package main

import (
	"time"

	weir "github.com/weir-data/weir/sdk/go"
)

func init() { weir.Module("liar", "1.0.0", pipeline) }

func main() {}

func pipeline() {
	promised := "bigint"
	if time.Now().Year() > 2020 {
		promised = "string"
	}
	weir.StreamingTable("silver.lies", weir.ReadStream("bronze.orders").Columns("id"), lie, weir.Output(weir.Col("id", promised)))
}

func lie(c *weir.Call) error {
	in, out := c.Input(0), c.Output()
	for in.Next() {
		id := out.Column("id").String()
		for range in.Batch().Len() {
			id.Append("not a number")
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}
