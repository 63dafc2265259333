package pipeline

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"runtime"
	"runtime/debug"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/events"
)

// eventTable is where the event log lies: hidden, or where the spec publishes it.
func (p *Pipeline) eventTable() *delta.Table {
	if p.spec.EventLog != nil {
		return p.openTable(p.catalog().Table(*p.spec.EventLog))
	}
	return p.openTable(p.folder("event_log"))
}

// openLog opens the event log for the update's events and closes the story of
// an update before this one that ended without a last word.
func (u *update) openLog(ctx context.Context) {
	host, _ := os.Hostname()
	table := u.p.eventTable()
	u.log = events.Open(table, events.Origin{
		PipelineID: u.result.PipelineID, PipelineName: u.result.Pipeline, UpdateID: u.result.UpdateID, Host: host,
	}, u.p.opts.Clock)
	u.log.Redact(u.p.spec.Redactor().Redact)
	dead, err := events.FindUnfinished(ctx, table, u.result.PipelineID)
	switch {
	case err != nil:
		u.logWarning(err)
	case dead != nil:
		u.bury(dead)
	}
}

// bury tells that an update was killed. It holds no lock any more, so it is dead.
func (u *update) bury(dead *events.Unfinished) {
	why := &events.Failure{Fatal: true, Exceptions: []events.Exception{{
		ClassName: "UPDATE_KILLED", Message: "[UPDATE_KILLED] the process of update " + dead.UpdateID + " ended before the update did; update " + u.result.UpdateID + " goes on where it left off",
	}}}
	for _, flow := range dead.Flows {
		u.log.Emit(events.Event{
			Type: events.FlowProgress, Level: events.Error, Origin: flow, Error: why,
			Message: "killed with its update", Details: events.FlowProgressDetails{Status: string(Failed)},
		})
	}
	u.log.Emit(events.Event{
		Type: events.UpdateProgress, Level: events.Error, Origin: events.Origin{UpdateID: dead.UpdateID}, Error: why,
		Message: "update " + dead.UpdateID + " was killed", Details: events.StateDetails{State: string(Failed)},
	})
}

// created tells of the update and of what it is about to refresh.
func (u *update) created() {
	u.log.Emit(events.Event{Type: events.CreateUpdate, Message: "update " + u.result.UpdateID + " started", Details: events.UpdateDetails{
		Cause: "USER_ACTION", FullRefresh: u.opt.FullRefreshAll,
		RefreshSelection: u.opt.Refresh, FullRefreshSelection: u.opt.FullRefresh,
	}})
	u.log.Emit(events.Event{Type: events.UserAction, Message: "a user started the update", Details: events.UserActionDetails{Action: "START", UserName: userName()}})
	u.log.Emit(events.Event{Type: events.RuntimeDetails, Message: "what the update runs on", Details: u.p.runtimeDetails()})
	u.enter(Created, "")
	for _, n := range u.p.notices {
		u.log.Emit(events.Event{Type: events.RuntimeDetails, Message: "[" + n.Code + "] " + n.Message, Details: events.SettingDetails{
			Code: n.Code, Setting: n.Setting, Line: n.Line,
		}})
	}
	u.logDeprecations()
	u.enter(Initializing, "")
	for _, d := range u.p.graph.order {
		if d.isView() || u.chosen.run[d] {
			u.logFlowDefinitions(d)
		}
	}
}

// running tells that the flows begin, and writes the log from now on as it
// grows. The function it gives stops that.
func (u *update) running(ctx context.Context) (stop func()) {
	u.mu.Lock()
	for i := range u.result.Flows {
		u.logFlow(&u.result.Flows[i], "")
	}
	u.mu.Unlock()
	u.enter(Running, "")
	if u.p.readsLog {
		// What reads the log finds one, and this update in it.
		if err := u.log.Flush(ctx); err != nil {
			u.logWarning(err)
		}
	}
	u.log.Nudge()
	told := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(told)
		u.enter(Stopping, "canceled: what is committed stays, the rest is undone")
		u.log.Nudge()
	})
	flushed := u.log.Keep(context.WithoutCancel(ctx), u.logWarning)
	return func() {
		if !unwatch() {
			<-told
		}
		flushed()
	}
}

