package pipeline

import (
	"context"
	"errors"
	"runtime"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/catalog"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/stream"
)

// maxSampleFiles bounds the files that a dry run infers a schema from, as
// Lakeflow does.
const maxSampleFiles = 1000

// Plan works out every dataset's schema and writes nothing. The error holds all
// that is wrong with the project, see Flaws.
func (p *Pipeline) Plan(ctx context.Context) (*Plan, error) {
	p.flaws.add(p.checkTargets(ctx, p.graph.order))
	pl := &planner{p: p, schemas: map[*dataset]*arrow.Schema{}, failed: map[*dataset]bool{}}
	out := &Plan{Pipeline: p.spec.Name, Notices: p.notices, graph: p.graph.view(p.spec.Name)}
	for _, batch := range p.graph.batches() {
		planned, err := pl.planAll(ctx, batch)
		if err != nil {
			return nil, err
		}
		for i, d := range batch {
			pl.warnings = append(pl.warnings, planned[i].warnings...)
			if pl.unknown(d) || p.flaws.add(planned[i].err) {
				pl.failed[d] = true
				continue
			}
			pl.schemas[d] = planned[i].schema
			out.Datasets = append(out.Datasets, describe(d, planned[i].schema))
			if !d.isView() {
				for _, f := range d.flows {
					c := p.anyChainOf(f, pl.inputSchema, nil)
					out.Flows = append(out.Flows, FlowPlan{Name: f.name, Target: d.id, Kind: string(f.kind), Level: p.graph.level[d], Steps: c.labels, Changes: f.changesPlan()})
				}
			}
		}
	}
	for _, d := range p.deprecated {
		pl.warnings = append(pl.warnings, d.String())
	}
	for _, d := range p.graph.order {
		for _, in := range d.inputs() {
			if src := p.sources[in]; src != nil {
				for _, w := range src.Warnings() {
					pl.warnings = append(pl.warnings, d.id+": "+w)
				}
			}
		}
	}
	out.Warnings = pl.warnings
	if err := p.flaws.err(); err != nil {
		return nil, err
	}
	return out, nil
}

// planned is what one dataset's plan gives.
type planned struct {
	schema   *arrow.Schema
	warnings []string
	err      error
}

// planAll plans datasets none of which reads another, as many at once as there
// are processors. Its error is the end of the context.
func (pl *planner) planAll(ctx context.Context, batch []*dataset) ([]planned, error) {
	out := make([]planned, len(batch))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, d := range batch {
		if pl.unknown(d) {
			continue
		}
		group.Go(func() error {
			one := &planner{p: pl.p, made: pl.made, schemas: pl.schemas, failed: pl.failed}
			out[i].schema, out[i].err = one.plan(ctx, d)
			out[i].warnings = one.warnings
			return nil
		})
	}
	_ = group.Wait() // errors stand beside the datasets
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return out, nil
}

// batches cuts the order into runs of datasets none of which reads another.
func (g *graph) batches() (out [][]*dataset) {
	within := map[*dataset]bool{}
	for _, d := range g.order {
		reads := false
		for _, in := range d.inputs() {
			reads = reads || within[in.dataset]
		}
		if len(out) == 0 || reads {
			out = append(out, nil)
			clear(within)
		}
		out[len(out)-1] = append(out[len(out)-1], d)
		within[d] = true
	}
	return out
}

// unknown tells whether something that a dataset reads could not be planned.
func (pl *planner) unknown(d *dataset) bool {
	for _, in := range d.inputs() {
		if pl.failed[in.dataset] {
			return true
		}
	}
	return false
}

// planner works out schemas in the order of the graph.
type planner struct {
	p        *Pipeline
	made     bool // tables of this pipeline are as the storage has them, not as planned
	schemas  map[*dataset]*arrow.Schema
	files    map[*input]*arrow.Schema // of batch inputs
	failed   map[*dataset]bool        // those that have no schema, since something is wrong
	warnings []string
}

