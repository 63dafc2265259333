package keyindex

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
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

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

var background = context.Background()

var schema = arrow.NewSchema([]arrow.Field{
	{Name: "region", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "v", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "__START_AT", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
}, nil)

// row is one row of the test table.
type row struct{ id, start int64 }

func (r row) region() string { return "r" + fmt.Sprint(r.id%3) }

// batch makes rows; a negative id is a NULL key.
func batch(mem memory.Allocator, rows []row) arrow.RecordBatch {
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	for _, r := range rows {
		b.Field(0).(*array.StringBuilder).Append(r.region())
		if r.id < 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.Int64Builder).Append(r.id)
		}
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprint("value ", r.start))
		b.Field(3).(*array.Int64Builder).Append(r.start)
	}
	return b.NewRecordBatch()
}

type fixture struct {
	tb    testing.TB
	table *delta.Table
	cache string
	opt   Options
	index *Index
	names int
	mem   *memory.CheckedAllocator
}

func newFixture(tb testing.TB, change func(*Options)) *fixture {
	tb.Helper()
	dir := tb.TempDir()
	store, err := storage.OpenDir(filepath.Join(dir, "table"), storage.NoSync)
	if err != nil {
		tb.Fatal(err)
	}
	f := &fixture{tb: tb, table: delta.Open(store), cache: filepath.Join(dir, "cache"), mem: memory.NewCheckedAllocator(memory.NewGoAllocator())}
	_, err = f.table.Commit(background, delta.Commit{Schema: schema, Properties: map[string]string{"delta.enableDeletionVectors": "true"}})
	if err != nil {
		tb.Fatal(err)
	}
	f.opt = Options{Cache: f.cache, Table: f.snapshot().Metadata().ID, Keys: []string{"region", "id"}}
	if change != nil {
		change(&f.opt)
	}
	f.index = Open(f.opt)
	tb.Cleanup(func() {
		if err := f.index.Close(); err != nil {
			tb.Error(err)
		}
		f.mem.AssertSize(tb, 0)
	})
	return f
}

// reopen is another process with the same cache.
func (f *fixture) reopen() {
	f.tb.Helper()
	if err := f.index.Close(); err != nil {
		f.tb.Fatal(err)
	}
	f.index = Open(f.opt)
}

func (f *fixture) snapshot() *delta.Snapshot {
	f.tb.Helper()
	s, err := f.table.Snapshot(background)
	if err != nil {
		f.tb.Fatal(err)
	}
	return s
}

// mutate changes the table and commits.
func (f *fixture) mutate(change func(m *delta.Mutation) error) {
	f.tb.Helper()
	f.names++
	m, err := f.snapshot().Mutate(background, delta.MutateOptions{Name: fmt.Sprintf("batch-%05d", f.names)})
	if err == nil {
		err = change(m)
	}
	if err == nil {
		_, err = m.Commit(background, delta.Commit{Operation: "MERGE"})
	}
	if err != nil {
		f.tb.Fatal(err)
	}
}

func (f *fixture) insert(rows ...row) {
	f.tb.Helper()
	f.mutate(func(m *delta.Mutation) error {
		rec := batch(f.mem, rows)
		defer rec.Release()
		return m.Insert(background, rec)
	})
}

// ids are the hashes of rows, as the changes of a flow would have them.
func (f *fixture) ids(rows ...row) []rowcode.Hash {
	f.tb.Helper()
	rec := batch(f.mem, rows)
	defer rec.Release()
	start := -1
	if f.opt.Start != "" {
		start = 3
	}
	ids, err := IDs(rec, []int{0, 1}, start)
	if err != nil {
		f.tb.Fatal(err)
	}
	return ids
}

func (f *fixture) locate(rows ...row) []Place {
	f.tb.Helper()
	places, err := f.index.Locate(background, f.snapshot(), f.ids(rows...))
	if err != nil {
		f.tb.Fatal(err)
	}
	return places
}

func (f *fixture) delete(rows ...row) {
	f.tb.Helper()
	places := f.locate(rows...)
	f.mutate(func(m *delta.Mutation) error {
		for _, g := range Group(places) {
			if err := m.Delete(background, *g.File, g.Set()); err != nil {
				return err
			}
		}
		return nil
	})
}