// logFlowDefinitions tells what a dataset reads.
func (u *update) logFlowDefinitions(d *dataset) {
	for _, f := range d.flows {
		var inputs []string
		for _, in := range f.body.inputs {
			inputs = append(inputs, in.id())
		}
		u.log.Emit(events.Event{Type: events.FlowDefinition, Message: "flow " + f.name + " of " + d.id, Origin: events.Origin{DatasetName: d.id, FlowName: f.name},
			Details: events.FlowDefinitionDetails{OutputDataset: d.id, InputDatasets: inputs, FlowType: flowType(f.kind)}})
	}
}

// flowType is Lakeflow's word for a kind of flow.
func flowType(k flowKind) string {
	switch k {
	case completeFlow:
		return "MATERIALIZED_VIEW"
	case autoCDCFlow:
		return "CHANGE"
	case snapshotFlow:
		return "SNAPSHOT_CHANGE"
	case viewFlow:
		return "VIEW"
	}
	return "APPEND" // once and foreach_batch, too: they only add
}

// datasetType is Lakeflow's word for a kind of dataset.
func datasetType(d *dataset) string {
	switch {
	case d.isView():
		return "VIEW"
	case d.kind == materializedView:
		return "MATERIALIZED_VIEW"
	}
	return "STREAMING_TABLE"
}

// runtimeDetails says what an update runs on.
func (p *Pipeline) runtimeDetails() events.RuntimeDetailsDetails {
	version := "weir"
	if info, ok := debug.ReadBuildInfo(); ok {
		version += " " + info.Main.Version
	}
	return events.RuntimeDetailsDetails{
		RuntimeVersion: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Threads: p.tasksAtOnce(), MemoryLimit: p.budget.text(),
	}
}

// userName is who runs the process, as far as the system says.
func userName() string {
	if who, err := user.Current(); err == nil {
		return who.Username
	}
	return os.Getenv("USER")
}

// defined tells of a table or sink, with its columns when it has been made.
func (u *update) defined(d *dataset, columns *arrow.Schema) {
	if d.kind == sink {
		u.log.Emit(events.Event{Type: events.SinkDefinition, Message: "sink " + d.id, Origin: events.Origin{DatasetName: d.id, SinkName: d.id},
			Details: events.SinkDefinitionDetails{Format: sinkFormat(d)}})
		return
	}
	details := events.DatasetDefinitionDetails{DatasetType: datasetType(d), NumFlows: len(d.flows), Expectations: expectationsOf(d)}
	if columns != nil {
		for _, f := range columns.Fields() {
			details.Schema = append(details.Schema, events.Column{Name: f.Name, Type: typeName(f.Type)})
		}
	}
	u.log.Emit(events.Event{Type: events.DatasetDefinition, Message: "dataset " + d.id, Origin: events.Origin{DatasetName: d.id}, Details: details})
}

// sinkFormat is what a sink's flows write to.
func sinkFormat(d *dataset) string {
	for _, f := range d.flows {
		if f.kind == handlerFlow {
			return string(handlerFlow)
		}
	}
	return "delta"
}

func expectationsOf(d *dataset) []events.Expectation {
	var out []events.Expectation
	for _, r := range d.rules {
		out = append(out, events.Expectation{Name: r.Name, Dataset: d.id})
	}
	return out
}

// ended settles the update's state and writes the last events down.
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
	ctx = context.WithoutCancel(ctx)
	if err := u.close(ctx); err != nil {
		u.result.Warnings = append(u.result.Warnings, err.Error())
		u.logWarning(err)
	} else if err := u.log.Pack(ctx); err != nil {
		u.logWarning(err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tell(Progress{State: u.result.State, Batch: -1})
}

// logWarning tells what is wrong with the event log, where it cannot tell it itself.
func (u *update) logWarning(err error) { u.p.opts.Logger.Warn(err.Error()) }

func (u *update) logUpdate(s State) {
	e := events.Event{Type: events.UpdateProgress, Message: fmt.Sprintf("update %s is %s", u.result.UpdateID, s)}
	details := events.StateDetails{State: string(s)}
	switch s {
	case Failed:
		e.Level = events.Error
		e.Error = u.failure()
	case Stopping, Canceled:
		e.Level = events.Warn
		details.CancellationCause = "USER_ACTION"
	}
	e.Details = details
	u.log.Emit(e)
}

// failure is why the update failed: what kept it from starting, or the error
// of the first flow that did.
func (u *update) failure() *events.Failure {
	if u.err != nil {
		return events.FailureOf(u.err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.result.Flows {
		if f := &u.result.Flows[i]; f.State == Failed && f.Err != nil {
			return events.FailureOf(f.Err)
		}
	}
	return nil
}
