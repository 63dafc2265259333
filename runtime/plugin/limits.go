package plugin

// Limits bounds what one module may take. A zero field means its default.
type Limits struct {
	ModuleBytes   int64 // size of the .wasm file
	MemoryBytes   int64 // linear memory of an instance
	BatchRows     int64 // rows in one input message
	BatchBytes    int64 // bytes of one input message; 0 is a quarter of MemoryBytes
	OutputBytes   int64 // output bytes of one call
	OutputRows    int64 // output rows of one call
	RowErrors     int64 // row errors of one call
	LogBytes      int64 // log text of one call; more is cut off
	MetricNames   int64 // different metric names of one call
	ManifestBytes int64
	MessageBytes  int64 // one text: fail, log line, row error, metric name
}

// DefaultLimits are the limits of a module for which the operator set none.
func DefaultLimits() Limits {
	return Limits{}
}
