package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/catalog"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/stream"
)

// register adds what the SQL files and the modules define to the graph.
func register(g *graph, s *Spec, statements []sql.Statement, modules []*module, wrong *flaws) {
	statements = addCalledFunctions(g, s, statements, modules, wrong)
	for i := range statements {
		if statements[i].Flow == nil {
			wrong.add(registerStatement(g, &statements[i]))
		}
	}
	for _, m := range modules {
		for i := range m.manifest.Datasets {
			wrong.add(registerDeclared(g, s, m, &m.manifest.Datasets[i]))
		}
	}
	// Flows come last: their target may be in another module or file.
	for i := range statements {
		if statements[i].Flow != nil {
			wrong.add(registerFlowStatement(g, &statements[i]))
		}
	}
	for _, m := range modules {
		for i := range m.manifest.Flows {
			wrong.add(registerFlow(g, s, m, &m.manifest.Flows[i]))
		}
	}
	addIntervalViews(g, s, wrong)
}

// parseFiles reads the statements of the SQL files.
func parseFiles(s *Spec, files []sqlFile, wrong *flaws) []sql.Statement {
	var all []sql.Statement
	for _, file := range files {
		statements, err := sql.ParsePipeline(file.path, file.text, sql.Settings{Configuration: s.Configuration, Catalog: s.Catalog, Schema: s.Schema})
		for _, e := range eachOf(err) {
			wrong.add(fault.Place(e, "PARSE_SYNTAX_ERROR", fault.Where{File: file.path}))
		}
		for i := range statements {
			if !wrong.add(noSecrets(&statements[i])) {
				all = append(all, statements[i])
			}
		}
	}
	return all
}

// registerStatement adds a dataset of a SQL file.
func registerStatement(g *graph, st *sql.Statement) error {
	d := &dataset{
		comment: st.Comment, private: st.Private, columns: st.Columns, keys: st.Keys,
		partitionBy: st.PartitionBy, clusterBy: st.ClusterBy,
		place: fault.Where{File: st.File, Line: int64(st.Line)},
	}
	switch st.Kind {
	case sql.StreamingTable:
		d.kind = streamingTable
	case sql.TemporaryView:
		d.kind = temporaryView
	case sql.MaterializedView:
		d.kind = materializedView
	case sql.View:
		d.kind = persistentView
	default:
		return fault.New("NOT_SUPPORTED", "statements of kind %s", st.Kind).At(d.place)
	}
	if err := takeSettings(d, st.Properties); err != nil {
		return fault.Place(err, "INVALID_OPTION", fault.Where{Dataset: st.Name, File: d.place.File, Line: d.place.Line})
	}
	if err := takePolicy(d, st.RefreshPolicy); err != nil {
		return err.At(fault.Where{Dataset: st.Name}).At(d.place)
	}
	for _, c := range st.Constraints {
		action, err := expect.ParseAction(c.OnViolation)
		if err != nil {
			return fault.Place(err, "INVALID_EXPECTATION", fault.Where{Dataset: st.Name, File: st.File, Line: int64(c.Line)})
		}
		d.rules = append(d.rules, expect.Rule{Name: c.Name, Condition: c.Condition, Action: action, NullPass: c.NullPass})
	}
	if st.Query != "" || len(st.Sources) > 0 {
		d.flows = []*flow{{kind: defaultKind(d), target: d, body: sqlBody(st), place: d.place}}
	}
	return addDataset(g, d, st.Name)
}

// sqlBody makes the query of a statement.
func sqlBody(st *sql.Statement) body {
	b := body{statement: st}
	for i := range st.Sources {
		b.inputs = append(b.inputs, inputOf(st.File, &st.Sources[i]))
	}
	return b
}

func inputOf(file string, src *sql.SourceRef) *input {
	in := &input{
		alias: src.Alias, stream: src.Stream, written: src.Table, bare: src.Written, options: src.Options, log: src.EventLog,
		place: fault.Where{File: file, Line: int64(src.Line), Column: int64(src.Column)},
	}
	if src.Files != nil {
		in.files = &files{kind: ingest.ReadFiles, path: src.Files.Path, options: src.Files.Options}
	}
	if c := src.Changes; c != nil {
		in.changes = &stream.ChangeRange{From: c.From, To: c.To, ByTime: c.ByTime}
	}
	return in
}

// registerFlowStatement adds a CREATE FLOW to its target.
func registerFlowStatement(g *graph, st *sql.Statement) error {
	def := st.Flow
	f := &flow{kind: appendFlow, byName: true, comment: def.Comment, place: fault.Where{File: st.File, Line: int64(st.Line)}}
	switch {
	case st.CDC != nil:
		f.kind, f.once = autoCDCFlow, def.Once
		f.cdc = changesOfStatement(st.CDC)
		f.body = body{inputs: []*input{inputOf(st.File, &st.CDC.Source)}}
	case def.Once:
		f.kind = onceFlow
		f.body = sqlBody(st)
	default:
		f.body = sqlBody(st)
	}
	return addFlow(g, f, def.Name, def.Target)
}

