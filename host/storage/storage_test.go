package storage_test

import (
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

	"go.uber.org/goleak"

	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
	"github.com/weir-data/weir/host/storage/storagetest"
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

func openDir(t testing.TB, opts ...storage.Option) *storage.Dir {
	t.Helper()
	d, err := storage.OpenDir(t.TempDir(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var ctx = context.Background()

func TestEveryStoreKeepsTheRules(t *testing.T) {
	t.Run("dir", func(t *testing.T) {
		storagetest.Run(t, func(t *testing.T) storage.Store { return openDir(t, storage.NoSync) })
	})
	t.Run("sub", func(t *testing.T) {
		storagetest.Run(t, func(t *testing.T) storage.Store {
			return storage.Sub(storage.Sub(openDir(t, storage.NoSync), "a/b"), "c/")
		})
	})
	t.Run("faultstore without faults", func(t *testing.T) {
		storagetest.Run(t, func(t *testing.T) storage.Store { return faultstore.New(openDir(t, storage.NoSync)) })
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
