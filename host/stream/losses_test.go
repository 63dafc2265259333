package stream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// What a full refresh would lose is exactly the files that were read and are
// gone, whatever came and went, over entries and compacted runs of them.
//
// covers A147
func TestFilesThatAreGoneAreALossAndNoOthers(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2026))
	l := newLake(t)
	l.options["cloudFiles.maxFilesPerTrigger"] = "1"
	f := l.mustBronze(t)
	if loss, err := Missing(t.Context(), f.Checkpoint, f.Source); err != nil || loss.Any() {
		t.Fatalf("before the first run: %+v, %v", loss, err)
	}
	read, there := map[string]bool{}, map[string]bool{}
	for round := range 8 {
		for range 12 {
			name := fmt.Sprintf("%02d.json", random.IntN(60))
			switch {
			case there[name] && random.IntN(2) == 0:
				if err := os.Remove(filepath.Join(l.dir, "landing", name)); err != nil {
					t.Fatal(err)
				}
				delete(there, name)
			case !there[name]:
				l.mustDrop(t, name, fmt.Sprintf(`{"id":%d}`, len(there)))
				there[name] = true
			}
		}
		// What comes after the run was never read, so it cannot be lost.
		if round%2 == 0 {
			mustRun(t, l.mustBronze(t))
			for name := range there {
				read[name] = true
			}
		}
		want := int64(0)
		for name := range read {
			if !there[name] {
				want++
			}
		}
		loss, err := Missing(t.Context(), f.Checkpoint, f.Source)
		if err != nil || loss.Files != want || int64(len(loss.Examples)) != min(want, lossExamples) {
			t.Fatalf("round %d: %+v (%v), want %d", round, loss, err, want)
		}
		for _, path := range loss.Examples {
			if name := filepath.Base(path); !read[name] || there[name] {
				t.Errorf("%s is no loss", path)
			}
		}
	}
	if len(read) < 30 {
		t.Fatalf("only %d files: no run of file lists was made", len(read))
	}
}

// covers A72 A147
func TestRowsThatLeftTheSourceAreALoss(t *testing.T) {
	l := newLake(t)
	l.land(t, 100, 4, "")
	mustRun(t, l.silver(t))
	l.land(t, 104, 2, "")
	missing := func(options ...string) (Loss, error) {
		t.Helper()
		f := l.silver(t, options...)
		return Missing(t.Context(), f.Checkpoint, f.Source)
	}
	if loss, err := missing(); err != nil || loss.Any() {
		t.Fatalf("%+v, %v", loss, err)
	}
	mustRun(t, l.silver(t))
	bronze := l.table(bronzeName)
	snap, err := bronze.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := snap.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(files, func(a, b delta.AddFile) int { return int(a.ModificationTime - b.ModificationTime) })
	if _, err := bronze.Commit(t.Context(), delta.Commit{Read: snap, Operation: "DELETE", Remove: files[:3], Timestamp: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if loss, err := missing(); err != nil || loss.Rows != 3 {
		t.Fatalf("%+v, %v", loss, err)
	}
	// What came since does not make up for it.
	l.land(t, 200, 5, "")
	if loss, err := missing(); err != nil || loss.Rows != 3 {
		t.Fatalf("%+v, %v", loss, err)
	}
	// A refresh that was made and never got further has replaced nothing.
	f := l.silver(t)
	gen, _, err := newestGeneration(t.Context(), f.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	next := generation{Format: 1, Generation: gen.Generation + 1, AppID: f.appID(gen.Generation + 1), Replace: true}
	if err := createGeneration(t.Context(), f.Checkpoint, next); err != nil {
		t.Fatal(err)
	}
	if loss, err := missing(); err != nil || loss.Rows != 3 {
		t.Fatalf("%+v, %v", loss, err)
	}
	// A stream that begins at a version needs that version, not the rows of now.
	if loss, err := missing("startingVersion", "1"); err != nil || loss.Any() {
		t.Fatalf("%+v, %v", loss, err)
	}
	if err := os.Remove(filepath.Join(l.dir, "lake", "dev", "bronze", "orders", "_delta_log", fmt.Sprintf("%020d.json", 0))); err != nil {
		t.Fatal(err)
	}
	if _, err := missing("startingVersion", "0"); fault.CodeOf(err) == "" {
		t.Fatalf("version 0 is gone: %v", err)
	}
}

// A retry that time may cure waits longer each time; one of a schema that has
// just been recorded does not.
//
// covers A35 A180
func TestRetriesPauseUnlessTheSchemaWasRecorded(t *testing.T) {
	l := newLake(t)
	var asked []int
	pause := func(retry int) time.Duration { asked = append(asked, retry); return time.Millisecond }
	l.mustDrop(t, "1.json", `{"id":1}`)
	f := l.mustBronze(t)
	f.Pause = pause
	mustRun(t, f)
	l.mustDrop(t, "2.json", `{"id":2,"more":1}`)
	f = l.mustBronze(t)
	f.Pause = pause
	if res := mustRun(t, f); res.Retries != 1 || len(asked) > 0 {
		t.Fatalf("%d retries, pauses %v", res.Retries, asked)
	}
	l.mustDrop(t, "3.json", `{"id":3}`)
	f = l.mustBronze(t)
	f.Pause = pause
	f.Steps = []Step{&tiredStep{fails: 2}, maskStep{}}
	if res := mustRun(t, f); res.Retries != 2 || !slices.Equal(asked, []int{0, 1}) {
		t.Fatalf("%d retries, pauses %v", res.Retries, asked)
	}
}

// tiredStep fails a few times with an error that a retry can cure.
type tiredStep struct{ fails int }

func (*tiredStep) Schema(_ context.Context, in *arrow.Schema) (*arrow.Schema, error) { return in, nil }

func (s *tiredStep) Run(_ context.Context, _ *Task, in array.RecordReader) (array.RecordReader, error) {
	if s.fails--; s.fails >= 0 {
		return nil, fault.New("TIRED", "not yet").Retryable()
	}
	return mapReader(in, in.Schema(), func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		rec.Retain()
		return rec, nil
	}), nil
}
