package stream

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

// covers A37 A47 A48 A49: every state that would lose or double rows in silence is a named error.
func TestGuards(t *testing.T) {
	checkpoint := "lake/_weir/dwh/checkpoints/" + bronzeName + "/orders"
	remove := func(paths ...string) func(*testing.T, *lake) {
		return func(t *testing.T, l *lake) {
			for _, p := range paths {
				if _, err := os.Stat(filepath.Join(l.dir, p)); err != nil {
					t.Fatal(err)
				}
				if err := os.RemoveAll(filepath.Join(l.dir, p)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	entry := func(folder string, n int64) string { return checkpoint + "/0/" + entryPath(folder, n) }
	for name, c := range map[string]struct {
		harm func(*testing.T, *lake)
		code string
	}{
		"the checkpoint is gone": {remove(checkpoint), "CHECKPOINT_MISSING"},
		"the pipeline's records are gone": {func(t *testing.T, l *lake) {
			remove("lake/_weir")(t, l)
			l.pipeline = "another-id"
		}, "CHECKPOINT_MISSING"},
		"the newest entries are gone":    {remove(entry("offsets", 2), entry("commits", 2)), "CHECKPOINT_MISSING"},
		"an offset entry is gone":        {remove(entry("offsets", 1)), "CHECKPOINT_CORRUPT"},
		"a commit entry is gone":         {remove(entry("commits", 1)), "CHECKPOINT_CORRUPT"},
		"offsets end before the commits": {remove(entry("offsets", 2)), "CHECKPOINT_CORRUPT"},
		"the newest generation is gone": {func(t *testing.T, l *lake) {
			f := l.mustBronze(t)
			f.FullRefresh = true
			mustRun(t, f)
			remove(checkpoint+"/1/generation.json")(t, l)
		}, "CHECKPOINT_MISSING"},
		"the table is gone":                 {remove("lake/dev/bronze/orders"), "TARGET_TABLE_MISSING"},
		"the schema versions are gone":      {remove("lake/_weir/dwh/schemas/" + bronzeName), "SCHEMA_LOCATION_MISSING"},
		"the last version was taken back":   {remove("lake/dev/bronze/orders/_delta_log/00000000000000000002.json"), "TARGET_TABLE_BEHIND"},
		"the table was made again":          {func(t *testing.T, l *lake) { remove("lake/dev/bronze/orders")(t, l); remake(t, l) }, "TARGET_TABLE_CHANGED"},
		"an entry holds something else":     {overwrite(entry("offsets", 2), "not JSON"), "CHECKPOINT_CORRUPT"},
		"an entry is of another format":     {overwrite(entry("offsets", 2), `{"format":2}`), "CHECKPOINT_CORRUPT"},
		"the generation is of another flow": {overwrite(checkpoint+"/0/generation.json", `{"format":1,"generation":0,"app_id":"x/y/z/0"}`), "CHECKPOINT_SHARED"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t)
			for i := range 7 {
				l.mustDrop(t, fmt.Sprintf("%d.json", i), fmt.Sprintf(`{"id":%d}`, i))
			}
			mustRun(t, l.mustBronze(t))
			c.harm(t, l)
			if _, err := Run(context.Background(), l.mustBronze(t), nil); !fault.Is(err, c.code) {
				t.Fatalf("got %v, want %s", err, c.code)
			}
			// A full refresh is always the way out.
			f := l.mustBronze(t)
			f.FullRefresh = true
			mustRun(t, f)
			if rows := l.mustRows(t, bronzeName); len(rows) != 7 {
				t.Fatalf("after a full refresh: %v", rows)
			}
		})
	}
}

func overwrite(path, text string) func(*testing.T, *lake) {
	return func(t *testing.T, l *lake) {
		if err := os.WriteFile(filepath.Join(l.dir, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// remake makes a table in the place of the target that has nothing to do with it.
func remake(t *testing.T, l *lake) {
	other := newLake(t)
	other.mustDrop(t, "x.json", `{"id":1}`)
	mustRun(t, other.mustBronze(t))
	if err := os.CopyFS(filepath.Join(l.dir, "lake/dev/bronze/orders"), os.DirFS(filepath.Join(other.dir, "lake/dev/bronze/orders"))); err != nil {
		t.Fatal(err)
	}
}

func TestASchemaLocationBelongsToOneFlow(t *testing.T) {
	l := newLake(t)
	l.mustDrop(t, "1.json", `{"id":1}`)
	mustRun(t, l.mustBronze(t))
	f := l.mustBronze(t)
	other := l.flow("dev.bronze.other", f.Source)
	other.Schemas = f.Schemas
	if _, err := Run(context.Background(), other, nil); !fault.Is(err, "SCHEMA_LOCATION_SHARED") {
		t.Fatal(err)
	}
}

// Two runs at once are what the update lock prevents; if they happen, rows
// still arrive once, and a loser says what it lost.
func TestTwoRunsAtOnceDoubleNothing(t *testing.T) {
	for range 5 {
		l := newLake(t)
		for i := range 9 {
			l.mustDrop(t, fmt.Sprintf("%d.json", i), fmt.Sprintf(`{"id":%d}`, i))
		}
		errs := make([]error, 3)
		var wg sync.WaitGroup
		for i := range errs {
			f := l.mustBronze(t)
			f.UpdateID = fmt.Sprint("update-", i)
			wg.Go(func() { _, errs[i] = Run(context.Background(), f, nil) })
		}
		wg.Wait()
		for _, err := range errs {
			if err != nil && fault.CodeOf(err) == "FLOW_FAILED" {
				t.Errorf("an error without a name: %v", err)
			}
		}
		mustRun(t, l.mustBronze(t))
		if rows := l.mustRows(t, bronzeName); len(rows) != 9 {
			t.Fatalf("%v, errors %v", rows, errs)
		}
	}
}

func TestFlowsThatCannotBeRunAreRefused(t *testing.T) {
	for name, harm := range map[string]func(*Flow){
		"no quarantine table": func(f *Flow) { f.Quarantine = nil },
		"an unknown policy":   func(f *Flow) { f.OnRowError = "explode" },
		"no schema location":  func(f *Flow) { f.Schemas = nil },
		"no pipeline":         func(f *Flow) { f.Pipeline = "" },
	} {
		l := newLake(t)
		f := l.mustBronze(t)
		harm(f)
		if _, err := Run(context.Background(), f, nil); !fault.Is(err, "INVALID_FLOW") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
