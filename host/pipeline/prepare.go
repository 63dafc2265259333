package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/stream"
)

// resetAllowedProperty keeps a table from full refreshes, in Lakeflow's words.
const resetAllowedProperty = "pipelines.reset.allowed"

// mayReset tells whether a full refresh may take the table's rows away.
func (d *dataset) mayReset() bool {
	for key, value := range d.properties {
		if strings.EqualFold(key, resetAllowedProperty) {
			return !strings.EqualFold(value, "false")
		}
	}
	return true
}

// prepare makes a table ready that its flows share, which none of them can do
// alone. It is false when the flows cannot run, and has told so.
func (u *update) prepare(ctx context.Context, d *dataset, done map[*dataset]chan struct{}, results map[*flow]*FlowResult) bool {
	if !d.isTable() || ctx.Err() != nil {
		return true
	}
	if err := u.redeclare(ctx, d, results[d.flows[0]]); err != nil {
		return u.unprepared(d, results, err)
	}
	if d.kind != streamingTable {
		return true
	}
	full := u.chosen.full[d] && slices.ContainsFunc(d.flows, func(f *flow) bool { return !u.hasBegun(f) })
	retired, err := u.retired(ctx, d, results[d.flows[0]])
	if err != nil {
		return u.unprepared(d, results, err)
	}
	if len(d.flows) == 1 && (!full || len(retired) == 0) {
		return true
	}
	table := u.p.tableOf(d)
	snapshot, err := snapshotOf(ctx, table)
	if err != nil {
		return u.unprepared(d, results, err)
	}
	if snapshot != nil && !full {
		return true
	}
	// The columns of all flows are needed, and a full refresh throws rows away
	// that only all of them together can bring back.
	for _, f := range d.flows {
		if failed := u.await(f, done, results); failed != nil && full {
			for _, f := range d.flows {
				if results[f].State == Queued {
					u.skip(results[f], failed)
				}
			}
			return false
		}
	}
	pl := &planner{p: u.p, made: true}
	columns, err := pl.columns(ctx, d, true)
	if err != nil {
		return u.unprepared(d, results, err)
	}
	target := u.target(d)
	if !full {
		if columns == nil {
			return true
		}
		if err := target.Create(ctx, columns, u.p.opts.Clock); err != nil {
			return u.unprepared(d, results, err)
		}
		return true
	}
	reset := &stream.Reset{
		Dataset: d.id, Pipeline: u.result.PipelineID, UpdateID: u.result.UpdateID,
		Target: target, Columns: columns, Flows: map[string]stream.ResetFlow{}, Clock: u.p.opts.Clock,
	}
	if d.quarantines() {
		reset.Quarantine = u.p.quarantineOf(d)
	}
	for _, f := range d.flows {
		reset.Flows[f.name] = stream.ResetFlow{Checkpoint: u.p.checkpoint(f), Once: f.runsOnce(), Snapshots: f.kind == snapshotFlow}
	}
	for _, name := range retired {
		reset.Flows[name] = stream.ResetFlow{Checkpoint: u.p.folder("checkpoints", d.id, name)}
	}
	if d.merges() {
		apply, release, err := u.applier(ctx, d)
		if err != nil {
			return u.unprepared(d, results, err)
		}
		reset.Apply = apply
		defer func() {
			if err := release(); err != nil {
				u.p.opts.Logger.Warn(err.Error(), "dataset", d.id)
			}
		}()
	}
	if err := reset.Run(ctx); err != nil {
		return u.unprepared(d, results, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, f := range d.flows {
		u.began[f] = true
	}
	if err := u.begun(ctx, d.flows[0]); err != nil {
		u.p.opts.Logger.Warn(err.Error(), "dataset", d.id)
	}
	return true
}

// unprepared fails the flows of a table.
func (u *update) unprepared(d *dataset, results map[*flow]*FlowResult, err error) bool {
	for _, f := range d.flows {
		if results[f].State == Queued {
			err := placed(f, err)
			u.change(results[f], Failed, err.Error(), err)
		}
	}
	return false
}

// retired gives the flows that once filled a table and are defined no longer,
// and tells of those whose rows are still there.
func (u *update) retired(ctx context.Context, d *dataset, first *FlowResult) ([]string, error) {
	names, err := stream.FlowNames(ctx, u.p.folder("checkpoints", d.id))
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(d.flows, func(f *flow) bool { return f.name == name })
	})
	if len(names) == 0 {
		return nil, nil
	}
	snapshot, err := snapshotOf(ctx, u.p.tableOf(d))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		has, err := stream.Retired(ctx, u.p.folder("checkpoints", d.id, name), snapshot)
		if err != nil {
			return nil, err
		}
		if has && !u.chosen.full[d] {
			u.retain(first, d, name)
		}
	}
	return names, nil
}

// retain tells that a flow is gone and its rows are not.
func (u *update) retain(first *FlowResult, d *dataset, name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	message := fmt.Sprintf("flow %s is defined no longer; its rows stay in %s, and its checkpoint, should it come back. A full refresh removes them", name, d.id)
	if slices.Contains(first.Warnings, message) {
		return // told in the pass before
	}
	first.Warnings = append(first.Warnings, message)
	u.log.Emit(events.Event{Type: events.FlowDefinition, Message: message, Origin: events.Origin{DatasetName: d.id, FlowName: name},
		Details: events.FlowDefinitionDetails{OutputDataset: d.id, FlowType: "REMOVED"}})
}

// target is the table that the flows of a dataset fill.
func (u *update) target(d *dataset) stream.Target {
	return stream.Target{
		Table: u.p.tableOf(d), Name: d.id, Comment: d.comment,
		PartitionBy: d.partitionBy, ClusterBy: d.clusterBy, Properties: propertiesOf(d), Unset: u.unsetOf(d),
		Columns: declaredTarget(d.columns),
	}
}

// keepProtected holds that no full refresh takes the rows of a table that must
// not lose them: named it is an error, as part of everything the table gets an
// ordinary refresh.
func (p *Pipeline) keepProtected(s *selection, named bool) error {
	for _, d := range slices.SortedFunc(maps.Keys(s.full), func(a, b *dataset) int { return strings.Compare(a.id, b.id) }) {
		if !s.full[d] || d.mayReset() {
			continue
		}
		if named {
			return fault.New("RESET_NOT_ALLOWED", "the table's property %s is false: a full refresh would lose rows", resetAllowedProperty).
				At(fault.Where{Dataset: d.id}).At(d.place).WithHint("Refresh it without --full-refresh, or take the property away")
		}
		s.full[d] = false
	}
	return nil
}
