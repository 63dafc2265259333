package pipeline

import (
	"context"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/sql"
)

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

// ownLog gives the table that event_log(…) means. A query sees the log of its
// own pipeline, named by the pipeline's name or id or by one of its tables.
func (p *Pipeline) ownLog(ctx context.Context, ref *sql.EventLogRef) (*delta.Table, error) {
	refused := func(what string) error {
		return fault.New("EVENT_LOG_UNAVAILABLE", "No event logs available for %s: it is not pipeline %s nor a table of it", what, p.spec.Name).
			WithHint("A query reads the event log of its own pipeline: event_log('%s')", p.spec.Name)
	}
	if ref.Table != "" {
		d, quarantineOf, _, err := p.graph.lookup(ref.Table)
		if err != nil {
			return nil, err
		}
		if quarantineOf == nil && (d == nil || d.isView()) {
			return nil, refused("TABLE(" + ref.Table + ")")
		}
		return p.eventTable(), nil
	}
	if ref.Pipeline != p.spec.Name {
		id, known, err := p.catalog().Identity(ctx, p.spec.Name)
		if err != nil {
			return nil, err
		}
		if !known || ref.Pipeline != id.PipelineID {
			return nil, refused("'" + ref.Pipeline + "'")
		}
	}
	return p.eventTable(), nil
}
