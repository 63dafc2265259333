package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

var ctx = context.Background()

// rules is what each driver must keep, by name.
var rules = []struct {
	name string
	test func(t *testing.T, s storage.Store)
}{
	{"objects come back as they were written", objectsComeBack},
	{"reads of any range give its bytes", rangesGiveTheirBytes},
	{"put replaces", putReplaces},
	{"put-if-absent refuses a taken name", putIfAbsentRefuses},
	{"put-if-absent has one winner, who knows", putIfAbsentHasOneWinner},
	{"a streaming write is invisible until its commit", streamsAreInvisible},
	{"an aborted write leaves nothing", abortLeavesNothing},
	{"a large streaming write comes back", largeStreams},
	{"listings are in the order of bytes and resume anywhere", listingsAreOrdered},
	{"listings of many objects are whole", listingsAreWhole},
	{"names that leave the store are refused", badNamesAreRefused},
	{"what is missing is said so", missingIsSaid},
	{"an ended context ends the call", contextsEndCalls},
	{"sub folders keep to themselves", foldersAreApart},
	{"a lock keeps others out until it is released", locksExclude},
}

// Run holds a driver to the rules: open gives an empty store each time it is
// called. Locks are left out for stores that have none.
func Run(t *testing.T, open func(t *testing.T) storage.Store) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { r.test(t, open(t)) })
	}
}

func put(t *testing.T, s storage.Store, name string, data []byte) {
	t.Helper()
	if err := s.Put(ctx, name, data); err != nil {
		t.Fatal(err)
	}
}

func contentOf(t *testing.T, s storage.Store, name string) string {
	t.Helper()
	data, err := s.Get(ctx, name)
	if err != nil {
		t.Errorf("Get %s: %v", name, err)
	}
	return string(data)
}

