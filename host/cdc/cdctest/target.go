package cdctest

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/stream"
)

// Target is a table that changes are applied to.
type Target struct {
	// Definition may be changed between batches.
	Definition cdc.Definition
	// Applier makes the applier of a definition; nil is cdc.New.
	Applier func(cdc.Definition) stream.Applier
	// Properties are those that the table is made with. Deletion vectors are on
	// unless they say otherwise.
	Properties map[string]string
	// App is the flow's application; another one is another flow.
	App string
	// Now is the timestamp of the next batch. It goes on by a second with each.
	Now time.Time
	// BeforeCommit is called between the last Take and Commit.
	BeforeCommit func()

	Table *delta.Table
	Mem   memory.Allocator

	dir     string
	lake    storage.Store
	batches map[string]int64

	mu      sync.Mutex
	notices []stream.Notice
}

// New makes a target that has no table yet. State, Cache and StateID of the
// definition are set; its memory is checked when the test ends.
func New(t testing.TB, d cdc.Definition) *Target {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	x, err := Open(t.TempDir(), d, mem)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		mem.AssertSize(t, 0)
	})
	return x
}

// Open gives the target in a folder, which may have been there before.
func Open(dir string, d cdc.Definition, mem memory.Allocator) (*Target, error) {
	lake, err := storage.OpenDir(filepath.Join(dir, "lake"), storage.NoSync)
	if err != nil {
		return nil, err
	}
	if d.Dataset == "" {
		d.Dataset, d.Flow = "c.s.target", "flow"
	}
	d.StateID = "pipeline/" + d.Dataset + "/cdc-state"
	d.Cache = filepath.Join(dir, "cache")
	if d.TempDir == "" {
		d.TempDir = filepath.Join(dir, "tmp")
	}
	if err := os.MkdirAll(d.TempDir, 0o755); err != nil {
		return nil, err
	}
	x := &Target{
		Definition: d, App: "pipeline/flow/1", Now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
		Table: delta.Open(storage.Sub(lake, "target")), Mem: mem, dir: dir, lake: lake, batches: map[string]int64{},
	}
	x.Definition.State = state.Open(storage.Sub(lake, "checkpoints/target/_state"), filepath.Join(d.Cache, "state"), mem)
	return x, nil
}

// Close closes the state.
func (x *Target) Close() error { return x.Definition.State.Close() }

// LoseCaches removes everything that can be built again.
func (x *Target) LoseCaches() error {
	if err := x.Definition.State.Close(); err != nil {
		return err
	}
	return os.RemoveAll(x.Definition.Cache)
}

// StateDir is the folder of the state.
func (x *Target) StateDir() string { return filepath.Join(x.dir, "lake", "checkpoints/target/_state") }

// TableDir is the folder of the table.
func (x *Target) TableDir() string { return filepath.Join(x.dir, "lake", "target") }

// Notices gives what users were told.
func (x *Target) Notices() []stream.Notice {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]stream.Notice(nil), x.notices...)
}

// Snapshot gives the table as it is, nil when there is none.
func (x *Target) Snapshot(ctx context.Context) (*delta.Snapshot, error) {
	snap, err := x.Table.Snapshot(ctx)
	if fault.Is(err, "DELTA_TABLE_NOT_FOUND") {
		return nil, nil
	}
	return snap, err
}

// Apply applies one batch, whose rows come from a task for each of recs.
func (x *Target) Apply(ctx context.Context, recs ...arrow.RecordBatch) (stream.Counts, error) {
	return x.apply(ctx, false, 0, recs)
}

// ApplyTasks does so with no more than so many tasks at once.
func (x *Target) ApplyTasks(ctx context.Context, atOnce int, recs ...arrow.RecordBatch) (stream.Counts, error) {
	return x.apply(ctx, false, atOnce, recs)
}

// Refresh applies the first batch of a full refresh.
func (x *Target) Refresh(ctx context.Context, recs ...arrow.RecordBatch) (stream.Counts, error) {
	return x.apply(ctx, true, 0, recs)
}

func (x *Target) apply(ctx context.Context, replace bool, atOnce int, recs []arrow.RecordBatch) (n stream.Counts, err error) {
	snap, err := x.Snapshot(ctx)
	if err != nil {
		return n, err
	}
	applier := x.Applier
	if applier == nil {
		applier = cdc.New
	}
	flow := applier(x.Definition)
	b, c, err := x.plan(flow, snap, replace, recs)
	if err != nil {
		return n, err
	}
	app, err := flow.Begin(ctx, *b)
	if err != nil {
		return n, err
	}
	defer func() {
		if e := app.Release(context.WithoutCancel(ctx)); err == nil {
			err = e
		}
	}()
	tasks, tctx := errgroup.WithContext(ctx)
	if atOnce > 0 {
		tasks.SetLimit(atOnce)
	}
	for i, rec := range recs {
		tasks.Go(func() error { return app.Take(tctx, i, rec) })
	}
	if err := tasks.Wait(); err != nil {
		return n, err
	}
	if x.BeforeCommit != nil {
		x.BeforeCommit()
	}
	_, n, err = app.Commit(ctx, *c)
	if err == nil {
		x.batches[x.App]++
		x.Now = x.Now.Add(time.Second)
	}
	return n, err
}

// plan makes the batch and its commit, as host/stream does.
func (x *Target) plan(flow stream.Applier, snap *delta.Snapshot, replace bool, recs []arrow.RecordBatch) (*stream.ApplyBatch, *delta.Commit, error) {
	b := &stream.ApplyBatch{
		Table: x.Table, Target: snap, Replace: replace, Batch: x.batches[x.App], Timestamp: x.Now, Alloc: x.Mem,
		Settle: func(*delta.Commit, stream.Counts) error { return nil },
		Tell: func(n stream.Notice) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.notices = append(x.notices, n)
		},
	}
	b.Name = "batch-" + b.Timestamp.Format("150405.000000") + "-" + filepath.Base(x.App)
	c := &delta.Commit{
		Read: snap, Operation: "STREAMING UPDATE", Parameters: map[string]any{}, EngineInfo: "weir",
		Txn: &delta.Txn{AppID: x.App, Version: b.Batch}, ReplaceAll: replace && snap != nil, Redefines: replace && snap != nil,
	}
	properties := map[string]string{"delta.enableDeletionVectors": "true"}
	maps.Copy(properties, x.Properties)
	if len(recs) > 0 {
		b.Rows = recs[0].Schema()
		columns, err := flow.Schema(b.Rows)
		if err != nil {
			return nil, nil, err
		}
		b.Columns, c.Schema = columns, columns
		if snap != nil && !replace {
			merged, added, err := snap.MergeSchema(columns)
			if err != nil {
				return nil, nil, err
			}
			b.Columns, c.Schema = merged, nil
			if len(added) > 0 {
				c.Schema = merged
			}
		}
	} else if snap != nil {
		b.Columns = snap.Schema()
	}
	if snap == nil || replace {
		c.Properties = properties
	}
	b.Write = delta.WriteOptions{Schema: b.Columns, Snapshot: snap, Name: b.Name, Replace: replace, Redefines: c.Redefines, Properties: c.Properties}
	return b, c, nil
}
