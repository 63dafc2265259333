package pipeline

import (
	"context"

	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/sql"
)

// eventLogID names the pipeline's event log where a relation is named.
const eventLogID = "event_log()"

// LastUpdate stands for the newest update in a filter of events.
const LastUpdate = "last"

// Events gives the pipeline's own events, oldest first. It is the log as it is
// now: an update that runs adds to it.
func (p *Pipeline) Events(ctx context.Context, f events.Filter) ([]events.Event, error) {
	table := p.eventTable()
	if f.UpdateID == LastUpdate {
		newest, err := events.Read(ctx, table, events.Filter{Types: []string{events.CreateUpdate}, Limit: 1})
		if err != nil || len(newest) == 0 {
			return nil, err
		}
		f.UpdateID = newest[0].Origin.UpdateID
	}
	return events.Read(ctx, table, f)
}

// checkOwnLog refuses an event_log(…) that is not this pipeline's: by its name
// or id, or by one of its tables.
func (p *Pipeline) checkOwnLog(ctx context.Context, ref *sql.EventLogRef) error {
	what := "'" + ref.Pipeline + "'"
	if ref.Table != "" {
		d, quarantineOf, _, err := p.graph.lookup(ref.Table)
		if err != nil || quarantineOf != nil || d != nil && !d.isView() {
			return err
		}
		what = "TABLE(" + ref.Table + ")"
	} else {
		if ref.Pipeline == p.spec.Name {
			return nil
		}
		if id, known, err := p.catalog().Identity(ctx, p.spec.Name); err != nil || known && ref.Pipeline == id.PipelineID {
			return err
		}
	}
	return fault.New("EVENT_LOG_UNAVAILABLE", "No event logs available for %s: it is not pipeline %s nor a table of it", what, p.spec.Name).
		WithHint("A query reads the event log of its own pipeline: event_log('%s')", p.spec.Name)
}

// checkEventLogs holds the queries of the graph to checkOwnLog.
func (p *Pipeline) checkEventLogs(ctx context.Context) {
	for _, d := range p.graph.order {
		for _, in := range d.inputs() {
			if in.log == nil {
				continue
			}
			p.readsLog = true
			if err := p.checkOwnLog(ctx, in.log); err != nil {
				p.flaws.add(fault.Place(err, "EVENT_LOG_UNAVAILABLE", in.place))
			} else if d.kind == persistentView && p.spec.EventLog == nil {
				p.flaws.add(fault.New("EVENT_LOG_UNAVAILABLE", "the view is for others to read, and the event log is not published").At(fault.Where{Dataset: d.id}).At(in.place).
					WithHint("Give the log a name: event_log: {schema: ops, name: events} in the spec"))
			}
		}
	}
}

// DatasetName gives the full name of a dataset named by one to three parts.
func (p *Pipeline) DatasetName(name string) (string, error) {
	d, _, full, err := p.graph.lookup(name)
	switch {
	case err != nil:
		return "", err
	case d != nil:
		return d.id, nil
	}
	return "", suggest(fault.New("TABLE_OR_VIEW_NOT_FOUND", "there is no dataset %q (%s)", name, full), name, p.graph.names(), "")
}
