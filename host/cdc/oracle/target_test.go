package oracle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
	"github.com/weir-data/weir/host/stream"
)

const (
	testDataset = "dev.shop.customers"
	startColumn = "__START_AT"
	endColumn   = "__END_AT"
	testApp     = "pipeline/dev.shop.customers/flow/1"
)

// target is a real table of a real applier, in a folder of its own.
type target struct {
	t     testing.TB
	rules rules
	dir   string
	lake  *faultstore.Store
	table *delta.Table
	files storage.Store // of the state
	cache string
	// columns are those that the next batch has of the rules'; nil is all.
	columns []arrow.Field
	// version makes the next batch a snapshot; 0 is none.
	version int64
	// define changes the definition of each batch.
	define func(*cdc.Definition)
	// batches is how many were applied.
	batches     int64
	properties  map[string]string
	partitionBy []string
	told        []stream.Notice
	compactions int // that merged something
	counts      []stream.Counts
	mem         memory.Allocator
}

func newTarget(t testing.TB, r rules) *target {
	t.Helper()
	x := &target{t: t, rules: r, dir: t.TempDir(), mem: memory.DefaultAllocator,
		properties: map[string]string{"delta.enableDeletionVectors": "true"}}
	disk, err := storage.OpenDir(filepath.Join(x.dir, "lake"), storage.NoSync)
	if err != nil {
		t.Fatal(err)
	}
	x.lake, x.cache = faultstore.New(disk), filepath.Join(x.dir, "cache")
	x.restart()
	t.Cleanup(func() {
		for _, n := range x.told {
			if n.Code == "CDC_UPKEEP_FAILED" {
				t.Errorf("the state could not be looked after: %s", n.Text)
			}
		}
	})
	return x
}

// restart forgets what a process knows.
func (x *target) restart() {
	x.table = delta.Open(storage.Sub(x.lake, "dev/shop/customers"))
	x.files = storage.Sub(x.lake, "_weir/checkpoints/dev.shop.customers/_state")
}

// loseCache loses what lies on this machine, too.
func (x *target) loseCache() {
	x.t.Helper()
	if err := os.RemoveAll(x.cache); err != nil {
		x.t.Fatal(err)
	}
	x.restart()
}

// definition is that of a batch, with what a process opens for it.
func (x *target) definition() (cdc.Definition, *state.Store) {
	store := state.Open(x.files, filepath.Join(x.cache, "state"), x.mem)
	d := cdc.Definition{
		Dataset: testDataset, Flow: "flow", StateID: "pipeline/" + testDataset + "/cdc-state",
		SCDType: x.rules.scd, LastBy: x.rules.last, Workers: 2,
		State: store, Cache: x.cache, TempDir: x.dir,
	}
	for _, f := range x.rules.keys {
		d.Keys = append(d.Keys, f.Name)
	}
	if x.rules.tracked != nil {
		d.Tracked = cdc.Choice{Only: x.rules.tracked}
	}
	if x.rules.ignoreNull != nil {
		d.IgnoreNulls = &cdc.Choice{Only: x.rules.ignoreNull}
	}
	if x.define != nil {
		x.define(&d)
	}
	return d, store
}

// schema is that of the rows that the applier takes.
func (x *target) schema() *arrow.Schema {
	columns := x.columns
	if columns == nil {
		columns = x.rules.columns
	}
	fields := append(slices.Clone(x.rules.keys), columns...)
	if x.version > 0 {
		return arrow.NewSchema(fields, nil)
	}
	fields = append(fields, field(cdc.SequenceColumn, x.rules.sequence), field(cdc.DeleteColumn, arrow.FixedWidthTypes.Boolean))
	if x.rules.scd == 1 {
		fields = append(fields, field(cdc.TruncateColumn, arrow.FixedWidthTypes.Boolean))
	}
	for i, name := range x.rules.last {
		f := x.rules.columns[x.rules.column(name)]
		fields = append(fields, field(fmt.Sprint(cdc.TieColumn, i), f.Type))
	}
	return arrow.NewSchema(fields, nil)
}

// rows makes a batch of changes.
func (x *target) rows(changes []change) arrow.RecordBatch {
	b := array.NewRecordBuilder(x.mem, x.schema())
	defer b.Release()
	for i, c := range changes {
		row := slices.Clone(c.key)
		for len(row) < len(x.rules.keys) {
			row = append(row, nil) // a truncate has no key
		}
		for _, f := range b.Schema().Fields()[len(row):] {
			if at := x.rules.column(f.Name); at < 0 {
				break
			} else if c.op == truncate {
				row = append(row, nil)
			} else {
				row = append(row, c.row[at])
			}
		}
		// A condition that is NULL says the same as one that is false.
		no := val(false)
		if i%2 == 1 {
			no = nil
		}
		flag := func(o op) val {
			if c.op == o {
				return true
			}
			return no
		}
		if x.version == 0 {
			row = append(row, c.seq, flag(remove))
		}
		if x.version == 0 && x.rules.scd == 1 {
			row = append(row, flag(truncate))
		}
		for _, name := range x.rules.last {
			if c.op == truncate {
				row = append(row, nil)
				continue
			}
			row = append(row, c.row[x.rules.column(name)])
		}
		for f, v := range row {
			put(b.Field(f), v)
		}
	}
	return b.NewRecordBatch()
}

