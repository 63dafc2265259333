package delta

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/fault"
)

// state is all that a snapshot knows, in a form that can be compared.
func state(t testing.TB, s *Snapshot) map[string]any {
	t.Helper()
	files, err := s.Files(background)
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i].DataChange = false // means nothing in a checkpoint
	}
	tombs := []RemoveFile{}
	s.tombs.each(func(_ string, r *RemoveFile) {
		tomb := *r
		tomb.DataChange, tomb.Tags = false, nil
		tombs = append(tombs, tomb)
	})
	slices.SortFunc(tombs, func(a, b RemoveFile) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.DeletionVector.id(), b.DeletionVector.id()))
	})
	return map[string]any{
		"version": s.version, "protocol": *s.protocol, "metadata": *s.metadata, "files": files, "tombs": tombs, "txns": s.txns, "domains": s.domains,
	}
}

func TestACheckpointHoldsTheWholeState(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: allTypes(true), PartitionBy: []string{"d", "str"}, ClusterBy: nil, Name: "n", Comment: "c",
		Properties: map[string]string{"delta.enableDeletionVectors": "true", "k": "v"}})
	for i := range 10 {
		c := Commit{Read: f.snapshot(), Txn: &Txn{AppID: fmt.Sprint("app", i%3), Version: int64(i)},
			Add: f.write(WriteOptions{Snapshot: f.snapshot(), Name: fmt.Sprint(i)}, fmt.Sprintf(`[{"i64":%d,"d":"2024-01-%02d","str":"a/b %d"},{"i64":null,"str":null}]`, i, i+1, i))}
		if i%4 == 3 {
			live, err := f.snapshot().Files(background)
			if err != nil {
				t.Fatal(err)
			}
			c.Remove = live[:2]
		}
		f.commit(c)
	}
	fromCheckpoint, err := f.reopen().Snapshot(background)
	if err != nil {
		t.Fatal(err)
	}
	hint, err := os.ReadFile(filepath.Join(f.dir, lastCheckpointName))
	if err != nil || !strings.Contains(string(hint), `"version":10`) {
		t.Fatalf("hint %s, %v", hint, err)
	}
	for _, name := range []string{lastCheckpointName, checkpointName(10)} {
		if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	fromCommits, err := f.reopen().Snapshot(background)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := state(t, fromCheckpoint), state(t, fromCommits), state(t, f.snapshot())
	for k := range a {
		if !reflect.DeepEqual(a[k], b[k]) || !reflect.DeepEqual(a[k], c[k]) {
			t.Errorf("%s:\ncheckpoint  %+v\ncommits     %+v\nincremental %+v", k, a[k], b[k], c[k])
		}
	}
}

func TestOldTombstonesLeaveTheCheckpoint(t *testing.T) {
	f := newFixture(t)
	now := time.UnixMilli(1_700_000_000_000)
	f.table = Open(f.store, WithAllocator(f.mem), WithClock(func() time.Time { return now }))
	f.commit(Commit{Schema: plain, Add: f.files(nil, "a"), Properties: map[string]string{"delta.deletedFileRetentionDuration": "interval 2 days"}})
	f.commit(Commit{Read: f.snapshot(), ReplaceAll: true, Add: f.files(f.snapshot(), "b")})
	now = now.Add(49 * time.Hour)
	f.commit(Commit{Read: f.snapshot(), ReplaceAll: true, Add: f.files(f.snapshot(), "c")})
	for range 8 {
		f.commit(Commit{Read: f.snapshot()})
	}
	s, err := f.reopen().Snapshot(background)
	if err != nil || s.version != 10 || s.tombs.n != 1 || s.NumFiles() != 1 {
		t.Fatalf("version %d, %d tombstones, %v", s.version, s.tombs.n, err)
	}
	s.tombs.each(func(_ string, r *RemoveFile) {
		if !strings.Contains(r.Path, "b") {
			t.Errorf("kept %s", r.Path)
		}
	})
}

