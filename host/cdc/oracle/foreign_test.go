package oracle

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// foreignAppend puts a row into the table, with the first key of a random stream or with a new one.
func (x *target) foreignAppend(like []val) {
	x.t.Helper()
	ctx := context.Background()
	snap := x.snapshot()
	b := array.NewRecordBuilder(memory.DefaultAllocator, snap.Schema())
	defer b.Release()
	for i, f := range snap.Schema().Fields() {
		at := -1
		for k := range x.rules.keys {
			if x.rules.keys[k].Name == f.Name {
				at = k
			}
		}
		if at >= 0 {
			put(b.Field(i), like[at])
		} else {
			b.Field(i).AppendNull()
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	w, err := x.table.Write(ctx, delta.WriteOptions{Snapshot: snap, Name: "foreign"})
	if err != nil {
		x.t.Fatal(err)
	}
	if err := w.Write(ctx, rec); err != nil {
		x.t.Fatal(err)
	}
	add, err := w.Close(ctx)
	if err != nil {
		x.t.Fatal(err)
	}
	if _, err := x.table.Commit(ctx, delta.Commit{Read: snap, Operation: "WRITE", EngineInfo: "delta-rs:1.6", Add: add}); err != nil {
		x.t.Fatal(err)
	}
}

// foreignDelete takes rows of a stream out; foreignUpdate writes them anew.
func (x *target) foreignDelete(stream int64) { x.foreignChange(stream, false) }
func (x *target) foreignUpdate(stream int64) { x.foreignChange(stream, true) }

func (x *target) foreignChange(stream int64, update bool) {
	x.t.Helper()
	ctx := context.Background()
	snap := x.snapshot()
	m, err := snap.Mutate(ctx, delta.MutateOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	files, err := snap.Files(ctx)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, f := range files {
		r, err := snap.Scan(ctx, delta.ScanOptions{Files: []delta.AddFile{f}, RowIndex: true})
		if err != nil {
			x.t.Fatal(err)
		}
		for r.Next() {
			rec := r.RecordBatch()
			for i := range int(rec.NumRows()) {
				if get(rec.Column(0), i) != val(stream) {
					continue
				}
				rows := delta.NewRowSet()
				rows.Add(get(rec.Column(int(rec.NumCols())-1), i).(int64))
				if !update {
					err = m.Delete(ctx, f, rows)
				} else {
					one := rec.NewSlice(int64(i), int64(i)+1)
					image := array.NewRecordBatch(snap.Schema(), one.Columns()[:one.NumCols()-1], 1)
					err = m.Update(ctx, f, rows, image)
					image.Release()
					one.Release()
				}
				if err != nil {
					x.t.Fatal(err)
				}
			}
		}
		r.Release()
	}
	if _, err := m.Commit(ctx, delta.Commit{Operation: map[bool]string{true: "UPDATE", false: "DELETE"}[update], EngineInfo: "Apache-Spark/4.0.1"}); err != nil {
		x.t.Fatal(err)
	}
}

func (x *target) restoreTo(version int64) {
	x.t.Helper()
	if _, err := x.table.Restore(context.Background(), delta.RestoreOptions{Version: version}); err != nil {
		x.t.Fatal(err)
	}
}

// foreigners are what another engine may do to the rows of a target, and what
// the next batch says to it: "" is that it goes on, with the right table.
var foreigners = map[string]struct {
	do   func(x *target)
	code string
}{
	"append of a new key":       {func(x *target) { x.foreignAppend([]val{int64(5000), int64(1)}) }, "CDC_TARGET_CHANGED"},
	"append of a key there is":  {func(x *target) { x.foreignAppend([]val{int64(0), int64(0)}) }, "CDC_TARGET_CHANGED"},
	"delete":                    {func(x *target) { x.foreignDelete(0) }, "CDC_TARGET_CHANGED"},
	"delete, then OPTIMIZE":     {func(x *target) { x.foreignDelete(0); x.pack() }, "CDC_TARGET_CHANGED"},
	"delete, then a checkpoint": {func(x *target) { x.foreignDelete(0); x.checkpoint() }, "CDC_TARGET_CHANGED"},
	"update":                    {func(x *target) { x.foreignUpdate(1) }, "CDC_TARGET_CHANGED"},
	"overwrite": {func(x *target) {
		if _, err := x.table.Overwrite(context.Background(), delta.OverwriteOptions{}); err != nil {
			x.t.Fatal(err)
		}
	}, "CDC_TARGET_CHANGED"},
	"restore of the version before": {func(x *target) { x.restoreTo(x.snapshot().Version() - 1) }, "CDC_TARGET_CHANGED"},
	"delete that is taken back": {func(x *target) {
		v := x.snapshot().Version()
		x.foreignDelete(0)
		x.restoreTo(v)
	}, ""},
	"OPTIMIZE and VACUUM": {func(x *target) {
		x.pack()
		if _, err := x.table.Vacuum(context.Background(), delta.VacuumOptions{AllowShort: true}); err != nil {
			x.t.Fatal(err)
		}
	}, ""},
	"a checkpoint": {(*target).checkpoint, ""},
}

func (x *target) pack() {
	x.t.Helper()
	if _, err := x.table.Optimize(context.Background(), delta.OptimizeOptions{PurgeRatio: 0.001}); err != nil {
		x.t.Fatal(err)
	}
}

func (x *target) checkpoint() {
	x.t.Helper()
	if _, err := x.table.Checkpoint(context.Background(), delta.CheckpointClassic); err != nil {
		x.t.Fatal(err)
	}
}

// Whatever another engine does to a target between two batches, the next one
// ends in the right table or stops by name and leaves it alone; a full refresh
// makes it right again. covers B2
func TestWhatOtherEnginesDoIsSeen(t *testing.T) {
	list := shapes()
	for _, name := range slices.Sorted(maps.Keys(foreigners)) {
		for n, s := range []shape{list[0], list[1]} {
			t.Run(name+", "+s.name, func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(11, uint64(n))) //nolint:gosec // small numbers
				changes := append(s.randomChanges(r), change{key: s.key(0), seq: s.seq(70), row: s.randomRow(r)})
				batches := packed([]arrival{batched(r, changes, 3, 0), batched(r, s.randomChanges(r), 3, 0)})
				// The key that others touch is there.
				batches[1] = append(batches[1], change{key: []val{int64(0), int64(0)}, seq: s.seq(80), row: s.randomRow(r)})
				x := newTarget(t, s.rules)
				x.mustApply(batches[:2])
				f := foreigners[name]
				f.do(x)
				left := x.read()
				x.restart()
				err := x.apply(batches[2])
				if f.code == "" {
					if err != nil {
						t.Fatal(err)
					}
					same(t, "rows", x.read(), s.table(batches.all()))
					return
				}
				if !fault.Is(err, f.code) || !strings.Contains(err.Error(), "--full-refresh") {
					t.Fatal(err)
				}
				same(t, "rows after the stop", x.read(), left)
				if err := x.applied(batches.all(), true); err != nil {
					t.Fatal(err)
				}
				same(t, "rows after a full refresh", x.read(), s.table(batches.all()))
			})
		}
	}
}

// Another engine may commit between the look at a target and the commit of the
// batch. Then the batch is refused, or lands and the next one stops by name; it
// is never applied to rows that it did not see.
func TestOtherEnginesMayRaceWithABatch(t *testing.T) {
	list := shapes()
	for _, name := range slices.Sorted(maps.Keys(foreigners)) {
		for n, s := range []shape{list[0], list[1]} {
			t.Run(name+", "+s.name, func(t *testing.T) {
				t.Parallel()
				ctx := context.Background()
				r := rand.New(rand.NewPCG(12, uint64(n))) //nolint:gosec // small numbers
				batches := packed([]arrival{batched(r, s.randomChanges(r), 3, 0), batched(r, s.randomChanges(r), 3, 0)})
				batches[1] = append(batches[1], change{key: []val{int64(0), int64(0)}, seq: s.seq(80), row: s.randomRow(r)})
				x := newTarget(t, s.rules)
				x.mustApply(batches[:2])
				app, c, err := x.begin(ctx, false)
				if err != nil {
					t.Fatal(err)
				}
				if err := x.take(ctx, app, batches[2]); err != nil {
					t.Fatal(err)
				}
				f := foreigners[name]
				f.do(x)
				left := x.read()
				_, _, err = app.Commit(ctx, c)
				if rerr := app.Release(ctx); rerr != nil {
					t.Error(rerr)
				}
				if err == nil {
					x.batches++
					if f.code != "" {
						if err := x.apply(batches[0]); !fault.Is(err, f.code) {
							t.Fatal(err)
						}
						return
					}
					same(t, "rows", x.read(), s.table(batches.all()))
					return
				}
				same(t, "rows after the lost race", x.read(), left)
				err = x.apply(batches[2])
				switch {
				case f.code != "":
					if !fault.Is(err, f.code) {
						t.Fatal(err)
					}
				case err != nil:
					t.Fatal(err)
				default:
					same(t, "rows", x.read(), s.table(batches.all()))
				}
			})
		}
	}
}
