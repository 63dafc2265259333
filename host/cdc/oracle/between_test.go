package oracle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/stream"
)

// disturb does what may happen to a target between two batches without changing
// a row: a new process, a lost cache, and the care that any engine takes.
func (x *target) disturb(r *rand.Rand) {
	x.t.Helper()
	if x.snapshot() == nil {
		return
	}
	ctx := context.Background()
	var err error
	switch r.IntN(10) {
	case 0:
		x.restart()
	case 1:
		x.loseCache()
	case 2:
		_, err = x.table.Optimize(ctx, delta.OptimizeOptions{PurgeRatio: 0.01})
	case 3:
		// Rows that are rearranged in part: a small target size leaves several files.
		_, err = x.table.Optimize(ctx, delta.OptimizeOptions{TargetSize: 8 << 10, PurgeRatio: -1})
	case 4:
		_, err = x.table.Vacuum(ctx, delta.VacuumOptions{AllowShort: true})
	case 5:
		_, err = x.table.Checkpoint(ctx, delta.CheckpointClassic)
	case 6:
		_, err = x.table.Commit(ctx, delta.Commit{Read: x.snapshot(), Operation: "SET TBLPROPERTIES", Properties: map[string]string{"user.note": fmt.Sprint(r.IntN(100))}})
	case 8:
		err = x.compact(ctx, 1+r.Int64N(60))
	case 7:
		d, store := x.definition()
		err = errors.Join(cdc.New(d).(stream.Keeper).Keep(ctx, x.table, func(stream.Notice) {}), store.Close())
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

// compact merges a small part of the state's runs, as a batch does in large.
func (x *target) compact(ctx context.Context, entries int64) error {
	d, store := x.definition()
	k, ok := x.snapshot().Txn(d.StateID)
	if !ok {
		return store.Close()
	}
	st, err := store.Load(ctx, k)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	m := st.Manifest()
	c, err := store.Compact(ctx, &m, state.CompactOptions{Entries: entries})
	if err == nil && c != nil {
		_, err = store.Adopt(ctx, &m, c)
	}
	if err == nil && c != nil {
		if k, err = store.Put(ctx, &m); err == nil {
			_, err = x.table.Commit(ctx, delta.Commit{Read: x.snapshot(), Operation: "STREAMING UPDATE", Also: []delta.Txn{{AppID: d.StateID, Version: k}}})
		}
	}
	if c != nil {
		x.compactions++
	}
	return errors.Join(err, st.Release(), store.Close())
}

// A state that is merged a few entries at a time, after each of many small
// batches, gives the same table as one that never is. covers B2
func TestTheStateIsMergedInSmallPieces(t *testing.T) {
	seed := seedOf(t)
	var compactions atomic.Int64 // of all: a truncate may leave too little to merge
	t.Cleanup(func() {
		if compactions.Load() == 0 {
			t.Error("nothing was merged")
		}
	})
	for n, s := range shapes() {
		if n%3 != 0 {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // small numbers
			x := newTarget(t, s.rules)
			defer func() { compactions.Add(int64(x.compactions)) }()
			x.define = func(d *cdc.Definition) { d.ScanShare = 1e9 }
			all := packed([]arrival{batched(r, s.randomChanges(r), 20, 0.3), batched(r, s.randomChanges(r), 20, 0.3), batched(r, s.randomChanges(r), 20, 0)})
			if s.scd == 1 {
				for _, c := range s.randomTruncates(r) {
					all[r.IntN(len(all))] = []change{c}
				}
			}
			var seen []change
			for i, batch := range all {
				if err := x.apply(batch); err != nil {
					t.Fatalf("batch %d: %v", i, err)
				}
				seen = append(seen, batch...)
				if err := x.compact(context.Background(), 1+r.Int64N(40)); err != nil {
					t.Fatalf("after batch %d: %v", i, err)
				}
				if r.IntN(5) == 0 && !same(t, fmt.Sprintf("batch %d", i), x.read(), s.table(seen)) {
					return
				}
			}
			same(t, "in the end", x.read(), s.table(seen))
		})
	}
}

// Deletes that are forgotten in time change nothing as long as no change of
// their keys comes later than that. covers B2
func TestForgottenDeletesAreNotMissed(t *testing.T) {
	seed := seedOf(t)
	for n, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // small numbers
			const late = 3                              // batches, one a second
			var arrivals []arrival
			for at := range 9 {
				arrivals = append(arrivals, append(make(arrival, at), batched(r, s.randomChanges(r), late, 0.2)...))
			}
			x := newTarget(t, s.rules)
			x.define = func(d *cdc.Definition) {
				d.Tombstones = late * time.Second
				d.ScanShare = []float64{1e9, 1e9, 1e-9}[r.IntN(3)]
			}
			x.holds(arrivals, nil)
		})
	}
}

