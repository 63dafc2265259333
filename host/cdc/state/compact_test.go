package state

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/storage"
)

// forgotten is what a state may have lost of merged entries: deletes of old
// batches that lead their key, and what lies below a truncate.
func forgotten(entries []entry, before int64, below string) map[entry]bool {
	out := map[entry]bool{}
	key, lead := "", true
	for i, e := range entries {
		if i == 0 || e.key != key {
			key, lead = e.key, true
		}
		if e.order < below {
			out[e] = true
			continue
		}
		lead = lead && e.kind == Delete
		if lead && e.time < before {
			out[e] = true
		}
	}
	return out
}

func TestCompactionsChangeNothingAndKeepRunsFew(t *testing.T) {
	for seed := range seeds(4) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		rng := rand.New(rand.NewPCG(seed, 3))
		perKey := seed%2 == 0
		ctx := context.Background()
		s, dir := testStore(t, mem)
		var history [][]entry
		m := Manifest{K: -1, PerKey: perKey}
		var waiting []*Compaction
		forget, below := int64(0), ""
		compactions := 0
		for step := range 40 {
			entries := randomRuns(rng, perKey, true)[0]
			for i := range entries {
				entries[i].time = int64(step)
			}
			info := write(t, s, mem, rng, entries, valueFieldsOfTests...)
			history = append(history, entries)
			m.Runs = append(m.Runs, info)
			if rng.IntN(2) == 0 {
				waiting = append(waiting, nil)
			}
			if step == 20 && seed%3 == 0 {
				forget = 10
			}
			if step == 30 && perKey && seed%4 == 0 {
				below = "4"
				m.Truncated = []byte(below)
			}
			// Several stand by, of which those that still fit are adopted.
			for range 1 + rng.IntN(3) {
				c, err := s.Compact(ctx, &m, CompactOptions{Entries: int64(50 + rng.IntN(2000)), Forget: forget})
				if err != nil {
					t.Fatal(err)
				}
				if c != nil {
					compactions++
					waiting = append(waiting, c)
				}
				if rng.IntN(2) == 0 {
					continue
				}
				for _, c := range waiting {
					if c != nil {
						if _, err := s.Adopt(ctx, &m, c); err != nil {
							t.Fatal(err)
						}
					}
				}
				waiting = nil
			}
			k, err := s.Put(ctx, &m)
			if err != nil {
				t.Fatal(err)
			}
			st, err := s.Load(ctx, k, valueFieldsOfTests...)
			if err != nil {
				t.Fatal(err)
			}
			want := merged(history, perKey)
			may := forgotten(want, forget, below)
			got := scanAll(t, st, 1+rng.IntN(3))
			gone := map[string]int64{}
			id := func(e entry) string {
				if perKey {
					return e.key // what its entry hid is gone as well
				}
				return e.key + "/" + e.order
			}
			left := slices.DeleteFunc(slices.Clone(want), func(e entry) bool {
				lost := may[e] && !slices.Contains(got, e)
				if lost {
					gone[id(e)] = e.time
				}
				return lost
			})
			// What is forgotten stays so, whatever comes before it later.
			for r := range history {
				history[r] = slices.DeleteFunc(history[r], func(e entry) bool {
					time, ok := gone[id(e)]
					return ok && e.time <= time
				})
			}
			if !slices.Equal(got, left) {
				t.Fatalf("seed %d step %d: %d entries, want %d of %d", seed, step, len(got), len(left), len(want))
			}
			sum := int64(0)
			for _, r := range m.Runs {
				sum += r.Entries
			}
			if sum < int64(len(got)) {
				t.Fatalf("runs of %d entries hold %d", sum, len(got))
			}
			if err := st.Release(); err != nil {
				t.Fatal(err)
			}
			if rng.IntN(4) == 0 {
				if err := s.Sweep(ctx, k); err != nil {
					t.Fatal(err)
				}
			}
		}
		if compactions < 5 {
			t.Fatalf("seed %d: %d compactions", seed, compactions)
		}
		// With nothing in the making any more the folder holds the state and nothing else.
		again := Open(dir, "", mem)
		k, err := again.Put(ctx, &m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Put(ctx, &m); err != nil {
			t.Fatal(err)
		}
		if err := again.Sweep(ctx, k+1); err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{manifestName(k + 1): true}
		for _, r := range m.Runs {
			names[r.Name] = true
		}
		for info, err := range dir.List(ctx, "", storage.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if !names[info.Name] {
				t.Fatalf("seed %d: %s is left", seed, info.Name)
			}
			delete(names, info.Name)
		}
		if len(names) > 0 {
			t.Fatalf("seed %d: %v are gone", seed, names)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		mem.AssertSize(t, 0)
	}
}

// What a plan says, done to sizes alone: runs stay few, an entry is written
// few times, and no merge is larger than it may be.
func TestPlansKeepRunsFewAndRewriteLittle(t *testing.T) {
	for _, c := range []struct {
		base, batch, limit int64
		batches            int
		lost               float64 // share that a merge finds hidden
	}{
		{0, 10_000, 1 << 40, 1000, 0},
		{10_000_000, 10_000, 1 << 40, 1000, 0.5},
		{10_000_000, 10_000, 256 << 10, 1000, 0.2},
		{5_000_000, 10_000, 256 << 10, 1500, 0},
		{50_000_000, 100_000, 1_600_000, 1500, 0},
		{0, 10, 256 << 10, 2000, 0},
		{0, 3_000_000, 48_000_000, 100, 0.2},
	} {
		var m Manifest
		if c.base > 0 {
			m.Runs = []RunInfo{{Name: "base", Entries: c.base}}
		}
		written, most, depth := int64(0), int64(0), 0
		for b := range c.batches {
			m.Runs = append(m.Runs, RunInfo{Name: fmt.Sprint("batch", b), Entries: c.batch})
			for left := c.limit; ; {
				p, ok := plan(m.Runs, c.limit)
				if !ok || p.entries > left && left < c.limit {
					break
				}
				if p.entries > c.limit {
					t.Fatalf("%+v: a merge of %d", c, p.entries)
				}
				adopt(t, &m, p, c.lost, fmt.Sprint("merge", b, "-", left))
				left -= p.entries
				written += p.entries
				most = max(most, p.entries)
			}
			for _, at := range []uint32{0, 1000, 40_000, hashSlices - 1} {
				n := 0
				for _, r := range m.Runs {
					if r.From <= at && at < r.to() {
						n++
					}
				}
				depth = max(depth, n)
			}
		}
		added := c.batch * int64(c.batches)
		levels := bits.Len64(uint64((added+c.base)/c.batch))/levelBits + 2
		if depth > fanIn*levels+8 {
			t.Errorf("%+v: %d runs over one another, %d levels", c, depth, levels)
		}
		small := int64(c.batches) * levelBase // below the first level runs are merged as they are
		if amplification := float64(written-small) / float64(added); amplification > float64(levels+2) {
			t.Errorf("%+v: every entry is written %.1f times, %d levels", c, amplification, levels)
		}
		if pieces := (added+c.base)/max(min(c.limit, 1<<30)/4, 1) + 2; int64(len(m.Runs)) > int64(depth)*pieces {
			t.Errorf("%+v: %d runs", c, len(m.Runs))
		}
		t.Logf("%+v: %d runs, at most %d over one another, written %.1f times, largest merge %d", c, len(m.Runs), depth, float64(written)/float64(added), most)
	}
}

func adopt(t *testing.T, m *Manifest, p merge, lost float64, name string) {
	c := &piece{from: p.from, to: p.to}
	for _, i := range p.runs {
		r := m.Runs[i]
		share := func(from, to uint32) int64 { return r.Entries * int64(to-from) / int64(r.to()-r.From) }
		c.inputs = append(c.inputs, r)
		c.before = append(c.before, share(r.From, p.from))
		c.within = append(c.within, share(p.from, p.to))
	}
	c.run = RunInfo{Name: name}.part(p.from, p.to, max(1, int64(float64(c.read())*(1-lost))))
	places := c.places(m.Runs)
	if places == nil {
		t.Fatal("a plan does not fit the manifest it is for")
	}
	m.Runs = c.replace(m.Runs, places)
}
