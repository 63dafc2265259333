package stream

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

var (
	fpResetPlanned   = failpoint.New("stream.reset_planned")
	fpResetCommitted = failpoint.New("stream.reset_committed")
)

// Reset is the full refresh of a table that several flows fill. None of them can
// replace the rows by its first commit, as a single one does, since the others
// may have committed before it: every flow gets its next generation, and then
// one commit takes all rows away.
//
// A crash in between leaves generations that wait for that commit. The record of
// unfinished full refreshes, which the caller keeps until Run returns, lets the
// next update begin anew.
type Reset struct {
	Dataset            string
	Pipeline, UpdateID string
	Target             Target
	// Columns are those of the empty table; nil keeps what there is, or makes no table.
	Columns    *arrow.Schema
	Quarantine *delta.Table // nil when no row can be refused
	// Apply is that of the flows, nil when they append. What it keeps beside the
	// rows begins anew in the commit that takes them away.
	Apply Applier
	// Flows are the checkpoints of all flows that ever filled the table, by name:
	// one that comes back reads everything again, since its rows are gone.
	Flows map[string]ResetFlow
	Clock func() time.Time
}

// ResetFlow is one flow of a table.
type ResetFlow struct {
	Checkpoint storage.Store
	Once       bool
	Snapshots  bool
}

// Run empties the table.
func (r *Reset) Run(ctx context.Context) error {
	return fault.Place(r.run(ctx), "FULL_REFRESH_FAILED", fault.Where{Dataset: r.Dataset})
}

func (r *Reset) run(ctx context.Context) error {
	target, err := snapshot(ctx, r.Target.Table)
	if err != nil {
		return err
	}
	traces, err := tracesIn(ctx, r.Target.Table, target)
	if err != nil {
		return err
	}
	number := resetOf(target, r.Pipeline, r.Dataset) + 1
	for _, name := range slices.Sorted(maps.Keys(r.Flows)) {
		if err := r.restart(ctx, name, traces, number); err != nil {
			return err
		}
	}
	fpResetPlanned.Hit()
	if r.Quarantine != nil {
		refused, err := snapshot(ctx, r.Quarantine)
		if err != nil {
			return err
		}
		if refused != nil {
			if err := r.empty(ctx, r.Quarantine, refused, delta.Commit{}, number, nil); err != nil {
				return err
			}
		}
	}
	if target == nil && r.Columns == nil {
		return nil
	}
	t := r.Target
	c := delta.Commit{Schema: r.Columns, PartitionBy: t.PartitionBy, ClusterBy: t.ClusterBy, Properties: t.Properties, Name: t.Name, Comment: t.Comment}
	if target != nil {
		c.Unset, c.NoComment, c.Redefines = t.Unset, t.Comment == "", true
	}
	if err := r.empty(ctx, t.Table, target, c, number, r.Apply); err != nil {
		return err
	}
	fpResetCommitted.Hit()
	return nil
}

// restart gives a flow its next generation.
func (r *Reset) restart(ctx context.Context, name string, traces []trace, number int64) error {
	f := &Flow{Dataset: r.Dataset, Name: name, Pipeline: r.Pipeline, UpdateID: r.UpdateID, Clock: r.Clock}
	flow := r.Flows[name]
	gen, ok, err := newestGeneration(ctx, flow.Checkpoint)
	if err != nil {
		return err
	}
	next := generation{Format: 1, Generation: newestTrace(traces, f) + 1, UpdateID: r.UpdateID, Created: f.now(), Applies: r.Apply != nil, Reset: &number}
	switch {
	case flow.Snapshots:
		next.Kind = snapshotGeneration
	case flow.Once:
		next.Kind = onceGeneration
	}
	if ok {
		next.Generation = max(next.Generation, gen.Generation+1)
	}
	next.AppID = f.appID(next.Generation)
	return createGeneration(ctx, flow.Checkpoint, next)
}

// empty takes every row of a table away, or makes it, unless that is done.
func (r *Reset) empty(ctx context.Context, table *delta.Table, snap *delta.Snapshot, c delta.Commit, number int64, apply Applier) (err error) {
	c.Read, c.ReplaceAll = snap, snap != nil
	c.Operation, c.EngineInfo = "STREAMING UPDATE", engineInfo
	c.Parameters = map[string]any{"outputMode": "Complete", "queryId": resetID(r.Pipeline, r.Dataset), fullRefreshKey: "true"}
	c.Txn = &delta.Txn{AppID: resetID(r.Pipeline, r.Dataset), Version: number}
	c.Timestamp = (&Flow{Clock: r.Clock}).now()
	if apply != nil {
		err = r.emptyApplied(ctx, table, c, number, apply)
	} else {
		_, err = table.Commit(ctx, c)
	}
	var already *delta.AlreadyCommitted
	if errors.As(err, &already) {
		return nil
	}
	return err
}

