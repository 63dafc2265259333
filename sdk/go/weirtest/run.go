//go:build !wasip1

package weirtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-data/weir/sdk/go"
	"github.com/weir-data/weir/sdk/go/internal/host"
	"github.com/weir-data/weir/sdk/go/internal/seam"
)

// Result is what a run of a function gave.
type Result struct {
	Err       error
	Fields    []weir.Field
	Rows      []Row // of output 0, with passthrough columns before; without rows that had an error
	Outputs   []Output
	RowErrors []RowError
	Metrics   map[string]float64
	Logs      []string
	Queries   []string // the requests of Call.Query in order, as JSON: {"sql": …, "params": […]}
	Result    string   // JSON that a snapshot provider wrote
}

// Output is one output of a function with several.
type Output struct {
	Fields []weir.Field
	Rows   []Row
}

// RowError is an input row that could not be transformed.
type RowError struct {
	Input   int    `json:"-"`
	Row     int64  `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Run calls a function of the module with its inputs. A function that breaks a rule of the ABI, or
// does not exist, fails the test; an error that it returns is in the result.
func (m *Module) Run(name string, inputs ...*Input) *Result {
	m.t.Helper()
	running.Lock()
	defer running.Unlock()
	number := -1
	for i, f := range m.manifest.Functions {
		if f.Name == name {
			number = i
		}
	}
	if number < 0 {
		m.t.Fatalf("the module has no function %s", name)
	}
	f := &m.manifest.Functions[number]
	h, err := m.host(f, inputs)
	if err != nil {
		m.t.Fatalf("%s: %v", name, err)
	}
	before := host.Use(h)
	seam.Reset()
	status := seam.Call(int32(number))
	host.Use(before)
	r := &Result{RowErrors: h.errors, Metrics: h.metrics, Logs: h.logs, Queries: h.queries, Result: string(h.result)}
	if h.broken != nil {
		m.t.Fatalf("%s: %v", name, h.broken)
	}
	if status != 0 || h.failed {
		r.Err = errors.New(h.failure)
		return r
	}
	m.State = h.state
	if err := r.read(f, h, inputs); err != nil {
		m.t.Fatalf("%s: %v", name, err)
	}
	return r
}

func (m *Module) host(f *function, inputs []*Input) (*hostOf, error) {
	if len(inputs) != len(f.Inputs) {
		return nil, fmt.Errorf("it has %d inputs, and got %d", len(f.Inputs), len(inputs))
	}
	context, err := json.Marshal(m.Context)
	if err != nil {
		return nil, err
	}
	h := &hostOf{conf: m.conf, granted: f.Conf, context: context, state: m.State, calling: true, answers: m.Answers,
		outputs: make([][][]byte, max(1, len(f.Outputs)))}
	for i, in := range inputs {
		if in.err != nil {
			return nil, fmt.Errorf("input %d: %w", i, in.err)
		}
		if columns := f.Inputs[i].Columns; columns != nil {
			if in, err = in.project(*columns); err != nil {
				return nil, fmt.Errorf("input %d: %w", i, err)
			}
		}
		messages, err := in.messages()
		if err != nil {
			return nil, fmt.Errorf("input %d: %w", i, err)
		}
		h.inputs = append(h.inputs, &inputOf{messages: messages, rows: len(in.rows)})
	}
	return h, nil
}

// read turns what the function wrote into rows, and holds it to the rules.
func (r *Result) read(f *function, h *hostOf, inputs []*Input) error {
	if f.Kind == "map" && len(h.inputs) > 0 && !h.inputs[0].ended {
		return errors.New("the function returned before it saw the end of input 0; read it to the end, or Close it")
	}
	for i, messages := range h.outputs {
		if len(messages) == 0 {
			return fmt.Errorf("output %d has no schema", i)
		}
		fields, rows, err := decode(messages)
		if err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
		r.Outputs = append(r.Outputs, Output{fields, rows})
	}
	r.Fields, r.Rows = r.Outputs[0].Fields, r.Outputs[0].Rows
	if f.RowAligned {
		return r.align(f, inputs[0])
	}
	return nil
}

// align puts the passthrough columns before the output and leaves out rows with an error.
func (r *Result) align(f *function, in *Input) error {
	if len(r.Rows) != len(in.rows) {
		return fmt.Errorf("the function is row-aligned, and gave %d rows for %d", len(r.Rows), len(in.rows))
	}
	bad := map[int64]bool{}
	for _, e := range r.RowErrors {
		bad[e.Row] = e.Input == 0
	}
	var fields []weir.Field
	rows := []Row{}
	for i := range in.rows {
		if bad[int64(i)] {
			continue
		}
		var row Row
		for _, p := range f.renames {
			at := in.index(p[0])
			if at < 0 {
				return fmt.Errorf("the input has no column %s, which is passed through", p[0])
			}
			row = append(row, in.rows[i][at])
		}
		rows = append(rows, append(row, r.Rows[i]...))
	}
	for _, p := range f.renames {
		if at := in.index(p[0]); at >= 0 {
			fields = append(fields, weir.Field{Name: p[1], Type: in.fields[at].Type, Nullable: true})
		}
	}
	r.Fields, r.Rows = append(fields, r.Fields...), rows
	return nil
}

// Equal fails the test unless the run succeeded and gave exactly these rows.
func (r *Result) Equal(t testing.TB, want ...Row) {
	t.Helper()
	if r.Err != nil {
		t.Fatalf("the function failed: %v", r.Err)
	}
	if len(want) == 0 && len(r.Rows) == 0 {
		return
	}
	if !reflect.DeepEqual(r.Rows, want) {
		t.Errorf("got\n%s\nwant\n%s", text(r.Rows), text(want))
	}
}

// Codes gives the codes of the row errors of input 0, by row.
func (r *Result) Codes() map[int64]string {
	codes := map[int64]string{}
	for _, e := range r.RowErrors {
		if e.Input == 0 {
			codes[e.Row] = e.Code
		}
	}
	return codes
}

func text(rows []Row) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "  %#v\n", []any(r))
	}
	return b.String()
}
