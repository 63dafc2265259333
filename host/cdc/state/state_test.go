package state

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

func TestFindAndScanFollowTheRules(t *testing.T) {
	for seed := range seeds(30) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		rng := rand.New(rand.NewPCG(seed, 1))
		perKey, withValues := seed%2 == 0, seed%3 == 0
		var values []arrow.Field
		if withValues {
			values = valueFieldsOfTests
		}
		s, _ := testStore(t, mem)
		runs := randomRuns(rng, perKey, withValues)
		m := &Manifest{Base: 7, PerKey: perKey}
		for _, r := range runs {
			m.Runs = append(m.Runs, write(t, s, mem, rng, r, values...))
		}
		k, err := s.Put(context.Background(), m)
		if err != nil {
			t.Fatal(err)
		}
		st, err := s.Load(context.Background(), k, values...)
		if err != nil {
			t.Fatal(err)
		}
		want := merged(runs, perKey)
		if got := scanAll(t, st, 1+rng.IntN(5)); !slices.Equal(got, want) {
			t.Fatalf("seed %d: scan gives %v, want %v", seed, got, want)
		}
		var hashes []rowcode.Hash
		asked := map[string]bool{}
		for n := range 250 {
			if key := fmt.Sprint("k", n); rng.IntN(3) == 0 {
				asked[key] = true
				hashes = append(hashes, rowcode.HashOf([]byte(key)))
			}
		}
		slices.SortFunc(hashes, rowcode.Hash.Compare)
		rec, err := st.Find(context.Background(), hashes)
		if err != nil {
			t.Fatal(err)
		}
		want = slices.DeleteFunc(want, func(e entry) bool { return !asked[e.key] })
		if got := entriesOf(t, rec); !slices.Equal(got, want) {
			t.Fatalf("seed %d: find gives %v, want %v", seed, got, want)
		}
		rec.Release()
		if err := st.Release(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		mem.AssertSize(t, 0)
	}
}

func TestAStateWithoutEntriesHasNone(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	s, _ := testStore(t, mem)
	ctx := context.Background()
	if info := write(t, s, mem, rand.New(rand.NewPCG(1, 1)), nil); info.Name != "" {
		t.Errorf("no entries are a run: %+v", info)
	}
	k, err := s.Put(ctx, &Manifest{K: -1, Runs: []RunInfo{{}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []int64{-1, k} {
		st, err := s.Load(ctx, version, valueFieldsOfTests...)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := st.Find(ctx, []rowcode.Hash{{1}, {2}})
		if err != nil || rec.NumRows() != 0 || !rec.Schema().Equal(Schema(valueFieldsOfTests...)) {
			t.Fatal(rec, err)
		}
		rec.Release()
		if got := scanAll(t, st, 3); len(got) != 0 || st.Entries() != 0 || st.Manifest().K != version {
			t.Errorf("version %d has %v", version, got)
		}
		m := st.Manifest()
		if c, err := s.Compact(ctx, &m, CompactOptions{}); c != nil || err != nil {
			t.Errorf("nothing is merged to %v, %v", c, err)
		}
		if err := st.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// What would lose entries without a word is refused.
func TestEntriesOutOfOrderAreRefused(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	s, dir := testStore(t, mem)
	a, b := entry{key: "a", order: "1", kind: Upsert}, entry{key: "b", order: "1", kind: Upsert}
	if a.compare(b) > 0 {
		a, b = b, a
	}
	for _, entries := range [][]entry{{b, a}, {a, a}, {{key: a.key, order: "2"}, a}} {
		rec := batch(mem, entries)
		rows, err := array.NewRecordReader(rec.Schema(), []arrow.RecordBatch{rec})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write(context.Background(), rows); fault.CodeOf(err) != "INTERNAL_ERROR" {
			t.Errorf("%v: %v", entries, err)
		}
		rows.Release()
		rec.Release()
	}
	for info := range dir.List(context.Background(), "", storage.ListOptions{}) {
		t.Errorf("%s was written", info.Name)
	}
}
