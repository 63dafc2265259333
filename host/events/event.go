package events

import "time"

// The event types that Weir writes; the words are Lakeflow's.
const (
	CreateUpdate = "create_update"
	UserAction   = "user_action"
	// RuntimeDetails tells on what an update runs, and which settings have no effect.
	RuntimeDetails      = "runtime_details"
	UpdateProgress      = "update_progress"
	FlowDefinition      = "flow_definition"
	DatasetDefinition   = "dataset_definition"
	SinkDefinition      = "sink_definition"
	PlanningInformation = "planning_information"
	FlowProgress        = "flow_progress"
	OperationProgress   = "operation_progress"
	StreamProgress      = "stream_progress"
	Deprecation         = "deprecation"
	// FunctionLog is a line that a plugin's function logs. Lakeflow, whose
	// functions print to the driver's log, has no such type.
	FunctionLog = "function_log"
)

// Types lists the event types, in the order an update writes them first.
var Types = []string{
	CreateUpdate, UserAction, RuntimeDetails, UpdateProgress, FlowDefinition, DatasetDefinition, SinkDefinition,
	PlanningInformation, FlowProgress, OperationProgress, StreamProgress, Deprecation, FunctionLog,
}

// Level is how much an event matters.
type Level string

// The levels.
const (
	Info    Level = "INFO"
	Warn    Level = "WARN"
	Error   Level = "ERROR"
	Metrics Level = "METRICS"
)

// Levels lists the levels.
var Levels = []Level{Info, Warn, Error, Metrics}

// Maturity says whether the shape of the details may still change.
type Maturity string

// The maturity levels.
const (
	Stable     Maturity = "STABLE"
	Evolving   Maturity = "EVOLVING"
	Deprecated Maturity = "DEPRECATED"
)

// Event is one row of the log. Emit fills ID, Timestamp, Level, Maturity and
// the parts of Origin that are empty; Flush fills Sequence.
type Event struct {
	ID        string    `json:"id"`
	Sequence  Sequence  `json:"sequence"`
	Origin    Origin    `json:"origin"`
	Timestamp time.Time `json:"timestamp"`
	Message   string    `json:"message"`
	Level     Level     `json:"level"`
	Maturity  Maturity  `json:"maturity_level"`
	Error     *Failure  `json:"error,omitempty"`
	// Details is marshalled to JSON under the name of the type:
	// {"flow_progress": {…}}. The types of this package's details.go fit. An
	// event that was read has the whole as a json.RawMessage.
	Details any    `json:"details"`
	Type    string `json:"event_type"`
}

// Sequence identifies an event and says where it stands.
type Sequence struct {
	// Number counts the events of one update from 1, without gaps; Instance is the update.
	Instance string `json:"instance"`
	Number   int64  `json:"seq_no"`
	// Control counts the events of the pipeline from 1, without gaps.
	Control int64 `json:"control_plane_seq_no"`
}

// Origin says where an event comes from. FlowID stays the same until a full refresh.
type Origin struct {
	PipelineID   string `json:"pipeline_id"`
	PipelineName string `json:"pipeline_name"`
	UpdateID     string `json:"update_id,omitempty"`
	DatasetName  string `json:"dataset_name,omitempty"`
	SinkName     string `json:"sink_name,omitempty"`
	FlowID       string `json:"flow_id,omitempty"`
	FlowName     string `json:"flow_name,omitempty"`
	BatchID      *int64 `json:"batch_id,omitempty"`
	Host         string `json:"host,omitempty"`
}

// Failure is the error of an event.
type Failure struct {
	Fatal      bool        `json:"fatal"`
	Exceptions []Exception `json:"exceptions"`
}

// Exception is one error of a chain, outermost first. ClassName is its code.
type Exception struct {
	ClassName string `json:"class_name,omitempty"`
	Message   string `json:"message"`
}
