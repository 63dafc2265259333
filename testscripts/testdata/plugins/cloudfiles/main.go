// Command cloudfiles is a module that reads files itself, as Auto Loader does,
// with one option whose name comes from the configuration.
package main

import (
	weir "github.com/weir-data/weir/sdk/go"
)

func init() { weir.Module("cloudfiles", "1.0.0", pipeline) }

func main() {}

func pipeline() {
	files := weir.ReadStreamFormat("cloudFiles").
		Option("cloudFiles.format", "json").
		Option("cloudFiles.inferColumnTypes", "true").
		Option(weir.ConfOr("test.option", "cloudFiles.maxFilesPerTrigger"), "2").
		Load(weir.ConfOr("test.landing", "./landing"))
	weir.StreamingTable("bronze.loaded", files.Columns("id"), copied, weir.Output(weir.Col("id", "bigint")))
}

func copied(c *weir.Call) error {
	in, out := c.Input(0), c.Output()
	for in.Next() {
		ids, id := in.Batch().Column("id").Int64(), out.Column("id").Int64()
		for i := range ids.Len() {
			id.Append(ids.At(i))
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}
