package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/stream"
)

// stateFolder lies beside the checkpoints of the flows into a table: what they
// have seen of its keys is one state.
const stateFolder = stream.StateFolder

// merger is the applier of an auto_cdc flow, with what a pipeline knows beyond
// the definition.
type merger struct {
	flow   *flow
	def    cdc.Definition
	lastBy []string
}

// merger makes the applier of a flow.
func (u *update) merger(f *flow) (*merger, error) {
	settings, err := f.target.mergeSettings()
	if err != nil {
		return nil, err
	}
	lastBy, err := f.lastBy()
	if err != nil {
		return nil, err
	}
	def, err := u.stored(f)
	if err != nil {
		return nil, err
	}
	def.Tombstones = settings.tombstones
	return &merger{flow: f, lastBy: lastBy, def: def}, nil
}

// mergeDefinition is what a flow that merges declares.
func (p *Pipeline) mergeDefinition(f *flow) cdc.Definition {
	return cdc.Definition{
		Dataset: f.target.id, Flow: f.name, Keys: f.cdc.keys, SCDType: f.cdc.scdType, Tracked: f.cdc.tracked, IgnoreNulls: f.cdc.ignoreNulls,
		Technical: p.spec.IntervalColumns == intervalsTech,
	}
}

// stateID names the state of a table in the transactions of its log.
func stateID(pipelineID string, d *dataset) string { return pipelineID + "/" + d.id + "/cdc-state" }

// stored is the definition with the state of the target, which is to be closed.
func (u *update) stored(f *flow) (cdc.Definition, error) {
	cache, err := u.mergeCache()
	if err != nil {
		return cdc.Definition{}, err
	}
	id, def := f.target.id, u.p.mergeDefinition(f)
	def.StateID = stateID(u.result.PipelineID, f.target)
	def.Memory, def.TempDir = u.p.budget.changes(), u.p.spillDir()
	def.State = state.Open(u.p.folder("checkpoints", id, stateFolder), filepath.Join(cache, "state"), u.p.opts.Alloc)
	def.Cache = filepath.Join(cache, "keys")
	return def, nil
}

// applier gives the applier of the flows of a dataset that merge.
func (u *update) applier(ctx context.Context, d *dataset) (stream.Applier, func() error, error) {
	if f := d.flows[0]; f.kind == snapshotFlow {
		return u.snapshotApplier(ctx, f)
	}
	m, err := u.merger(d.flows[0])
	if err != nil {
		return nil, nil, err
	}
	return m, m.def.State.Close, nil
}

// merge lets a flow that merges changes do so. The function it gives frees what
// that takes.
func (u *update) merge(f *flow, to *stream.Flow) (release func() error, err error) {
	if f.kind != autoCDCFlow {
		return func() error { return nil }, nil
	}
	m, err := u.merger(f)
	if err != nil {
		return nil, err
	}
	to.Apply = m
	return m.def.State.Close, nil
}

// mergeCache is the folder for what is kept of states and keys on this machine.
// All of it can be made again.
func (u *update) mergeCache() (string, error) {
	dir := u.p.opts.CacheDir
	if dir == "" {
		dir = u.p.spillDir()
	}
	if dir == "" {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "cdc")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fault.Wrap(err, "CACHE_UNAVAILABLE", "AUTO CDC has no place for its index")
	}
	return dir, nil
}

// spillDir is where the pipeline puts what does not fit into memory, "" for the system's place.
func (p *Pipeline) spillDir() string {
	if p.opts.TempDir != "" || p.opts.CacheDir == "" {
		return p.opts.TempDir
	}
	return filepath.Join(p.opts.CacheDir, "spill")
}

// applier gives the applier of rows like these. What decides between changes with
// one sequence may follow from the source.
func (m *merger) applier(rows *arrow.Schema) stream.Applier {
	def := m.def
	def.LastBy = m.lastBy
	if rows != nil && len(def.LastBy) == 0 && rows.HasField(cdc.TieColumn+"0") {
		def.LastBy = []string{delta.ChangeTypeColumn}
	}
	return cdc.New(def)
}

// Schema gives the target's columns, in the order that the dataset declares.
func (m *merger) Schema(rows *arrow.Schema) (*arrow.Schema, error) {
	out, err := m.applier(rows).Schema(rows)
	if err != nil {
		return nil, err
	}
	return declared(m.flow.target, out)
}

// Fits holds that the type of the sequence is that of the intervals there are.
func (m *merger) Fits(target *delta.Snapshot, columns *arrow.Schema) error {
	in, ok := relation.IntervalOf(target.Schema())
	if !ok || m.def.SCDType != 2 {
		return nil
	}
	was, _ := fieldFold(target.Schema(), in.Start)
	now, ok := fieldFold(columns, in.Start)
	if !ok || arrow.TypeEqual(was.Type, now.Type) {
		return nil
	}
	return fault.New("SEQUENCING_TYPE_DRIFT", "the type of the sequence changed: was %s, is %s", typeName(was.Type), typeName(now.Type)).
		At(m.flow.where()).WithHint("What the table shows was made by the old definition. Set it back, or run a full refresh of the target")
}

// Begin starts the application of a batch.
func (m *merger) Begin(ctx context.Context, b stream.ApplyBatch) (stream.Application, error) {
	if err := m.complete(b); err != nil {
		return nil, err
	}
	if b.Batch == 0 && b.Rows != nil {
		if err := m.introduce(b); err != nil {
			return nil, err
		}
	}
	return m.applier(b.Rows).Begin(ctx, b)
}

// complete holds that the rows of one of several flows have all columns of the
// target: one that it lacks would be NULL in rows that another flow filled.
func (m *merger) complete(b stream.ApplyBatch) error {
	if b.Rows == nil || len(m.flow.target.flows) < 2 {
		return nil
	}
	for _, f := range b.Columns.Fields() {
		_, ok := fieldFold(b.Rows, f.Name)
		if !ok && !(m.flow.cdc.scdType == 2 && added(f.Name)) {
			return fault.New("AUTOCDC_FLOWS_DISAGREE", "column %s: the target has it from another flow, flow %s has none", f.Name, m.flow.name).
				At(m.flow.where()).WithHint("Flows that merge into one table share its rows: give each all of its columns, or fill two tables")
		}
	}
	return nil
}

// introduce warns once, with the first batch of the flow.
func (m *merger) introduce(b stream.ApplyBatch) error {
	at := b.Rows.FieldIndices(cdc.SequenceColumn)
	if len(at) == 0 {
		return fault.New("INTERNAL_ERROR", "the rows have no sequence")
	}
	c := *m.flow.cdc
	feed := m.flow.readsFeed()
	if feed {
		c.defaultFeed()
	}
	if w := sequenceWarning(&merging{changes: &c, feed: feed, lastBy: m.lastBy}, b.Rows.Field(at[0]).Type); w != nil {
		b.Tell(stream.Notice{Code: w.Code, Text: w.Message, Hint: w.Hint})
	}
	return nil
}

// added tells whether the name is that of a column which SCD type 2 adds.
func added(name string) bool {
	return relation.IsIntervalColumn(name) || strings.EqualFold(name, relation.IsCurrentColumn) || strings.EqualFold(name, relation.HashColumn)
}

// Keep looks after the target between batches.
func (m *merger) Keep(ctx context.Context, table *delta.Table, tell func(stream.Notice)) error {
	keeper, ok := cdc.New(m.def).(stream.Keeper)
	if !ok {
		return nil
	}
	return keeper.Keep(ctx, table, tell)
}