// plan gives the columns of a dataset: those that its table has, then those
// that its flows add.
func (pl *planner) plan(ctx context.Context, d *dataset) (*arrow.Schema, error) {
	out, err := pl.columns(ctx, d, false)
	if err == nil && d.kind == sink {
		err = located(pl.planSink(ctx, d, out), "PLAN_FAILED", d.flows[0].where())
	}
	if err != nil || !d.isTable() {
		return out, err
	}
	at := fault.Where{Dataset: d.id, File: d.place.File, Line: d.place.Line}
	if err := checkColumns(d, out); err != nil {
		return nil, err.At(at)
	}
	if err := pl.checkConstraints(ctx, d, out); err != nil {
		return nil, located(err, "PLAN_FAILED", at)
	}
	snapshot, err := snapshotOf(ctx, pl.p.tableOf(d))
	if err != nil {
		return nil, located(err, "PLAN_FAILED", at)
	}
	if snapshot == nil || d.kind == materializedView {
		return out, nil
	}
	if e := unalterable(d, snapshot); e != nil {
		pl.warnings = append(pl.warnings, e.At(at).Error()) // which a full refresh allows
	}
	merged, _, err := snapshot.MergeSchema(out)
	if err != nil {
		return nil, located(err, "PLAN_FAILED", at)
	}
	return merged, nil
}

// columns gives the columns that a dataset's flows give together, in the order
// of the flows. With some, flows whose columns cannot be known yet are left
// out; nil when none can.
func (pl *planner) columns(ctx context.Context, d *dataset, some bool) (*arrow.Schema, error) {
	var all *arrow.Schema
	var first *flow
	for _, f := range d.flows {
		of, err := pl.output(ctx, f)
		if some && unknownYet(err) {
			continue
		}
		if err != nil {
			return nil, located(err, "PLAN_FAILED", f.where())
		}
		if d.merges() && all != nil {
			if err := d.agree(first, all, f, of); err != nil {
				return nil, err
			}
		}
		if first == nil {
			first = f
		}
		if len(d.flows) > 1 && len(d.columns) == 0 {
			of = nullable(of) // a row of another flow may lack the column
		}
		if all == nil {
			all = of
			continue
		}
		if all, _, err = delta.MergeSchema(all, of); err != nil {
			return nil, located(err, "PLAN_FAILED", f.where())
		}
	}
	return all, nil
}

// unknownYet tells whether a flow's columns cannot be told before there is
// something to read.
func unknownYet(err error) bool {
	switch fault.CodeOf(err) {
	case "UNABLE_TO_INFER_SCHEMA", "TABLE_OR_VIEW_NOT_FOUND":
		return true
	}
	return false
}

func nullable(s *arrow.Schema) *arrow.Schema {
	fields := s.Fields()
	for i := range fields {
		fields[i].Nullable = true
	}
	return arrow.NewSchema(fields, nil)
}

// output gives the data columns of a flow's query.
func (pl *planner) output(ctx context.Context, f *flow) (*arrow.Schema, error) {
	if f.target.isView() && f.body.streamInput() == nil {
		v := viewInput{step: pl.p.step(&f.body, newChain(nil), pl.inputSchema)}
		return v.schema(ctx)
	}
	c := pl.p.anyChainOf(f, pl.inputSchema, nil)
	var schema *arrow.Schema
	var err error
	if c.source != nil {
		if schema, err = pl.sourceSchema(ctx, f, c.source); err != nil {
			return nil, err
		}
	}
	for _, s := range c.steps {
		if _, last := s.(*changeStep); last {
			return pl.changed(ctx, f, relation.DataSchema(schema))
		}
		if schema, err = s.Schema(ctx, schema); err != nil {
			return nil, err
		}
	}
	if f.kind == snapshotFlow {
		return pl.snapshotTarget(ctx, f, relation.DataSchema(schema))
	}
	return relation.DataSchema(schema), nil
}

// sourceSchema gives the columns of a chain's source, hidden ones included.
func (pl *planner) sourceSchema(ctx context.Context, f *flow, in *input) (*arrow.Schema, error) {
	if in.files == nil {
		table, err := pl.inputSchema(ctx, in)
		if err != nil {
			return nil, err
		}
		columns, err := pl.streamedColumns(ctx, in, table)
		if err != nil {
			return nil, err
		}
		return relation.SourceColumns(columns.Fields(), false), nil
	}
	src := pl.p.sources[in]
	var schema *ingest.Schema
	if in.stream && !f.target.isView() {
		var err error
		if schema, err = pl.p.recordedSchema(ctx, f); err != nil {
			return nil, err
		}
	}
	if schema == nil {
		var err error
		if schema, err = inferred(ctx, src); err != nil {
			return nil, err
		}
	}
	return src.ArrowSchema(schema), nil
}

