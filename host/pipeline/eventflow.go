package pipeline

import (
	"context"
	"fmt"

	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/stream"
)

// logFlow tells of a flow's new state; u.mu is held.
func (u *update) logFlow(f *FlowResult, message string) {
	e := events.Event{Type: events.FlowProgress, Message: message, Origin: f.origin()}
	details := events.FlowProgressDetails{Status: f.status()}
	if message == "" {
		e.Message = "flow " + f.Flow + " of " + f.Dataset + " is " + details.Status
	}
	switch f.State {
	case Failed:
		e.Level, e.Error = events.Error, events.FailureOf(f.Err)
	case Skipped, Canceled:
		e.Level = events.Warn
	case Completed:
		details.Metrics = &events.FlowMetrics{
			BacklogFiles: max(f.backlog.Files, 0), BacklogBytes: max(f.backlog.Bytes, 0),
			ExecutorTimeMS: f.Ended.Sub(f.Started).Milliseconds(), Fuel: f.Fuel, GuestMicros: f.GuestMicros,
		}
		if c := f.Changes; c != nil {
			details.Metrics.UpsertedRows, details.Metrics.DeletedRows = &c.Upserted, &c.Deleted
		} else {
			written := f.RowsWritten
			details.Metrics.OutputRows = &written
		}
		details.DataQuality = &events.DataQuality{
			DroppedRecords: f.Dropped, QuarantinedRecords: f.Quarantined,
			RescuedRecords: f.Rescued, MalformedRecords: f.Malformed,
			DroppedMalformed: f.DroppedMalformed, LostValues: f.LostValues,
		}
		for _, c := range f.Expectations {
			details.DataQuality.Expectations = append(details.DataQuality.Expectations,
				events.Expectation{Name: c.Name, Dataset: c.Dataset, Passed: c.Passed, Failed: c.Failed})
		}
	}
	e.Details = details
	u.log.Emit(e)
	switch f.State {
	case Completed, Failed, Canceled:
		u.log.Nudge() // killed from here on, the update has left this behind
	}
}

// status is the event log's word for the flow's state. A flow is STARTING
// until its checkpoint is known, see logRunning.
func (f *FlowResult) status() string {
	switch {
	case f.State == Running && !f.running:
		return "STARTING"
	case f.State == Canceled:
		return "STOPPED"
	}
	return string(f.State)
}

// origin says which flow an event is about.
func (f *FlowResult) origin() events.Origin {
	return events.Origin{DatasetName: f.Dataset, FlowName: f.Flow, FlowID: f.flowID}
}

// logRunning tells, once, that a flow is at work; u.mu is held.
func (u *update) logRunning(f *FlowResult) {
	if f.running {
		return
	}
	f.running = true
	u.log.Emit(events.Event{Type: events.FlowProgress, Message: "flow " + f.Flow + " of " + f.Dataset + " is RUNNING", Origin: f.origin(),
		Details: events.FlowProgressDetails{Status: string(Running)}})
}