// scanned tells where each live row lies, by reading the table.
func (f *fixture) scanned() map[row]string {
	f.tb.Helper()
	out := map[row]string{}
	s := f.snapshot()
	files, err := s.Files(background)
	if err != nil {
		f.tb.Fatal(err)
	}
	for _, file := range files {
		r, err := s.Scan(background, delta.ScanOptions{Columns: []string{"id", "__START_AT"}, Files: []delta.AddFile{file}, RowIndex: true})
		if err != nil {
			f.tb.Fatal(err)
		}
		for r.Next() {
			id, start, at := r.RecordBatch().Column(0).(*array.Int64), r.RecordBatch().Column(1).(*array.Int64), r.RecordBatch().Column(2).(*array.Int64)
			for i := range id.Len() {
				if id.IsValid(i) {
					out[row{id.Value(i), start.Value(i)}] = fmt.Sprint(file.Path, "#", at.Value(i))
				}
			}
		}
		if r.Err() != nil {
			f.tb.Fatal(r.Err())
		}
		r.Release()
	}
	return out
}

// check compares every row of the table, and some that it does not have, with a lookup.
func (f *fixture) check(more ...row) {
	f.tb.Helper()
	want := f.scanned()
	asked := more
	for r := range want {
		asked = append(asked, r)
	}
	for i, p := range f.locate(asked...) {
		got, where := "", want[asked[i]]
		if f.opt.Start == "" {
			where = ""
			for r, at := range want {
				if r.id == asked[i].id {
					where = at
				}
			}
		}
		if p.File != nil {
			got = fmt.Sprint(p.File.Path, "#", p.Row)
		}
		if got != where {
			f.tb.Fatalf("row %v is found at %q and lies at %q", asked[i], got, where)
		}
	}
}

func TestALookupFindsLiveRowsOnly(t *testing.T) {
	f := newFixture(t, nil)
	if p := f.locate(row{1, 0}); p[0].File != nil {
		t.Errorf("found in an empty table: %v", p)
	}
	f.insert(row{1, 0}, row{2, 0}, row{-1, 0}, row{3, 0}, row{-1, 0})
	f.insert(row{4, 0})
	f.check(row{5, 0})
	f.delete(row{2, 0}, row{4, 0})
	f.check(row{2, 0}, row{4, 0}, row{5, 0})
	f.insert(row{2, 1})
	f.check(row{4, 0}, row{2, 0})
	// Hashes in any order and more than once have their answers in place.
	ask := []row{{3, 0}, {9, 0}, {1, 0}, {3, 0}, {1, 0}, {9, 0}}
	places := f.locate(ask...)
	for i, r := range ask {
		if (places[i].File != nil) != (r.id != 9) || places[i] != f.locate(r)[0] {
			t.Errorf("%v: %v", r, places[i])
		}
	}
	ids := f.ids(ask...)
	slices.SortFunc(ids, func(a, b rowcode.Hash) int { return a.Compare(b) })
	sorted, err := f.index.Locate(background, f.snapshot(), ids)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] && sorted[i] != sorted[i-1] {
			t.Errorf("%v and %v of one hash", sorted[i-1], sorted[i])
		}
	}
}

// An index that was warmed has what a lookup needs, as far as that is little
// work; one that could not be is made by the lookup.
func TestAWarmIndexHasWhatALookupNeeds(t *testing.T) {
	f := newFixture(t, nil)
	f.insert(row{1, 1}, row{2, 1}, row{3, 1})
	f.delete(row{2, 1})
	f.insert(row{4, 2})
	f.reopen()
	if err := os.RemoveAll(f.cache); err != nil {
		t.Fatal(err)
	}
	s := f.snapshot()
	size, files := int64(0), 0
	for file := range s.EachFile() {
		size += file.Size
		files++
	}
	opened := func() int {
		f.index.mu.Lock()
		defer f.index.mu.Unlock()
		return len(f.index.open)
	}
	warm := func(most int64) {
		t.Helper()
		if err := f.index.Warm(background, s, most); err != nil {
			t.Fatal(err)
		}
	}
	warm(size - 1)
	if n := opened(); n != 0 {
		t.Errorf("%d index files were made, although they are too much work", n)
	}
	warm(size)
	if n := opened(); n != files || len(f.index.vectors) != 1 {
		t.Errorf("%d of %d index files are open, and %d vectors are read", n, files, len(f.index.vectors))
	}
	f.check(row{2, 1})
	// Of another process the files are there, and nothing is made: no bytes are needed.
	f.reopen()
	warm(0)
	if n := opened(); n != files {
		t.Errorf("%d of %d index files are open", n, files)
	}
	f.check(row{2, 1})
	// A lookup waits for it, and does what a canceled one left.
	f.reopen()
	canceled, cancel := context.WithCancel(background)
	cancel()
	var warming sync.WaitGroup
	warming.Go(func() {
		if err := f.index.Warm(canceled, s, size); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	f.check(row{2, 1})
	warming.Wait()
}

func TestVersionsOfAKeyAreToldApartByTheirStart(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Start = "__START_AT" })
	f.insert(row{1, 10}, row{1, 20}, row{1, -30}, row{2, 10})
	f.check(row{1, 30}, row{2, 20})
	f.delete(row{1, 20})
	f.check(row{1, 20})
}

