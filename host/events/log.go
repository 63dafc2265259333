package events

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// Log writes events to a Delta table. It is safe for concurrent use.
type Log struct {
	table  *delta.Table
	origin Origin
	clock  func() time.Time
	redact func(string) string // nil: texts are kept as they are

	mu   sync.Mutex
	kept []row
	last int64 // the last sequence given out

	flushing sync.Mutex
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
	return &Log{table: table, origin: origin, clock: clock}
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
	// Microseconds since 1970, pushed up where two events share one: the
	// sequence ascends within a process and, clocks willing, across them.
	e.Sequence = max(l.last+1, e.Timestamp.UnixMicro())
	l.last = e.Sequence
	l.kept = append(l.kept, row{e, details})
}

// Flush writes the kept events as one commit. When it fails they stay kept; if
// the commit was made all the same, they will be there twice, with the same id.
func (l *Log) Flush(ctx context.Context) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	rows := l.kept
	l.mu.Unlock()
	if len(rows) == 0 {
		return nil
	}
	if err := l.write(ctx, rows); err != nil {
		return fault.Wrap(err, "EVENT_LOG_WRITE_FAILED", "%d events are not in the event log", len(rows))
	}
	l.mu.Lock()
	l.kept = append([]row(nil), l.kept[len(rows):]...)
	l.mu.Unlock()
	return nil
}

func (l *Log) write(ctx context.Context, rows []row) (err error) {
	snap, err := l.table.Snapshot(ctx)
	if err != nil && fault.CodeOf(err) != "DELTA_TABLE_NOT_FOUND" {
		return err
	}
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
	c := delta.Commit{Read: snap, Operation: "WRITE", Parameters: map[string]any{"mode": "Append"}, Add: adds, Timestamp: l.clock()}
	if snap == nil {
		c.Schema, c.Comment = Schema, "event log"
	}
	_, err = l.table.Commit(ctx, c)
	return err
}

// or fills what o leaves empty.
func (o Origin) or(all Origin) Origin {
	for _, f := range []struct {
		mine *string
		all  string
	}{
		{&o.PipelineID, all.PipelineID}, {&o.PipelineName, all.PipelineName}, {&o.UpdateID, all.UpdateID},
		{&o.DatasetName, all.DatasetName}, {&o.FlowID, all.FlowID}, {&o.FlowName, all.FlowName},
	} {
		if *f.mine == "" {
			*f.mine = f.all
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
