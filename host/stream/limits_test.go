package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/ingest"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
)

// crowd counts the tasks that run at once, and lets each wait for another one.
type crowd struct{ now, most atomic.Int64 }

type crowdStep struct {
	maskStep
	crowd *crowd
}

func (s crowdStep) Run(ctx context.Context, t *Task, in array.RecordReader) (array.RecordReader, error) {
	n := s.crowd.now.Add(1)
	defer s.crowd.now.Add(-1)
	for most := s.crowd.most.Load(); n > most && !s.crowd.most.CompareAndSwap(most, n); most = s.crowd.most.Load() {
	}
	for end := time.Now().Add(time.Second); s.crowd.most.Load() < 2 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	return s.maskStep.Run(ctx, t, in)
}

func TestFlowsShareThePlacesOfTheirTasks(t *testing.T) {
	slots := NewSlots(2)
	var c crowd
	var all sync.WaitGroup
	for range 2 {
		l := newLake(t)
		l.options["cloudFiles.maxFilesPerTrigger"] = "100"
		for i := range 8 {
			l.mustDrop(t, fmt.Sprintf("%d.json", i), fmt.Sprintf(`{"id":%d}`, i))
		}
		f := l.mustBronze(t)
		f.TaskBytes, f.Parallel, f.Slots = 1, 4, slots
		f.Steps = []Step{crowdStep{crowd: &c}}
		all.Go(func() {
			if res, err := Run(context.Background(), f, nil); err != nil || res.Metrics.OutputRows != 8 {
				t.Errorf("%v %+v", err, res.Metrics)
			}
		})
	}
	all.Wait()
	if most := c.most.Load(); most != 2 {
		t.Errorf("%d tasks ran at once", most)
	}
	if len(slots) != 0 {
		t.Errorf("%d places were not given back", len(slots))
	}
}

func TestATaskThatWaitsForAPlaceEndsWithItsRun(t *testing.T) {
	l := newLake(t)
	l.mustDrop(t, "1.json", `{"id":1}`)
	f := l.mustBronze(t)
	f.Slots = NewSlots(1)
	f.Slots <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, f, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// What a source without a rescued data column cannot keep is counted, in the
// commit entry, too.
func TestLostValuesAndDroppedRecordsAreCounted(t *testing.T) {
	l := newLake(t)
	l.mustDrop(t, "1.json", "{\"id\":\"x\",\"b\":1}\nnope\n{\"id\":1}\n")
	source := func(mode string) Source {
		src, err := ingest.Parse(ingest.ReadFiles, l.dir+"/landing", map[string]string{"format": "json", "schema": "id BIGINT", "mode": mode}, ingest.Env{})
		if err != nil {
			t.Fatal(err)
		}
		return NewFileSource(src)
	}
	for mode, want := range map[string]Metrics{
		"PERMISSIVE":    {LostValues: 3, MalformedRows: 1},
		"DROPMALFORMED": {LostValues: 2, DroppedMalformed: 1},
	} {
		f := l.flow("dev.bronze."+mode, source(mode))
		for range 2 { // the second time the entry is gone and comes from the target's commit
			m := mustRun(t, f).Metrics
			if m.LostValues != want.LostValues || m.MalformedRows != want.MalformedRows || m.DroppedMalformed != want.DroppedMalformed {
				t.Errorf("%s: %+v", mode, m)
			}
			if err := storage.Sub(f.Checkpoint, "0").Delete(t.Context(), entryPath("commits", 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestACheckpointThatFailsIsTold(t *testing.T) {
	l := newLake(t)
	l.options["cloudFiles.maxFilesPerTrigger"] = "1"
	full := faultstore.New(l.store, faultstore.Rule{Op: faultstore.OpCreate, Name: "*.checkpoint.parquet", Effect: faultstore.Full()})
	l.wrap = func(storage.Store) storage.Store { return full }
	for i := range 11 {
		l.mustDrop(t, fmt.Sprintf("%02d.json", i), fmt.Sprintf(`{"id":%d}`, i))
	}
	var told []Progress
	res, err := Run(t.Context(), l.mustBronze(t), ObserverFunc(func(p Progress) {
		if p.Kind == CheckpointFailed {
			told = append(told, p)
		}
	}))
	if err != nil || res.Batches != 11 || res.Metrics.OutputRows != 11 {
		t.Fatalf("%v %+v", err, res)
	}
	if len(told) != 1 || told[0].Table != bronzeName || !errors.Is(told[0].Err, storage.ErrFull) || told[0].TargetVersion != 10 {
		t.Errorf("%+v", told)
	}
	if res.Columns == nil || !res.Columns.HasField("id") {
		t.Errorf("columns %v", res.Columns)
	}
}
