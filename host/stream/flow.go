package stream

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/storage"
)

// Flow is one source, the steps its rows go through, and the table they end in.
type Flow struct {
	// Dataset is the full name of the target table, Name the flow's own.
	Dataset, Name string
	// Pipeline is the pipeline's id (not its name), UpdateID the running update.
	Pipeline, UpdateID string

	Source Source
	// Side inputs are read whole by each batch, at the version its offset entry pins.
	Side map[string]*delta.Table

	Steps []Step
	// Rules are the expectations, in the order of the bits of the mask.
	Rules      []expect.Rule
	OnRowError RowErrorPolicy

	Target Target
	// Apply takes the rows into the target in place of appending them; nil appends.
	Apply Applier
	// Handler takes the rows in place of a target, and writes to Outputs.
	Handler    Handler
	Outputs    []Output
	Quarantine *delta.Table // <target>_quarantine; made at the first refused row

	Checkpoint storage.Store // rooted at checkpoints/<dataset>/<flow>
	Schemas    storage.Store // rooted at schemas/<flow>; nil when the source has a fixed schema

	// FullRefresh starts the flow's next generation, whose first commit
	// replaces every row of the target.
	FullRefresh bool
	// MaxRetries is how often a failing batch is tried again in the same run.
	MaxRetries int
	// Pause is how long to wait before a retry, from 0, of a failure that time
	// may cure; nil does not wait.
	Pause func(retry int) time.Duration

	// Parallel bounds the tasks of a batch that run at once; 0 means one.
	Parallel int
	// Slots bounds the running tasks of all flows that share it; nil does not.
	Slots Slots
	// TaskBytes is how much input a task of new batches gets; 0 means the
	// default. It stands in the offset entry, so a batch that runs again is cut
	// as before.
	TaskBytes int64
	// Alloc is where Arrow memory comes from; nil means the default.
	Alloc memory.Allocator
	// Clock gives batch timestamps; nil means the system's.
	Clock func() time.Time
}

// Slots are places for running tasks, shared by flows that run at the same time.
type Slots chan struct{}

// NewSlots makes n places.
func NewSlots(n int) Slots { return make(Slots, max(n, 1)) }

// take waits for a place. The caller gives it back.
func (s Slots) take(ctx context.Context) error {
	if s == nil {
		return ctx.Err()
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s Slots) giveBack() {
	if s != nil {
		<-s
	}
}

// Target is the table a flow appends to.
type Target struct {
	Table       *delta.Table
	Name        string
	Comment     string
	PartitionBy []string
	ClusterBy   []string
	Properties  map[string]string
	// Unset names properties that a commit which replaces all rows takes away.
	Unset []string
	// Columns is the declared schema, nil when the query's own is taken.
	Columns *arrow.Schema
	// External says that the table is a sink and not the pipeline's own: a full
	// refresh appends to it again and takes nothing out, and the columns of a
	// table that is there stay as they are unless Evolve is set.
	External, Evolve bool
}

// RowErrorPolicy says what becomes of a row that a step refuses.
type RowErrorPolicy string

// The policies.
const (
	FailOnRowError      RowErrorPolicy = "fail" // also what "" means
	SkipRowErrors       RowErrorPolicy = "skip"
	QuarantineRowErrors RowErrorPolicy = "quarantine"
)

// Step is one transformation of the rows of a task. The same rows in must give
// the same rows out, in the same order; the hidden columns of host/relation
// travel along. The reader that Run gives is released by the caller; in
// belongs to the caller too and outlives it.
type Step interface {
	Schema(ctx context.Context, in *arrow.Schema) (*arrow.Schema, error)
	Run(ctx context.Context, t *Task, in array.RecordReader) (array.RecordReader, error)
}
