package pipeline

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/stream"
)

// openLog opens the event log for the update's events.
func (u *update) openLog() {
	u.log = events.Open(u.p.openTable(u.p.folder("event_log")), events.Origin{
		PipelineID: u.result.PipelineID, PipelineName: u.result.Pipeline, UpdateID: u.result.UpdateID,
	}, u.p.opts.Clock)
	u.log.Redact(u.p.spec.Redactor().Redact)
}

// started tells of the update and of what it is about to refresh.
func (u *update) started(tables []*dataset) {
	u.log.Emit(events.Event{Type: events.CreateUpdate, Message: "update " + u.result.UpdateID + " started", Details: events.UpdateDetails{
		Cause: "USER_ACTION", FullRefresh: u.opt.FullRefreshAll,
		RefreshSelection: u.opt.Refresh, FullRefreshSelection: u.opt.FullRefresh,
	}})
	for _, n := range u.p.spec.Notices {
		u.log.Emit(events.Event{Type: events.RuntimeDetails, Message: "[" + n.Code + "] " + n.Message, Details: events.SettingDetails{
			Code: n.Code, Setting: n.Setting, Line: n.Line,
		}})
	}
	for _, d := range tables {
		for _, f := range d.flows {
			var inputs []string
			for _, in := range f.body.inputs {
				inputs = append(inputs, in.id())
			}
			u.log.Emit(events.Event{Type: events.FlowDefinition, Message: "flow " + f.name, Origin: events.Origin{DatasetName: d.id, FlowName: f.name},
				Details: events.FlowDefinitionDetails{OutputDataset: d.id, InputDatasets: inputs, FlowType: strings.ToUpper(string(f.kind))}})
		}
	}
	u.logUpdate(Running)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tell(Progress{State: Running, Batch: -1})
}

// defined tells of a table, with its columns when it has been made.
func (u *update) defined(d *dataset, columns *arrow.Schema) {
	details := events.DatasetDefinitionDetails{DatasetType: strings.ToUpper(d.kind), NumFlows: len(d.flows), Expectations: expectationsOf(d)}
	if columns != nil {
		for _, f := range columns.Fields() {
			details.Schema = append(details.Schema, events.Column{Name: f.Name, Type: typeName(f.Type)})
		}
	}
	u.log.Emit(events.Event{Type: events.DatasetDefinition, Message: "dataset " + d.id, Origin: events.Origin{DatasetName: d.id}, Details: details})
}

func expectationsOf(d *dataset) []events.Expectation {
	var out []events.Expectation
	for _, r := range d.rules {
		out = append(out, events.Expectation{Name: r.Name, Dataset: d.id})
	}
	return out
}

// ended settles the update's state and writes the events down.
func (u *update) ended(ctx context.Context) {
	u.result.State = Completed
	for _, f := range u.result.Flows {
		switch f.State {
		case Failed, Skipped:
			u.result.State = Failed
		case Canceled:
			if u.result.State == Completed {
				u.result.State = Canceled
			}
		}
	}
	u.result.Ended = u.p.now()
	u.logUpdate(u.result.State)
	// The tables are committed: an event log that cannot be written is told,
	// and does not make the update a failed one.
	if err := u.log.Flush(context.WithoutCancel(ctx)); err != nil {
		u.result.Warnings = append(u.result.Warnings, err.Error())
		u.p.opts.Logger.Warn(err.Error())
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tell(Progress{State: u.result.State, Batch: -1})
}

func (u *update) logUpdate(s State) {
	level := events.Info
	if s == Failed {
		level = events.Error
	}
	u.log.Emit(events.Event{Type: events.UpdateProgress, Level: level, Message: fmt.Sprintf("update %s is %s", u.result.UpdateID, s),
		Details: events.StateDetails{State: string(s)}})
}

// logFlow tells of a flow's new state; u.mu is held.
func (u *update) logFlow(f *FlowResult, message string) {
	e := events.Event{Type: events.FlowProgress, Message: message, Origin: events.Origin{DatasetName: f.Dataset, FlowName: f.Flow, FlowID: f.flowID}}
	details := events.FlowProgressDetails{Status: string(f.State)}
	switch f.State {
	case Failed:
		e.Level, e.Error = events.Error, events.FailureOf(f.Err)
	case Skipped, Canceled:
		e.Level = events.Warn
	case Completed:
		details.Metrics = &events.FlowMetrics{OutputRows: f.RowsWritten, ExecutorTimeMS: f.Ended.Sub(f.Started).Milliseconds(), Fuel: f.Fuel, GuestMicros: f.GuestMicros}
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
	origin := events.Origin{DatasetName: d.id, FlowName: fl.name, FlowID: f.flowID}
	out := Progress{Dataset: d.id, Flow: fl.name, State: Running, Batch: -1}
	switch p.Kind {
	case stream.ListingDone:
		details := events.OperationDetails{Type: events.AutoLoaderListing, Status: "COMPLETED", DurationMS: p.Took.Milliseconds()}
		details.Listing.Files = p.Backlog.Files
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
	case stream.BatchCommitted:
		f.add(p.Metrics)
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
	m.Fuel += s.Fuel
	m.GuestMicros += s.GuestTime.Microseconds()
}
