package state

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// damageable is a state of one run, its entries, and where its files are.
func damageable(t testing.TB, mem memory.Allocator) (dir *storage.Dir, m *Manifest, entries []entry) {
	t.Helper()
	s, dir := testStore(t, mem)
	rng := rand.New(rand.NewPCG(11, 11))
	for entries == nil || len(entries) > 60 {
		entries = randomRuns(rng, false, true)[0]
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return e.kind == Removed })
	m = &Manifest{K: -1, Runs: []RunInfo{write(t, s, mem, rng, entries, valueFieldsOfTests...)}}
	if _, err := s.Put(context.Background(), m); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, m, entries
}

// readBack loads, scans and looks up everything.
func readBack(t testing.TB, s *Store, k int64, entries []entry) (scanned, found []entry, scanErr, findErr error) {
	t.Helper()
	ctx := context.Background()
	st, err := s.Load(ctx, k, valueFieldsOfTests...)
	if err != nil {
		return nil, nil, err, err
	}
	defer func() {
		if err := st.Release(); err != nil {
			t.Error(err)
		}
	}()
	var hashes []rowcode.Hash
	for _, e := range entries {
		hashes = append(hashes, e.hash())
	}
	rec, findErr := st.Find(ctx, hashes)
	if findErr == nil {
		found = make([]entry, rec.NumRows()) // what they hold only a scan vouches for
		rec.Release()
	}
	rows, err := st.Scan(ctx, 0, 1)
	if err != nil {
		return nil, found, err, findErr
	}
	defer rows.Release()
	for rows.Next() {
		scanned = append(scanned, entriesOf(t, rows.RecordBatch())...)
	}
	return scanned, found, rows.Err(), findErr
}

