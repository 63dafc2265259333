package stream

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

const sinkName = "other.shop.orders"

// sink is a flow from the bronze table to a table outside the pipeline.
func (l *lake) sink(t testing.TB, evolve bool) *Flow {
	t.Helper()
	f := l.silver(t, "maxFilesPerTrigger", "1")
	f.Dataset, f.Name, f.Quarantine = "dev.bronze.sink", "to_sink", nil
	f.Checkpoint = l.open("_weir/dwh/checkpoints/dev.bronze.sink/to_sink")
	f.Target = Target{Table: l.table(sinkName), Name: sinkName, External: true, Evolve: evolve}
	return f
}

// covers A130 A134 A135: a flow appends to a Delta table that others own and
// write to, each batch once; a full refresh takes nothing out and appends again.
func TestASinkIsAppendedToAndNothingElse(t *testing.T) {
	l := newLake(t)
	l.land(t, 100, 2, "")
	id := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	ctx := context.Background()
	table := l.table(sinkName)
	if _, err := table.Commit(ctx, delta.Commit{Operation: "CREATE TABLE", Schema: id, Properties: map[string]string{"owner": "somebody"}}); err != nil {
		t.Fatal(err)
	}
	if res := mustRun(t, l.sink(t, true)); res.Batches != 2 {
		t.Fatalf("%+v", res)
	}
	// Another writer's commit in between is no mistake.
	snap, err := table.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Commit(ctx, delta.Commit{Read: snap, Operation: "SET TBLPROPERTIES", Properties: map[string]string{"seen": "yes"}}); err != nil {
		t.Fatal(err)
	}
	if res := mustRun(t, l.sink(t, true)); res.Batches != 0 {
		t.Fatalf("%+v", res)
	}
	same(t, "rows", l.mustRows(t, sinkName), ids(100, 2))
	f := l.sink(t, true)
	f.FullRefresh = true
	mustRun(t, f)
	same(t, "rows after a full refresh", l.mustRows(t, sinkName), []string{ids(100, 1)[0], ids(100, 1)[0], ids(101, 1)[0], ids(101, 1)[0]})
	if snap, err = table.Snapshot(ctx); err != nil || snap.Properties()["owner"] != "somebody" || snap.Properties()["seen"] != "yes" {
		t.Fatal(snap.Properties(), err)
	}
}

// The columns of a table outside the pipeline stay as they are unless the sink
// says mergeSchema.
func TestASinksColumnsAreItsOwners(t *testing.T) {
	for _, evolve := range []bool{false, true} {
		l := newLake(t)
		l.land(t, 100, 1, "")
		mustRun(t, l.sink(t, evolve))
		l.land(t, 101, 1, `,"note":"n"`)
		_, err := Run(context.Background(), l.sink(t, evolve), nil)
		if evolve && err != nil || !evolve && !fault.Is(err, "DELTA_METADATA_MISMATCH") {
			t.Errorf("mergeSchema %v: %v", evolve, err)
		}
		if rows := l.mustRows(t, sinkName); len(rows) != map[bool]int{false: 1, true: 2}[evolve] {
			t.Errorf("mergeSchema %v: %v", evolve, rows)
		}
	}
}

// covers A48: a sink whose checkpoint is gone would get every row again.
func TestASinkGuardsItsCheckpoint(t *testing.T) {
	l := newLake(t)
	l.land(t, 100, 1, "")
	mustRun(t, l.sink(t, false))
	f := l.sink(t, false)
	f.Checkpoint = l.open("_weir/dwh/checkpoints/elsewhere")
	if _, err := Run(context.Background(), f, nil); !fault.Is(err, "CHECKPOINT_MISSING") {
		t.Fatal(err)
	}
}
