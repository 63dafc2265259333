package pipeline

import (
	"fmt"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/stream"
)

// What the functions of one flow may put into the event log within one update;
// the log is kept in memory until the end. The logger gets everything.
const (
	maxLogLines = 1000
	maxLogBytes = 256 << 10
)

// lineCount is how much the functions of a flow have logged.
type lineCount struct {
	lines, bytes int
	full         bool
}

// functionLine takes a line that a function logs. What is for developers
// only (debug, trace) does not go to the event log.
func (u *update) functionLine(t *stream.Task, function string, level abi.LogLevel, message string) {
	u.p.opts.Logger.Info(message, "plugin", function, "level", level.String(), "dataset", t.Dataset, "batch", t.Batch)
	var as events.Level
	switch level {
	case abi.LogError, abi.LogWarn:
		as = events.Warn // an ERROR of the log is a flow that failed
	case abi.LogInfo:
		as = events.Info
	default:
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.lines[t.Dataset]
	if n == nil {
		n = &lineCount{}
		u.lines[t.Dataset] = n
	}
	switch {
	case n.full:
		return
	case n.lines >= maxLogLines || n.bytes+len(message) > maxLogBytes:
		n.full = true
		as = events.Warn
		message = fmt.Sprintf("the functions of this flow logged more than %d lines or %d bytes; the rest is left out", maxLogLines, maxLogBytes)
	}
	n.lines++
	n.bytes += len(message)
	batch := t.Batch
	u.log.Emit(events.Event{
		Type: events.FunctionLog, Level: as, Message: message,
		Origin:  events.Origin{DatasetName: t.Dataset, FlowName: t.Flow, BatchID: &batch},
		Details: events.FunctionLogDetails{Function: function, Level: level.String(), Task: t.Index},
	})
}