func TestADamagedCheckpointIsPassedOver(t *testing.T) {
	damage := map[string]func(data []byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"cut":       func(d []byte) []byte { return d[:len(d)/2] },
		"scrambled": func(d []byte) []byte { return append(slices.Repeat([]byte{0xff}, len(d)-8), d[len(d)-8:]...) },
		"text":      func([]byte) []byte { return []byte("PAR1 not at all PAR1") },
	}
	for name, change := range damage {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			s := f.create()
			for i := range 12 {
				f.commit(Commit{Read: s, Add: f.files(s, fmt.Sprint("n", i))})
			}
			path := filepath.Join(f.dir, checkpointName(10))
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, change(data), 0o644); err != nil {
				t.Fatal(err)
			}
			if n := len(strings.Fields(f.cells())); n != 12 {
				t.Errorf("%d rows", n)
			}
			// Without the commits there is nothing to fall back to.
			for v := range int64(5) {
				if err := os.Remove(filepath.Join(f.dir, commitName(v))); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := f.reopen().Snapshot(background); !strings.HasPrefix(fault.CodeOf(err), "DELTA_") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestHintsMayBeWrong(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	for i := range 21 {
		f.commit(Commit{Read: s, Add: f.files(s, fmt.Sprint("n", i))})
	}
	for _, hint := range []string{"", "{", "null", `{"version":-1}`, `{"version":"x"}`, `{"version":7}`, `{"version":10}`, `{"version":20}`, `{"version":9999}`, "\x00"} {
		if err := os.WriteFile(filepath.Join(f.dir, lastCheckpointName), []byte(hint), 0o644); err != nil {
			t.Fatal(err)
		}
		for version, want := range map[int64]int{-1: 21, 3: 3, 10: 10, 15: 15, 20: 20} {
			var s *Snapshot
			var err error
			if version < 0 {
				s, err = f.reopen().Snapshot(background)
			} else {
				s, err = f.reopen().SnapshotAt(background, version)
			}
			if err != nil || s.NumFiles() != want {
				t.Errorf("hint %q: version %d: %v, %v", hint, version, s, err)
			}
		}
	}
}

// covers "log cleanup": versions before a checkpoint may be gone.
func TestACleanedLogIsReadFromItsCheckpoint(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	for i := range 12 {
		f.commit(Commit{Read: s, Add: f.files(s, fmt.Sprint("n", i))})
	}
	stale := f.reopen()
	if _, err := stale.SnapshotAt(background, 3); err != nil {
		t.Fatal(err)
	}
	for v := range int64(10) {
		if err := os.Remove(filepath.Join(f.dir, commitName(v))); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(strings.Fields(f.cells())); n != 12 {
		t.Errorf("%d rows", n)
	}
	if _, err := f.reopen().SnapshotAt(background, 5); fault.CodeOf(err) != "DELTA_LOG_GAP" {
		t.Errorf("%v", err)
	}
	for _, err := range f.table.Log(background, 5, 12) {
		if fault.CodeOf(err) != "DELTA_LOG_GAP" {
			t.Errorf("%v", err)
		}
	}
	var seen []int64
	for e, err := range f.table.Log(background, 11, -1) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, e.Version)
	}
	if !slices.Equal(seen, []int64{11, 12}) {
		t.Error(seen)
	}
	if err := os.Remove(filepath.Join(f.dir, commitName(11))); err != nil {
		t.Fatal(err)
	}
	if _, err := f.reopen().Snapshot(background); fault.CodeOf(err) != "DELTA_LOG_GAP" {
		t.Errorf("a gap after the checkpoint: %v", err)
	}
	if _, err := stale.Commit(background, Commit{Read: s, Add: f.files(s, "late")}); err == nil {
		t.Error("committed into a gap of the log")
	}
}

// TestRandomHistoriesEndInTheSameState applies random commits to the table and
// to a plain model, and compares rows and transactions through every way to
// load a snapshot.
func TestRandomHistoriesEndInTheSameState(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			f := newFixture(t)
			interval := 1 + rnd.IntN(7)
			f.commit(Commit{Schema: plain, Properties: map[string]string{"delta.checkpointInterval": fmt.Sprint(interval)}})
			model := map[string]string{} // file → its row
			txns := map[string]int64{}
			history := [][]string{{}}
			stale := []*Snapshot{f.snapshot()}
			for i := range 25 {
				c := Commit{Read: stale[rnd.IntN(len(stale))]}
				switch rnd.IntN(6) {
				case 0:
					c.ReplaceAll = true
					clear(model)
				case 1:
					if live, err := f.snapshot().Files(background); err != nil {
						t.Fatal(err)
					} else if len(live) > 0 {
						c.Read = f.snapshot()
						c.Remove = live[:1+rnd.IntN(len(live))]
						for _, r := range c.Remove {
							delete(model, r.Path)
						}
					}
				}
				for j := range rnd.IntN(4) {
					name := fmt.Sprintf("v%d-%d", i, j)
					files := f.files(f.snapshot(), name)
					c.Add = append(c.Add, files...)
					model[files[0].Path] = name
				}
				if app := fmt.Sprint("app", rnd.IntN(3)); rnd.IntN(2) == 0 {
					c.Read = f.snapshot()
					txns[app] += 1 + int64(rnd.IntN(3))
					c.Txn = &Txn{AppID: app, Version: txns[app]}
				}
				table := f.table
				if rnd.IntN(3) == 0 {
					table = f.reopen()
				}
				if _, err := table.Commit(background, c); err != nil {
					t.Fatalf("commit %d: %v", i, err)
				}
				stale = append(stale, f.snapshot())
				var rows []string
				for _, v := range model {
					rows = append(rows, v)
				}
				slices.Sort(rows)
				history = append(history, rows)
				if got := f.cells(); got != strings.Join(rows, " ") {
					t.Fatalf("after commit %d: %q, want %q", i, got, rows)
				}
			}
			for version, want := range history {
				s, err := f.reopen().SnapshotAt(background, int64(version))
				if err != nil {
					t.Fatal(err)
				}
				if s.NumFiles() != len(want) {
					t.Errorf("version %d: %d files, want %d", version, s.NumFiles(), len(want))
				}
			}
			// Replay of the commits alone gives the same.
			checkpoints, err := filepath.Glob(filepath.Join(f.dir, logFolder, "*checkpoint*"))
			if err != nil || len(checkpoints) < 2 {
				t.Fatalf("%v, %v", checkpoints, err)
			}
			before := state(t, f.snapshot())
			for _, c := range checkpoints {
				if err := os.Remove(c); err != nil {
					t.Fatal(err)
				}
			}
			s, err := f.reopen().Snapshot(background)
			if err != nil {
				t.Fatal(err)
			}
			after := state(t, s)
			for k := range before {
				if !reflect.DeepEqual(before[k], after[k]) {
					t.Errorf("%s:\nincremental %+v\ncommits     %+v", k, before[k], after[k])
				}
			}
			for app, want := range txns {
				if got, ok := s.Txn(app); want > 0 && (!ok || got != want) {
					t.Errorf("txn %s at %d, want %d", app, got, want)
				}
			}
		})
	}
}
