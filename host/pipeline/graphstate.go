package pipeline

import (
	"context"
	"time"

	"github.com/weir-data/weir/host/events"
)

// TableState is what a table holds now.
type TableState struct {
	Rows    int64 `json:"rows"`
	Version int64 `json:"version"`
	// Committed is when the newest version was made: how fresh the table is.
	Committed time.Time `json:"committed"`
}

// FlowState is what became of a flow in the last update that ran it.
type FlowState struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// State is a word of the event log; empty when the flow never ran.
	State    string    `json:"state,omitempty"`
	UpdateID string    `json:"update_id,omitempty"`
	Time     time.Time `json:"time,omitzero"`
	Written  int64     `json:"written"`
	// Upserted and Deleted stand in place of Written for a flow that merges changes.
	Upserted    *int64 `json:"upserted,omitempty"`
	Deleted     *int64 `json:"deleted,omitempty"`
	Dropped     int64  `json:"dropped"`
	Quarantined int64  `json:"quarantined"`
	// Failed counts what each expectation refused, those that only warn included.
	Failed map[string]int64 `json:"failed_expectations,omitempty"`
	Error  string           `json:"error,omitempty"`
}

// addStates fills in what the tables hold and what the flows did.
func (p *Pipeline) addStates(ctx context.Context, g *Graph) error {
	at := map[string]*Node{}
	for i := range g.Nodes {
		at[g.Nodes[i].ID] = &g.Nodes[i]
	}
	for _, d := range p.graph.order {
		for _, in := range d.inputs() {
			// Quarantine tables and those of others are nodes where something reads them.
			if n := at[in.id()]; in.files == nil && in.log == nil && in.dataset == nil && n != nil && n.Table == nil {
				if err := p.addTable(ctx, in, n); err != nil {
					return err
				}
			}
		}
		n := at[d.id]
		if n == nil || d.isView() {
			continue
		}
		if d.isTable() {
			if err := p.addTable(ctx, &input{dataset: d}, n); err != nil {
				return err
			}
		}
		for _, f := range d.flows {
			n.Flows = append(n.Flows, FlowState{Name: f.name, Kind: string(f.kind)})
		}
	}
	last, err := p.lastStates(ctx, g)
	if err != nil {
		return err
	}
	for i := range g.Nodes {
		for k := range g.Nodes[i].Flows {
			f := &g.Nodes[i].Flows[k]
			if s, known := last[flowKey{g.Nodes[i].ID, f.Name}]; known {
				s.Name, s.Kind = f.Name, f.Kind
				*f = s
			}
		}
	}
	return nil
}

func (p *Pipeline) addTable(ctx context.Context, in *input, n *Node) error {
	s, err := snapshotOf(ctx, p.inputTable(in))
	if err != nil || s == nil {
		return err
	}
	rows, err := s.RowCounts(ctx)
	if err != nil {
		return err
	}
	n.Table = &TableState{Rows: rows.Live(), Version: s.Version(), Committed: s.Timestamp().UTC()}
	return nil
}

type flowKey struct{ dataset, flow string }

// firstLook is how many of the newest events are read first, to find the last
// state of every flow; each further look goes eight times as far back.
const firstLook = 4096

// lastStates gives what became of each flow in the last update that ran it.
func (p *Pipeline) lastStates(ctx context.Context, g *Graph) (map[flowKey]FlowState, error) {
	newest, err := p.Events(ctx, events.Filter{Types: []string{events.UpdateProgress}, Limit: 1})
	if err != nil || len(newest) == 0 {
		return nil, err
	}
	end, flows := newest[0].Sequence.Control, 0
	for _, n := range g.Nodes {
		flows += len(n.Flows)
	}
	out := map[flowKey]FlowState{}
	for look := int64(firstLook); ; look *= 8 {
		progress, err := p.Events(ctx, events.Filter{Types: []string{events.FlowProgress}, After: max(end-look, 0)})
		if err != nil {
			return nil, err
		}
		clear(out)
		for i := range progress {
			e := &progress[i]
			d, ok := events.DetailsOf[events.FlowProgressDetails](e)
			if !ok || d.Status == string(Excluded) {
				continue
			}
			key := flowKey{e.Origin.DatasetName, e.Origin.FlowName}
			s := FlowState{State: d.Status, UpdateID: e.Origin.UpdateID, Time: e.Timestamp}
			if d.Metrics != nil {
				if n := d.Metrics.OutputRows; n != nil {
					s.Written = *n
				}
				s.Upserted, s.Deleted = d.Metrics.UpsertedRows, d.Metrics.DeletedRows
			}
			if d.DataQuality != nil {
				s.Dropped, s.Quarantined = d.DataQuality.DroppedRecords, d.DataQuality.QuarantinedRecords
				for _, x := range d.DataQuality.Expectations {
					if x.Failed > 0 {
						if s.Failed == nil {
							s.Failed = map[string]int64{}
						}
						s.Failed[x.Name] = x.Failed
					}
				}
			}
			if e.Error != nil && e.Level == events.Error && len(e.Error.Exceptions) > 0 {
				s.Error = e.Error.Exceptions[0].Message
			}
			out[key] = s
		}
		if len(out) >= flows || look >= end {
			return out, nil
		}
	}
}