func TestDamageIsNamedAndNeverReadAsData(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	dir, m, entries := damageable(t, mem)
	run := filepath.Join(dir.Root(), filepath.FromSlash(m.Runs[0].Name))
	manifest := filepath.Join(dir.Root(), manifestName(m.K))
	rng := rand.New(rand.NewPCG(12, 12))
	for _, file := range []string{run, manifest} {
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 400 {
			data := slices.Clone(whole)
			what := "cut"
			if n%8 == 0 {
				data = data[:rng.IntN(len(data))]
			} else {
				at := rng.IntN(len(data))
				data[at] ^= byte(1 + rng.IntN(255))
				what = fmt.Sprint("changed at ", at)
			}
			// A new file: the old one is still mapped by nobody, but a name may be cached.
			if err := os.WriteFile(file, data, 0o666); err != nil {
				t.Fatal(err)
			}
			s := Open(dir, "", mem)
			scanned, _, scanErr, findErr := readBack(t, s, m.K, entries)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{scanErr, findErr} {
				if code := fault.CodeOf(err); err != nil && code != "CDC_STATE_CORRUPT" && (file == run || code != "CDC_STATE_TOO_NEW") {
					t.Fatalf("%s %s: %v", filepath.Base(file), what, err)
				}
			}
			if scanErr == nil && (file == run || !slices.Equal(scanned, entries)) {
				t.Fatalf("%s %s: %d entries are read as if nothing were", filepath.Base(file), what, len(scanned))
			}
			if name := strings.TrimPrefix(file, dir.Root()+"/"); scanErr != nil && !strings.Contains(scanErr.Error(), name) {
				t.Fatalf("the error does not name %s: %v", name, scanErr)
			}
		}
		if err := os.WriteFile(file, whole, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsMissingOrTooNewIsNamed(t *testing.T) {
	mem := memory.DefaultAllocator
	dir, m, _ := damageable(t, mem)
	ctx := context.Background()
	s := Open(dir, "", mem)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := s.Load(ctx, 99); fault.CodeOf(err) != "CDC_STATE_CORRUPT" || !strings.Contains(err.Error(), "full refresh") {
		t.Errorf("a missing manifest: %v", err)
	}
	if err := dir.Put(ctx, manifestName(7), []byte(`{"format":2,"sum":"","manifest":{"shape":"new"}}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(ctx, 7); fault.CodeOf(err) != "CDC_STATE_TOO_NEW" || !strings.Contains(err.Error(), manifestName(7)) {
		t.Errorf("a newer manifest: %v", err)
	}
	if err := dir.Delete(ctx, m.Runs[0].Name); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(ctx, m.K); fault.CodeOf(err) != "CDC_STATE_CORRUPT" || !strings.Contains(err.Error(), m.Runs[0].Name) {
		t.Errorf("a missing run: %v", err)
	}
	if _, err := s.Put(ctx, &Manifest{K: -1, Runs: m.Runs}); fault.CodeOf(err) != "CDC_STATE_CORRUPT" {
		t.Errorf("a manifest of a missing run: %v", err)
	}
	if _, err := s.Put(ctx, &Manifest{K: 44, Runs: m.Runs}); fault.CodeOf(err) != "CDC_STATE_SUPERSEDED" {
		t.Errorf("a manifest that follows a missing one: %v", err)
	}
}

// Somebody cuts a file that is mapped: reading its pages is a signal, not an error.
func TestAFileThatShrinksUnderTheReaderIsAnError(t *testing.T) {
	mem := memory.DefaultAllocator
	dir, m, entries := damageable(t, mem)
	s := Open(dir, "", mem)
	st, err := s.Load(context.Background(), m.K)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir.Root(), filepath.FromSlash(m.Runs[0].Name)), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Find(context.Background(), []rowcode.Hash{entries[0].hash()}); fault.CodeOf(err) != "CDC_STATE_CORRUPT" {
		t.Errorf("find: %v", err)
	}
	if rows, err := st.Scan(context.Background(), 0, 1); err == nil {
		if rows.Next() || fault.CodeOf(rows.Err()) != "CDC_STATE_CORRUPT" {
			t.Errorf("scan: %v", rows.Err())
		}
		rows.Release()
	} else if fault.CodeOf(err) != "CDC_STATE_CORRUPT" {
		t.Errorf("scan: %v", err)
	}
	if err := st.Release(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Bytes of a block are whatever, and the sums say that they are right: offsets
// and lengths still lead nowhere.
func FuzzBlocks(f *testing.F) {
	dir, m, entries := damageable(f, memory.DefaultAllocator)
	file := filepath.Join(dir.Root(), filepath.FromSlash(m.Runs[0].Name))
	whole, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	x, _ := decodeIndex(m.Runs[0].Index, m.Runs[0])
	f.Add(uint32(0), []byte{1})
	f.Add(uint32(900), []byte{0xff, 0xff, 0xff, 0x7f})
	f.Add(uint32(1700), []byte{0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, at uint32, with []byte) {
		data := slices.Clone(whole)
		b := x.blocks[0]
		body := data[b.body:b.to]
		copy(body[int(at)%len(body):], with)
		damaged := index{head: x.head, sum: x.sum, blocks: []blockInfo{b}}
		damaged.blocks[0].contentSum = xxh3.Hash(body)
		dir, err := storage.OpenDir(t.TempDir(), storage.NoSync)
		if err != nil {
			t.Fatal(err)
		}
		info := m.Runs[0]
		info.Index = damaged.encode()
		if err := dir.Put(context.Background(), info.Name, data); err != nil {
			t.Fatal(err)
		}
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		defer mem.AssertSize(t, 0)
		s := Open(dir, "", mem)
		k, err := s.Put(context.Background(), &Manifest{K: -1, Runs: []RunInfo{info}})
		if err != nil {
			t.Fatal(err)
		}
		st, err := s.Load(context.Background(), k, valueFieldsOfTests...)
		if err != nil {
			t.Fatal(err)
		}
		var hashes []rowcode.Hash
		for _, e := range entries {
			hashes = append(hashes, e.hash())
		}
		rec, err := st.Find(context.Background(), hashes)
		if err == nil {
			use(rec)
			rec.Release()
		} else if fault.CodeOf(err) != "CDC_STATE_CORRUPT" {
			t.Fatal(err)
		}
		rows, err := st.Scan(context.Background(), 0, 1)
		if err == nil {
			for rows.Next() {
				use(rows.RecordBatch())
			}
			err = rows.Err()
			rows.Release()
		}
		if err != nil && fault.CodeOf(err) != "CDC_STATE_CORRUPT" {
			t.Fatal(err)
		}
		if err := st.Release(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// use looks at every value.
func use(rec arrow.RecordBatch) {
	for _, col := range rec.Columns() {
		_ = col.String()
	}
}

func TestCopiesOfRunsInAnObjectStore(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	dir, m, entries := damageable(t, mem)
	far := remote{dir}
	cache := t.TempDir()
	copies := func() []string {
		names, err := filepath.Glob(filepath.Join(cache, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	read := func() error {
		s := Open(far, cache, mem)
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		scanned, found, scanErr, _ := readBack(t, s, m.K, entries)
		if scanErr == nil && (!slices.Equal(scanned, entries) || len(found) != len(entries)) {
			t.Fatalf("%d entries of %d", len(scanned), len(entries))
		}
		return scanErr
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	if len(copies()) != 1 {
		t.Fatalf("copies: %v", copies())
	}
	// A damaged copy is an error once, and not the state's.
	data, err := os.ReadFile(copies()[0])
	if err != nil {
		t.Fatal(err)
	}
	x, _ := decodeIndex(m.Runs[0].Index, m.Runs[0])
	data[x.blocks[0].body] ^= 1
	if err := os.WriteFile(copies()[0], data, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := read(); fault.CodeOf(err) != "CDC_STATE_CORRUPT" || !strings.Contains(err.Error(), "copy") {
		t.Fatalf("a damaged copy: %v", err)
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	// A cut copy is fetched again at once.
	if err := os.Truncate(copies()[0], 5); err != nil {
		t.Fatal(err)
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	// What is written is there already, and what no manifest names any more goes.
	s := Open(far, cache, mem)
	old := copies()[0]
	next := Manifest{K: m.K, Runs: []RunInfo{write(t, s, mem, rand.New(rand.NewPCG(1, 1)), slices.Clone(entries), valueFieldsOfTests...)}}
	if len(copies()) != 2 {
		t.Fatalf("copies: %v", copies())
	}
	k, err := s.Put(context.Background(), &next)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		// The stamp of the old run is that of the state before it: one more version and it is nobody's.
		if err := s.Sweep(context.Background(), k); err != nil {
			t.Fatal(err)
		}
		if k, err = s.Put(context.Background(), &next); err != nil {
			t.Fatal(err)
		}
	}
	if left := copies(); len(left) != 1 || left[0] == old {
		t.Fatalf("copies: %v, of which %s is old", left, old)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// remote hides that a store is a local disk.
type remote struct{ storage.Store }
