package stream

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

func memStore(t testing.TB) storage.Store {
	t.Helper()
	s, err := storage.OpenDir(t.TempDir(), storage.NoSync)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// randomFiles makes n files with ascending paths that share prefixes.
func randomFiles(r *rand.Rand, n int, batches int64) []knownFile {
	seen := map[string]bool{}
	var files []knownFile
	for len(files) < n {
		p := fmt.Sprintf("/landing/dt=2026-%02d-%02d/%s%d.json", r.IntN(12)+1, r.IntN(28)+1, strings.Repeat("ä", r.IntN(3)), r.IntN(1_000_000))
		if seen[p] {
			continue
		}
		seen[p] = true
		files = append(files, knownFile{path: p, batch: r.Int64N(batches), size: r.Int64N(1 << 40), mtime: 1_700_000_000_000_000 + r.Int64N(1e15) - 5e14, state: byte(r.IntN(len(states)))})
	}
	slices.SortFunc(files, func(a, b knownFile) int { return strings.Compare(a.path, b.path) })
	return files
}

func readAll(t *testing.T, l sorted) []knownFile {
	t.Helper()
	var out []knownFile
	for {
		ok, err := l.next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return out
		}
		p, f := l.view()
		k := *f
		k.path = string(p)
		out = append(out, k)
	}
}

func TestRunGivesBackWhatWasWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	ctx := context.Background()
	for _, n := range []int{0, 1, 2, 5000} {
		store := memStore(t)
		id := runID{20, 29}
		files := randomFiles(r, n, 10)
		for i := range files {
			files[i].batch += 20
		}
		var times []batchTimes
		for i := range 10 {
			times = append(times, batchTimes{time.UnixMicro(int64(i) * 1e6).UTC(), time.UnixMicro(int64(i)*1e6 + 7).UTC()})
		}
		if err := writeRun(ctx, store, id, times, int64(n), mergeLists(newFileList(slices.Clone(files)))); err != nil {
			t.Fatal(err)
		}
		rr, err := openRun(ctx, store, id)
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, rr); !slices.Equal(got, files) {
			t.Fatalf("%d files: not the same", n)
		}
		if !slices.Equal(rr.batches, times) {
			t.Fatalf("times %v", rr.batches)
		}
		if err := rr.close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamagedRunIsANamedErrorNeverOtherFiles(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	files := randomFiles(r, 300, 1)
	var buf bytes.Buffer
	if err := encodeRun(&buf, runID{0, 0}, []batchTimes{{}}, 300, mergeLists(newFileList(files))); err != nil {
		t.Fatal(err)
	}
	read := func(data []byte) ([]knownFile, error) {
		rr, err := readRun(bufio.NewReader(bytes.NewReader(data)), runID{0, 0})
		if err != nil {
			return nil, err
		}
		var out []knownFile
		for {
			ok, err := rr.next()
			if err != nil || !ok {
				return out, err
			}
			k := rr.cur
			k.path = string(rr.path)
			out = append(out, k)
		}
	}
	if got, err := read(buf.Bytes()); err != nil || !slices.Equal(got, files) {
		t.Fatal("undamaged", err)
	}
	for range 2000 {
		data := bytes.Clone(buf.Bytes())
		if r.IntN(2) == 0 {
			data = data[:r.IntN(len(data))]
		} else {
			data[r.IntN(len(data))] ^= byte(1 + r.IntN(255))
		}
		if _, err := read(data); !fault.Is(err, "CHECKPOINT_CORRUPT") {
			t.Fatalf("got %v", err)
		}
	}
}

func FuzzRunReader(f *testing.F) {
	var buf bytes.Buffer
	files := randomFiles(rand.New(rand.NewPCG(5, 6)), 20, 1)
	if err := encodeRun(&buf, runID{0, 0}, []batchTimes{{}}, 20, mergeLists(newFileList(files))); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes())
	f.Add([]byte(runMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		rr, err := readRun(bufio.NewReader(bytes.NewReader(data)), runID{0, 0})
		if err != nil {
			return
		}
		for ok := true; ok && err == nil; {
			ok, err = rr.next()
		}
	})
}

// FuzzBlock feeds entries past the checksum, which would stop random bytes.
func FuzzBlock(f *testing.F) {
	var w bytes.Buffer
	b := blockWriter{w: &w}
	for _, k := range randomFiles(rand.New(rand.NewPCG(7, 8)), 20, 1) {
		if err := b.add(k); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(bytes.Clone(b.block))
	f.Fuzz(func(t *testing.T, payload []byte) {
		var w bytes.Buffer
		if err := writeFrame(&w, payload); err != nil {
			t.Fatal(err)
		}
		r := blockReader{r: bufio.NewReader(io.MultiReader(&w, bytes.NewReader(make([]byte, 8))))}
		last := ""
		for n := 0; ; n++ {
			if ok, err := r.next(); !ok || err != nil {
				return
			}
			if n > 0 && string(r.path) <= last {
				t.Fatalf("%q after %q", r.path, last)
			}
			last = string(r.path)
		}
	})
}

func TestMergedListsAreOneSortedList(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		all := randomFiles(r, r.IntN(400), 5)
		parts := make([][]knownFile, 1+r.IntN(6))
		for _, f := range all {
			i := r.IntN(len(parts))
			parts[i] = append(parts[i], f)
		}
		var lists []sorted
		for _, p := range parts {
			lists = append(lists, newFileList(p))
		}
		if got := readAll(t, mergeLists(lists...)); !slices.Equal(got, all) {
			t.Fatal("not the same")
		}
	}
}

func TestRunsStayFewAndCoverEveryBatch(t *testing.T) {
	var cover []runID
	rewritten := int64(0)
	const batches = 4000
	for n := range int64(batches) {
		tail := int64(0)
		if len(cover) > 0 {
			tail = cover[len(cover)-1].to + 1
		}
		if n-tail+1 < compactEvery {
			continue
		}
		into, inputs := compaction(cover, n)
		rewritten += into.span()
		cover = append(cover[:len(cover)-len(inputs)], into)
		chosen, obsolete := chooseRuns(append(slices.Clone(cover), inputs...))
		if !slices.Equal(chosen, cover) || len(obsolete) != len(inputs) {
			t.Fatalf("batch %d: chose %v of %v and %v", n, chosen, cover, inputs)
		}
		if len(cover) > 10 {
			t.Fatalf("batch %d: %d runs", n, len(cover))
		}
	}
	if per := float64(rewritten) / batches; per > 10 {
		t.Fatalf("a batch is rewritten %.1f times", per)
	}
}

func TestRunNames(t *testing.T) {
	for name, want := range map[string]bool{
		"files/00000000000000000000-00000000000000000009.run": true,
		"files/00000000000000000010-00000000000000000019.run": true,
		"files/00000000000000000010-00000000000000000009.run": false,
		"files/0-9.run": false,
		"files/00000000000000000000-00000000000000000009.run.bak": false,
		"files/-0000000000000000001-00000000000000000009.run":     false,
	} {
		if _, ok := parseRun(name); ok != want {
			t.Errorf("parseRun(%q) = %v", name, ok)
		}
	}
}
