package stream

import (
	"context"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// Applier takes the rows of a flow's batches into its target in another way than
// appending them: AUTO CDC merges changes by key. Steps and expectations come
// before it, the commit point after it, as for any flow.
type Applier interface {
	// Schema gives the target's columns for rows of these.
	Schema(rows *arrow.Schema) (*arrow.Schema, error)
	// Begin starts the application of one batch. The same batch on the same
	// target may be begun any number of times.
	Begin(ctx context.Context, b ApplyBatch) (Application, error)
}

// Fitter is an Applier that has more to say than the table does when columns do
// not fit it.
type Fitter interface {
	Fits(target *delta.Snapshot, columns *arrow.Schema) error
}

// ApplyBatch is the batch that an application is of.
type ApplyBatch struct {
	Table *delta.Table
	// Target is the table as the batch sees it, nil when there is none yet.
	Target *delta.Snapshot
	// Replace says that the batch is the first of a full refresh: its rows are all
	// there is, and those of the table go with the commit.
	Replace bool
	// Rows are the columns that Take gets, nil when the batch has no rows and
	// their columns are not known.
	Rows *arrow.Schema
	// Columns are the target's after the batch, in its order and spelling.
	Columns *arrow.Schema
	// Batch and Timestamp are those of the offset entry: the same at each attempt.
	Batch     int64
	Timestamp time.Time
	// Snapshot is the version of the snapshot that the rows are, nil for changes.
	Snapshot *abi.Version
	// Name is what the names of data files begin with. The same batch has the same.
	Name string
	// Write is how whole files are written, for rows that no old one is looked up
	// for: in a table that is new or replaced it has the layout of the definition.
	Write delta.WriteOptions
	// Settle notes what the batch does in the commit that is about to be made.
	// A run that finds the commit without the commit entry reads it there.
	Settle func(*delta.Commit, Counts) error
	// Tell says in the event log what the user should know. Each text once in a run.
	Tell  func(Notice)
	Alloc memory.Allocator
}

// Notice is something a user should know about a flow that goes on nevertheless.
type Notice struct {
	Code, Text, Hint string
	// Info says that it is no warning.
	Info bool
}

// String is the notice as errors are printed.
func (n Notice) String() string {
	return fault.New(n.Code, "%s", n.Text).WithHint("%s", n.Hint).Error()
}

// Application is the application of one batch. Release ends it.
type Application interface {
	// Take takes rows of a task, perhaps of several at once. What comes of a batch
	// must not depend on the order. The rows are the caller's.
	Take(ctx context.Context, task int, rec arrow.RecordBatch) error
	// Commit takes the batch into the table with the given commit, which holds the
	// transaction, the parameters and, where they change, columns and properties.
	// It calls Settle before. A commit that lost against another writer is made
	// again by the caller, on a fresh snapshot and by a new application.
	Commit(ctx context.Context, c delta.Commit) (delta.Result, Counts, error)
	Release(ctx context.Context) error
}

// Counts are what an application did to the rows of the target.
type Counts struct {
	// Upserted and Deleted count the changes that came and had an effect: a key
	// that the batch changed three times counts once in SCD type 1.
	Upserted int64 `json:"upserted,omitempty"`
	Deleted  int64 `json:"deleted,omitempty"`
	// Inserted, Updated and Removed count rows of the table; Closed those of
	// Updated whose interval ended.
	Inserted int64 `json:"inserted,omitempty"`
	Updated  int64 `json:"updated,omitempty"`
	Removed  int64 `json:"removed,omitempty"`
	Closed   int64 `json:"closed,omitempty"`
	// Unchanged counts changes that came and made no difference: replayed, late,
	// or the same as before.
	Unchanged int64 `json:"unchanged,omitempty"`
	// Truncated counts truncates.
	Truncated int64 `json:"truncated,omitempty"`
}

// Add sums the figures of m into c.
func (c *Counts) Add(m Counts) {
	c.Upserted += m.Upserted
	c.Deleted += m.Deleted
	c.Inserted += m.Inserted
	c.Updated += m.Updated
	c.Removed += m.Removed
	c.Closed += m.Closed
	c.Unchanged += m.Unchanged
	c.Truncated += m.Truncated
}

// beginApply starts the application of the batch, which the caller ends.
func (a *attempt) beginApply(ctx context.Context) (err error) {
	columns := a.output.table
	if columns == nil {
		columns = a.target.Schema()
	}
	name := taskName(a.ck.gen.AppID, a.entry.Batch, 0)
	a.application, err = a.flow.Apply.Begin(ctx, ApplyBatch{
		Table: a.flow.Target.Table, Target: a.target, Replace: a.replace, Rows: a.output.rows, Columns: columns,
		Batch: a.entry.Batch, Timestamp: a.entry.Timestamp, Name: name,
		Write:    a.flow.Target.writeOptions(a.target, columns, a.replace, name),
		Snapshot: a.snapshot, Settle: a.settle, Tell: a.notices.add, Alloc: a.mem,
	})
	return err
}

// endApply releases the application, if there is one, and tells what it noticed.
func (a *attempt) endApply(ctx context.Context) (err error) {
	if a.application != nil {
		err = a.application.Release(context.WithoutCancel(ctx))
	}
	a.tellNotices(a.entry.Batch, a.number)
	return err
}

func (r *run) tellNotices(batch int64, attempt int) {
	for _, n := range r.notices.take() {
		r.tell(Progress{Kind: Noticed, Batch: batch, Attempt: attempt, Notice: n})
	}
}

// settle notes the outcome of the batch in its commit.
func (a *attempt) settle(c *delta.Commit, n Counts) error {
	a.committing = true
	a.out.Metrics.Applied = n
	text, err := a.out.encode()
	if err != nil {
		return fault.Wrap(err, "INTERNAL_ERROR", "cannot encode the outcome of batch %d", a.entry.Batch)
	}
	if c.Parameters == nil {
		c.Parameters = map[string]any{}
	}
	c.Parameters[outcomeKey] = text
	return nil
}

// writeOptions says how files of the target are written.
func (t *Target) writeOptions(snap *delta.Snapshot, columns *arrow.Schema, replace bool, name string) delta.WriteOptions {
	o := delta.WriteOptions{
		Schema: columns, Snapshot: snap, Replace: replace, Name: name,
		PartitionBy: t.PartitionBy, ClusterBy: t.ClusterBy, Properties: t.Properties, Redefines: replace && !t.External,
	}
	if replace {
		o.PartitionBy, o.ClusterBy = t.layout(snap)
		if snap != nil {
			o.Unset = t.Unset
		}
	}
	return o
}

// notices are what applications want to be told, each once in a run. They come
// from any goroutine and are told by that of Run.
type notices struct {
	mu      sync.Mutex
	seen    map[Notice]bool
	waiting []Notice
}

func (s *notices) add(n Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[Notice]bool{}
	}
	if !s.seen[n] {
		s.seen[n] = true
		s.waiting = append(s.waiting, n)
	}
}

func (s *notices) take() []Notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.waiting
	s.waiting = nil
	return waiting
}
