// Command canary is a module with two functions. Each hides a secret in a
// global and on the heap, and reports which secrets it can see.
package main

import (
	"strings"

	weir "github.com/weir-data/weir/sdk/go"
)

func init() { weir.Module("canary", "1.0.0", pipeline) }

func main() {}

// seen collects the secrets of every function that ran in this memory.
var seen []string

func pipeline() {
	prefix := weir.ConfOr("canary.prefix", "one")
	for _, name := range []string{"a", "b"} {
		weir.StreamingTable("silver.canary_"+prefix+"_"+name, weir.ReadStream("bronze.orders").Columns("id"), canary(prefix, name),
			weir.Output(weir.DDL("id bigint, seen string, conf string")...), weir.UsesConf("secret."+name))
	}
}

func canary(prefix, name string) weir.Func {
	return func(c *weir.Call) error {
		before := strings.Join(seen, ",")
		seen = append(seen, prefix+"/"+name)
		var conf []string
		for _, key := range []string{"secret.a", "secret.b", "secret.other"} {
			if v, ok := c.Conf(key); ok {
				conf = append(conf, key+"="+v)
			}
		}
		in, out := c.Input(0), c.Output()
		for in.Next() {
			b := in.Batch()
			ids := b.Column("id").Int64()
			id, saw, has := out.Column("id").Int64(), out.Column("seen").String(), out.Column("conf").String()
			for i := range b.Len() {
				id.Append(ids.At(i))
				saw.Append(before)
				has.Append(strings.Join(conf, ","))
			}
			if err := out.Flush(); err != nil {
				return err
			}
		}
		return in.Err()
	}
}
