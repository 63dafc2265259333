package abi

// Current is the ABI version that this package describes; a manifest names it.
const Current = 1

// ImportModule is the name of the module that the host's functions are imported from.
const ImportModule = "weir_v1"

// WASIModule is the only other module a guest may import from.
const WASIModule = "wasi_snapshot_preview1"

// Names of the exports.
const (
	ExportMemory     = "memory"
	ExportInitialize = "_initialize"
	ExportDescribe   = "weir_describe"
	ExportCall       = "weir_call"
	ExportStart      = "_start" // of a command module
)

// Kinds of functions.
const (
	KindMap          = "map"
	KindQuery        = "query"
	KindStateful     = "stateful"
	KindSnapshot     = "snapshot"
	KindForeachBatch = "foreach_batch"
)

// Modes of inputs.
const (
	ModeStream = "stream"
	ModeBatch  = "batch"
)

// Modes of a function's outputs.
const (
	OutputAppend = "append"
	OutputMerge  = "merge"
)

// Types of datasets.
const (
	DatasetStreamingTable   = "streaming_table"
	DatasetMaterializedView = "materialized_view"
	DatasetTemporaryView    = "temporary_view"
	DatasetSink             = "sink"
)

// Types of flows.
const (
	FlowAppend              = "append"
	FlowAutoCDC             = "auto_cdc"
	FlowAutoCDCFromSnapshot = "auto_cdc_from_snapshot"
	FlowComplete            = "complete"
)

// What becomes of an input row that a function reported an error for.
const (
	OnRowErrorFail       = "fail"
	OnRowErrorSkip       = "skip"
	OnRowErrorQuarantine = "quarantine"
)

// What becomes of a row that violates an expectation; warn unless said.
const (
	OnViolationWarn       = "warn"
	OnViolationDrop       = "drop"
	OnViolationFail       = "fail"
	OnViolationQuarantine = "quarantine"
)

// What a condition that is NULL means; a violation unless said.
const (
	NullViolates = "violate"
	NullPasses   = "pass"
)

// LogLevel is the level of a guest's log line.
type LogLevel int32

// Levels of log.
const (
	LogDebug LogLevel = 0
	LogInfo  LogLevel = 1
	LogWarn  LogLevel = 2
	LogError LogLevel = 3
)

// String gives the level's name.
func (l LogLevel) String() string {
	switch l {
	case LogDebug:
		return "DEBUG"
	case LogInfo:
		return "INFO"
	case LogWarn:
		return "WARN"
	}
	return "ERROR"
}
