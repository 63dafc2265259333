package stream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"

	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
)

// Stateful is a step that carries state from batch to batch. A batch of a flow
// with such a step is one task.
type Stateful interface {
	Step
	// StateName is the step's name among those of the flow; "" when it carries none.
	StateName() string
}

// stateRef says in a batch's outcome which state a step has after it. The
// object counts only because the target's commit names it.
type stateRef struct {
	Batch  int64  `json:"batch"` // that wrote it
	SHA256 string `json:"sha256"`
}

var fpStateWritten = failpoint.New("stream.state_written")

func stateName(step Step) string {
	if s, ok := step.(Stateful); ok {
		return s.StateName()
	}
	return ""
}

func (f *Flow) stateNames() []string {
	var names []string
	for _, s := range f.Steps {
		if n := stateName(s); n != "" {
			names = append(names, n)
		}
	}
	return names
}

// statePath is where batch n leaves the state of a step, whose name may hold
// what no file name does.
func statePath(n int64, step string) string {
	sum := sha256.Sum256([]byte(step))
	return fmt.Sprintf("state/%020d-%s.bin", n, hex.EncodeToString(sum[:8]))
}

// taskBytes is how much input a task of the batch takes: all of it when a step
// has state or a handler takes the batch, however it was planned.
func (a *attempt) taskBytes() int64 {
	if len(a.flow.stateNames()) > 0 || a.flow.Handler != nil {
		return math.MaxInt64
	}
	return a.entry.TaskBytes
}

// loadStates finds what the batch before left.
func (a *attempt) loadStates(ctx context.Context) error {
	a.before, a.states = nil, map[string][]byte{}
	if a.entry.Batch == 0 {
		return nil
	}
	last, err := a.ck.commit(ctx, a.entry.Batch-1)
	if err != nil {
		return err
	}
	a.before = last.States
	for _, step := range a.flow.stateNames() {
		ref, ok := a.before[step]
		if !ok {
			continue
		}
		name := statePath(ref.Batch, step)
		data, err := a.ck.store.Get(ctx, name)
		if err != nil {
			return unavailable(err)
		}
		if digest(data) != ref.SHA256 {
			return fault.New("CHECKPOINT_CORRUPT", "%s is not the state of %s that batch %d left", name, step, ref.Batch).
				WithHint("Restore it, or run a full refresh of this table")
		}
		a.states[step] = data
	}
	return nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// writeStates writes what the batch leaves and says which states there are
// after it. Nothing refers to the objects before the target's commit; those of
// an attempt that got no further are written over.
func (a *attempt) writeStates(ctx context.Context) (map[string]stateRef, error) {
	if len(a.result.states) == 0 {
		return a.before, nil
	}
	after := maps.Clone(a.before)
	if after == nil {
		after = map[string]stateRef{}
	}
	for step, data := range a.result.states {
		if err := a.ck.store.Put(ctx, statePath(a.entry.Batch, step), data); err != nil {
			return nil, unavailable(err)
		}
		after[step] = stateRef{a.entry.Batch, digest(data)}
	}
	fpStateWritten.Hit()
	return after, nil
}

// pruneStates removes the states that a committed batch has made old.
func (a *attempt) pruneStates(ctx context.Context, after map[string]stateRef) {
	if a.entry.Batch == 0 || len(after) == 0 {
		return
	}
	last, err := a.ck.commit(ctx, a.entry.Batch-1)
	if err != nil {
		return
	}
	for step, old := range last.States {
		if after[step].Batch != old.Batch {
			// What stays behind costs space only: nothing names it.
			_ = a.ck.store.Delete(ctx, statePath(old.Batch, step))
		}
	}
}
