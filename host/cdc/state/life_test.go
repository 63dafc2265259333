package state

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
)

// writer is a process with a state of its own: what it believes is valid.
type writer struct {
	store *Store
	m     Manifest
	k     int64
	runs  [][]entry
	extra *Compaction
}

// Processes write batches, merge, sweep, die and fall asleep on a store that
// fails. One commits; the others believe in older versions and do what they
// always do. The version that was committed last can always be read.
func TestNothingTakesTheValidStateAway(t *testing.T) {
	for seed := range seeds(8) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		rng := rand.New(rand.NewPCG(seed, 20))
		ctx := context.Background()
		disk, err := storage.OpenDir(t.TempDir(), storage.NoSync)
		if err != nil {
			t.Fatal(err)
		}
		cache := t.TempDir()
		faulty := faultstore.New(disk)
		valid, history := int64(-1), [][]entry(nil)
		start := func() *writer {
			w := &writer{store: Open(faulty, cache, mem), m: Manifest{K: -1, Base: -1, PerKey: true}, k: valid, runs: slices.Clone(history)}
			return w
		}
		current := start()
		var asleep []*writer
		end := func(w *writer) {
			if err := w.store.Close(); err != nil {
				t.Error(err)
			}
		}
		for range 60 {
			faulty.Heal()
			if rng.IntN(3) > 0 {
				effect := faultstore.Fail(errors.New("out of luck"))
				switch rng.IntN(3) {
				case 0:
					effect = faultstore.LoseAnswer(errors.New("no answer"))
				case 1:
					effect = faultstore.Tear(rng.IntN(300), errors.New("torn"))
				}
				n := len(faulty.Calls()) + 1 + rng.IntN(25)
				rule := faultstore.AtCall(n, effect)
				if rng.IntN(4) == 0 {
					rule = faultstore.FromCall(n, effect)
				}
				faulty.Add(rule)
			}
			w := current
			if len(asleep) > 0 && rng.IntN(3) == 0 {
				w = asleep[rng.IntN(len(asleep))]
			}
			believed := w.k
			committed := w.batch(ctx, t, mem, rng)
			// A commit of somebody who slept conflicts: the target names another state by now.
			if committed && w == current {
				valid, history = w.k, w.runs
			} else if committed && rng.IntN(2) == 0 {
				w.k = believed // its commit came to nothing, and nobody tells it why
			} else if committed {
				w.k = valid // it is told, and goes on with what there is
				w.runs = slices.Clone(history)
				if rng.IntN(2) == 0 {
					i := slices.Index(asleep, w)
					asleep[i], current = current, w
				}
			}
			for _, w := range append(asleep, current) {
				if w.k >= 0 && rng.IntN(3) == 0 {
					_ = w.store.Sweep(ctx, w.k) // what it believes is valid; a sweep that fails is nobody's trouble
				}
			}
			faulty.Heal()
			check(t, seed, Open(disk, "", mem), valid, history)
			check(t, seed, Open(faulty, cache, mem), valid, history)
			switch rng.IntN(8) {
			case 0: // it dies, and another one starts
				end(current)
				current = start()
			case 1: // it falls asleep, and another one starts
				asleep = append(asleep, current)
				current = start()
			}
		}
		end(current)
		for _, w := range asleep {
			end(w)
		}
		mem.AssertSize(t, 0)
	}
}

// batch does what applying a batch does, up to the commit: true when it would commit.
func (w *writer) batch(ctx context.Context, t *testing.T, mem memory.Allocator, rng *rand.Rand) bool {
	st, err := w.store.Load(ctx, w.k)
	if err != nil {
		return false
	}
	defer func() {
		if err := st.Release(); err != nil {
			t.Error(err)
		}
	}()
	m := st.Manifest()
	m.PerKey = true
	entries := randomRuns(rng, true, false)[0]
	slices.SortFunc(entries, entry.compare)
	rec := batch(mem, entries)
	defer rec.Release()
	rows, err := array.NewRecordReader(Schema(), []arrow.RecordBatch{rec})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Release()
	info, err := w.store.Write(ctx, rows)
	if err != nil {
		return false
	}
	if w.extra == nil {
		if w.extra, err = w.store.Compact(ctx, &m, CompactOptions{Entries: int64(100 + rng.IntN(2000))}); err != nil {
			return false
		}
	}
	m.Runs = append(m.Runs, info)
	if w.extra != nil && rng.IntN(2) == 0 {
		// Made now, or beside a batch long ago.
		if _, err := w.store.Adopt(ctx, &m, w.extra); err != nil {
			return false
		}
		w.extra = nil
	}
	k, err := w.store.Put(ctx, &m)
	if err != nil {
		return false
	}
	if rng.IntN(5) == 0 {
		return false // it dies between manifest and commit
	}
	w.k, w.runs = k, append(slices.Clone(w.runs), entries)
	return true
}

func check(t *testing.T, seed uint64, s *Store, valid int64, history [][]entry) {
	t.Helper()
	st, err := s.Load(context.Background(), valid)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	got := scanAll(t, st, 1)
	want := merged(history, true)
	for i := range want {
		want[i].value = ""
	}
	if !slices.Equal(got, want) {
		t.Fatalf("seed %d: %d entries, want %d", seed, len(got), len(want))
	}
	if err := errors.Join(st.Release(), s.Close()); err != nil {
		t.Fatal(err)
	}
}
