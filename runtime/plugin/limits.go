package plugin

// Limits bounds what one module may take. A zero field means its default.
// Every limit here is enforced; an error names the field and its value.
type Limits struct {
	// ModuleBytes is the size of a .wasm file. Go modules with the SDK have
	// 2.5 MB, with arrow-go 14 MB, CPython 25 MB. Default 64 MiB.
	ModuleBytes int64
	// MemoryBytes is the linear memory of one instance. Only what is touched
	// is real memory, so the default is generous: 256 MiB. A Go guest that keeps
	// 200,000 rates and one batch takes 30.
	MemoryBytes int64
	// BatchRows is the most rows of an input message. Larger batches are cut.
	// Past 64k rows a call's fixed costs do not show any more. Default 65,536.
	BatchRows int64
	// BatchBytes is the most bytes of an input message; a batch that is larger
	// is cut, a single row that is larger ends the call. Default: a quarter of
	// MemoryBytes, so that input, output and what the guest needs between fit.
	BatchBytes int64
	// OutputBytes and OutputRows are of one call (one task). They catch a
	// function that multiplies without end. Defaults 16 GiB and 1 G rows.
	OutputBytes int64
	OutputRows  int64
	// OutputBatchRows is the most rows of one output batch, whose columns may
	// take no bytes at all. Default 4 Mi.
	OutputBatchRows int64
	// RowErrors of one call. Default 10 M: every row of a large task.
	RowErrors int64
	// LogBytes of one call; what comes after is dropped, with one line that
	// says so. Default 256 KiB.
	LogBytes int64
	// TextBytes is the most of one text that a person reads (log line, fail,
	// message of a row error); more is cut. Default 8 KiB.
	TextBytes int64
	// MetricNames is the number of different metrics of one call, each with a
	// name of at most 255 bytes. Default 1,000.
	MetricNames int64
	// ManifestBytes of one module. Default 4 MiB.
	ManifestBytes int64
}

// DefaultLimits are the limits of a module for which the operator set none.
func DefaultLimits() Limits { return Limits{}.withDefaults() }

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *int64
		value int64
	}{
		{&l.ModuleBytes, 64 << 20},
		{&l.MemoryBytes, 256 << 20},
		{&l.BatchRows, 64 << 10},
		{&l.OutputBytes, 16 << 30},
		{&l.OutputRows, 1 << 30},
		{&l.OutputBatchRows, 4 << 20},
		{&l.RowErrors, 10_000_000},
		{&l.LogBytes, 256 << 10},
		{&l.TextBytes, 8 << 10},
		{&l.MetricNames, 1000},
		{&l.ManifestBytes, 4 << 20},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if l.BatchBytes <= 0 {
		l.BatchBytes = l.MemoryBytes / 4
	}
	return l
}

func overLimit(name string, limit int64, what string) *Error {
	return errorf(CodeLimit, "%s is over the limit %s = %d", what, name, limit)
}
