// Command conformance is the conformance module (abi/conformance) in Go, with the SDK.
package main

import "github.com/weir-data/weir/sdk/go"

func init() { weir.Module("conformance_go", "1.0.0", pipeline) }

func main() {}

func pipeline() {
	weir.TemporaryView("copy", weir.ReadStream("a"), copyAll)
	weir.TemporaryView("double", weir.ReadStream("a").Columns("v"), double,
		weir.RowAligned(), weir.Passthrough("id AS key"), weir.Output(weir.Col("doubled", "bigint")))
	weir.TemporaryView("positive", weir.ReadStream("a").Columns("v"), positive, weir.Output(weir.Col("v", "bigint")))
	weir.TemporaryView("lookup", weir.ReadStream("a").Columns("k"), lookup,
		weir.With(weir.Read("b").Columns("k", "label")), weir.Output(weir.Col("k", "string"), weir.Col("label", "string")))
	weir.TemporaryView("report", weir.ReadStream("a").Columns(), report, weir.UsesConf("test.*"),
		weir.Output(weir.DDL("rows bigint, conf string, other string, flow string, batch_id bigint, batch_timestamp string")...))
	weir.TemporaryView("ask", weir.Read("b").Columns("k", "v"), ask, weir.Query(), weir.Output(weir.DDL("k string, v bigint")...))
	weir.CreateStreamingTable("versions")
	weir.CreateAutoCDCFromSnapshotFlow(weir.AutoCDCFromSnapshot{Target: "versions", Name: "next", Keys: []string{"v"}, Provider: nextSnapshot,
		ProviderInputs: []weir.Source{weir.Read("b").Columns("v")}, ProviderOutput: weir.DDL("v bigint"), ProviderVersion: "int"})
	weir.TemporaryView("broken", weir.ReadStream("a"), func(*weir.Call) error { return weir.Error("broken as asked") }, weir.Output())
}

func copyAll(c *weir.Call) error {
	in, out := c.Input(0), c.Output()
	for _, f := range in.Fields() {
		out.Column(f.Name).SetType(f.Type)
	}
	for in.Next() {
		b := in.Batch()
		for _, f := range b.Fields() {
			from, to := b.Column(f.Name), out.Column(f.Name)
			for i := range b.Len() {
				to.Copy(from, i)
			}
		}
		if err := out.FlushRows(b.Len()); err != nil {
			return err
		}
	}
	return in.Err()
}

func ask(c *weir.Call) error {
	in, err := c.Query("SELECT k, v FROM b WHERE v > ? ORDER BY k", 1)
	if err != nil {
		return err
	}
	out := c.Output()
	for in.Next() {
		b := in.Batch()
		for i := range b.Len() {
			out.Column("k").Copy(b.Column("k"), i)
			out.Column("v").Copy(b.Column("v"), i)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}

func double(c *weir.Call) error {
	in, out := c.Input(0), c.Output()
	for in.Next() {
		v, to := in.Batch().Column("v").Int64(), out.Column("doubled").Int64()
		for i := range in.Batch().Len() {
			if v.Null(i) {
				to.AppendNull()
			} else {
				to.Append(2 * v.At(i))
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}

func positive(c *weir.Call) error {
	in, out := c.Input(0), c.Output()
	for in.Next() {
		b := in.Batch()
		v, to := b.Column("v").Int64(), out.Column("v").Int64()
		for i := range b.Len() {
			switch {
			case v.Null(i):
			case v.At(i) < 0:
				b.RowError(i, "NEGATIVE", "v is below zero")
			case v.At(i) > 0:
				to.Append(v.At(i))
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}

// nextSnapshot gives version n+1 after n, 1 at first, and none after 3.
func nextSnapshot(c *weir.Call) error {
	version := int64(1)
	if latest := c.Context().LatestVersion; latest != nil {
		version = int64(latest.Value[0]-'0') + 1
	}
	if version > 3 {
		return c.SnapshotDone()
	}
	if err := c.SnapshotVersion(weir.IntVersion(version)); err != nil {
		return err
	}
	return positive(c)
}

func lookup(c *weir.Call) error {
	type label struct {
		text string
		null bool
	}
	labels := map[string]label{}
	side := c.Input(1)
	for side.Next() {
		k, l := side.Batch().Column("k").String(), side.Batch().Column("label").String()
		for i := range side.Batch().Len() {
			labels[string(k.Bytes(i))] = label{string(l.Bytes(i)), l.Null(i)}
		}
	}
	in, out := c.Input(0), c.Output()
	for in.Next() {
		k, toK, toLabel := in.Batch().Column("k").String(), out.Column("k").String(), out.Column("label").String()
		for i := range in.Batch().Len() {
			if k.Null(i) {
				toK.AppendNull()
				toLabel.AppendNull()
				continue
			}
			toK.Append(k.At(i))
			if l, ok := labels[k.At(i)]; ok && !l.null {
				toLabel.Append(l.text)
			} else {
				toLabel.AppendNull()
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}

func report(c *weir.Call) error {
	in, out := c.Input(0), c.Output()
	rows := int64(0)
	for in.Next() {
		rows += int64(in.Batch().Len())
	}
	out.Column("rows").Int64().Append(rows)
	for column, key := range map[string]string{"conf": "test.key", "other": "other.key"} {
		if v, ok := c.Conf(key); ok {
			out.Column(column).String().Append(v)
		} else {
			out.Column(column).String().AppendNull()
		}
	}
	x := c.Context()
	out.Column("flow").String().Append(x.Flow)
	out.Column("batch_id").Int64().Append(x.BatchID)
	out.Column("batch_timestamp").String().AppendBytes(weir.AppendTimestamp(nil, x.BatchTimestamp))
	return out.Flush()
}
