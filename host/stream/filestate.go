package stream

import (
	"context"
	"iter"
	"time"

	"github.com/weir-data/weir/host/fault"
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
	Path          string    `json:"path"`
	Size          int64     `json:"size"`
	CreateTime    time.Time `json:"create_time"` // the file's modification time when it was found
	DiscoveryTime time.Time `json:"discovery_time"`
	ProcessedTime time.Time `json:"processed_time,omitzero"`
	CommitTime    time.Time `json:"commit_time,omitzero"`
	SourceID      string    `json:"source_id"`
	FlowName      string    `json:"flow_name"`
	State         IngestionState `json:"ingestion_state"`
	Batch         int64     `json:"batch_id"`
}

// FileStates gives every file the flow's newest generation knows, ascending by
// path. checkpoint is rooted as Flow.Checkpoint.
func FileStates(ctx context.Context, checkpoint storage.Store) iter.Seq2[FileState, error] {
	return func(yield func(FileState, error) bool) {
		yield(FileState{}, fault.New("NOT_SUPPORTED", "being written"))
	}
}