// inputSchema gives the columns of a table that an input reads.
func (pl *planner) inputSchema(ctx context.Context, in *input) (*arrow.Schema, error) {
	switch {
	case in.files != nil:
		if pl.files == nil {
			pl.files = map[*input]*arrow.Schema{}
		}
		if pl.files[in] == nil {
			schema, err := pl.p.fileSchema(ctx, in)
			if err != nil {
				return nil, located(err, "INVALID_SOURCE", in.place)
			}
			pl.files[in] = schema
		}
		return pl.files[in], nil
	case in.dataset != nil && !pl.made:
		return in.feed(pl.schemas[in.dataset])
	case in.quarantine != nil:
		return expect.QuarantineSchema(), nil
	}
	return pl.p.tableSchema(ctx, in)
}

// tableSchema gives the columns that the table of an input has now.
func (p *Pipeline) tableSchema(ctx context.Context, in *input) (*arrow.Schema, error) {
	if in.files != nil {
		return p.fileSchema(ctx, in)
	}
	snapshot, err := snapshotOf(ctx, p.inputTable(in))
	if err != nil {
		return nil, err
	}
	if snapshot == nil {
		switch {
		case in.quarantine != nil:
			return expect.QuarantineSchema(), nil
		case in.log != nil:
			return events.Schema, nil
		}
		return nil, fault.New("TABLE_OR_VIEW_NOT_FOUND", "the table %s has not been made yet", in.id())
	}
	return in.feed(snapshot.Schema())
}

// declared gives the target's columns: those of the query, in the order and
// with the comments that the definition declares, if it does.
func declared(d *dataset, query *arrow.Schema) (*arrow.Schema, error) {
	if len(d.columns) == 0 {
		return query, nil
	}
	fields := make([]arrow.Field, 0, len(d.columns))
	seen := map[string]bool{}
	for _, c := range d.columns {
		seen[strings.ToLower(c.Name)] = true
		f, ok := fieldFold(query, c.Name)
		if !ok {
			e := fault.New("UNRESOLVED_COLUMN", "the declared column %q is not in the query's output", c.Name).At(fault.Where{Line: int64(c.Line)})
			return nil, suggest(e, c.Name, columnNames(query), "")
		}
		if c.Type != nil && !arrow.TypeEqual(c.Type, f.Type) {
			return nil, fault.New("INCOMPATIBLE_COLUMN_TYPE", "column %q is declared as %s, the query gives %s", c.Name, typeName(c.Type), typeName(f.Type)).
				At(fault.Where{Line: int64(c.Line)}).WithHint("CAST it in the query")
		}
		field := arrow.Field{Name: c.Name, Type: f.Type, Nullable: !c.NotNull, Metadata: f.Metadata}
		if c.Comment != "" {
			field.Metadata = arrow.NewMetadata([]string{"comment"}, []string{c.Comment})
		}
		fields = append(fields, generated(field, c))
	}
	for _, f := range query.Fields() {
		if !seen[strings.ToLower(f.Name)] {
			return nil, fault.New("INCOMPATIBLE_SCHEMA", "the query gives column %q, which is not declared", f.Name).
				WithHint("Declare it, or leave it out of the query")
		}
	}
	return arrow.NewSchema(fields, nil), nil
}

// columnNames gives the names of a schema's columns.
func columnNames(s *arrow.Schema) []string {
	names := make([]string, s.NumFields())
	for i, f := range s.Fields() {
		names[i] = f.Name
	}
	return names
}

func fieldFold(s *arrow.Schema, name string) (arrow.Field, bool) {
	for _, f := range s.Fields() {
		if strings.EqualFold(f.Name, name) {
			return f, true
		}
	}
	return arrow.Field{}, false
}

