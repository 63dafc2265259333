package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("STORAGE_LOCK_CHILD"); dir != "" {
		holdLock(dir)
	}
	goleak.VerifyTestMain(m)
}

// holdLock takes the lock, says so and waits to be killed.
func holdLock(dir string) {
	d, err := storage.OpenDir(dir)
	if err == nil {
		_, err = d.TryLock(context.Background(), "locks/update")
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	select {}
}

func openDir(t testing.TB) *storage.Dir {
	t.Helper()
	d, err := storage.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// each runs a test on the driver and on a folder of it.
func each(t *testing.T, test func(t *testing.T, s storage.Store)) {
	t.Run("dir", func(t *testing.T) { test(t, openDir(t)) })
	t.Run("sub", func(t *testing.T) { test(t, storage.Sub(storage.Sub(openDir(t), "a/b"), "c/")) })
}

var ctx = context.Background()

func TestObjectsComeBackAsTheyWereWritten(t *testing.T) {
	each(t, func(t *testing.T, s storage.Store) {
		big := bytes.Repeat([]byte("0123456789"), 50_000)
		for name, data := range map[string][]byte{"x": {}, "a/b/c": []byte("hello"), "a/ü %20+:=\\": big} {
			if err := s.Put(ctx, name, data); err != nil {
				t.Fatal(err)
			}
			got, err := s.Get(ctx, name)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("Get %s: %d bytes, %v", name, len(got), err)
			}
			info, err := s.Stat(ctx, name)
			if err != nil || info.Name != name || info.Size != int64(len(data)) || time.Since(info.ModTime) > time.Minute {
				t.Errorf("Stat %s: %+v, %v", name, info, err)
			}
			o, err := s.Open(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			all, err := io.ReadAll(o)
			if err != nil || !bytes.Equal(all, data) || o.Size() != int64(len(data)) || !o.ModTime().Equal(info.ModTime) {
				t.Errorf("Open %s: %d bytes, %v", name, len(all), err)
			}
			if len(data) > 20 {
				part := make([]byte, 5)
				if _, err := o.ReadAt(part, 12); err != nil || string(part) != "23456" {
					t.Errorf("ReadAt: %q, %v", part, err)
				}
			}
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := s.Put(ctx, "x", []byte("new")); err != nil {
			t.Fatal(err)
		}
		if got, _ := s.Get(ctx, "x"); string(got) != "new" {
			t.Errorf("Put does not replace: %q", got)
		}
	})
}

func TestPutIfAbsentRefusesATakenName(t *testing.T) {
	each(t, func(t *testing.T, s storage.Store) {
		if err := s.PutIfAbsent(ctx, "d/x", []byte("first")); err != nil {
			t.Fatal(err)
		}
		err := s.PutIfAbsent(ctx, "d/x", []byte("second"))
		if !errors.Is(err, storage.ErrExist) || fault.CodeOf(err) != "STORAGE_ALREADY_EXISTS" {
			t.Errorf("%v", err)
		}
		if got, _ := s.Get(ctx, "d/x"); string(got) != "first" {
			t.Errorf("%q", got)
		}
	})
}

func TestPutIfAbsentHasOneWinner(t *testing.T) {
	d, err := storage.OpenDir(t.TempDir(), storage.NoSync)
	if err != nil {
		t.Fatal(err)
	}
	const racers, rounds = 32, 50
	for round := range rounds {
		var wins atomic.Int64
		var winner atomic.Int64
		var wg sync.WaitGroup
		name := fmt.Sprintf("log/%020d.json", round)
		for i := range racers {
			wg.Go(func() {
				err := d.PutIfAbsent(ctx, name, []byte(fmt.Sprint(i)))
				if err == nil {
					wins.Add(1)
					winner.Store(int64(i))
				} else if !errors.Is(err, storage.ErrExist) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got, _ := d.Get(ctx, name); wins.Load() != 1 || string(got) != fmt.Sprint(winner.Load()) {
			t.Fatalf("round %d: %d winners, content %q", round, wins.Load(), got)
		}
	}
	if left := tempFiles(t, d.Root()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func tempFiles(t testing.TB, root string) (out []string) {
	err := filepath.WalkDir(root, func(p string, e os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), ".tmp-") {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAStreamingWriteIsInvisibleUntilItsCommit(t *testing.T) {
	each(t, func(t *testing.T, s storage.Store) {
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
		if got, _ := s.Get(ctx, "p/file"); string(got) != "half done" {
			t.Errorf("%q", got)
		}
	})
}

func TestAnAbortedWriteLeavesNothing(t *testing.T) {
	d := openDir(t)
	if err := d.Put(ctx, "x", []byte("old")); err != nil {
		t.Fatal(err)
	}
	w, err := d.Create(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Abort(), w.Abort()); err != nil {
		t.Fatal(err)
	}
	if got, _ := d.Get(ctx, "x"); string(got) != "old" || len(tempFiles(t, d.Root())) > 0 {
		t.Errorf("%q, left %v", got, tempFiles(t, d.Root()))
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

func TestListIsInTheOrderOfBytesAndResumes(t *testing.T) {
	each(t, func(t *testing.T, s storage.Store) {
		// "a.b" and "a-b" sort before what is in the folder "a", "a0" after it.
		names := []string{"a-b", "a.b", "a/a", "a/b/c", "a/b0", "a0", "b", "log/00000000000000000001.json", "log/00000000000000000002.json", "log/_x/y", "ü"}
		for _, n := range names {
			if err := s.Put(ctx, n, []byte("1")); err != nil {
				t.Fatal(err)
			}
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
		for _, missing := range []string{"nope", "b", "a/a", "nope/deep"} {
			if got := list(t, s, missing, storage.ListOptions{}); len(got) != 0 {
				t.Errorf("%s: %v", missing, got)
			}
		}
		for range s.List(ctx, "", storage.ListOptions{}) {
			break // an early end is no error
		}
	})
}

func TestListLeavesOutWhatIsNoObject(t *testing.T) {
	d := openDir(t)
	root := d.Root()
	for _, err := range []error{
		d.Put(ctx, "real", []byte("x")), os.Mkdir(filepath.Join(root, "empty"), 0o755), os.Symlink("real", filepath.Join(root, "link")),
		os.Symlink("gone", filepath.Join(root, "dangling")), os.Symlink(".", filepath.Join(root, "loop")),
		syscall.Mkfifo(filepath.Join(root, "pipe"), 0o644), os.WriteFile(filepath.Join(root, ".tmp-half"), nil, 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, namesOnly := range []bool{false, true} {
		if got := list(t, d, "", storage.ListOptions{NamesOnly: namesOnly}); !slices.Equal(got, []string{"link", "real"}) {
			t.Errorf("%v", got)
		}
	}
	for _, name := range []string{"empty", "pipe", "dangling", "real/below"} {
		_, openErr := d.Open(ctx, name)
		_, statErr := d.Stat(ctx, name)
		if !errors.Is(openErr, storage.ErrNotExist) || !errors.Is(statErr, storage.ErrNotExist) {
			t.Errorf("%s: %v, %v", name, openErr, statErr)
		}
	}
}

func TestNamesThatLeaveTheStoreAreRefused(t *testing.T) {
	each(t, func(t *testing.T, s storage.Store) {
		for _, name := range []string{"", "/etc/passwd", "..", "a/../b", "a//b", "a/", "./a", "a/.", ".tmp-x", "a/.tmp-x/b", "a\x00b"} {
			_, getErr := s.Get(ctx, name)
			_, openErr := s.Open(ctx, name)
			_, statErr := s.Stat(ctx, name)
			_, createErr := s.Create(ctx, name)
			_, lockErr := storage.Lock(ctx, s, name, false)
			for i, err := range []error{getErr, openErr, statErr, createErr, lockErr, s.Put(ctx, name, nil), s.PutIfAbsent(ctx, name, nil), s.Delete(ctx, name)} {
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
	})
}

func TestWhatIsMissingIsSaidSo(t *testing.T) {
	each(t, func(t *testing.T, s storage.Store) {
		if err := s.Delete(ctx, "nope/x"); err != nil {
			t.Errorf("deleting what is gone: %v", err)
		}
		if _, err := s.Get(ctx, "nope/x"); !errors.Is(err, storage.ErrNotExist) || fault.CodeOf(err) != "STORAGE_NOT_FOUND" {
			t.Errorf("%v", err)
		}
		if err := s.Put(ctx, "x", nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(ctx, "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Stat(ctx, "x"); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
}

func TestAnEndedContextEndsTheCall(t *testing.T) {
	each(t, func(t *testing.T, s storage.Store) {
		if err := s.Put(ctx, "x", nil); err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := s.Get(ended, "x"); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		for _, err := range s.List(ended, "", storage.ListOptions{}) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestAFileReadableByOthersIsWrittenSo(t *testing.T) {
	d := openDir(t)
	if err := d.Put(ctx, "x", []byte("1")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(d.Root(), "x"))
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	if want := os.FileMode(0o666 &^ mask); err != nil || info.Mode().Perm() != want {
		t.Errorf("%v, want %v (%v)", info.Mode(), want, err)
	}
}

func TestALockKeepsOthersOutUntilItIsReleased(t *testing.T) {
	each(t, func(t *testing.T, s storage.Store) {
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
	})
}

func TestALockDiesWithItsProcess(t *testing.T) {
	d := openDir(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STORAGE_LOCK_CHILD="+d.Root())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "locked" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := d.TryLock(ctx, "locks/update"); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("beside a living process: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as it should be
	unlock, err := d.TryLock(ctx, "locks/update")
	if err != nil {
		t.Fatalf("after its death: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

func BenchmarkListNames(b *testing.B) {
	dir := b.TempDir()
	for i := range 10_000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%06d.json", i)), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	d, err := storage.OpenDir(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range d.List(ctx, "", storage.ListOptions{NamesOnly: true}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 10_000 {
			b.Fatal(n)
		}
	}
}
