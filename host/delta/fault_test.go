package delta

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
)

var errLost = errors.New("connection reset")

// twin puts a faulty store under the table.
func (f *fixture) twin(rules ...faultstore.Rule) *faultstore.Store {
	s := faultstore.New(f.store, rules...)
	f.table = Open(s, WithAllocator(f.mem))
	return s
}

// covers A17: a commit whose answer was lost is neither lost nor made twice.
func TestACommitWithoutAnAnswerIsRecognised(t *testing.T) {
	for name, c := range map[string]struct {
		effect faultstore.Effect
		code   string
		cells  string
	}{
		"it was made":          {faultstore.LoseAnswer(errLost), "", "a"},
		"the store retried it": {faultstore.LoseAnswer(fmt.Errorf("412: %w", storage.ErrExist)), "", "a"},
		"it was not made":      {faultstore.Fail(errLost), "DELTA_COMMIT_FAILED", ""},
		"the disk is full":     {faultstore.Full(), "DELTA_COMMIT_FAILED", ""},
		"it was torn":          {faultstore.Tear(100, errLost), "DELTA_COMMIT_OUTCOME_UNKNOWN", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			s := f.create()
			files := f.files(s, "a")
			twin := f.twin(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Times: 1, Effect: c.effect})
			commit := Commit{Read: s, Add: files, Txn: &Txn{AppID: "x", Version: 1}}
			res, err := f.table.Commit(background, commit)
			if fault.CodeOf(err) != c.code {
				t.Fatalf("%v, want %q", err, c.code)
			}
			if c.cells == "-" {
				if _, err := f.reopen().Snapshot(background); fault.CodeOf(err) != "DELTA_INVALID_LOG" {
					t.Errorf("a torn commit reads as %v", err)
				}
				return
			}
			if err == nil && res.Version != 1 {
				t.Errorf("version %d", res.Version)
			}
			if got := f.cells(); got != c.cells {
				t.Errorf("rows %q, want %q", got, c.cells)
			}
			// Doing it again ends in the same place.
			twin.Heal()
			_, err = f.table.Commit(background, commit)
			var done *AlreadyCommitted
			if (c.code == "") != errors.As(err, &done) || c.code != "" && err != nil {
				t.Errorf("again: %v", err)
			}
			if got := f.cells(); got != "a" {
				t.Errorf("in the end: %q", got)
			}
		})
	}
}

func TestAnEmptyCommitIsNotOurs(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	files := f.files(s, "a")
	f.twin(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Times: 1, Effect: faultstore.Tear(0, errLost)})
	res, err := f.table.Commit(background, Commit{Read: s, Add: files})
	if err != nil || res.Version != 2 || f.cells() != "a" {
		t.Errorf("%+v, %v, %s", res, err, f.cells())
	}
}

// A rival that commits between our look and our put wins; we land behind it.
func TestARivalInTheGapIsSeen(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	a, b := f.files(s, "a"), f.files(s, "b")
	rival := f.reopen()
	f.twin(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Times: 1, Effect: faultstore.Call(func() {
		if _, err := rival.Commit(background, Commit{Read: s, Add: b}); err != nil {
			t.Error(err)
		}
	})})
	res, err := f.table.Commit(background, Commit{Read: s, Add: a})
	if err != nil || res.Version != 2 || f.cells() != "a b" {
		t.Errorf("%+v, %v, %s", res, err, f.cells())
	}
}

func TestTwoCreationsMakeOneTable(t *testing.T) {
	f := newFixture(t)
	rival := f.reopen()
	f.twin(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Times: 1, Effect: faultstore.Call(func() {
		if _, err := rival.Commit(background, Commit{Schema: plain, Name: "rival"}); err != nil {
			t.Error(err)
		}
	})})
	if _, err := f.table.Commit(background, Commit{Schema: plain}); fault.CodeOf(err) != "DELTA_TABLE_ALREADY_EXISTS" {
		t.Errorf("%v", err)
	}
	if m := f.snapshot().Metadata(); m.Name != "rival" {
		t.Errorf("%+v", m)
	}
}

// TestWritesThatFailLeaveNothingBehind lets each step of a write fail.
func TestWritesThatFailLeaveNothingBehind(t *testing.T) {
	for _, op := range []faultstore.Op{faultstore.OpCreate, faultstore.OpWrite, faultstore.OpCommit} {
		for _, effect := range []faultstore.Effect{faultstore.Full(), faultstore.Fail(errLost)} {
			f := newFixture(t)
			f.twin(faultstore.Rule{Op: op, Skip: 1, Effect: effect})
			w, err := f.table.Write(background, WriteOptions{Schema: plain, Name: "n", TargetSize: 50 << 10})
			if err != nil {
				t.Fatal(err)
			}
			rec := f.manyRows(0, 100_000)
			err = w.Write(background, rec)
			rec.Release()
			if err == nil {
				_, err = w.Close(background)
			}
			if err == nil {
				t.Fatalf("%s: no failure", op)
			}
			if abortErr := w.Abort(background); fault.CodeOf(err) == "" || abortErr != nil {
				t.Errorf("%s: %v, then %v", op, err, abortErr)
			}
			if left := leftovers(t, f.dir); len(left) > 0 {
				t.Errorf("%s: left %v", op, left)
			}
		}
	}
}

