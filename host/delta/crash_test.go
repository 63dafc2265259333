package delta

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
)

// crashAction is something done to the table of crashTable that a crash may
// interrupt anywhere. after are the rows when it is done; run again it is done again.
type crashAction struct {
	do    func(ctx context.Context, t *Table) error
	after string
	// loses says that older versions may not be readable any more.
	loses bool
}

const crashRows = "b c e f g h"

var crashActions = map[string]crashAction{
	"append": {do: func(ctx context.Context, t *Table) error {
		return crashCommit(ctx, t, "append", "i", nil)
	}, after: "b c e f g h i"},
	"delete by a vector": {do: func(ctx context.Context, t *Table) error {
		return crashCommit(ctx, t, "delete", "", func(c *Commit, live []AddFile) {
			f := live[slices.IndexFunc(live, func(f AddFile) bool { return strings.Contains(f.Path, "-efgh-") })]
			c.Delete = remove(f, 1)
		})
	}, after: "b c e g h"},
	"replacement": {do: func(ctx context.Context, t *Table) error {
		return crashCommit(ctx, t, "replace", "x", func(c *Commit, _ []AddFile) { c.ReplaceAll = true })
	}, after: "x"},
	"classic checkpoint": {do: func(ctx context.Context, t *Table) error {
		return crashCommit(ctx, t, "checkpoint", "i", func(c *Commit, _ []AddFile) { c.Properties = map[string]string{"delta.checkpointInterval": "1"} })
	}, after: "b c e f g h i"},
	"checkpoint of version 2": {do: func(ctx context.Context, t *Table) error {
		return crashCommit(ctx, t, "v2", "i", func(c *Commit, _ []AddFile) {
			c.Properties = map[string]string{"delta.checkpointInterval": "1", "delta.checkpointPolicy": "v2"}
		})
	}, after: "b c e f g h i"},
	"optimize": {do: func(ctx context.Context, t *Table) error {
		_, err := t.Optimize(ctx, OptimizeOptions{})
		return err
	}, after: crashRows},
	"vacuum": {do: func(ctx context.Context, t *Table) error {
		_, err := t.Vacuum(ctx, VacuumOptions{AllowShort: true})
		return err
	}, after: crashRows, loses: true},
	"restore": {do: func(ctx context.Context, t *Table) error {
		_, err := t.Restore(ctx, RestoreOptions{Version: 1})
		return err
	}, after: "a b c d"},
}

// crashCommit commits once, however often it is tried.
func crashCommit(ctx context.Context, t *Table, app, letters string, more func(*Commit, []AddFile)) error {
	s, err := t.Snapshot(ctx)
	if err != nil {
		return err
	}
	if _, done := s.Txn(app); done {
		return nil
	}
	c := Commit{Read: s, Txn: &Txn{AppID: app, Version: 1}}
	if letters != "" {
		if c.Add, err = crashFile(ctx, t, s, "more", letters); err != nil {
			return err
		}
	}
	if more != nil {
		live, err := s.Files(ctx)
		if err != nil {
			return err
		}
		more(&c, live)
	}
	_, err = t.Commit(ctx, c)
	return err
}

func crashFile(ctx context.Context, t *Table, s *Snapshot, name, letters string) ([]AddFile, error) {
	var rows []string
	for _, l := range strings.Split(letters, "") {
		rows = append(rows, fmt.Sprintf(`{"s":%q}`, l))
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, plain, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		return nil, err
	}
	defer rec.Release()
	w, err := t.Write(ctx, WriteOptions{Snapshot: s, Name: name})
	if err != nil {
		return nil, err
	}
	if err := w.Write(ctx, rec); err != nil {
		return nil, errors.Join(err, w.Abort(ctx))
	}
	return w.Close(ctx)
}

// crashTable has four versions, a vector, a removed file, and a file that no version names.
func crashTable(f *fixture) {
	f.commit(Commit{Schema: plain, Properties: vectors})
	s := f.snapshot()
	f.commit(Commit{Read: s, Add: f.letters(s, "abcd", "abcd")})
	f.commit(Commit{Read: s, Add: append(f.letters(s, "efgh", "efgh"), f.letters(s, "gone", "z")...)})
	live := f.live()
	files := map[string]AddFile{}
	for _, a := range live {
		files[strings.Split(a.Path, "-")[2]] = a
	}
	f.commit(Commit{Read: f.snapshot(), Delete: remove(files["abcd"], 0, 3), Remove: []AddFile{files["gone"]}})
	if err := f.store.Put(background, "orphan.parquet", []byte("x")); err != nil {
		f.t.Fatal(err)
	}
}

