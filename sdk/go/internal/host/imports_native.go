//go:build !wasip1

package host

// Interface is what a native host gives: the imports, with the results the ABI says.
type Interface interface {
	InputNext(input int) int64
	InputRead(input int, p []byte) int32
	InputClose(input int) int32
	OutputWrite(output int, p []byte) int32
	Query(request []byte) int32
	ConfGet(key string, p []byte) int32
	ContextRead(p []byte) int32
	ResultWrite(p []byte) int32
	MetricAdd(name string, value float64)
	RowError(input int, row int64, p []byte)
	StateRead(p []byte) int32
	StateWrite(p []byte) int32
	LastError(p []byte) int32
	Log(level int32, text string)
	Fail(text string)
}

var current Interface = Absent{}

// Use makes h the host, and gives back the one before.
func Use(h Interface) Interface {
	before := current
	current = h
	return before
}

// InputNext moves to the next message of an input.
func InputNext(input int) int64 { return current.InputNext(input) }

// InputRead copies the current message into p.
func InputRead(input int, p []byte) int32 { return current.InputRead(input, p) }

// InputClose says that no more of an input is wanted.
func InputClose(input int) int32 { return current.InputClose(input) }

// OutputWrite hands over whole messages.
func OutputWrite(output int, p []byte) int32 { return current.OutputWrite(output, p) }

// Query opens a query as a new input.
func Query(request []byte) int32 { return current.Query(request) }

// ConfGet reads a configuration value.
func ConfGet(key string, p []byte) int32 { return current.ConfGet(key, p) }

// ContextRead reads the call context.
func ContextRead(p []byte) int32 { return current.ContextRead(p) }

// ResultWrite hands over the manifest or a snapshot's version.
func ResultWrite(p []byte) int32 { return current.ResultWrite(p) }

// MetricAdd adds to a user metric.
func MetricAdd(name string, value float64) { current.MetricAdd(name, value) }

// RowError reports a row that could not be transformed.
func RowError(input int, row int64, p []byte) { current.RowError(input, row, p) }

// StateRead reads the committed state.
func StateRead(p []byte) int32 { return current.StateRead(p) }

// StateWrite hands over the new state.
func StateWrite(p []byte) int32 { return current.StateWrite(p) }

// LastError reads the text of the last import that failed.
func LastError(p []byte) int32 { return current.LastError(p) }

// Log writes to the event log.
func Log(level int32, text string) { current.Log(level, text) }

// Fail sets the message that the user will read.
func Fail(text string) { current.Fail(text) }

// Absent is the host of a native program that has none: everything fails, nothing is configured.
type Absent struct{}

// InputNext fails.
func (Absent) InputNext(int) int64 { return -1 }

// InputRead fails.
func (Absent) InputRead(int, []byte) int32 { return -1 }

// InputClose fails.
func (Absent) InputClose(int) int32 { return -1 }

// OutputWrite fails.
func (Absent) OutputWrite(int, []byte) int32 { return -1 }

// Query fails.
func (Absent) Query([]byte) int32 { return -1 }

// ConfGet knows no key.
func (Absent) ConfGet(string, []byte) int32 { return -1 }

// ContextRead fails.
func (Absent) ContextRead([]byte) int32 { return -1 }

// ResultWrite fails.
func (Absent) ResultWrite([]byte) int32 { return -1 }

// MetricAdd does nothing.
func (Absent) MetricAdd(string, float64) {}

// RowError does nothing.
func (Absent) RowError(int, int64, []byte) {}

// StateRead fails.
func (Absent) StateRead([]byte) int32 { return -1 }

// StateWrite fails.
func (Absent) StateWrite([]byte) int32 { return -1 }

// LastError says why everything fails.
func (Absent) LastError(p []byte) int32 {
	const text = "there is no host: run functions through package weirtest"
	copy(p, text)
	return int32(len(text))
}

// Log does nothing.
func (Absent) Log(int32, string) {}

// Fail does nothing.
func (Absent) Fail(string) {}