func TestTwoLiveRowsOfAKeyAreAnErrorThatNamesThem(t *testing.T) {
	f := newFixture(t, nil)
	f.insert(row{1, 0}, row{7, 0})
	f.insert(row{7, 1}, row{8, 0}, row{9, 0}, row{9, 1})
	_, err := f.index.Locate(background, f.snapshot(), f.ids(row{1, 0}, row{7, 0}, row{9, 0}))
	if !fault.Is(err, "CDC_TARGET_DUPLICATE_KEY") || !strings.Contains(err.Error(), "2 keys") || !strings.Contains(err.Error(), "id = 7") || !strings.Contains(err.Error(), "id = 9") {
		t.Errorf("%v", err)
	}
	// Others are found, and the duplicate is none once one of its rows is deleted.
	if p := f.locate(row{1, 0}, row{8, 0}); p[0].File == nil || p[1].File == nil {
		t.Errorf("%v", p)
	}
}

// TestARandomHistoryIsAlwaysFound changes, packs, restores and reopens a table
// and its index, and looks every row up after each step.
func TestARandomHistoryIsAlwaysFound(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 6))
			f := newFixture(t, func(o *Options) {
				if seed%2 == 1 {
					o.Start = "__START_AT"
				}
				o.Rows = []int{0, 7, 100}[rng.IntN(3)]
			})
			next := int64(0)
			for range 20 {
				live := f.scanned()
				switch rng.IntN(8) {
				case 0, 1, 2:
					var rows []row
					for range 1 + rng.IntN(300) {
						rows = append(rows, row{next, rng.Int64N(5)})
						next++
					}
					f.insert(rows...)
				case 3, 4:
					var gone []row
					for r := range live {
						if rng.IntN(4) == 0 {
							gone = append(gone, r)
						}
					}
					f.delete(gone...)
				case 5:
					if _, err := f.table.Optimize(background, delta.OptimizeOptions{PurgeRatio: 0.01}); err != nil {
						t.Fatal(err)
					}
				case 6:
					if v := f.snapshot().Version(); v > 2 {
						if _, err := f.table.Restore(background, delta.RestoreOptions{Version: 1 + rng.Int64N(v-1)}); err != nil {
							t.Fatal(err)
						}
					}
				case 7:
					f.reopen()
					if rng.IntN(2) == 0 {
						if err := os.RemoveAll(f.cache); err != nil {
							t.Fatal(err)
						}
					}
				}
				f.check(row{next + 1, 0}, row{rng.Int64N(next + 1), 99})
			}
		})
	}
}

// TestManyRowsInOneFile has many blocks: lookups that are few and many, in
// parts, and building in several stretches that gives the same bytes.
func TestManyRowsInOneFile(t *testing.T) {
	const n = 40_000
	rows := make([]row, n)
	for i := range rows {
		rows[i] = row{int64(i), 0}
	}
	var first []byte
	for _, most := range []int{0, 3000} {
		f := newFixture(t, func(o *Options) { o.Rows = most })
		f.insert(rows...)
		for _, step := range []int{1, 13, 1000} {
			var ask []row
			for i := 0; i < 2*n; i += step {
				ask = append(ask, row{int64(i), 0})
			}
			for i, p := range f.locate(ask...) {
				if id := ask[i].id; (p.File != nil) != (id < n) || p.File != nil && p.Row != id {
					t.Fatalf("step %d: row %d is found at %v", step, id, p)
				}
			}
		}
		data := f.cached()
		if first == nil {
			first = data
		} else if f.snapshot(); len(data) != len(first) || !slices.Equal(data[headerSize:], first[headerSize:]) {
			t.Error("building in stretches gives another file")
		}
	}
}