// survives checks a table behind a crash: it opens, its rows are those before
// or after the action, every version reads as it did, and the check is clean.
func (a crashAction) survives(t *testing.T, dir string, versions []string, done bool) {
	t.Helper()
	f := &fixture{t: t, mem: memory.NewCheckedAllocator(memory.NewGoAllocator()), dir: dir}
	var err error
	if f.store, err = storage.OpenDir(dir, storage.NoSync); err != nil {
		t.Fatal(err)
	}
	defer f.mem.AssertSize(t, 0)
	f.table = f.reopen()
	if got := f.cells(); got != a.after && (done || got != crashRows) {
		t.Errorf("rows %q, want %q", got, a.after)
	}
	if !a.loses {
		for v, want := range versions {
			if got := f.cellsAt(int64(v)); got != want {
				t.Errorf("version %d reads %q, was %q", v, got, want)
			}
		}
	}
	report, err := f.table.Check(background, CheckOptions{Decode: true})
	if err != nil || !report.Clean() {
		t.Errorf("the check tells of %+v, %v", report, err)
	}
}

func (f *fixture) cellsAt(version int64) string {
	f.t.Helper()
	s, err := f.table.SnapshotAt(background, version)
	if err != nil {
		f.t.Fatal(err)
	}
	rows, err := scanRows(background, s, ScanOptions{Columns: []string{"s"}}, nil)
	if err != nil {
		return err.Error()
	}
	slices.Sort(rows)
	return strings.Join(rows, " ")
}

// covers the acceptance line of issue 4: dead at any storage call of a commit, a
// checkpoint, an optimize, a vacuum or a restore, a process leaves a table that
// opens with the right rows, passes the check, and takes the action again.
func TestDeathAtAnyStorageCallLeavesATable(t *testing.T) {
	for name, action := range crashActions {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			crashTable(f)
			var versions []string
			for v := range f.snapshot().Version() + 1 {
				versions = append(versions, f.cellsAt(v))
			}
			calls := crashRun(t, f.dir, action, 0)
			t.Logf("%d calls", len(calls))
			for n := 1; n <= len(calls); n++ {
				dir := copyTable(t, f.dir)
				crashAt(t, dir, action, n)
				action.survives(t, dir, versions, false)
				crashRun(t, dir, action, n)
				action.survives(t, dir, versions, true)
				if t.Failed() {
					t.Fatalf("dead at call %d of %d: %+v", n, len(calls), calls[n-1])
				}
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func copyTable(t *testing.T, from string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "table")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// crashRun runs an action undisturbed, on a copy when it is the first time, and gives its storage calls.
func crashRun(t *testing.T, dir string, a crashAction, n int) []faultstore.CallRecord {
	t.Helper()
	if n == 0 {
		dir = copyTable(t, dir)
	}
	store, err := storage.OpenDir(dir, storage.NoSync)
	if err != nil {
		t.Fatal(err)
	}
	twin := faultstore.New(store)
	if err := a.do(background, Open(twin)); err != nil {
		t.Fatalf("undisturbed: %v", err)
	}
	return twin.Calls()
}

// crashAt runs an action whose process is dead from call n on.
func crashAt(t *testing.T, dir string, a crashAction, n int) {
	t.Helper()
	store, err := storage.OpenDir(dir, storage.NoSync)
	if err != nil {
		t.Fatal(err)
	}
	// Its own answer does not matter: a checkpoint may fail behind a commit that stands.
	_ = a.do(background, Open(faultstore.New(store, faultstore.FromCall(n, faultstore.Fail(errLost)))))
}

// Some of the same deaths, of real processes, before and behind the call.
func TestAKilledProcessLeavesATable(t *testing.T) {
	for name, action := range crashActions {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			crashTable(f)
			var versions []string
			for v := range f.snapshot().Version() + 1 {
				versions = append(versions, f.cellsAt(v))
			}
			var writes []int
			for i, call := range crashRun(t, f.dir, action, 0) {
				switch call.Op {
				case faultstore.OpPutIfAbsent, faultstore.OpCommit, faultstore.OpDelete, faultstore.OpPut, faultstore.OpCreate:
					writes = append(writes, i+1)
				}
			}
			for _, n := range []int{writes[0], writes[len(writes)/2], writes[len(writes)-1]} {
				for _, when := range []string{"before", "after"} {
					dir := copyTable(t, f.dir)
					killedAt(t, name, dir, n, when)
					action.survives(t, dir, versions, false)
					crashRun(t, dir, action, n)
					action.survives(t, dir, versions, true)
				}
			}
		})
	}
}

// crashKill names what the child process does: action, number of the call, before or after, folder.
const crashKill = "DELTA_KILL_CHILD"

func killedAt(t *testing.T, action, dir string, n int, when string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashKill+"="+strings.Join([]string{action, strconv.Itoa(n), when, dir}, "\n"))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL {
			return
		}
	}
	t.Fatalf("not killed at call %d: %v\n%s", n, err, out)
}

// runKilled is the child process: it kills itself at the call.
func runKilled(spec string) error {
	words := strings.Split(spec, "\n")
	n, err := strconv.Atoi(words[1])
	if err != nil {
		return err
	}
	store, err := storage.OpenDir(words[3], storage.NoSync)
	if err != nil {
		return err
	}
	kill := func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }
	effect := faultstore.Call(kill)
	if words[2] == "after" {
		effect = faultstore.After(kill)
	}
	return crashActions[words[0]].do(background, Open(faultstore.New(store, faultstore.AtCall(n, effect))))
}
