package events

import "time"

// UpdateDetails are the details of create_update.
type UpdateDetails struct {
	Cause                string   `json:"cause"`
	FullRefresh          bool     `json:"full_refresh"`
	RefreshSelection     []string `json:"refresh_selection,omitempty"`
	FullRefreshSelection []string `json:"full_refresh_selection,omitempty"`
}

// UserActionDetails are the details of user_action.
type UserActionDetails struct {
	Action   string `json:"action"` // CREATE for the pipeline's first update, START for the others
	UserName string `json:"user_name,omitempty"`
}

// SettingDetails are the details of runtime_details: a setting without effect,
// or what a table was changed to by its definition.
type SettingDetails struct {
	Code    string `json:"code"` // IGNORED_SETTING or TABLE_ALTERED
	Setting string `json:"setting"`
	Line    int    `json:"line,omitempty"`
}

// RuntimeDetailsDetails are the details of runtime_details: what runs the update.
type RuntimeDetailsDetails struct {
	RuntimeVersion string `json:"runtime_version"`
	Go             string `json:"go_version"`
	OS             string `json:"os"`
	Arch           string `json:"arch"`
	Threads        int    `json:"threads"`
	MemoryLimit    string `json:"memory_limit,omitempty"`
}

// StateDetails are the details of update_progress.
type StateDetails struct {
	State string `json:"state"`
	// CancellationCause says why an update is STOPPING or CANCELED.
	CancellationCause string `json:"cancellation_cause,omitempty"`
}

// Ended tells whether the state is one that an update does not leave.
func (d StateDetails) Ended() bool {
	return d.State == "COMPLETED" || d.State == "FAILED" || d.State == "CANCELED"
}

// SinkDefinitionDetails are the details of sink_definition.
type SinkDefinitionDetails struct {
	Format  string            `json:"format"`
	Options map[string]string `json:"options,omitempty"`
}

// DeprecationDetails are the details of deprecation: something that works, and
// is better written another way, or that has no meaning here.
type DeprecationDetails struct {
	Feature string `json:"feature"`
	Instead string `json:"instead,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int64  `json:"line,omitempty"`
}

// The ways in which a materialized view is refreshed.
const (
	NoOp              = "MAINTENANCE_TYPE_NO_OP"
	CompleteRecompute = "MAINTENANCE_TYPE_COMPLETE_RECOMPUTE"
)

// PlanningDetails are the details of planning_information: how a flow is
// refreshed, and why not otherwise.
type PlanningDetails struct {
	Techniques []Technique   `json:"technique_information"`
	Sources    []SourceTable `json:"source_table_information,omitempty"`
}

// Technique is one way to refresh a materialized view.
type Technique struct {
	MaintenanceType string  `json:"maintenance_type"`
	Chosen          bool    `json:"is_chosen"`
	Applicable      bool    `json:"is_applicable"`
	Issues          []Issue `json:"incrementalization_issues,omitempty"`
}

// Issue is why a technique does not apply. Type is Lakeflow's word, such as
// QUERY_FINGERPRINT_CHANGED.
type Issue struct {
	Type     string `json:"issue_type"`
	Prevents bool   `json:"prevent_incrementalization"`
	Operator string `json:"operator_name,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// SourceTable is a table that a flow reads, at the version it read.
type SourceTable struct {
	Name    string `json:"table_name"`
	Version int64  `json:"version"`
	Changed bool   `json:"is_changed"`
}

// FlowDefinitionDetails are the details of flow_definition.
type FlowDefinitionDetails struct {
	OutputDataset string   `json:"output_dataset"`
	InputDatasets []string `json:"input_datasets,omitempty"`
	FlowType      string   `json:"flow_type"`
	Schema        []Column `json:"schema,omitempty"`
}

// DatasetDefinitionDetails are the details of dataset_definition.
type DatasetDefinitionDetails struct {
	DatasetType  string        `json:"dataset_type"`
	NumFlows     int           `json:"num_flows"`
	Schema       []Column      `json:"schema,omitempty"`
	Expectations []Expectation `json:"expectations,omitempty"`
}

// Column is one column of a schema.
type Column struct {
	Name string `json:"name"`
	Type string `json:"data_type"`
}

// Expectation is the counts of one expectation, or its definition when both are zero.
type Expectation struct {
	Name    string `json:"name"`
	Dataset string `json:"dataset"`
	Passed  int64  `json:"passed_records"`
	Failed  int64  `json:"failed_records"`
}

// FlowProgressDetails are the details of flow_progress.
type FlowProgressDetails struct {
	Status      string       `json:"status"`
	Metrics     *FlowMetrics `json:"metrics,omitempty"`
	DataQuality *DataQuality `json:"data_quality,omitempty"`
}

// FlowMetrics are the figures of a flow.
type FlowMetrics struct {
	// OutputRows is absent from a flow that merges changes, the other two from any else.
	OutputRows     *int64 `json:"num_output_rows,omitempty"`
	UpsertedRows   *int64 `json:"num_upserted_rows,omitempty"`
	DeletedRows    *int64 `json:"num_deleted_rows,omitempty"`
	BacklogFiles   int64  `json:"backlog_files"`
	BacklogBytes   int64  `json:"backlog_bytes"`
	ExecutorTimeMS int64  `json:"executor_time_ms"`
	Fuel           int64  `json:"fuel,omitempty"`
	GuestMicros    int64  `json:"guest_us,omitempty"`
}

// DataQuality is what the expectations saw. A dropped row counts once, however
// many expectations it fails.
type DataQuality struct {
	DroppedRecords     int64         `json:"dropped_records"`
	QuarantinedRecords int64         `json:"quarantined_records"`
	RescuedRecords     int64         `json:"rescued_records"`
	MalformedRecords   int64         `json:"malformed_records"`
	DroppedMalformed   int64         `json:"dropped_malformed_records,omitempty"`
	LostValues         int64         `json:"lost_values,omitempty"`
	Expectations       []Expectation `json:"expectations,omitempty"`
}

// OperationDetails are the details of operation_progress.
type OperationDetails struct {
	Type       string  `json:"type"` // AUTO_LOADER_LISTING
	Status     string  `json:"status"`
	DurationMS int64   `json:"duration_ms"`
	Listing    Listing `json:"auto_loader_details"`
}

// Listing is a look for new files: Files is how many there are to be read.
type Listing struct {
	SourcePath string `json:"source_path,omitempty"`
	Files      int64  `json:"num_new_files"`
}

// AutoLoaderListing is the Type of the operation that looks for new files.
const AutoLoaderListing = "AUTO_LOADER_LISTING"

// FunctionLogDetails are the details of function_log; Level is the function's own word.
type FunctionLogDetails struct {
	Function string `json:"function"` // module.function
	Level    string `json:"level"`
	Task     int    `json:"task"`
}

// StreamDetails are the details of stream_progress.
type StreamDetails struct {
	BatchID        int64     `json:"batch_id"`
	BatchTimestamp time.Time `json:"timestamp"`
	InputFiles     int64     `json:"num_input_files"`
	InputRows      int64     `json:"num_input_rows"`
	OutputRows     int64     `json:"num_output_rows"`
	FilesLeft      int64     `json:"num_files_outstanding"`
	BytesLeft      int64     `json:"num_bytes_outstanding"`
	TargetVersion  int64     `json:"target_version"`
	// Fuel and GuestMicros are what the functions of the batch took.
	Fuel        int64 `json:"fuel,omitempty"`
	GuestMicros int64 `json:"guest_us,omitempty"`
}
