// Command nondet is a module whose function does what is not deterministic
// elsewhere: it ranges over a map and reads the clock and the random source.
// In Weir its replays give the same bytes.
package main

import (
	"math/rand/v2"
	"time"

	weir "github.com/weir-data/weir/sdk/go"
)

func init() { weir.Module("nondet", "1.0.0", pipeline) }

func main() {}

func pipeline() {
	weir.StreamingTable("silver.shuffled", weir.ReadStream("bronze.orders").Columns("id"), shuffled,
		weir.Output(weir.DDL("id bigint, first_key string, luck bigint, clock timestamp")...))
}

func shuffled(c *weir.Call) error {
	in, out := c.Input(0), c.Output()
	for in.Next() {
		b := in.Batch()
		ids := b.Column("id").Int64()
		id, first := out.Column("id").Int64(), out.Column("first_key").String()
		luck, clock := out.Column("luck").Int64(), out.Column("clock").Timestamp()
		for i := range b.Len() {
			keys := map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8}
			for k := range keys {
				first.Append(k)
				break
			}
			id.Append(ids.At(i))
			luck.Append(rand.Int64())
			clock.Append(time.Now().UnixMicro())
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}