// cached gives the bytes of the one index file there is.
func (f *fixture) cached() []byte {
	f.tb.Helper()
	data, err := os.ReadFile(f.cachedName())
	if err != nil {
		f.tb.Fatal(err)
	}
	return data
}

func (f *fixture) cachedName() string {
	f.tb.Helper()
	names, err := filepath.Glob(filepath.Join(f.cache, "keyindex", "*", "*"))
	if err != nil || len(names) != 1 || !strings.HasSuffix(names[0], ".kix") {
		f.tb.Fatalf("%v, %v", names, err)
	}
	return names[0]
}

// TestADamagedIndexIsBuiltAnew cuts, flips and exchanges what lies in the cache,
// before it is opened and while it is open.
func TestADamagedIndexIsBuiltAnew(t *testing.T) {
	f := newFixture(t, nil)
	rows := make([]row, 1000)
	for i := range rows {
		rows[i] = row{int64(i), 0}
	}
	f.insert(rows...)
	f.check()
	good := f.cached()
	name := f.cachedName()
	h, err := decodeHeader(good)
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]int{
		"the magic": 3, "the count": 9, "the rows": 17, "the identity": 30, "the file": 45, "the sum of the fences": 57, "the sum of the header": 61,
		"a hash": headerSize + 5, "a row": headerSize + 17, "the sum of a block": headerSize + blockSize - 2, "the last block": headerSize + int(h.blocks()-1)*blockSize,
		"a fence": headerSize + int(h.blocks())*blockSize + 3,
	}
	damage := map[string]func() []byte{
		"nothing": func() []byte { return nil },
		"zeros":   func() []byte { return make([]byte, len(good)) },
		"cut":     func() []byte { return good[:len(good)-1] },
		"half":    func() []byte { return good[:headerSize+blockSize/2] },
		"longer":  func() []byte { return append(slices.Clone(good), 0) },
		"blocks exchanged": func() []byte {
			b := slices.Clone(good)
			copy(b[headerSize:], good[headerSize+blockSize:headerSize+2*blockSize])
			copy(b[headerSize+blockSize:], good[headerSize:headerSize+blockSize])
			return b
		},
	}
	for what, at := range places {
		damage[what] = func() []byte {
			b := slices.Clone(good)
			b[at] ^= 0x41
			return b
		}
	}
	for what, make := range damage {
		t.Run(what, func(t *testing.T) {
			for _, open := range []bool{false, true} {
				if !open {
					f.reopen()
				}
				if err := os.WriteFile(name, make(), 0o600); err != nil {
					t.Fatal(err)
				}
				for i, p := range f.locate(rows...) {
					if p.File == nil || p.Row != rows[i].id {
						t.Fatalf("open %v: row %v is found at %v", open, rows[i], p)
					}
				}
				f.reopen()
				f.check()
				if !slices.Equal(f.cached(), good) {
					t.Error("the cache is not as it was")
				}
			}
		})
	}
}

