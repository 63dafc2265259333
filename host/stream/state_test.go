package stream

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
)

// stateFiles gives the objects in the state folder of a generation.
func stateFiles(t *testing.T, l *lake, generation string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(l.dir, "lake/_weir/dwh/checkpoints", bronzeName, "orders", generation, "state/*.bin"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func countedLake(t *testing.T) *lake {
	l := newLake(t)
	l.counted = true
	l.options["cloudFiles.maxFilesPerTrigger"] = "1"
	l.mustDrop(t, "a.json", `{"id":1}`+"\n"+`{"id":2}`)
	l.mustDrop(t, "b.json", `{"id":3}`)
	return l
}

func TestOldStatesAreRemovedAndAFullRefreshHasNone(t *testing.T) {
	l := countedLake(t)
	mustRun(t, l.mustBronze(t))
	if found := stateFiles(t, l, "0"); len(found) != 1 || !strings.Contains(found[0], "00000000000000000001-") {
		t.Errorf("states %v", found)
	}
	f := l.mustBronze(t)
	f.FullRefresh = true
	mustRun(t, f)
	if err := l.checkCount(f, 3); err != nil {
		t.Error(err)
	}
}

// An attempt that commits nothing leaves no state, and what a dead one left
// behind is not read, whatever it is.
func TestTheStateOfABatchThatIsNotCommittedIsNotRead(t *testing.T) {
	l := countedLake(t)
	mustRun(t, l.mustBronze(t))
	l.mustDrop(t, "c.json", `{"id":-4}`)
	f := l.mustBronze(t)
	f.Rules[0].Action = expect.Fail
	if _, err := Run(context.Background(), f, nil); fault.CodeOf(err) != "EXPECTATION_VIOLATED" {
		t.Fatal(err)
	}
	if err := l.checkCount(f, 3); err != nil {
		t.Error(err)
	}
	left := filepath.Join(filepath.Dir(stateFiles(t, l, "0")[0]), filepath.Base(statePath(2, countName)))
	if err := os.WriteFile(left, []byte("77"), 0o644); err != nil {
		t.Fatal(err)
	}
	mustRun(t, l.mustBronze(t))
	if err := l.checkCount(f, 4); err != nil {
		t.Error(err)
	}
	if found := stateFiles(t, l, "0"); !slices.Equal(found, []string{left}) {
		t.Errorf("states %v", found)
	}
}

// A batch without rows gives no new state: the old one stays.
func TestABatchThatWritesNoStateKeepsTheOldOne(t *testing.T) {
	l := countedLake(t)
	mustRun(t, l.mustBronze(t))
	l.mustDrop(t, "c.json", "")
	f := l.mustBronze(t)
	if res := mustRun(t, f); res.Batches != 1 {
		t.Fatalf("%d batches", res.Batches)
	}
	if err := l.checkCount(f, 3); err != nil {
		t.Error(err)
	}
	l.mustDrop(t, "d.json", `{"id":5}`)
	mustRun(t, l.mustBronze(t))
	if err := l.checkCount(f, 4); err != nil {
		t.Error(err)
	}
}

func TestAStateThatIsDamagedOrGoneStopsTheFlow(t *testing.T) {
	for code, harm := range map[string]func(string) error{
		"CHECKPOINT_CORRUPT":     func(p string) error { return os.WriteFile(p, []byte("4"), 0o644) },
		"CHECKPOINT_UNAVAILABLE": os.Remove,
	} {
		l := countedLake(t)
		mustRun(t, l.mustBronze(t))
		if err := harm(stateFiles(t, l, "0")[0]); err != nil {
			t.Fatal(err)
		}
		l.mustDrop(t, "c.json", `{"id":4}`)
		if _, err := Run(context.Background(), l.mustBronze(t), nil); fault.CodeOf(err) != code {
			t.Errorf("%v, want %s", err, code)
		}
		f := l.mustBronze(t)
		f.FullRefresh = true
		mustRun(t, f)
		if err := l.checkCount(f, 4); err != nil {
			t.Error(err)
		}
	}
}