// addFlow gives a flow of its own to the dataset it fills. Without a name it
// has the target's.
func addFlow(g *graph, f *flow, name, into string) error {
	at := fault.Where{Dataset: into, Flow: name}
	target, _, _, err := g.lookup(into)
	if err != nil {
		return fault.Place(err, "INVALID_TABLE_NAME", at)
	}
	if target == nil {
		e := fault.New("TABLE_OR_VIEW_NOT_FOUND", "the flow's target %q is no dataset of this pipeline", into).At(at).At(f.place)
		return suggest(e, into, g.names(), "")
	}
	refuse := func(code, format string, args ...any) *fault.Error {
		return fault.New(code, format, args...).At(fault.Where{Dataset: target.id, Flow: name}).At(f.place)
	}
	switch target.kind {
	case temporaryView, persistentView:
		return refuse("INVALID_FLOW_QUERY_TYPE", "the flow's target is a view").WithHint("Let the flow fill a streaming table")
	case materializedView:
		return refuse("INVALID_FLOW_QUERY_TYPE", "the flow's target is a materialized view, which its own query fills").
			WithHint("Let the flow fill a streaming table")
	case sink:
		if f.kind != appendFlow {
			return refuse("INVALID_FLOW_QUERY_TYPE", "a flow of kind %s into a sink, which takes append flows only", f.kind)
		}
		if target.function != nil {
			return refuse("NOT_SUPPORTED", "a flow into a sink whose function reads %s itself", target.function.Inputs[0].Dataset).
				WithHint("Let the function read a temporary view that has the rows, or declare a second sink with it")
		}
	}
	f.target = target
	if f.name, err = g.flowName(f, name); err != nil {
		return err
	}
	target.flows = append(target.flows, f)
	return nil
}

// flowName checks the name of a flow of its own, which is unique in the pipeline.
func (g *graph) flowName(f *flow, written string) (string, error) {
	name := defaultFlowName(f.target)
	refuse := func(code, format string, args ...any) *fault.Error {
		return fault.New(code, format, args...).At(fault.Where{Dataset: f.target.id, Flow: written}).At(f.place)
	}
	if written != "" {
		full, err := catalog.ParseName(written, g.defaults)
		if err != nil || !isFolderName(full.Table) || full.Table == stream.StateFolder {
			return "", refuse("INVALID_FLOW_NAME", "%q is also the name of a folder and cannot be used for it", written)
		}
		name = full.Table
	}
	for _, other := range f.target.flows {
		if other.name == name {
			return "", refuse("PIPELINE_DUPLICATE_IDENTIFIERS", "two flows into the table are called %q; the other one is at %s", name, placeName(other.place)).
				WithHint("Rename one of them")
		}
	}
	if written == "" || name == defaultFlowName(f.target) {
		return name, nil
	}
	if other, _, _, err := g.lookup(name); err == nil && other != nil {
		return "", refuse("FLOW_NAME_CONFLICTS_WITH_TABLE", "the flow has the name of the dataset %q", name).WithHint("Rename it")
	}
	if other := g.flows[name]; other != nil {
		return "", refuse("PIPELINE_DUPLICATE_IDENTIFIERS", "two flows are called %q; the other one is at %s and fills %s", name, placeName(other.place), other.target.id).
			WithHint("Rename one of them")
	}
	g.flows[name] = f
	return name, nil
}

// onRowErrorProperty is how SQL says what becomes of rows that a function on
// the way to the table refuses; a manifest has a field for it.
const onRowErrorProperty = "weir.onRowError"

// takeSettings takes the settings of Weir's own out of the table properties.
func takeSettings(d *dataset, properties map[string]string) error {
	d.properties = maps.Clone(properties)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if !strings.HasPrefix(strings.ToLower(key), "weir.") {
			continue
		}
		if strings.EqualFold(key, refreshPolicyProperty) {
			if err := takePolicy(d, properties[key]); err != nil {
				return err
			}
			delete(d.properties, key)
			continue
		}
		if strings.EqualFold(key, intervalViewProperty) {
			if err := takeIntervalView(d, properties[key]); err != nil {
				return err
			}
			delete(d.properties, key)
			continue
		}
		if !strings.EqualFold(key, onRowErrorProperty) {
			return fault.New("UNKNOWN_OPTION", "there is no table property %q", key).
				WithHint("Weir has %s, %s and %s", onRowErrorProperty, refreshPolicyProperty, intervalViewProperty)
		}
		switch policy := stream.RowErrorPolicy(properties[key]); policy {
		case stream.FailOnRowError, stream.SkipRowErrors, stream.QuarantineRowErrors:
			d.onRowError = policy
		default:
			return fault.New("INVALID_OPTION", "%s is %q", onRowErrorProperty, policy).WithHint("Use fail, skip or quarantine")
		}
		delete(d.properties, key)
	}
	return takeFeatures(d)
}

// addDataset registers a dataset and checks what does not depend on others.
func addDataset(g *graph, d *dataset, written string) error {
	if err := g.add(d, written); err != nil {
		return err
	}
	for _, f := range d.flows {
		f.name = defaultFlowName(d)
	}
	at := fault.Where{Dataset: d.id}
	seen := map[string]bool{}
	for _, r := range d.rules {
		if seen[r.Name] {
			return fault.New("DUPLICATE_EXPECTATION", "two expectations are called %q", r.Name).At(at).At(d.place).WithHint("Rename one of them")
		}
		seen[r.Name] = true
	}
	if len(d.rules) > relation.MaskBits {
		return fault.New("TOO_MANY_EXPECTATIONS", "%d expectations; a dataset has at most %d", len(d.rules), relation.MaskBits).At(at).At(d.place).WithHint("Join conditions with AND")
	}
	return nil
}

func defaultFlowName(d *dataset) string {
	if d.isView() || d.kind == sink {
		return d.id
	}
	return d.name.Table
}

// defaultKind is the kind of a dataset's own query.
func defaultKind(d *dataset) flowKind {
	switch {
	case d.isView():
		return viewFlow
	case d.kind == materializedView:
		return completeFlow
	}
	return appendFlow
}
