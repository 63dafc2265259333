//go:build !wasip1

package weirtest

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/weir-data/weir/sdk/go/internal/host"
)

// hostOf plays the host for one describe or one call.
type hostOf struct {
	host.Absent
	conf    map[string]string
	granted []string
	context []byte
	state   []byte
	inputs  []*inputOf
	outputs [][][]byte // messages by output
	answers map[string]*Input
	queries []string

	calling   bool
	result    []byte
	failure   string
	failed    bool
	lastError string
	errors    []RowError
	metrics   map[string]float64
	logs      []string
	broken    error // a rule of the ABI that the function broke
}

type inputOf struct {
	messages [][]byte
	at       int
	rows     int
	ended    bool
}

var rowErrorCode = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

func (h *hostOf) breaks(format string, args ...any) {
	if h.broken == nil {
		h.broken = fmt.Errorf(format, args...)
	}
}

func (h *hostOf) fails(text string) int32 {
	h.lastError = text
	return -1
}

// InputNext moves to the next message.
func (h *hostOf) InputNext(input int) int64 {
	if input < 0 || input >= len(h.inputs) {
		return int64(h.fails(fmt.Sprintf("there is no input %d", input)))
	}
	in := h.inputs[input]
	if in.at < len(in.messages) {
		in.at++
		return int64(len(in.messages[in.at-1]))
	}
	in.ended = true
	return 0
}

// InputRead copies the current message.
func (h *hostOf) InputRead(input int, p []byte) int32 {
	in := h.inputs[input]
	if in.at == 0 || len(p) < len(in.messages[in.at-1]) {
		return h.fails("no message, or too small a buffer")
	}
	return int32(copy(p, in.messages[in.at-1]))
}

// InputClose takes the input for read.
func (h *hostOf) InputClose(input int) int32 {
	if input < 0 || input >= len(h.inputs) {
		return h.fails(fmt.Sprintf("there is no input %d", input))
	}
	h.inputs[input].at, h.inputs[input].ended = len(h.inputs[input].messages), true
	return 0
}

// OutputWrite keeps what was written.
func (h *hostOf) OutputWrite(output int, p []byte) int32 {
	if output < 0 || output >= len(h.outputs) {
		return h.fails(fmt.Sprintf("there is no output %d", output))
	}
	messages, err := split(p)
	if err != nil {
		h.breaks("output %d: %w", output, err)
		return h.fails(err.Error())
	}
	h.outputs[output] = append(h.outputs[output], messages...)
	return 0
}

// Query answers with what the test said; it runs no SQL.
func (h *hostOf) Query(request []byte) int32 {
	var q struct {
		SQL string `json:"sql"`
	}
	if err := json.Unmarshal(request, &q); err != nil {
		return h.fails("[INVALID_QUERY_REQUEST] " + err.Error())
	}
	h.queries = append(h.queries, string(request))
	in := h.answers[q.SQL]
	if in == nil || !h.calling {
		return h.fails("[NOT_SUPPORTED] the test has no answer to the query " + q.SQL + ": set Module.Answers")
	}
	messages, err := in.messages()
	if err != nil {
		return h.fails(err.Error())
	}
	h.inputs = append(h.inputs, &inputOf{messages: messages, rows: len(in.rows)})
	return int32(len(h.inputs) - 1)
}

// ConfGet reads the configuration that was granted.
func (h *hostOf) ConfGet(key string, p []byte) int32 {
	v, ok := h.conf[key]
	if !ok || !granted(h.granted, key) {
		return -1
	}
	copy(p, v)
	return int32(len(v))
}

// ContextRead reads the context, in a call only.
func (h *hostOf) ContextRead(p []byte) int32 {
	if !h.calling {
		return h.fails("there is no context while describing")
	}
	copy(p, h.context)
	return int32(len(h.context))
}

// ResultWrite keeps the manifest, or a snapshot's version.
func (h *hostOf) ResultWrite(p []byte) int32 {
	h.result = append([]byte(nil), p...)
	return 0
}

// MetricAdd sums up.
func (h *hostOf) MetricAdd(name string, value float64) {
	if h.metrics == nil {
		h.metrics = map[string]float64{}
	}
	h.metrics[name] += value
}

// RowError keeps the first error of each row.
func (h *hostOf) RowError(input int, row int64, p []byte) {
	e := RowError{Input: input, Row: row}
	if err := json.Unmarshal(p, &e); err != nil || !rowErrorCode.MatchString(e.Code) {
		h.breaks("row error %s is not {\"code\": upper case, \"message\"}", p)
	}
	if input < 0 || input >= len(h.inputs) || row < 0 || row >= int64(h.inputs[input].rows) {
		h.breaks("row error for row %d of input %d, which there is not", row, input)
	}
	for _, known := range h.errors {
		if known.Input == input && known.Row == row {
			return
		}
	}
	h.errors = append(h.errors, e)
}

// StateRead reads the state.
func (h *hostOf) StateRead(p []byte) int32 {
	copy(p, h.state)
	return int32(len(h.state))
}

// StateWrite keeps the state.
func (h *hostOf) StateWrite(p []byte) int32 {
	h.state = append([]byte(nil), p...)
	return 0
}

// LastError reads the text of the last failure.
func (h *hostOf) LastError(p []byte) int32 {
	copy(p, h.lastError)
	return int32(len(h.lastError))
}

// Log keeps the line.
func (h *hostOf) Log(level int32, text string) {
	names := [...]string{"DEBUG", "INFO", "WARN", "ERROR"}
	h.logs = append(h.logs, names[min(max(level, 0), 3)]+" "+text)
}

// Fail keeps the message: the call failed whatever it returns.
func (h *hostOf) Fail(text string) { h.failure, h.failed = text, true }