func objectsComeBack(t *testing.T, s storage.Store) {
	big := bytes.Repeat([]byte("0123456789"), 50_000)
	for name, data := range map[string][]byte{"x": {}, "a/b/c": []byte("hello"), "a/ü %20+:=\\&?#\"'": big, "p=a%3Ab/x": []byte("escaped")} {
		put(t, s, name, data)
		got, err := s.Get(ctx, name)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("Get %s: %d bytes, %v", name, len(got), err)
		}
		info, err := s.Stat(ctx, name)
		if err != nil || info.Name != name || info.Size != int64(len(data)) || time.Since(info.ModTime).Abs() > time.Minute {
			t.Errorf("Stat %s: %+v, %v", name, info, err)
		}
		o, err := s.Open(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(o)
		if err != nil || !bytes.Equal(all, data) || o.Size() != int64(len(data)) || !o.ModTime().Equal(info.ModTime) {
			t.Errorf("Open %s: %d bytes, %v, %v is not %v", name, len(all), err, o.ModTime(), info.ModTime)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		for listed, err := range s.List(ctx, "", storage.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if listed.Name == name && (listed.Size != info.Size || !listed.ModTime.Equal(info.ModTime)) {
				t.Errorf("List says %+v, Stat %+v", listed, info)
			}
		}
	}
}

func rangesGiveTheirBytes(t *testing.T, s storage.Store) {
	data := make([]byte, 3<<20+12345)
	for i := range data {
		data[i] = byte(i ^ i>>8 ^ i>>16)
	}
	put(t, s, "x", data)
	o, err := s.Open(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	size := len(data)
	var wg sync.WaitGroup
	for _, r := range [][2]int{{0, 4}, {0, size}, {size - 8, 8}, {size - 70_000, 69_000}, {100_000, 50_000}, {1 << 20, 1 << 20}, {512 << 10, 3}, {size - 512<<10 - 2, 4}, {12345, 2 << 20}} {
		wg.Go(func() {
			p := make([]byte, r[1])
			if n, err := o.ReadAt(p, int64(r[0])); n != r[1] || err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(p, data[r[0]:r[0]+r[1]]) {
				t.Errorf("%v: %d bytes, %v", r, n, err)
			}
		})
	}
	wg.Wait()
	p := make([]byte, 20)
	if n, err := o.ReadAt(p, int64(size-5)); n != 5 || !errors.Is(err, io.EOF) || !bytes.Equal(p[:5], data[size-5:]) {
		t.Errorf("over the end: %d, %v", n, err)
	}
	if n, err := o.ReadAt(p, int64(size)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("behind the end: %d, %v", n, err)
	}
	all, err := io.ReadAll(o)
	if err != nil || !bytes.Equal(all, data) {
		t.Errorf("in one go: %d bytes, %v", len(all), err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

func putReplaces(t *testing.T, s storage.Store) {
	put(t, s, "x", []byte("old and longer"))
	put(t, s, "x", []byte("new"))
	if got := contentOf(t, s, "x"); got != "new" {
		t.Errorf("%q", got)
	}
}

func putIfAbsentRefuses(t *testing.T, s storage.Store) {
	if err := s.PutIfAbsent(ctx, "d/x", []byte("first")); err != nil {
		t.Fatal(err)
	}
	// Also with the same content: it is another writer's.
	for _, data := range []string{"second", "first"} {
		err := s.PutIfAbsent(ctx, "d/x", []byte(data))
		if !errors.Is(err, storage.ErrExist) || fault.CodeOf(err) != "STORAGE_ALREADY_EXISTS" {
			t.Errorf("%v", err)
		}
	}
	if got := contentOf(t, s, "d/x"); got != "first" {
		t.Errorf("%q", got)
	}
	if err := s.Delete(ctx, "d/x"); err != nil {
		t.Fatal(err)
	}
	if err := s.PutIfAbsent(ctx, "d/x", []byte("third")); err != nil {
		t.Errorf("a deleted name is free: %v", err)
	}
}

func putIfAbsentHasOneWinner(t *testing.T, s storage.Store) {
	const racers, rounds = 16, 10
	for round := range rounds {
		var wins, winner atomic.Int64
		var wg sync.WaitGroup
		name := fmt.Sprintf("log/%020d.json", round)
		for i := range racers {
			wg.Go(func() {
				err := s.PutIfAbsent(ctx, name, []byte(fmt.Sprint(i)))
				if err == nil {
					wins.Add(1)
					winner.Store(int64(i))
				} else if !errors.Is(err, storage.ErrExist) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := contentOf(t, s, name); wins.Load() != 1 || got != fmt.Sprint(winner.Load()) {
			t.Fatalf("round %d: %d winners, content %q", round, wins.Load(), got)
		}
	}
	if n := len(list(t, s, "", storage.ListOptions{})); n != rounds {
		t.Errorf("%d objects", n)
	}
}

func streamsAreInvisible(t *testing.T, s storage.Store) {
	w, err := s.Create(ctx, "p/file")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, "p/file"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("visible before its time: %v", err)
	}
	if names := list(t, s, "", storage.ListOptions{}); len(names) != 0 {
		t.Errorf("listed before its time: %v", names)
	}
	if _, err := w.Write([]byte(" done")); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Errorf("Abort after Commit: %v", err)
	}
	if err := w.Commit(); err == nil {
		t.Error("committed twice")
	}
	if got := contentOf(t, s, "p/file"); got != "half done" {
		t.Errorf("%q", got)
	}
	if w, err = s.Create(ctx, "empty"); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Error(err)
	}
	if got := contentOf(t, s, "empty"); got != "" {
		t.Errorf("%q", got)
	}
}

func abortLeavesNothing(t *testing.T, s storage.Store) {
	put(t, s, "x", []byte("old"))
	for _, size := range []int{0, 10, 1 << 20, 40 << 20} {
		w, err := s.Create(ctx, "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Abort(), w.Abort()); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(); err == nil {
			t.Error("committed after it was aborted")
		}
		if got := contentOf(t, s, "x"); got != "old" {
			t.Errorf("after %d bytes: %q", size, got)
		}
	}
	if names := list(t, s, "", storage.ListOptions{}); len(names) != 1 {
		t.Errorf("%v", names)
	}
}

func largeStreams(t *testing.T, s storage.Store) {
	piece := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	w, err := s.Create(ctx, "big")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 21 {
		piece[0] = byte(i)
		if n, err := w.Write(piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := w.Write([]byte("end")); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	data, err := s.Get(ctx, "big")
	if err != nil || len(data) != 21<<20+3 || string(data[21<<20:]) != "end" {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	for i := range 21 {
		if data[i<<20] != byte(i) || !bytes.Equal(data[i<<20+1:(i+1)<<20], piece[1:]) {
			t.Fatalf("piece %d differs", i)
		}
	}
}

func list(t testing.TB, s storage.Store, prefix string, opt storage.ListOptions) []string {
	t.Helper()
	out := []string{}
	for info, err := range s.List(ctx, prefix, opt) {
		if err != nil {
			t.Fatal(err)
		}
		if opt.NamesOnly != (info.Size < 0) || opt.NamesOnly != info.ModTime.IsZero() {
			t.Errorf("%+v with %+v", info, opt)
		}
		out = append(out, info.Name)
	}
	return out
}

func listingsAreOrdered(t *testing.T, s storage.Store) {
	// "a.b" and "a-b" sort before what is in the folder "a", "a0" after it.
	names := []string{"a-b", "a.b", "a/a", "a/b/c", "a/b0", "a0", "b", "log/00000000000000000001.json", "log/00000000000000000002.json", "log/_x/y", "ü"}
	for _, n := range names {
		put(t, s, n, []byte("1"))
	}
	for _, namesOnly := range []bool{false, true} {
		if got := list(t, s, "", storage.ListOptions{NamesOnly: namesOnly}); !slices.Equal(got, names) {
			t.Errorf("got %v", got)
		}
		// From any point between two names the rest follows.
		for _, after := range append(slices.Clone(names), "", "0", "a", "a/", "a/b", "a/b/", "a/b/zzz", "log", "log/00000000000000000001", "zz", "\xff") {
			var want []string
			for _, n := range names {
				if n > after {
					want = append(want, n)
				}
			}
			if got := list(t, s, "", storage.ListOptions{After: after, NamesOnly: namesOnly}); !slices.Equal(got, want) {
				t.Errorf("after %q: %v, want %v", after, got, want)
			}
		}
	}
	if got := list(t, s, "a", storage.ListOptions{}); !slices.Equal(got, []string{"a/a", "a/b/c", "a/b0"}) {
		t.Errorf("folder: %v", got)
	}
	if got := list(t, s, "log/", storage.ListOptions{After: "log/00000000000000000001.json"}); !slices.Equal(got, []string{"log/00000000000000000002.json", "log/_x/y"}) {
		t.Errorf("folder after: %v", got)
	}
	for _, after := range []string{"a", "k", "log", "log/"} {
		if got := list(t, s, "log", storage.ListOptions{After: after}); len(got) != 3 {
			t.Errorf("folder after %q, which lies before it: %v", after, got)
		}
	}
	if got := list(t, s, "a", storage.ListOptions{After: "b"}); len(got) != 0 {
		t.Errorf("folder after what lies behind it: %v", got)
	}
	for _, missing := range []string{"nope", "b", "a/a", "nope/deep"} {
		if got := list(t, s, missing, storage.ListOptions{}); len(got) != 0 {
			t.Errorf("%s: %v", missing, got)
		}
	}
	for _, err := range s.List(ctx, "", storage.ListOptions{}) {
		if err != nil {
			t.Error(err)
		}
		break // an early end is no error
	}
}

func listingsAreWhole(t *testing.T, s storage.Store) {
	const n = 1030 // more than a page of S3 and Azure
	var wg sync.WaitGroup
	for part := range 8 {
		wg.Go(func() {
			for i := part; i < n; i += 8 {
				if err := s.Put(ctx, fmt.Sprintf("f/%06d", i), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got := list(t, s, "f", storage.ListOptions{})
	if len(got) != n || !slices.IsSorted(got) {
		t.Errorf("%d names", len(got))
	}
	if got := list(t, s, "f", storage.ListOptions{After: "f/000009"}); len(got) != n-10 || got[0] != "f/000010" {
		t.Errorf("%d names after the tenth", len(got))
	}
}

func badNamesAreRefused(t *testing.T, s storage.Store) {
	for _, name := range []string{"", "/etc/passwd", "..", "a/../b", "a//b", "a/", "./a", "a/.", ".tmp-x", "a/.tmp-x/b", "a\x00b"} {
		_, getErr := s.Get(ctx, name)
		_, openErr := s.Open(ctx, name)
		_, statErr := s.Stat(ctx, name)
		_, createErr := s.Create(ctx, name)
		errs := []error{getErr, openErr, statErr, createErr, s.Put(ctx, name, nil), s.PutIfAbsent(ctx, name, nil), s.Delete(ctx, name)}
		if l, ok := s.(storage.Locker); ok {
			_, err := l.TryLock(ctx, name)
			errs = append(errs, err)
		}
		for i, err := range errs {
			if !errors.Is(err, storage.ErrInvalidName) {
				t.Errorf("%q, operation %d: %v", name, i, err)
			}
		}
	}
	for _, err := range s.List(ctx, "../x", storage.ListOptions{}) {
		if !errors.Is(err, storage.ErrInvalidName) {
			t.Errorf("list: %v", err)
		}
	}
}

func missingIsSaid(t *testing.T, s storage.Store) {
	if err := s.Delete(ctx, "nope/x"); err != nil {
		t.Errorf("deleting what is gone: %v", err)
	}
	_, getErr := s.Get(ctx, "nope/x")
	_, openErr := s.Open(ctx, "nope/x")
	_, statErr := s.Stat(ctx, "nope/x")
	for _, err := range []error{getErr, openErr, statErr} {
		if !errors.Is(err, storage.ErrNotExist) || fault.CodeOf(err) != "STORAGE_NOT_FOUND" {
			t.Errorf("%v", err)
		}
	}
	put(t, s, "x", nil)
	if err := s.Delete(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(ctx, "x"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func contextsEndCalls(t *testing.T, s storage.Store) {
	put(t, s, "x", nil)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, getErr := s.Get(ended, "x")
	for _, err := range []error{getErr, s.Put(ended, "y", nil), s.PutIfAbsent(ended, "y", nil)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	for _, err := range s.List(ended, "", storage.ListOptions{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
}

func foldersAreApart(t *testing.T, s storage.Store) {
	a, b := storage.Sub(s, "a"), storage.Sub(storage.Sub(s, "a"), "b/c")
	put(t, a, "x", []byte("1"))
	put(t, b, "x", []byte("2"))
	put(t, s, "ab", []byte("3"))
	if got := list(t, a, "", storage.ListOptions{}); !slices.Equal(got, []string{"b/c/x", "x"}) {
		t.Errorf("%v", got)
	}
	if got := list(t, a, "", storage.ListOptions{After: "b/c/x"}); !slices.Equal(got, []string{"x"}) {
		t.Errorf("%v", got)
	}
	if contentOf(t, s, "a/x") != "1" || contentOf(t, s, "a/b/c/x") != "2" {
		t.Error("a folder is not where its name says")
	}
}

func locksExclude(t *testing.T, s storage.Store) {
	if _, ok := s.(storage.Locker); !ok {
		t.Skip("the store has no locks")
	}
	unlock, err := storage.Lock(ctx, s, "locks/update", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storage.Lock(ctx, s, "locks/update", false); !errors.Is(err, storage.ErrLocked) || fault.CodeOf(err) != "STORAGE_LOCKED" {
		t.Errorf("second holder: %v", err)
	}
	other, err := storage.Lock(ctx, s, "locks/other", false)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 60*time.Millisecond)
	defer cancel()
	if _, err := storage.Lock(short, s, "locks/update", true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting ends with the context: %v", err)
	}
	got := make(chan error)
	go func() {
		again, err := storage.Lock(ctx, s, "locks/update", true)
		if err == nil {
			err = again()
		}
		got <- err
	}()
	if err := errors.Join(unlock(), <-got, other()); err != nil {
		t.Error(err)
	}
}