// observe takes what the batch loop tells of a flow.
func (u *update) observe(ctx context.Context, fl *flow, f *FlowResult, p stream.Progress) {
	d := fl.target
	u.mu.Lock()
	defer u.mu.Unlock()
	// The flow's generation exists before it looks at its source. A record
	// that stays makes the next run refresh once more, which changes nothing.
	if err := u.begun(ctx, fl); err != nil {
		u.p.opts.Logger.Warn(err.Error(), "dataset", d.id)
	}
	if p.FlowID != "" {
		f.flowID = p.FlowID
	}
	u.logRunning(f)
	origin := f.origin()
	out := Progress{Dataset: d.id, Flow: fl.name, State: Running, Batch: -1}
	switch p.Kind {
	case stream.ListingDone:
		details := events.OperationDetails{Type: events.AutoLoaderListing, Status: "COMPLETED", DurationMS: p.Took.Milliseconds()}
		if in := fl.body.streamInput(); in != nil && in.files != nil {
			details.Listing.SourcePath = in.files.path
		}
		details.Listing.Files = p.Backlog.Files
		f.backlog = p.Backlog
		if p.Backlog.Files >= 0 {
			u.log.Emit(events.Event{Type: events.OperationProgress, Message: "source listed", Origin: origin, Details: details})
		}
		return
	case stream.BatchStarted:
		return
	case stream.RefreshDecided:
		f.Refresh = &RefreshDecision{Technique: string(p.Decision.Technique), Reason: string(p.Decision.Reason), Detail: p.Decision.Detail}
		u.log.Emit(events.Event{Type: events.PlanningInformation, Message: f.Refresh.String(), Origin: origin, Details: planning(d, f.Refresh)})
		out.Message = f.Refresh.String()
	case stream.BatchRetried:
		f.Retries++
		out.Message, out.Err = fmt.Sprintf("batch %d is tried again: %v", p.Batch, p.Err), p.Err
		u.log.Emit(events.Event{Type: events.FlowProgress, Level: events.Warn, Message: out.Message, Origin: origin,
			Error: events.FailureOf(p.Err), Details: events.FlowProgressDetails{Status: string(Running)}})
	case stream.SchemaEvolved:
		out.Message = fmt.Sprintf("new columns recorded: %v", p.NewColumns)
		u.log.Emit(events.Event{Type: events.FlowProgress, Level: events.Warn, Message: out.Message, Origin: origin,
			Details: events.FlowProgressDetails{Status: string(Running)}})
	case stream.CheckpointFailed:
		out.Message = fmt.Sprintf("version %d of %s is committed, but its checkpoint could not be written, which makes the table slower to open until the next one: %v", p.TargetVersion, p.Table, p.Err)
		f.Warnings = append(f.Warnings, out.Message)
		u.log.Emit(events.Event{Type: events.FlowProgress, Level: events.Warn, Message: out.Message, Origin: origin,
			Error: events.FailureOf(p.Err), Details: events.FlowProgressDetails{Status: string(Running)}})
	case stream.Noticed:
		out.Message = p.Notice.String()
		level := events.Info
		if !p.Notice.Info {
			level = events.Warn
			f.Warnings = append(f.Warnings, out.Message)
		}
		u.log.Emit(events.Event{Type: events.FlowProgress, Level: level, Message: out.Message, Origin: origin,
			Details: events.FlowProgressDetails{Status: string(Running)}})
	case stream.BatchCommitted:
		f.add(p.Metrics)
		f.backlog = p.Backlog
		out.Batch = p.Batch
		batch := p.Batch
		origin.BatchID = &batch
		u.log.Emit(events.Event{Type: events.StreamProgress, Level: events.Metrics, Message: fmt.Sprintf("batch %d committed", p.Batch), Origin: origin, Details: events.StreamDetails{
			BatchID: p.Batch, BatchTimestamp: p.Timestamp, InputFiles: p.Metrics.InputFiles, InputRows: p.Metrics.InputRows,
			OutputRows: p.Metrics.OutputRows, FilesLeft: p.Backlog.Files, BytesLeft: p.Backlog.Bytes, TargetVersion: p.TargetVersion,
			Fuel: p.Metrics.Fuel, GuestMicros: p.Metrics.GuestTime.Microseconds(),
		}})
	}
	out.Metrics = f.Metrics
	u.tell(out)
}

// add counts a committed batch; finish replaces the sums by the run's own.
func (m *Metrics) add(s stream.Metrics) {
	m.Batches++
	m.Files += s.InputFiles
	m.RowsRead += s.InputRows
	m.RowsWritten += s.OutputRows
	m.Dropped += s.DroppedRows
	m.Quarantined += s.QuarantinedRows
	m.Skipped += s.SkippedRows
	m.RowErrors += s.RowErrors
	m.Rescued += s.RescuedRows
	m.Malformed += s.MalformedRows
	m.DroppedMalformed += s.DroppedMalformed
	m.LostValues += s.LostValues
	m.OldImages += s.OldImages
	if m.Changes != nil {
		sum := *m.Changes // the old ones may be with an observer
		sum.Add(s.Applied)
		m.Changes = &sum
	}
	m.Fuel += s.Fuel
	m.GuestMicros += s.GuestTime.Microseconds()
}
