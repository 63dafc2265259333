package delta

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage/faultstore"
)

func (f *fixture) restore(version int64) RestoreResult {
	f.t.Helper()
	res, err := f.table.Restore(background, RestoreOptions{Version: version})
	if err != nil {
		f.t.Fatal(err)
	}
	return res
}

func TestARestoredTableIsTheOldVersionAgain(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, Comment: "old", Properties: map[string]string{"k": "1"}})
	s := f.snapshot()
	f.commit(Commit{Read: s, Add: f.files(s, "a", "b"), Txn: &Txn{AppID: "x", Version: 1}})
	live, err := f.snapshot().Files(background)
	if err != nil {
		t.Fatal(err)
	}
	wider := arrow.NewSchema(append(plain.Fields(), arrow.Field{Name: "extra", Type: arrow.BinaryTypes.String, Nullable: true}), nil)
	f.commit(Commit{Read: f.snapshot(), Schema: wider, Comment: "new", Properties: map[string]string{"k": "2", "delta.enableInCommitTimestamps": "true"},
		Remove: live[:1], Add: f.files(s, "c"), Txn: &Txn{AppID: "x", Version: 2}})

	res := f.restore(1)
	if res.Version != 3 || res.Restored != 1 || res.AddedFiles != 1 || res.RemovedFiles != 1 || res.RestoredBytes != live[0].Size || res.Unchanged {
		t.Errorf("%+v", res)
	}
	s = f.snapshot()
	if got := f.cells(); got != "a b" || !s.Schema().Equal(plain) {
		t.Errorf("rows %s of %s", got, s.Schema())
	}
	m := s.Metadata()
	if m.Description != "old" || m.Configuration["k"] != "1" {
		t.Errorf("%+v", m)
	}
	// What only moves forward stays: transactions, the protocol and the clock of the log.
	if v, _ := s.Txn("x"); v != 2 || !slices.Contains(s.Features(), "inCommitTimestamp") || m.Configuration["delta.enableInCommitTimestamps"] != "true" {
		t.Errorf("transaction %d, features %v, properties %v", v, s.Features(), m.Configuration)
	}
	entries, err := f.table.History(background, 1)
	if err != nil || entries[0].Operation != "RESTORE" || entries[0].OperationParameters["version"] != "1" || entries[0].OperationMetrics["numRestoredFiles"] != "1" {
		t.Errorf("%+v, %v", entries, err)
	}
	// Its rows count as changes, for those who follow the table.
	for e, err := range f.table.Log(background, 3, 3) {
		if err != nil {
			t.Fatal(err)
		}
		if !e.Adds[0].DataChange || !e.Removes[0].DataChange || *e.CommitInfo.IsBlindAppend {
			t.Errorf("%+v", e)
		}
	}
	if res := f.restore(3); !res.Unchanged || res.Version != 3 || f.snapshot().Version() != 3 {
		t.Errorf("to where it is: %+v", res)
	}
	f.restore(2)
	if got := f.cells(); got != "b c" || !f.snapshot().Schema().Equal(wider) {
		t.Errorf("forth: %s", got)
	}
}

func TestRestoreRefusesWhatItCannotGiveBack(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	files := f.files(s, "a", "b")
	f.commit(Commit{Read: s, Add: files})
	f.commit(Commit{Read: f.snapshot(), Remove: files})
	if err := f.store.Delete(background, files[0].Path); err != nil {
		t.Fatal(err)
	}
	_, err := f.table.Restore(background, RestoreOptions{Version: 1})
	if fault.CodeOf(err) != "DELTA_RESTORE_FILES_MISSING" || !strings.Contains(err.Error(), files[0].Path) || f.snapshot().Version() != 2 {
		t.Errorf("%v", err)
	}
	for version, code := range map[int64]string{9: "DELTA_VERSION_NOT_FOUND", -1: "DELTA_VERSION_NOT_FOUND"} {
		if _, err := f.table.Restore(background, RestoreOptions{Version: version}); fault.CodeOf(err) != code {
			t.Errorf("%d: %v", version, err)
		}
	}
	f.commit(Commit{Read: f.snapshot(), Add: files[1:], Properties: map[string]string{"delta.appendOnly": "true"}})
	if _, err := f.table.Restore(background, RestoreOptions{Version: 2}); fault.CodeOf(err) != "DELTA_CANNOT_MODIFY_APPEND_ONLY" {
		t.Errorf("%v", err)
	}
}

// A restore depends on the whole table: what came meanwhile is not undone in silence.
func TestARestoreConflictsWithWhatCameMeanwhile(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	files := f.files(s, "a")
	f.commit(Commit{Read: s, Add: files})
	f.commit(Commit{Read: f.snapshot(), Remove: files})
	late, rival := f.files(s, "late"), f.reopen()
	f.twin(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Times: 1, Effect: faultstore.Call(func() {
		if _, err := rival.Commit(background, Commit{Read: f.snapshot(), Add: late}); err != nil {
			t.Error(err)
		}
	})})
	if _, err := f.table.Restore(background, RestoreOptions{Version: 1}); !strings.HasPrefix(fault.CodeOf(err), "DELTA_CONCURRENT_") {
		t.Errorf("%v", err)
	}
	if got := f.cells(); got != "late" {
		t.Errorf("rows %s", got)
	}
}

// Property: restoring any version gives its rows, and changes no other version.
func TestAnyVersionCanBeRestored(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 12))
		c := newCalendar(t)
		c.commit(Commit{Schema: plain, Properties: map[string]string{"delta.checkpointInterval": fmt.Sprint(2 + r.IntN(5))}})
		for i := range 12 {
			if i%3 == 2 {
				version := r.Int64N(c.snapshot().Version() + 1)
				want := c.rowsAt(int(version), nil)
				c.restore(version)
				if got := strings.Join(c.rows(), "\n"); got != want {
					t.Errorf("seed %d: version %d restored as %q, was %q", seed, version, got, want)
				}
				continue
			}
			s := c.snapshot()
			live, err := s.Files(background)
			if err != nil {
				t.Fatal(err)
			}
			commit := Commit{Read: s, Add: c.files(s, fmt.Sprint("f", i))}
			for _, f := range live {
				if r.IntN(3) == 0 {
					commit.Remove = append(commit.Remove, f)
				}
			}
			c.commit(commit)
		}
	}
}
