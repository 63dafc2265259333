package stream

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/expect"
)

// Observer is told how a flow gets on. It is called from the goroutine of Run,
// one call at a time, and must not block for long.
type Observer interface{ Observe(Progress) }

// ObserverFunc is a function as an Observer.
type ObserverFunc func(Progress)

// Observe calls f.
func (f ObserverFunc) Observe(p Progress) { f(p) }

// ProgressKind says what happened.
type ProgressKind string

// The kinds, in the order they happen.
const (
	ListingDone    ProgressKind = "listing_done"    // the source was looked at: Backlog, Took
	RefreshDecided ProgressKind = "refresh_decided" // Decision: what a Refresh does and why
	BatchStarted   ProgressKind = "batch_started"   // Batch, Attempt, Files, Bytes
	BatchRetried   ProgressKind = "batch_retried"   // the attempt failed with Err and will be made again
	SchemaEvolved  ProgressKind = "schema_evolved"  // NewColumns were recorded
	BatchCommitted ProgressKind = "batch_committed" // Metrics, Expectations of this batch
	// CheckpointFailed may come with any commit: it stands, but the checkpoint
	// of Table that was due failed with Err. The next one makes up for it.
	CheckpointFailed ProgressKind = "checkpoint_failed"
	// Noticed tells what the user should know: Notice. It comes once in a run.
	Noticed ProgressKind = "noticed"
)

// Progress is one event of a flow. Fields that the kind does not name are zero.
type Progress struct {
	Kind          ProgressKind
	Dataset, Flow string
	FlowID        string // the transaction id of the flow's generation
	Batch         int64
	Attempt       int
	Timestamp     time.Time // the batch's
	Took          time.Duration
	Files         int
	Bytes         int64
	Backlog       Backlog // what is captured and not yet in a committed batch
	Metrics       Metrics
	Expectations  []expect.RuleCounts
	NewColumns    []string
	TargetVersion int64
	Table         string
	Decision      Decision
	Notice        Notice
	Recovered     bool // the target had the batch already; only its entry was missing
	Err           error
}

// Backlog is what a source still holds. Bytes is -1 when the sizes are not known.
type Backlog struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Metrics are the figures of a batch, or of all batches of a run.
type Metrics struct {
	InputFiles      int64 `json:"input_files"`
	InputBytes      int64 `json:"input_bytes"`
	InputRows       int64 `json:"input_rows"`
	OutputRows      int64 `json:"output_rows"`
	DroppedRows     int64 `json:"dropped_rows"`
	QuarantinedRows int64 `json:"quarantined_rows"`
	SkippedRows     int64 `json:"skipped_rows"` // row errors under the policy "skip"
	RowErrors       int64 `json:"row_errors"`
	RescuedRows     int64 `json:"rescued_rows"`
	MalformedRows   int64 `json:"malformed_rows"`
	// DroppedMalformed are malformed records that the source's mode leaves out,
	// LostValues values that have no column, in a source without a rescued data
	// column.
	DroppedMalformed int64 `json:"dropped_malformed,omitempty"`
	LostValues       int64 `json:"lost_values,omitempty"`
	// OldImages are rows of a change feed that are in the target although they are old
	// images of updates, while the column that tells them apart is not.
	OldImages int64 `json:"old_images,omitempty"`
	// Applied is what a flow that applies its rows did to those of the target.
	Applied     Counts `json:"applied,omitzero"`
	OutputFiles int64  `json:"output_files"`
	OutputBytes int64  `json:"output_bytes"`
	// User holds the figures that functions add up.
	User map[string]float64 `json:"user,omitempty"`
	// Fuel and GuestTime are what the functions took in this run. A batch that
	// runs again takes another time, so the logs, which say what it did, leave
	// them out; a recovered batch has none.
	Fuel      int64         `json:"-"`
	GuestTime time.Duration `json:"-"`
}

// Result is what a run did.
type Result struct {
	Generation    int
	FlowID        string
	Batches       int64
	Recovered     int64 // of Batches, those the target had already
	Retries       int64
	Metrics       Metrics
	Expectations  []expect.RuleCounts
	NewColumns    []string
	TargetVersion int64    // -1 when nothing was committed
	Decision      Decision // of a Refresh
	// Columns are the target's, nil when there is no table.
	Columns *arrow.Schema
}
