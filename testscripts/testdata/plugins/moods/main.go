// Command moods is a module that misbehaves as its configuration asks:
// moods.mode is trap, fail, exit, loop_error, rows or well.
package main

import (
	"os"

	weir "github.com/weir-data/weir/sdk/go"
)

func init() { weir.Module("moods", "1.0.0", pipeline) }

func main() {}

func pipeline() {
	policy := weir.RowErrorPolicy(weir.ConfOr("moods.policy", "fail"))
	weir.StreamingTable("silver.moody", weir.ReadStream("bronze.orders").Columns("id"), moody,
		weir.RowAligned(), weir.Passthrough("id", "city AS town"),
		weir.Output(weir.Col("twice", "bigint")),
		weir.OnRowError(policy), weir.UsesConf("moods.mode"))
}

func moody(c *weir.Call) error {
	mode := c.ConfOr("moods.mode", "well")
	in, out := c.Input(0), c.Output()
	for in.Next() {
		b := in.Batch()
		ids, twice := b.Column("id").Int64(), out.Column("twice").Int64()
		for i := range b.Len() {
			switch {
			case mode == "trap" && i == 1:
				var nothing *[4]int64
				return weir.Error("never reached: " + string(rune(nothing[i])))
			case mode == "exit" && i == 1:
				os.Exit(7)
			case mode == "fail" && i == 1:
				return weir.Error("[BAD_MOOD] not today")
			case mode == "rows" && ids.At(i)%2 == 1:
				b.RowError(i, "ODD_ID", "this function takes even ids")
			}
			if mode != "short" || i > 0 {
				twice.Append(ids.At(i) * 2)
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}
