package pipeline

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/stream"
)

// State is where an update or a flow stands; the words are the event log's.
type State string

// The states of updates and flows.
const (
	Queued  State = "QUEUED"
	Created State = "CREATED"
	// Initializing, Resetting (only with a full refresh) and SettingUpTables
	// come before an update runs, Stopping when it was canceled.
	Initializing    State = "INITIALIZING"
	Resetting       State = "RESETTING"
	SettingUpTables State = "SETTING_UP_TABLES"
	Stopping        State = "STOPPING"

	Running   State = "RUNNING"
	Completed State = "COMPLETED"
	Failed    State = "FAILED"
	Skipped   State = "SKIPPED"  // an upstream flow failed
	Excluded  State = "EXCLUDED" // not part of the selection
	Canceled  State = "CANCELED"
)

// RunOptions says what an update refreshes.
type RunOptions struct {
	// Refresh and FullRefresh name datasets (one to three parts). When all
	// selections are empty, every dataset is refreshed.
	Refresh     []string
	FullRefresh []string
	// FullRefreshAll starts every flow again from nothing.
	FullRefreshAll bool
	// AcceptLoss lets a full refresh go on that cannot bring back all there is.
	AcceptLoss bool
	// AcceptSnapshots let snapshots pass that have lost more rows than they may:
	// versions, or dataset:version.
	AcceptSnapshots []string
	// RefreshFailed refreshes what the last update left undone; nothing else
	// may be selected with it.
	RefreshFailed bool
	// File refreshes the datasets that this SQL file or plugin module defines.
	File string
	// Wait waits for a running update to end instead of failing.
	Wait bool
	// Observer, when set, is told of every change of a flow. It is called from
	// several goroutines, one call at a time.
	Observer func(Progress)
}

// Progress is one step forward of a flow, or of the update when Flow is "".
type Progress struct {
	UpdateID string
	Dataset  string
	Flow     string
	State    State
	// Batch is the micro-batch just committed, from 0; -1 when none was.
	Batch   int64
	Metrics Metrics
	// Message is a warning for a person: a retry, new columns, why a flow was
	// skipped. Err is what failed.
	Message string
	Err     error
}

// Metrics are the figures of a flow within one update.
type Metrics struct {
	Batches     int64 `json:"batches"`
	Files       int64 `json:"files"`
	RowsRead    int64 `json:"rows_read"`
	RowsWritten int64 `json:"rows_written"`
	Dropped     int64 `json:"dropped"`
	Quarantined int64 `json:"quarantined"`
	Skipped     int64 `json:"skipped"` // row errors that are passed over
	RowErrors   int64 `json:"row_errors"`
	Rescued     int64 `json:"rescued"`
	Malformed   int64 `json:"malformed"`
	// DroppedMalformed are malformed records left out under DROPMALFORMED,
	// LostValues values without a column and without a rescued data column.
	DroppedMalformed int64 `json:"dropped_malformed,omitempty"`
	LostValues       int64 `json:"lost_values,omitempty"`
	// OldImages are rows written that are old images of updates, from a change
	// feed, while the column that says so was left out.
	OldImages int64 `json:"old_images,omitempty"`
	// Changes is what a flow that merges changes did; nil for any other.
	Changes *stream.Counts `json:"changes,omitempty"`
	Retries int64          `json:"retries"`
	// Fuel is about the instructions that the functions of the committed batches
	// ran, GuestMicros the time they ran, waiting for their input left out.
	Fuel        int64 `json:"fuel,omitempty"`
	GuestMicros int64 `json:"guest_us,omitempty"`
	// User holds the figures that functions add up.
	User map[string]float64 `json:"user,omitempty"`
}

// ExpectationCount is what one expectation saw within one update.
type ExpectationCount struct {
	Name    string `json:"name"`
	Dataset string `json:"dataset"`
	Action  string `json:"action"`
	Passed  int64  `json:"passed_records"`
	Failed  int64  `json:"failed_records"`
}

// ErrorInfo is a failure in JSON.
type ErrorInfo struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Dataset string `json:"dataset,omitempty"`
	Flow    string `json:"flow,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int64  `json:"line,omitempty"`
	Row     int64  `json:"row,omitempty"`
}

// FlowResult is what became of one flow.
type FlowResult struct {
	Dataset string `json:"dataset"`
	Flow    string `json:"flow"`
	State   State  `json:"state"`
	// FullRefresh is true when the flow started again from nothing.
	FullRefresh bool `json:"full_refresh,omitempty"`
	Metrics
	// Refresh is what was decided for a batch query; nil for a stream.
	Refresh      *RefreshDecision   `json:"refresh,omitempty"`
	Expectations []ExpectationCount `json:"expectations,omitempty"`
	NewColumns   []string           `json:"new_columns,omitempty"`
	Warnings     []string           `json:"warnings,omitempty"`
	Error        *ErrorInfo         `json:"error,omitempty"`
	Started      time.Time          `json:"started,omitzero"`
	Ended        time.Time          `json:"ended,omitzero"`

	// Err is the failure itself.
	Err error `json:"-"`

	flowID  string
	running bool           // the event log knows that it is
	backlog stream.Backlog // what the source held when it was last asked
	columns *arrow.Schema  // of the target, once the flow ended
}

// Result is what became of an update.
type Result struct {
	Pipeline   string       `json:"pipeline"`
	PipelineID string       `json:"pipeline_id"`
	UpdateID   string       `json:"update_id"`
	State      State        `json:"state"`
	Started    time.Time    `json:"started"`
	Ended      time.Time    `json:"ended"`
	Flows      []FlowResult `json:"flows"`
	Warnings   []string     `json:"warnings,omitempty"`
	// Retries is how often failed flows were run again.
	Retries int `json:"retries,omitempty"`
}
