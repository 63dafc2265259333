package delta

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/storage"
)

// multipart writes the newest state as a checkpoint of many parts, as writers of old did.
func (f *fixture) multipart(parts int) []string {
	f.t.Helper()
	s := f.snapshot()
	state := f.table.checkpointState(s)
	names := make([]string, parts)
	for i := range parts {
		names[i] = fmt.Sprintf("%s/%020d.checkpoint.%010d.%010d.parquet", logFolder, s.version, i+1, parts)
		if _, err := f.table.writeActions(background, s, names[i], false, func(w *actionWriter) error {
			if i == 0 {
				if err := w.smallActions(s); err != nil {
					return err
				}
			}
			if i == parts-1 {
				if err := w.removes(state.removes); err != nil {
					return err
				}
			}
			return w.adds(state.adds[i*len(state.adds)/parts : (i+1)*len(state.adds)/parts])
		}); err != nil {
			f.t.Fatal(err)
		}
		names[i] = filepath.Join(f.dir, names[i])
	}
	return names
}

// Rule: a checkpoint is chosen by a fixed rule among those that are whole, and
// one that turns out to be unusable is passed over as long as the state can be
// had otherwise.
func TestWhicheverCheckpointsThereAreTheStateIsTheSame(t *testing.T) {
	for name, arrange := range map[string]func(f *fixture){
		"all forms at one version": func(f *fixture) {},
		"parts alone": func(f *fixture) {
			f.remove(f.logFiles("*.checkpoint.parquet")...)
			f.remove(f.logFiles("*.checkpoint.????????-*")...)
			f.remove(f.commits(0, 8)...)
		},
		"a part is missing": func(f *fixture) { f.remove(f.logFiles("*.checkpoint.0000000002.0000000003.parquet")...) },
		"a part is missing and nothing else is there": func(f *fixture) {
			f.remove(f.logFiles("*.checkpoint.0000000002.0000000003.parquet")...)
			f.remove(f.logFiles("*.checkpoint.parquet")...)
			f.remove(f.logFiles("*.checkpoint.????????-*")...)
		},
		"parts of two kinds, neither whole": func(f *fixture) {
			f.multipart(2)
			f.remove(f.logFiles("*.checkpoint.0000000001.0000000002.parquet")...)
			f.remove(f.logFiles("*.checkpoint.0000000003.0000000003.parquet")...)
		},
		"the classic one is damaged": func(f *fixture) { f.put(checkpointName(9), []byte("PAR1")) },
		"the classic one is empty":   func(f *fixture) { f.put(checkpointName(9), nil) },
		"all of the version are damaged": func(f *fixture) {
			for _, n := range f.logFiles("00000000000000000009.checkpoint*") {
				f.put(strings.TrimPrefix(n, f.dir+"/"), []byte("x"))
			}
		},
		"sidecars are gone": func(f *fixture) {
			f.remove(f.logFiles("*.checkpoint.parquet")...)
			f.remove(f.logFiles("*.checkpoint.00000*.parquet")...)
			f.remove(f.logFiles("_sidecars/*")...)
		},
		"the hint is stale": func(f *fixture) { f.put(lastCheckpointName, []byte(`{"version":4,"size":1}`)) },
		"the hint is ahead": func(f *fixture) { f.put(lastCheckpointName, []byte(`{"version":400,"size":1}`)) },
		"the hint has a wrong checksum": func(f *fixture) {
			f.put(lastCheckpointName, []byte(`{"version":4,"size":1,"checksum":"00000000000000000000000000000000"}`))
		},
		"the hint names what is gone": func(f *fixture) { f.remove(f.logFiles("00000000000000000009.checkpoint*")...) },
		"only the V2 ones, behind a clean log": func(f *fixture) {
			f.remove(f.logFiles("*.checkpoint.parquet")...)
			f.remove(f.logFiles("*.checkpoint.00000*.parquet")...)
			f.remove(f.commits(0, 8)...)
		},
		"names that look like checkpoints": func(f *fixture) {
			for _, n := range []string{"checkpoint.x.parquet", "checkpoint.1.parquet", "checkpoint.0.3.parquet", "checkpoint.4.3.parquet", "checkpoint.1.99999999.parquet", "checkpoint", "checkpoint.parquet.tmp"} {
				f.put(logFolder+"/00000000000000000010."+n, []byte("x"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.history(v2Properties, 4)
			if _, err := f.table.Checkpoint(background, CheckpointClassic); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				f.commit(Commit{Read: f.snapshot(), Add: f.write(WriteOptions{Snapshot: f.snapshot(), Name: fmt.Sprint("later", i)}, `[{"id":5,"s":"q"}]`)})
			}
			for _, form := range []CheckpointForm{CheckpointClassic, CheckpointV2, CheckpointV2JSON} {
				if _, err := f.table.Checkpoint(background, form); err != nil {
					t.Fatal(err)
				}
			}
			f.multipart(3)
			f.commit(Commit{Read: f.snapshot(), Add: f.write(WriteOptions{Snapshot: f.snapshot(), Name: "last"}, `[{"id":5,"s":"q"}]`)})
			want := state(t, f.snapshot())
			arrange(f)
			f.sameState(name, want)
		})
	}
}

// commits gives the paths of commits.
func (f *fixture) commits(from, to int64) (out []string) {
	for v := from; v <= to; v++ {
		out = append(out, filepath.Join(f.dir, commitName(v)))
	}
	return out
}

// vanishing is a store whose listing names files that are gone by the time they are opened.
type vanishing struct {
	storage.Store
	f    *fixture
	when string
	once bool
}

func (v *vanishing) Open(ctx context.Context, name string) (storage.Object, error) {
	if !v.once && strings.Contains(name, v.when) {
		v.once = true
		v.f.remove(v.f.commits(0, 8)...)
		v.f.remove(v.f.logFiles("00000000000000000004.checkpoint*")...)
	}
	return v.Store.Open(ctx, name)
}

// Rule: a log that is cleaned up while it is opened is opened as it is now.
func TestTheLogMayBeCleanedUpWhileItIsOpened(t *testing.T) {
	f := newFixture(t)
	f.history(v2Properties, 4)
	if _, err := f.table.Checkpoint(background, CheckpointClassic); err != nil {
		t.Fatal(err)
	}
	hint := f.get(lastCheckpointName)
	for i := range 6 {
		f.commit(Commit{Read: f.snapshot(), Add: f.write(WriteOptions{Snapshot: f.snapshot(), Name: fmt.Sprint("later", i)}, `[{"id":5,"s":"q"}]`)})
		if i == 4 {
			if _, err := f.table.Checkpoint(background, CheckpointClassic); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.put(lastCheckpointName, hint)
	want := state(t, f.snapshot())
	f.put(checkpointName(9), append([]byte{}, f.get(checkpointName(9))...))
	table := Open(&vanishing{Store: f.store, f: f, when: "00000000000000000009.checkpoint"}, WithAllocator(f.mem))
	s, err := table.Snapshot(background)
	if err != nil {
		t.Fatal(err)
	}
	f.equalStates("cleaned up meanwhile", state(t, s), want)
}
