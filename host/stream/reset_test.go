package stream

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

// shared gives the two flows of one table, both reading the landing folder.
func (l *lake) shared(t testing.TB) []*Flow {
	t.Helper()
	first, second := l.mustBronze(t), l.mustBronze(t)
	second.Name = "second"
	second.Checkpoint = l.open("_weir/dwh/checkpoints/" + bronzeName + "/second")
	first.Schemas, second.Schemas = l.open("_weir/dwh/schemas/first"), l.open("_weir/dwh/schemas/second")
	return []*Flow{first, second}
}

func (l *lake) reset(t testing.TB) *Reset {
	t.Helper()
	r := &Reset{Dataset: bronzeName, Pipeline: l.pipeline, UpdateID: "reset", Quarantine: l.table(bronzeName + "_quarantine"), Flows: map[string]ResetFlow{}}
	for _, f := range l.shared(t) {
		r.Target, r.Flows[f.Name] = f.Target, ResetFlow{Checkpoint: f.Checkpoint}
	}
	return r
}

// Whatever operation of a reset goes wrong: once a later one succeeds, every row
// is there once for each flow, and so are the refused ones.
func TestEveryStorageOperationOfAResetMayFail(t *testing.T) {
	for mode := crashBefore; mode <= failAfter; mode++ {
		t.Run(fmt.Sprintf("mode %d", mode), func(t *testing.T) {
			t.Parallel()
			for k := 1; ; k += stride(5) {
				if !resetFails(t, k, mode) {
					if k < 8 {
						t.Fatalf("only %d operations", k)
					}
					return
				}
			}
		})
	}
}

func resetFails(t *testing.T, k int, mode faultMode) bool {
	t.Helper()
	l := newLake(t)
	defer func() {
		if !t.Failed() {
			_ = os.RemoveAll(l.dir)
		}
	}()
	l.mustDrop(t, "a.json", `{"id":1}`+"\n"+`{"id":-1}`)
	l.mustDrop(t, "b.json", `{"id":2}`)
	for _, f := range l.shared(t) {
		mustRun(t, f)
	}
	if err := os.Remove(l.dir + "/landing/a.json"); err != nil {
		t.Fatal(err)
	}
	f := &faulty{k: k, mode: mode}
	l.wrap = f.wrap
	err := l.reset(t).Run(context.Background())
	l.wrap = nil
	if err != nil {
		if !f.hit || fault.CodeOf(err) == "" {
			t.Fatalf("operation %d: %v", k, err)
		}
		// Flows that have begun anew wait for the commit, and the others go on.
		for _, f := range l.shared(t) {
			if _, err := Run(context.Background(), f, nil); err != nil && !fault.Is(err, "FULL_REFRESH_UNFINISHED") && !fault.Is(err, "CHECKPOINT_MISSING") {
				t.Fatalf("operation %d, the run after: %v", k, err)
			}
		}
		if err := l.reset(t).Run(context.Background()); err != nil {
			t.Fatalf("operation %d, the reset after: %v", k, err)
		}
	}
	for range 2 {
		for _, f := range l.shared(t) {
			mustRun(t, f)
		}
	}
	if got := l.mustRows(t, bronzeName, "_rescued_data"); !slices.Equal(got, idRows(2, 2)) {
		t.Fatalf("operation %d: rows %v", k, got)
	}
	if got := l.mustRows(t, bronzeName+"_quarantine"); len(got) != 0 {
		t.Fatalf("operation %d: refused rows %v", k, got)
	}
	return f.hit
}

// A checkpoint from before a reset does not go on: its rows are gone.
func TestAnOldCheckpointDoesNotGoOnAfterAReset(t *testing.T) {
	l := newLake(t)
	l.mustDrop(t, "a.json", `{"id":1}`)
	for _, f := range l.shared(t) {
		mustRun(t, f)
	}
	if err := l.reset(t).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	second := l.shared(t)[1]
	if err := second.Checkpoint.Delete(context.Background(), "1/generation.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), second, nil); !fault.Is(err, "CHECKPOINT_MISSING") || !strings.Contains(err.Error(), "full refresh 1") {
		t.Fatal(err)
	}
	// A flow that comes later knows of the reset.
	third := l.shared(t)[1]
	third.Name, third.Checkpoint, third.Schemas = "third", l.open("_weir/dwh/checkpoints/"+bronzeName+"/third"), l.open("_weir/dwh/schemas/third")
	mustRun(t, third)
	if got := l.mustRows(t, bronzeName, "_rescued_data"); !slices.Equal(got, idRows(1)) {
		t.Fatalf("rows %v", got)
	}
}