// checkColumns refuses what no Delta table can hold.
func checkColumns(d *dataset, s *arrow.Schema) *fault.Error {
	if s.NumFields() == 0 {
		return fault.New("INVALID_SCHEMA", "the query gives no columns")
	}
	seen := map[string]string{}
	for _, f := range s.Fields() {
		key := strings.ToLower(f.Name)
		if other, ok := seen[key]; ok {
			return fault.New("COLUMN_ALREADY_EXISTS", "the query gives %q twice (as %q and %q)", key, other, f.Name).WithHint("Give one of them an alias")
		}
		seen[key] = f.Name
		if err := coltype.DeltaType(f.Type); err != nil {
			return fault.Wrap(err, codeOr(err, "UNSUPPORTED_TYPE"), "column %q cannot be stored", f.Name).WithHint("CAST it in the query")
		}
	}
	for _, clause := range []struct {
		name    string
		columns []string
	}{{"PARTITIONED BY", d.partitionBy}, {"CLUSTER BY", d.clusterBy}} {
		for _, c := range clause.columns {
			f, ok := fieldAt(s, c)
			if ok && clause.name == "CLUSTER BY" && !delta.CanCluster(f.Type) {
				return fault.New("DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED", "CLUSTER BY names %q, whose type is %s", c, typeName(f.Type)).
					WithHint("Numbers, texts, dates and timestamps can order the rows of a table")
			}
			if !ok || clause.name == "PARTITIONED BY" && strings.Contains(c, ".") {
				return suggest(fault.New("UNRESOLVED_COLUMN", "%s names %q, which is no column of the table", clause.name, c), c, columnNames(s), "")
			}
		}
	}
	return nil
}

// checkTargets refuses datasets whose tables are not theirs to fill.
func (p *Pipeline) checkTargets(ctx context.Context, datasets []*dataset) error {
	return errors.Join(p.checkOwners(ctx, datasets), p.checkKinds(ctx, datasets), p.checkContracts(ctx, datasets))
}

// checkOwners refuses a table that another pipeline owns.
func (p *Pipeline) checkOwners(ctx context.Context, datasets []*dataset) error {
	identity, known, err := p.catalog().Identity(ctx, p.spec.Name)
	if err != nil {
		return err
	}
	var refused []error
	for _, d := range datasets {
		for _, name := range publishedNames(d) {
			owner, owned, err := p.catalog().Owner(ctx, name)
			if err != nil {
				return err
			}
			if owned && (!known || owner.PipelineID != identity.PipelineID) {
				refused = append(refused, fault.New("TABLE_OWNED_BY_ANOTHER_PIPELINE", "the table belongs to pipeline %s", owner.PipelineID).
					At(fault.Where{Dataset: name.String()}).At(d.place).
					WithHint("A table has one owner: rename the dataset here, or read the table under its full name"))
			}
		}
	}
	return errors.Join(refused...)
}

// publishedNames gives the catalog names that a dataset takes.
func publishedNames(d *dataset) []catalog.Name {
	if d.private || d.kind == temporaryView || d.kind == sink {
		return nil
	}
	names := []catalog.Name{d.name}
	if d.quarantines() {
		names = append(names, d.name.Quarantine())
	}
	return names
}

// describe gives a dataset as a plan shows it.
func describe(d *dataset, schema *arrow.Schema) DatasetPlan {
	out := DatasetPlan{
		Name: d.id, Kind: d.kind, Comment: d.comment, Private: d.private, File: d.place.File, Line: int(d.place.Line),
		Columns: []Column{}, PartitionBy: d.partitionBy, ClusterBy: d.clusterBy, Properties: d.properties, Keys: keysOf(d.keys),
	}
	if d.isTable() && d.quarantines() {
		out.Quarantine = d.name.Quarantine().String()
	}
	for _, f := range schema.Fields() {
		comment, _ := f.Metadata.GetValue("comment")
		out.Columns = append(out.Columns, Column{Name: f.Name, Type: typeName(f.Type), Nullable: f.Nullable, Comment: comment})
	}
	for _, r := range d.rules {
		out.Expectations = append(out.Expectations, Expectation{Name: r.Name, Condition: r.Condition, Action: actionName(r.Action)})
	}
	for _, f := range d.flows {
		if policy := f.rowErrorPolicy(); policy != stream.FailOnRowError && !d.isView() {
			out.OnRowError = string(policy)
		}
	}
	return out
}

func typeName(t arrow.DataType) string {
	name, err := coltype.Name(t)
	if err != nil {
		return t.String()
	}
	return name
}

// declaredTarget gives the declared columns as a schema when each has a type,
// else nil.
func declaredTarget(columns []sql.Column) *arrow.Schema {
	fields := make([]arrow.Field, 0, len(columns))
	for _, c := range columns {
		if c.Type == nil {
			return nil
		}
		field := coltype.Field{Path: []string{c.Name}, Type: c.Type, NotNull: c.NotNull, Comment: c.Comment}.Arrow()
		fields = append(fields, generated(field, c))
	}
	if len(fields) == 0 {
		return nil
	}
	return arrow.NewSchema(fields, nil)
}