// flavours are kinds of tables that a target may be.
var flavours = []func(x *target){
	func(*target) {},
	func(x *target) { x.properties["delta.enableDeletionVectors"] = "false" },
	func(x *target) { x.partitionBy = []string{"n"} },
	func(x *target) { x.properties["delta.columnMapping.mode"] = "name"; x.partitionBy = []string{"stream"} },
	func(x *target) { x.properties["delta.enableRowTracking"] = "true" },
	func(x *target) {
		x.properties["delta.enableDeletionVectors"], x.properties["delta.targetFileSize"] = "false", "4096"
	},
	func(x *target) {
		x.properties["delta.checkpointInterval"], x.properties["delta.checkpointPolicy"] = "3", "v2"
	},
}

// Streams end in the right table whatever happens between their batches. The
// change feed of the target is the difference between its versions, and a full
// refresh makes it anew. covers B2
func TestWhatHappensBetweenBatchesDoesNotMatter(t *testing.T) {
	seed := seedOf(t)
	for n, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // small numbers
			for round := 0; round*1000 < soak(t) && !t.Failed(); round++ {
				s.undisturbed(t, r)
			}
		})
	}
}

func (s *shape) undisturbed(t *testing.T, r *rand.Rand) {
	const batches = 8
	var arrivals []arrival
	for range 4 {
		arrivals = append(arrivals, batched(r, s.randomChanges(r), batches, 0.2))
	}
	all := packed(arrivals)
	x := newTarget(t, s.rules)
	x.properties["delta.enableChangeDataFeed"] = "true"
	flavours[r.IntN(len(flavours))](x)
	x.define = func(d *cdc.Definition) { d.ScanShare = []float64{0, 1e9, 1e-9}[r.IntN(3)] }
	var seen []change
	shown := map[string]int{}
	for i, batch := range all {
		refresh := r.IntN(batches) == 0
		if refresh {
			seen = nil
		}
		seen = append(seen, batch...)
		from := int64(-1)
		if snap := x.snapshot(); snap != nil {
			from = snap.Version()
		}
		if err := x.applied(batch, refresh); err != nil {
			t.Fatalf("batch %d: %v", i, err)
		}
		got := x.read()
		if !same(t, fmt.Sprintf("batch %d (full refresh: %v)", i, refresh), got, s.table(seen)) {
			return
		}
		now := counted(got)
		if from >= 0 {
			x.feedIs(from+1, shown, now)
		}
		shown = now
		for range r.IntN(3) {
			x.disturb(r)
		}
	}
}

func counted(rows []string) map[string]int {
	out := map[string]int{}
	for _, row := range rows {
		out[row]++
	}
	return out
}

// feedIs compares what the change feed tells from a version on with what the
// rows were before and are now.
func (x *target) feedIs(from int64, before, now map[string]int) {
	x.t.Helper()
	r, err := x.table.Changes(context.Background(), delta.ChangesOptions{From: from, To: -1})
	if err != nil {
		x.t.Fatal(err)
	}
	defer r.Release()
	rows := maps.Clone(before)
	for r.Next() {
		rec := r.RecordBatch()
		kinds := rec.Column(rec.Schema().FieldIndices(delta.ChangeTypeColumn)[0]).(*array.String)
		for i := range int(rec.NumRows()) {
			by := 1
			if kind := kinds.Value(i); kind == "delete" || kind == "update_preimage" {
				by = -1
			}
			rows[x.rowOf(rec, i)] += by
		}
	}
	if r.Err() != nil {
		x.t.Fatal(r.Err())
	}
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		if rows[row] != now[row] {
			x.t.Errorf("the change feed from version %d leaves %d rows, there are %d: %s", from, rows[row], now[row], row)
		}
	}
}
