package events

import "time"

// The event types of this version.
const (
	CreateUpdate      = "create_update"
	UpdateProgress    = "update_progress"
	FlowDefinition    = "flow_definition"
	DatasetDefinition = "dataset_definition"
	FlowProgress      = "flow_progress"
	OperationProgress = "operation_progress"
	StreamProgress    = "stream_progress"
	// RuntimeDetails tells on what an update runs: here, which settings have no effect.
	RuntimeDetails = "runtime_details"
	// FunctionLog is a line that a plugin's function logs. Lakeflow, whose
	// functions print to the driver's log, has no such type.
	FunctionLog = "function_log"
)

// Level is how much an event matters.
type Level string

// The levels.
const (
	Info    Level = "INFO"
	Warn    Level = "WARN"
	Error   Level = "ERROR"
	Metrics Level = "METRICS"
)

// Maturity says whether the shape of the details may still change.
type Maturity string

// The maturity levels.
const (
	Stable     Maturity = "STABLE"
	Evolving   Maturity = "EVOLVING"
	Deprecated Maturity = "DEPRECATED"
)

// Event is one row of the log. Emit fills ID, Sequence, Timestamp, Level,
// Maturity and the parts of Origin that are empty.
type Event struct {
	ID        string
	Sequence  int64
	Origin    Origin
	Timestamp time.Time
	Message   string
	Level     Level
	Maturity  Maturity
	Error     *Failure
	// Details is marshalled to JSON under the name of the type:
	// {"flow_progress": {…}}. The types of this package's details.go fit.
	Details any
	Type    string
}

// Origin says where an event comes from. FlowID stays the same until a full refresh.
type Origin struct {
	PipelineID   string
	PipelineName string
	UpdateID     string
	DatasetName  string
	FlowID       string
	FlowName     string
	BatchID      *int64
}

// Failure is the error of an event.
type Failure struct {
	Fatal      bool
	Exceptions []Exception
}

// Exception is one error of a chain, outermost first. ClassName is its code.
type Exception struct {
	ClassName string
	Message   string
}
