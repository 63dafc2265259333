package stream

import (
	"context"
	"iter"
	"path"
	"time"

	"github.com/weir-data/weir/host/storage"
)

// IngestionState is one of the ingestion states, in the words of cloud_files_state.
type IngestionState string

// The states. A file that is planned and not yet committed is Processing.
const (
	Processing       IngestionState = "PROCESSING"
	Ingested         IngestionState = "INGESTED"
	SkippedCorrupted IngestionState = "SKIPPED_CORRUPTED"
	SkippedMissing   IngestionState = "SKIPPED_MISSING"
)

// FileState is what is known of one file, with the columns of cloud_files_state
// that apply here. Times that have not come are zero.
type FileState struct {
	Path          string         `json:"path"`
	Size          int64          `json:"size"`
	CreateTime    time.Time      `json:"create_time"` // the file's modification time when it was found
	DiscoveryTime time.Time      `json:"discovery_time"`
	ProcessedTime time.Time      `json:"processed_time,omitzero"`
	CommitTime    time.Time      `json:"commit_time,omitzero"`
	SourceID      string         `json:"source_id"`
	FlowName      string         `json:"flow_name"`
	State         IngestionState `json:"ingestion_state"`
	Batch         int64          `json:"batch_id"`
}

// FileStates gives every file the flow's newest generation knows, ascending by
// path. checkpoint is rooted as Flow.Checkpoint. A flow that never ran, or that
// reads no files, has none.
func FileStates(ctx context.Context, checkpoint storage.Store) iter.Seq2[FileState, error] {
	return func(yield func(FileState, error) bool) {
		if err := fileStates(ctx, checkpoint, yield); err != nil {
			yield(FileState{}, err)
		}
	}
}

func fileStates(ctx context.Context, store storage.Store, yield func(FileState, error) bool) (err error) {
	gen, ok, err := newestGeneration(ctx, store)
	if err != nil || !ok || gen.Kind != appendGeneration {
		return err // a refresh reads its files anew each time, and knows none
	}
	ck, err := loadCheckpoint(ctx, store, gen)
	if err != nil {
		return err
	}
	files, err := ck.known(ctx)
	if err != nil {
		return err
	}
	stopped := false
	defer func() {
		if cerr := files.close(); err == nil && !stopped {
			err = cerr
		}
	}()
	name := path.Base(path.Dir(gen.AppID))
	times := map[int64]batchTimes{}
	for _, l := range files.all {
		if run, ok := l.(*runReader); ok {
			for i, t := range run.batches {
				times[run.id.from+int64(i)] = t
			}
		}
	}
	for {
		ok, err := files.next()
		if err != nil || !ok {
			return err
		}
		p, f := files.view()
		t, ok := times[f.batch]
		if !ok {
			if t, err = ck.times(ctx, f.batch); err != nil {
				return err
			}
			times[f.batch] = t
		}
		s := FileState{
			Path: string(p), Size: f.size, CreateTime: time.UnixMicro(f.mtime).UTC(), DiscoveryTime: t.planned,
			SourceID: "0", FlowName: name, State: Processing, Batch: f.batch,
		}
		if !t.committed.IsZero() {
			s.ProcessedTime, s.CommitTime, s.State = t.committed, t.committed, states[f.state]
		}
		if !yield(s, nil) {
			stopped = true
			return nil
		}
	}
}