// emptyApplied makes the commit an application of no rows.
func (r *Reset) emptyApplied(ctx context.Context, table *delta.Table, c delta.Commit, number int64, apply Applier) (err error) {
	columns := c.Schema
	if columns == nil {
		columns = c.Read.Schema()
	}
	name := taskName(c.Txn.AppID, number, 0)
	app, err := apply.Begin(ctx, ApplyBatch{
		Table: table, Target: c.Read, Replace: true, Columns: columns, Batch: number, Timestamp: c.Timestamp, Name: name,
		Write:  r.Target.writeOptions(c.Read, columns, c.ReplaceAll, name),
		Settle: func(*delta.Commit, Counts) error { return nil }, Tell: func(Notice) {}, Alloc: memory.DefaultAllocator,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Release(context.WithoutCancel(ctx))) }()
	_, _, err = app.Commit(ctx, c)
	return err
}

// resetID is the transaction id of the resets of a table. It is no flow's: those
// end with the number of a generation.
func resetID(pipeline, dataset string) string { return pipeline + "/" + dataset + "/_reset" }

// resetOf gives the number of a table's last reset, 0 for none.
func resetOf(snap *delta.Snapshot, pipeline, dataset string) int64 {
	n, _ := txn(snap, resetID(pipeline, dataset))
	return n
}

// guardReset holds that a generation and its table have seen the same resets:
// otherwise rows of the flow are gone, or those of a full refresh that was cut
// off are still there.
func (f *Flow) guardReset(gen generation, snap *delta.Snapshot, committed int64) error {
	if snap == nil {
		return nil
	}
	var want int64
	if gen.Reset != nil {
		want = *gen.Reset
	}
	have := resetOf(snap, f.Pipeline, f.Dataset)
	switch {
	case have > want:
		return fault.New("CHECKPOINT_MISSING", "full refresh %d took the rows of generation %d of this flow away", have, gen.Generation).
			WithHint("An older checkpoint was restored. Run a full refresh of this table")
	case have < want && committed < 0:
		return fault.New("FULL_REFRESH_UNFINISHED", "full refresh %d of the table was cut off, and its record is gone", want).
			WithHint("Run a full refresh of this table")
	}
	return nil
}

// create makes the table, which has no rows yet.
func (t *Target) create(ctx context.Context, columns *arrow.Schema, at time.Time) (delta.Result, error) {
	return t.Table.Commit(ctx, delta.Commit{
		Operation: "CREATE TABLE", Parameters: map[string]any{}, EngineInfo: engineInfo, Schema: columns,
		PartitionBy: t.PartitionBy, ClusterBy: t.ClusterBy, Properties: t.Properties, Name: t.Name, Comment: t.Comment,
		Timestamp: at,
	})
}

// Create makes a table of the columns that several flows give together, so that
// their order does not hang on which flow commits first. That somebody else was
// faster is no error.
func (t *Target) Create(ctx context.Context, columns *arrow.Schema, clock func() time.Time) error {
	_, err := t.create(ctx, columns, (&Flow{Clock: clock}).now())
	if fault.Is(err, "DELTA_TABLE_ALREADY_EXISTS") {
		return nil
	}
	return err
}

// Retired tells whether a table holds rows of the flow whose checkpoint lies in
// a store.
func Retired(ctx context.Context, checkpoint storage.Store, snap *delta.Snapshot) (bool, error) {
	gen, ok, err := newestGeneration(ctx, checkpoint)
	if err != nil || !ok {
		return false, err
	}
	_, ok = txn(snap, gen.AppID)
	return ok, nil
}

// StateFolder lies among the checkpoints of a table's flows and is none: there an
// Applier keeps what all of them have seen.
const StateFolder = "_state"

// FlowNames lists the flows that have a checkpoint in a table's folder. Each
// costs one step, however many entries are in it.
func FlowNames(ctx context.Context, folder storage.Store) ([]string, error) {
	var names []string
	for after := ""; ; {
		name := ""
		for info, err := range folder.List(ctx, "", storage.ListOptions{NamesOnly: true, After: after}) {
			if err != nil {
				return nil, unavailable(err)
			}
			name, _, _ = strings.Cut(info.Name, "/")
			break
		}
		if name == "" {
			return names, nil
		}
		if name != StateFolder {
			names = append(names, name)
		}
		after = name + "/\U0010FFFF"
	}
}