// look gives the table as it is, nil for none.
func (x *target) look() (*delta.Snapshot, error) {
	snap, err := x.table.Snapshot(context.Background())
	if fault.Is(err, "DELTA_TABLE_NOT_FOUND") {
		return nil, nil
	}
	return snap, err
}

func (x *target) snapshot() *delta.Snapshot {
	x.t.Helper()
	snap, err := x.look()
	if err != nil {
		x.t.Fatal(err)
	}
	return snap
}

// begin starts the application of a batch.
func (x *target) begin(ctx context.Context, replace bool) (stream.Application, delta.Commit, error) {
	snap, err := x.look()
	if err != nil {
		return nil, delta.Commit{}, err
	}
	d, store := x.definition()
	a := cdc.New(d)
	var snapshot *abi.Version
	if x.version > 0 {
		a = cdc.NewSnapshots(d, x.rules.sequence)
		snapshot = &abi.Version{Type: abi.VersionInt, Value: fmt.Sprint(x.version)}
	}
	columns, err := a.Schema(x.schema())
	if err != nil {
		return nil, delta.Commit{}, err
	}
	c := delta.Commit{Read: snap, Operation: "STREAMING UPDATE", Parameters: map[string]any{}, Txn: &delta.Txn{AppID: testApp, Version: x.batches}}
	name := fmt.Sprintf("part-%s-%d", strings.Repeat("0", 4), x.batches)
	w := delta.WriteOptions{Schema: columns, Snapshot: snap, Name: name, Replace: replace}
	switch {
	case snap == nil || replace:
		c.Schema, c.Properties, c.PartitionBy = columns, x.properties, x.partitionBy
		c.ReplaceAll = snap != nil
	default:
		merged, added, err := snap.MergeSchema(columns)
		if err != nil {
			return nil, c, err
		}
		columns = merged
		if len(added) > 0 {
			c.Schema = merged
		}
	}
	w.Schema, w.Properties = columns, x.properties
	if w.PartitionBy = x.partitionBy; snap != nil && !replace {
		w.PartitionBy = nil
	}
	app, err := a.Begin(ctx, stream.ApplyBatch{
		Table: x.table, Target: snap, Replace: replace, Rows: x.schema(), Columns: columns,
		Batch: x.batches, Timestamp: time.Date(2026, 11, 30, 12, 0, int(x.batches), 0, time.UTC), Name: name, Write: w,
		Snapshot: snapshot,
		Settle:   func(*delta.Commit, stream.Counts) error { return nil },
		Tell:     func(n stream.Notice) { x.told = append(x.told, n) },
		Alloc:    x.mem,
	})
	if err != nil {
		return nil, c, errors.Join(err, store.Close())
	}
	return &opened{app, store}, c, nil
}

// opened is an application that closes the state after it.
type opened struct {
	stream.Application
	store *state.Store
}

func (o *opened) Release(ctx context.Context) error {
	return errors.Join(o.Application.Release(ctx), o.store.Close())
}

// apply takes one batch into the table. Its rows come in pieces, from two tasks at once.
func (x *target) apply(changes []change) error { return x.applied(changes, false) }

func (x *target) applied(changes []change, replace bool) (err error) {
	ctx := context.Background()
	app, c, err := x.begin(ctx, replace)
	if err != nil {
		return err
	}
	defer func() {
		if rerr := app.Release(ctx); err == nil {
			err = rerr
		}
	}()
	if err := x.take(ctx, app, changes); err != nil {
		return err
	}
	_, counts, err := app.Commit(ctx, c)
	if err != nil {
		return err
	}
	x.batches++
	x.counts = append(x.counts, counts)
	return nil
}

func (x *target) take(ctx context.Context, app stream.Application, changes []change) error {
	var wait sync.WaitGroup
	errs := make([]error, 2)
	half := len(changes) / 2
	for task, part := range [][]change{changes[:half], changes[half:]} {
		wait.Go(func() {
			for piece := range slices.Chunk(part, 500) {
				rec := x.rows(piece)
				if err := app.Take(ctx, task, rec); err != nil && errs[task] == nil {
					errs[task] = err
				}
				rec.Release()
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *target) mustApply(a arrival) {
	x.t.Helper()
	for i, batch := range a {
		if err := x.apply(batch); err != nil {
			x.t.Fatalf("batch %d: %v", i, err)
		}
	}
}

// read gives the rows of the table as the model writes them, sorted.
func (x *target) read() []string {
	x.t.Helper()
	snap := x.snapshot()
	if snap == nil {
		return nil
	}
	r, err := snap.Scan(context.Background(), delta.ScanOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	defer r.Release()
	var out []string
	for r.Next() {
		rec := r.RecordBatch()
		for i := range int(rec.NumRows()) {
			out = append(out, x.rowOf(rec, i))
		}
	}
	if r.Err() != nil {
		x.t.Fatal(r.Err())
	}
	slices.Sort(out)
	return out
}

// rowOf gives a row of the table as the model writes it.
func (x *target) rowOf(rec arrow.RecordBatch, i int) string {
	value := func(name string) val {
		at := rec.Schema().FieldIndices(name)
		if len(at) != 1 {
			return nil
		}
		return get(rec.Column(at[0]), i)
	}
	var key, row []val
	for _, f := range x.rules.keys {
		key = append(key, value(f.Name))
	}
	for _, f := range x.rules.columns {
		row = append(row, value(f.Name))
	}
	return x.rules.rowText(key, row, value(startColumn), value(endColumn))
}
