package main

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/delta"
)

// spec is one table. not names the engines that cannot read it, readOnly those
// that can read but not write it, each with the reason.
type spec struct {
	name          string
	feed          bool
	not, readOnly map[string]string
	make          func(m *maker) error
}

func properties(kv ...string) map[string]string {
	p := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		p["delta."+kv[i]] = kv[i+1]
	}
	return p
}

var (
	vectors   = properties("enableDeletionVectors", "true")
	noMapping = map[string]string{"deltalake": "delta-rs does not optimize mapped tables"}
)

var specs = []spec{
	{name: "appends", make: func(m *maker) error {
		if err := m.create(wide, delta.Commit{}); err != nil {
			return err
		}
		for i := range 12 { // past a checkpoint
			if err := m.insert(i*10, i*10+10); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "partitioned", make: func(m *maker) error {
		if err := m.create(wide, delta.Commit{PartitionBy: []string{"name"}}); err != nil {
			return err
		}
		return all(m.insert(0, 40), m.insert(40, 60))
	}},
	{name: "partitioned_by_types", make: func(m *maker) error {
		if err := m.create(wide, delta.Commit{PartitionBy: []string{"at", "amount", "flag"}}); err != nil {
			return err
		}
		return m.insert(0, 25)
	}},
	{name: "vectors", make: func(m *maker) error {
		if err := m.create(wide, delta.Commit{Properties: vectors}); err != nil {
			return err
		}
		return all(m.insert(0, 100), m.insert(100, 200), m.delete("id % 3 = 0"), m.delete("id BETWEEN 90 AND 110"), m.delete("id >= 195"))
	}},
	{name: "vectors_of_partitions", make: func(m *maker) error {
		if err := m.create(wide, delta.Commit{PartitionBy: []string{"qty"}, Properties: vectors}); err != nil {
			return err
		}
		return all(m.insert(0, 100), m.delete("id % 5 = 0"), m.delete("qty = 3"))
	}},
	{name: "rewritten", make: func(m *maker) error {
		if err := m.create(wide, delta.Commit{}); err != nil {
			return err
		}
		return all(m.insert(0, 50), m.insert(50, 100), m.delete("id % 4 = 1"), m.update("id % 4 = 2", map[string]string{"qty": "qty + 100", "name": "concat('u', id)"}))
	}},
	{name: "feed", feed: true, make: func(m *maker) error {
		if err := m.create(wide, delta.Commit{Properties: properties("enableChangeDataFeed", "true", "enableDeletionVectors", "true")}); err != nil {
			return err
		}
		return all(m.insert(0, 50), m.delete("id % 6 = 0"), m.update("id % 6 = 1", map[string]string{"qty": "-1"}), m.insert(50, 60), m.delete("id > 55"))
	}},
	{name: "feed_rewritten", feed: true, make: func(m *maker) error {
		if err := m.create(wide, delta.Commit{Properties: properties("enableChangeDataFeed", "true")}); err != nil {
			return err
		}
		return all(m.insert(0, 50), m.delete("id % 6 = 0"), m.update("id % 6 = 1", map[string]string{"qty": "-1"}), m.insert(50, 60))
	}},
	{name: "row_tracking", readOnly: map[string]string{"deltalake": "delta-rs writes no tables with row tracking"}, make: func(m *maker) error {
		if err := m.create(wide, delta.Commit{Properties: properties("enableRowTracking", "true", "enableDeletionVectors", "true")}); err != nil {
			return err
		}
		return all(m.insert(0, 50), m.insert(50, 100), m.delete("id % 7 = 0"), m.update("id % 7 = 1", map[string]string{"qty": "70"}))
	}},
	{name: "v2_checkpoints", make: func(m *maker) error {
		if err := m.create(wide, delta.Commit{Properties: properties("checkpointPolicy", "v2", "enableDeletionVectors", "true", "checkpointInterval", "5")}); err != nil {
			return err
		}
		for i := range 11 {
			if err := m.insert(i*10, i*10+10); err != nil {
				return err
			}
		}
		return m.delete("id % 10 = 3")
	}},
	{name: "clustered", readOnly: map[string]string{"deltalake": "delta-rs writes no clustered tables"}, make: func(m *maker) error {
		if err := m.create(wide, delta.Commit{ClusterBy: []string{"qty", "day"}}); err != nil {
			return err
		}
		return all(m.insert(0, 50), m.insert(50, 100))
	}},
	{name: "timestamp_ntz", make: func(m *maker) error {
		if err := m.create(narrow+", wall TIMESTAMP_NTZ", delta.Commit{PartitionBy: []string{"wall"}}); err != nil {
			return err
		}
		return m.insert(0, 12)
	}},
	{name: "in_commit_timestamps", readOnly: map[string]string{"deltalake": "delta-rs writes no in-commit timestamps"}, make: func(m *maker) error {
		if err := m.create(narrow, delta.Commit{Properties: properties("enableInCommitTimestamps", "true")}); err != nil {
			return err
		}
		return all(m.insert(0, 10), m.insert(10, 20))
	}},
	{name: "columns_added", make: func(m *maker) error {
		if err := m.create(narrow, delta.Commit{}); err != nil {
			return err
		}
		return all(m.insert(0, 10), m.insert(10, 20, arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
			arrow.Field{Name: "addr", Type: arrow.StructOf(arrow.Field{Name: "zip", Type: arrow.PrimitiveTypes.Int32, Nullable: true}), Nullable: true}))
	}},
	{name: "checkpoint_structs", make: func(m *maker) error {
		if err := m.create(wide, delta.Commit{PartitionBy: []string{"qty"}, Properties: properties("checkpointInterval", "3", "checkpoint.writeStatsAsStruct", "true", "checkpoint.writeStatsAsJson", "false")}); err != nil {
			return err
		}
		return all(m.insert(0, 30), m.insert(30, 60), m.insert(60, 90), m.insert(90, 100))
	}},
	{name: "mapped_by_name", readOnly: noMapping, make: func(m *maker) error {
		if err := m.create(wide, delta.Commit{PartitionBy: []string{"qty"}, Properties: properties("columnMapping.mode", "name")}); err != nil {
			return err
		}
		return all(m.insert(0, 30), m.change(delta.Commit{Operation: "RENAME COLUMN", Change: delta.SchemaChange{
			Rename: []delta.Rename{{From: []string{"price"}, To: "price in €"}, {From: []string{"addr", "zip"}, To: "post code"}, {From: []string{"qty"}, To: "pieces"}}}}),
			m.change(delta.Commit{Operation: "DROP COLUMNS", Change: delta.SchemaChange{Drop: [][]string{{"blob"}}}}),
			m.insert(30, 40, arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, arrow.Field{Name: "twice", Type: arrow.PrimitiveTypes.Int64, Nullable: true}))
	}},
	{name: "mapped_by_id", readOnly: noMapping, make: func(m *maker) error {
		if err := m.create(wide, delta.Commit{Properties: properties("columnMapping.mode", "id")}); err != nil {
			return err
		}
		return all(m.insert(0, 30), m.change(delta.Commit{Operation: "RENAME COLUMN", Change: delta.SchemaChange{Rename: []delta.Rename{{From: []string{"price"}, To: "cost"}}}}),
			m.change(delta.Commit{Operation: "DROP COLUMNS", Change: delta.SchemaChange{Drop: [][]string{{"flag"}, {"addr", "city"}}}}))
	}},
	{name: "mapped_later", readOnly: noMapping, make: func(m *maker) error {
		if err := m.create(wide, delta.Commit{}); err != nil {
			return err
		}
		return all(m.insert(0, 30), m.change(delta.Commit{Operation: "SET TBLPROPERTIES", Properties: properties("columnMapping.mode", "name")}),
			m.change(delta.Commit{Operation: "RENAME COLUMN", Change: delta.SchemaChange{Rename: []delta.Rename{{From: []string{"name"}, To: "label"}}}}),
			m.change(delta.Commit{Operation: "RENAME COLUMN", Change: delta.SchemaChange{Rename: []delta.Rename{{From: []string{"label"}, To: "name"}}}}),
			m.insert(30, 40))
	}},
	{name: "widened", not: map[string]string{"deltalake": "delta-rs reads no widened tables"}, make: func(m *maker) error {
		if err := m.create("id BIGINT, name STRING, small SMALLINT, qty INT, amount DECIMAL(10,2), day DATE, attrs MAP<STRING,INT>", delta.Commit{Properties: properties("enableTypeWidening", "true")}); err != nil {
			return err
		}
		to := func(t arrow.DataType, column ...string) delta.Widening { return delta.Widening{Column: column, To: t} }
		return all(m.insert(0, 30), m.change(delta.Commit{Operation: "CHANGE COLUMN", Change: delta.SchemaChange{Widen: []delta.Widening{
			to(arrow.PrimitiveTypes.Int32, "small"), to(arrow.PrimitiveTypes.Int64, "qty"), to(&arrow.Decimal128Type{Precision: 20, Scale: 4}, "amount"), to(arrow.PrimitiveTypes.Int64, "attrs", "value")}}}),
			m.insert(30, 40), m.change(delta.Commit{Operation: "CHANGE COLUMN", Change: delta.SchemaChange{Widen: []delta.Widening{to(arrow.PrimitiveTypes.Int64, "small")}}}), m.insert(40, 50))
	}},
	{name: "constrained", readOnly: map[string]string{"deltalake": "delta-rs writes no generated columns beside constraints"}, make: func(m *maker) error {
		if err := m.create("id BIGINT NOT NULL, name STRING, qty INT, twice BIGINT", delta.Commit{Properties: properties("constraints.positive", "id >= 0")}); err != nil {
			return err
		}
		return all(m.insert(0, 30), m.insert(30, 40))
	}},
}
