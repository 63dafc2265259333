package stream

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
)

// Task is one share of a batch: a value that can be serialised, and that gives
// the same files wherever and whenever it runs. Its methods work only while a
// Step runs it.
type Task struct {
	Dataset    string `json:"dataset"`
	Flow       string `json:"flow"`
	Pipeline   string `json:"pipeline"`
	UpdateID   string `json:"update_id"`
	Generation int    `json:"generation"`
	Batch      int64  `json:"batch"`
	Index      int    `json:"index"`
	Attempt    int    `json:"attempt"`
	// Timestamp is the batch's: the only clock a step may read.
	Timestamp time.Time `json:"timestamp"`
	// FullRefresh is true in the batch whose commit replaces the target's rows.
	FullRefresh bool `json:"full_refresh"`
	// SchemaVersion is the version of the source's schema, 0 when it has none.
	SchemaVersion int `json:"schema_version"`
	// Input is what the task reads.
	Input Input `json:"input"`
	// Side pins the side inputs by name.
	Side map[string]TableVersion `json:"side,omitempty"`

	hooks *taskHooks
}

// TableVersion pins a Delta table.
type TableVersion struct {
	TableID string `json:"table_id"`
	Version int64  `json:"version"`
}

// Name is the stem of the names of the task's files.
func (t *Task) Name() string { return taskName(t.appID(), t.Batch, t.Index) }

// OpenSide reads a side input whole, at the version the batch pins. The caller
// releases the reader.
func (t *Task) OpenSide(ctx context.Context, name string) (array.RecordReader, error) {
	if t.hooks == nil {
		return nil, fault.New("INTERNAL_ERROR", "the task does not run")
	}
	return t.hooks.openSide(ctx, name, nil)
}

// OpenSideWhere is OpenSide for somebody who needs the rows that meet a condition:
// files that hold none are not read.
func (t *Task) OpenSideWhere(ctx context.Context, name string, where *delta.Predicate) (array.RecordReader, error) {
	if t.hooks == nil {
		return nil, fault.New("INTERNAL_ERROR", "the task does not run")
	}
	return t.hooks.openSide(ctx, name, where)
}

// RowError tells that a step refuses the source row of that ordinal (the value
// of __weir_row). Under the policy "fail" it gives the error to stop with;
// otherwise nil, and the step must not pass the row on.
func (t *Task) RowError(row int64, code, message string) error {
	if t.hooks == nil {
		return fault.New("INTERNAL_ERROR", "the task does not run")
	}
	return t.hooks.rowError(row, code, message)
}

// BatchRowError tells that a step of a batch query refuses a row of what it
// reads whole, counted from 0; json gives the row when it is to be kept.
func (t *Task) BatchRowError(row int64, json func() ([]byte, error), code, message string) error {
	if t.hooks == nil {
		return fault.New("INTERNAL_ERROR", "the task does not run")
	}
	return t.hooks.batchRowError(row, json, code, message)
}

// Expect gives the rows of a view that its rules let through, marked by the
// step that in comes from. Counts are those of the dataset with the batch; rows
// set aside go to the quarantine of the flow. in outlives the reader.
func (t *Task) Expect(ctx context.Context, dataset string, rules []expect.Rule, in array.RecordReader) (array.RecordReader, error) {
	h := t.hooks
	if h == nil {
		return nil, fault.New("INTERNAL_ERROR", "the task does not run")
	}
	r, err := expect.Filter(ctx, rules, in, expect.Sink{
		Quarantine: h.quarantineRules,
		Locate:     func(row int64) string { return placeOf(h.source, row) },
		Alloc:      h.means.mem,
	}, func(c expect.Counts) { h.expected(dataset, c) })
	if err != nil {
		return nil, fault.Place(err, "INVALID_EXPECTATION", fault.Where{Dataset: dataset})
	}
	return &placedReader{r, fault.Where{Dataset: dataset}, h}, nil
}

// placedReader says which view the violation of a rule is of, and ends the task with it.
type placedReader struct {
	array.RecordReader
	where fault.Where
	hooks *taskHooks
}

func (r *placedReader) Err() error {
	err := r.RecordReader.Err()
	if fault.CodeOf(err) != "EXPECTATION_VIOLATED" {
		return err
	}
	err = fault.Place(err, "EXPECTATION_VIOLATED", r.where)
	r.hooks.endWith(err)
	return err
}

// LatestSnapshot gives the version of the snapshot before this one to a step
// that provides snapshots, nil for none.
func (t *Task) LatestSnapshot() *abi.Version {
	if t.hooks == nil || t.hooks.snapshots == nil {
		return nil
	}
	return t.hooks.snapshots.latest
}

// Snapshot tells what a provider said before its first row. An error ends it.
func (t *Task) Snapshot(s abi.SnapshotResult) error {
	if t.hooks == nil || t.hooks.snapshots == nil {
		return fault.New("INVALID_FLOW", "a provider of snapshots runs in a flow of snapshots only")
	}
	if err := t.hooks.snapshots.say(s); err != nil {
		t.hooks.endWith(err) // whatever the step makes of it
		return err
	}
	return nil
}

// Metric adds to a figure of the user's; it is summed over the tasks of the
// batches that commit.
func (t *Task) Metric(name string, value float64) {
	if t.hooks != nil {
		t.hooks.metric(name, value)
	}
}

// State gives what the last batch left of a Stateful step's state, nil at the first.
func (t *Task) State(name string) []byte {
	if t.hooks == nil {
		return nil
	}
	return t.hooks.before[name]
}

// SetState takes the state that a Stateful step leaves, committed with the
// batch or not at all. The bytes are the task's.
func (t *Task) SetState(name string, state []byte) error {
	if t.hooks == nil {
		return fault.New("INTERNAL_ERROR", "the task does not run")
	}
	t.hooks.setState(name, state)
	return nil
}

// Spent adds to what the functions of the batch took.
func (t *Task) Spent(fuel int64, guest time.Duration) {
	if t.hooks != nil {
		t.hooks.spent(fuel, guest)
	}
}