func leftovers(t *testing.T, dir string) (out []string) {
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A checkpoint that cannot be written costs nothing but time.
func TestACommitStandsWithoutItsCheckpoint(t *testing.T) {
	for _, rule := range []faultstore.Rule{
		{Op: faultstore.OpCreate, Name: "*.checkpoint.parquet", Effect: faultstore.Full()},
		{Op: faultstore.OpWrite, Name: "*.checkpoint.parquet", Effect: faultstore.Tear(10, storage.ErrFull)},
		{Op: faultstore.OpCommit, Name: "*.checkpoint.parquet", Effect: faultstore.Fail(errLost)},
		{Op: faultstore.OpPut, Name: "_last_checkpoint", Effect: faultstore.Full()},
	} {
		f := newFixture(t)
		s := f.create()
		f.twin(rule)
		for i := range 10 {
			res, err := f.table.Commit(background, Commit{Read: s, Add: f.files(s, fmt.Sprint("n", i))})
			if err != nil || (res.CheckpointError != nil) != (i == 9) {
				t.Errorf("%s: commit %d: %v, checkpoint %v", rule.Op, i, err, res.CheckpointError)
			}
		}
		if n := len(strings.Fields(f.cells())); n != 10 {
			t.Errorf("%s: %d rows", rule.Op, n)
		}
	}
}

// TestReadsThatFailAreErrorsNotMissingRows lets reads fail or come up short.
func TestReadsThatFailAreErrorsNotMissingRows(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	for i := range 11 {
		f.commit(Commit{Read: s, Add: f.files(s, fmt.Sprint("n", i))})
	}
	for _, op := range []faultstore.Op{faultstore.OpOpen, faultstore.OpRead, faultstore.OpList, faultstore.OpGet} {
		for _, effect := range []faultstore.Effect{faultstore.Fail(errLost), faultstore.Tear(1, errLost)} {
			for skip := range 12 {
				f.twin(faultstore.Rule{Op: op, Skip: skip, Times: 1, Effect: effect})
				s, err := f.table.Snapshot(background)
				rows := []string(nil)
				if err == nil {
					rows, err = scanRows(background, s, ScanOptions{}, nil)
				}
				if err == nil && len(rows) != 11 {
					t.Errorf("%s after %d: %d rows and no error", op, skip, len(rows))
				}
			}
		}
	}
}

func TestAFileThatIsGoneIsNamed(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	files := f.files(s, "a")
	f.commit(Commit{Read: s, Add: files})
	if err := f.store.Delete(background, files[0].Path); err != nil {
		t.Fatal(err)
	}
	_, err := scanRows(background, f.snapshot(), ScanOptions{}, nil)
	if fault.CodeOf(err) != "DELTA_FILE_NOT_FOUND" || !strings.Contains(err.Error(), files[0].Path) || !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestAnEndedContextEndsAScan(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	f.commit(Commit{Read: s, Add: f.files(s, "a", "b")})
	ctx, cancel := context.WithCancel(background)
	r, err := f.snapshot().Scan(ctx, ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatal(r.Err())
	}
	cancel()
	if r.Next() || !errors.Is(r.Err(), context.Canceled) {
		t.Errorf("%v", r.Err())
	}
}

// halfSeen is a store whose listings miss some names, as the reading of a
// directory into which others write may.
type halfSeen struct {
	storage.Store
	missed map[string]bool
}

func (s halfSeen) List(ctx context.Context, prefix string, opt storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		for info, err := range s.Store.List(ctx, prefix, opt) {
			if !s.missed[info.Name] && !yield(info, err) {
				return
			}
		}
	}
}

func TestAListingThatMissesACommitIsNoGap(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	for i := range 14 {
		f.commit(Commit{Read: s, Add: f.files(s, fmt.Sprint("n", i))})
	}
	for _, missed := range [][]int64{{3}, {11}, {11, 12}, {2, 5, 13}, {1, 2, 3, 4, 5, 6, 7, 8, 9}} {
		store := halfSeen{f.store, map[string]bool{}}
		for _, v := range missed {
			store.missed[commitName(v)] = true
		}
		rows, err := scanRows(background, mustSnapshot(t, Open(store)), ScanOptions{}, nil)
		if err != nil || len(rows) != 14 {
			t.Errorf("without %v: %d rows, %v", missed, len(rows), err)
		}
		history, err := Open(store).History(background, 0)
		if err != nil || len(history) != 15 {
			t.Errorf("without %v: %d versions, %v", missed, len(history), err)
		}
		at, err := Open(store).SnapshotAt(background, 4)
		if err != nil || at.Version() != 4 {
			t.Errorf("without %v: %v", missed, err)
		}
	}
	// What is gone is a gap.
	if err := f.store.Delete(background, commitName(12)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.reopen().Snapshot(background); fault.CodeOf(err) != "DELTA_LOG_GAP" {
		t.Errorf("%v", err)
	}
}

func mustSnapshot(t *testing.T, table *Table) *Snapshot {
	t.Helper()
	s, err := table.Snapshot(background)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