// TestTheIndexOfAnotherIdentityIsNotTaken: the keys may change with a full refresh.
func TestTheIndexOfAnotherIdentityIsNotTaken(t *testing.T) {
	f := newFixture(t, nil)
	f.insert(row{1, 10}, row{2, 20})
	f.check()
	one := f.cachedName()
	f.opt.Start = "__START_AT"
	f.reopen()
	f.check(row{1, 20})
	names, err := filepath.Glob(filepath.Join(f.cache, "keyindex", "*", "*"))
	if err != nil || len(names) != 2 {
		t.Fatal(names, err)
	}
	// Nor when its file has the other's name.
	other := names[slices.IndexFunc(names, func(n string) bool { return n != one })]
	data, err := os.ReadFile(one)
	if err == nil {
		err = os.WriteFile(other, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.reopen()
	f.check(row{1, 20})
}

func TestWhatIsNotLiveIsEvicted(t *testing.T) {
	f := newFixture(t, nil)
	f.insert(row{1, 0})
	f.check()
	stale := f.cachedName()
	temp := filepath.Join(filepath.Dir(stale), "making-1.tmp")
	if err := os.WriteFile(temp, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.delete(row{1, 0})
	f.insert(row{2, 0})
	f.check(row{1, 0})
	for _, name := range []string{stale, temp} {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("too early: %v", err)
		}
		old := time.Now().Add(-2 * evictAfter)
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	f.insert(row{3, 0})
	f.check()
	for _, name := range []string{stale, temp} {
		if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestProcessesShareACache: several indexes build, ask and lose the same folder.
func TestProcessesShareACache(t *testing.T) {
	f := newFixture(t, nil)
	var rows []row
	for i := range 5 {
		var some []row
		for j := range 200 {
			some = append(some, row{int64(i*200 + j), 0})
		}
		f.insert(some...)
		rows = append(rows, some...)
	}
	ids, snap := f.ids(rows...), f.snapshot()
	var all sync.WaitGroup
	for p := range 4 {
		x := Open(f.opt)
		for range 2 {
			all.Go(func() {
				for range 5 {
					places, err := x.Locate(background, snap, ids)
					if err != nil {
						t.Error(err)
						return
					}
					for i := range places {
						if places[i].File == nil || places[i].Row != rows[i].id%200 {
							t.Errorf("row %v is found at %v", rows[i], places[i])
							return
						}
					}
					if p == 0 {
						if err := x.Close(); err != nil {
							t.Error(err)
						}
						_ = os.RemoveAll(f.cache) // others write into it: it may fail
					}
				}
			})
		}
		defer func() {
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
}

func TestACacheThatCannotBeWrittenIsANamedError(t *testing.T) {
	f := newFixture(t, nil)
	f.insert(row{1, 0})
	if err := os.WriteFile(f.cache, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := f.index.Locate(background, f.snapshot(), f.ids(row{1, 0}))
	if !fault.Is(err, "CDC_INDEX_CACHE") {
		t.Error(err)
	}
	if err := os.Remove(f.cache); err != nil {
		t.Fatal(err)
	}
	f.check()
	_, err = Open(Options{Cache: f.cache, Table: "x", Keys: []string{"nobody"}}).Locate(background, f.snapshot(), f.ids(row{1, 0}))
	if !fault.Is(err, "DELTA_COLUMN_NOT_FOUND") {
		t.Error(err)
	}
}

// FuzzReader opens anything as an index file.
func FuzzReader(f *testing.F) {
	x := newFixture(f, nil)
	x.insert(row{1, 0}, row{2, 0}, row{3, 0})
	x.check()
	good := x.cached()
	f.Add(good)
	f.Add(good[:headerUsed])
	f.Add([]byte(magic))
	id := x.ids(row{2, 0})[0]
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(t.TempDir(), "x.kix")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := openReader(name)
		if err != nil {
			return
		}
		defer r.close()
		err = r.search([]rowcode.Hash{{}, id, {0xff}}, func(_ int, row int64) {
			if row >= r.head.rows {
				t.Errorf("row %d of %d", row, r.head.rows)
			}
		})
		if err != nil && !errors.Is(err, errBroken) {
			t.Error(err)
		}
	})
}

func BenchmarkSort(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	entries := make([]entry, 3_000_000)
	for b.Loop() {
		b.StopTimer()
		for i := range entries {
			binary.LittleEndian.PutUint64(entries[i].hash[:], rng.Uint64())
			entries[i].row = uint32(i)
		}
		b.StartTimer()
		sortEntries(entries)
	}
}

func TestEntriesAreSorted(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	entries := make([]entry, 50_000)
	for i := range entries {
		for j := range entries[i].hash {
			entries[i].hash[j] = byte(rng.IntN(256))
		}
		if i%3 == 0 {
			entries[i].hash = rowcode.Hash{byte(i % 5)}
		}
		entries[i].row = uint32(i)
	}
	want := slices.Clone(entries)
	slices.SortFunc(want, compareEntries)
	sortEntries(entries)
	if !slices.Equal(entries, want) {
		t.Error("not as slices.SortFunc sorts them")
	}
}
