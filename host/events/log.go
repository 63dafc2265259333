package events

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// Log writes events to a Delta table. It is safe for concurrent use, as long
// as one process at a time writes the events of a pipeline.
type Log struct {
	table  *delta.Table
	origin Origin
	clock  func() time.Time
	redact func(string) string // nil: texts are kept as they are
	nudge  chan struct{}

	mu   sync.Mutex
	kept []row

	flushing sync.Mutex
	written  int64 // how many events of this log are in the table; guarded by flushing
}

// row is an event ready to be written.
type row struct {
	Event
	details string
}

// Open makes a log over the event table; origin is what all its events share.
// Nothing is read or written before Flush. clock nil means the system's.
func Open(table *delta.Table, origin Origin, clock func() time.Time) *Log {
	if clock == nil {
		clock = time.Now
	}
	return &Log{table: table, origin: origin, clock: clock, nudge: make(chan struct{}, 1)}
}

// Redact lets every text of the events go through a function before it is
// kept. Call it before the first Emit.
func (l *Log) Redact(by func(string) string) { l.redact = by }

// without gives an error whose texts have gone through a function.
func (f *Failure) without(redact func(string) string) *Failure {
	if f == nil {
		return nil
	}
	out := &Failure{Fatal: f.Fatal}
	for _, e := range f.Exceptions {
		out.Exceptions = append(out.Exceptions, Exception{e.ClassName, redact(e.Message)})
	}
	return out
}

// Emit keeps an event for the next Flush.
func (l *Log) Emit(e Event) {
	if e.ID == "" {
		e.ID = uuid.NewString()
	}
	if e.Level == "" {
		e.Level = Info
	}
	if e.Maturity == "" {
		e.Maturity = Evolving
	}
	e.Origin = e.Origin.or(l.origin)
	details := "{}"
	if e.Details != nil {
		text, err := json.Marshal(map[string]any{e.Type: e.Details})
		if err != nil {
			// An event is worth more than its details.
			text, _ = json.Marshal(map[string]string{"unreadable": err.Error()})
		}
		details = string(text)
	}
	if l.redact != nil {
		e.Message, details, e.Error = l.redact(e.Message), l.redact(details), e.Error.without(l.redact)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Timestamp.IsZero() {
		e.Timestamp = l.clock()
	}
	e.Timestamp = e.Timestamp.UTC().Truncate(time.Microsecond)
	l.kept = append(l.kept, row{e, details})
}

// Flush writes the kept events as one commit. When it fails they stay kept.
func (l *Log) Flush(ctx context.Context) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	n := len(l.kept)
	l.mu.Unlock()
	if n == 0 {
		return nil
	}
	err := l.flush(ctx, n)
	var already *delta.AlreadyCommitted
	if errors.As(err, &already) {
		// The table has numbers that were given out here: what was thought
		// to have failed has landed, or another process writes, too.
		err = l.flush(ctx, n)
	}
	if err != nil {
		return fault.Wrap(err, "EVENT_LOG_WRITE_FAILED", "%d events are not in the event log", n)
	}
	return nil
}

// flush numbers the first n of the kept events on from the newest in the table and writes them.
func (l *Log) flush(ctx context.Context, n int) error {
	snap, err := snapshotOf(ctx, l.table)
	if err != nil {
		return err
	}
	var last int64
	if snap != nil {
		if err := checkSchema(snap.Schema()); err != nil {
			return err
		}
		last, _ = snap.Txn(l.app())
	}
	landed, err := l.landed(ctx, snap, n, last)
	if err != nil {
		return err
	}
	l.drop(landed)
	rows := l.number(n-landed, last)
	if len(rows) == 0 {
		return nil
	}
	if err := l.write(ctx, snap, rows); err != nil {
		return err
	}
	l.drop(len(rows))
	return nil
}

// landed counts those of the first n kept events that a commit has written
// which was thought to have failed.
func (l *Log) landed(ctx context.Context, snap *delta.Snapshot, n int, last int64) (int, error) {
	l.mu.Lock()
	first, numbered := l.kept[0].Event, 0
	for numbered < n && l.kept[numbered].Sequence.Control > 0 && l.kept[numbered].Sequence.Control <= last {
		numbered++
	}
	l.mu.Unlock()
	if numbered == 0 {
		return 0, nil
	}
	found, err := readFrom(ctx, snap, Filter{After: first.Sequence.Control - 1, Before: first.Sequence.Control + 1})
	if err != nil || len(found) == 0 || found[0].ID != first.ID {
		return 0, err
	}
	return numbered, nil
}

// number gives the first n kept events their places behind last.
func (l *Log) number(n int, last int64) []row {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.kept[:n] {
		l.kept[i].Sequence = Sequence{Instance: l.origin.UpdateID, Number: l.written + int64(i) + 1, Control: last + int64(i) + 1}
	}
	return slices.Clone(l.kept[:n])
}

// drop forgets the first n of the kept events, which are written.
func (l *Log) drop(n int) {
	l.written += int64(n)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = slices.Clone(l.kept[n:])
}

// app names the transaction that counts the pipeline's events.
func (l *Log) app() string { return l.origin.PipelineID + "/event_log" }

func (l *Log) write(ctx context.Context, snap *delta.Snapshot, rows []row) error {
	rec := record(rows)
	defer rec.Release()
	w, err := l.table.Write(ctx, delta.WriteOptions{Schema: Schema, Snapshot: snap, Name: "events-" + uuid.NewString()})
	if err != nil {
		return err
	}
	if err := w.Write(ctx, rec); err != nil {
		return errors.Join(err, w.Abort(ctx))
	}
	adds, err := w.Close(ctx)
	if err != nil {
		return err
	}
	c := delta.Commit{
		Read: snap, Operation: "WRITE", Parameters: map[string]any{"mode": "Append"}, Add: adds, Timestamp: l.clock(),
		Txn: &delta.Txn{AppID: l.app(), Version: rows[len(rows)-1].Sequence.Control},
	}
	if snap == nil {
		c.Schema, c.Comment, c.Properties = Schema, "event log", properties
	}
	_, err = l.table.Commit(ctx, c)
	return err
}

// snapshotOf gives the newest snapshot, nil when there is no table.
func snapshotOf(ctx context.Context, t *delta.Table) (*delta.Snapshot, error) {
	s, err := t.Snapshot(ctx)
	if fault.CodeOf(err) == "DELTA_TABLE_NOT_FOUND" {
		return nil, nil
	}
	return s, err
}

// or fills what o leaves empty.
func (o Origin) or(all Origin) Origin {
	theirs := all.texts()
	for i, mine := range o.texts() {
		if mine != nil && *mine == "" {
			*mine = *theirs[i]
		}
	}
	if o.BatchID == nil {
		o.BatchID = all.BatchID
	}
	return o
}

// FailureOf gives an error as the error of an event: the codes and messages of
// its chain, outermost first.
func FailureOf(err error) *Failure {
	f := &Failure{Fatal: true}
	for err != nil {
		var e *fault.Error
		if !errors.As(err, &e) {
			f.Exceptions = append(f.Exceptions, Exception{fault.CodeOf(err), err.Error()})
			return f
		}
		f.Exceptions = append(f.Exceptions, Exception{e.Code, e.Error()})
		err = e.Err
	}
	return f
}
