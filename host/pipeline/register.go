package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/stream"
)

// register adds what the SQL files and the modules define to the graph.
func register(g *graph, s *Spec, files []sqlFile, modules []*module) error {
	for _, file := range files {
		statements, err := sql.ParsePipeline(file.path, file.text, sql.Settings{Configuration: s.Configuration, Catalog: s.Catalog, Schema: s.Schema})
		if err != nil {
			return fault.Place(err, "PARSE_SYNTAX_ERROR", fault.Where{File: file.path})
		}
		for i := range statements {
			if err := noSecrets(&statements[i]); err != nil {
				return err
			}
			if err := registerStatement(g, &statements[i]); err != nil {
				return err
			}
		}
	}
	for _, m := range modules {
		for i := range m.manifest.Datasets {
			if err := registerDeclared(g, s, m, &m.manifest.Datasets[i]); err != nil {
				return err
			}
		}
	}
	// Flows come last: their target may be in another module or file.
	for _, m := range modules {
		for i := range m.manifest.Flows {
			if err := registerFlow(g, s, m, &m.manifest.Flows[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func registerStatement(g *graph, st *sql.Statement) error {
	if err := notYet(st); err != nil {
		return err
	}
	d := &dataset{
		comment: st.Comment, private: st.Private, columns: st.Columns,
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
	default:
		return fault.New("NOT_SUPPORTED", "statements of kind %d", st.Kind).At(d.place)
	}
	if err := takeSettings(d, st.Properties); err != nil {
		return err.At(fault.Where{Dataset: st.Name}).At(d.place)
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
	b := body{statement: st}
	for _, src := range st.Sources {
		in := &input{alias: src.Alias, stream: src.Stream, written: src.Table, place: fault.Where{File: st.File, Line: int64(src.Line)}}
		if src.Files != nil {
			in.files = &files{kind: ingest.ReadFiles, path: src.Files.Path, options: src.Files.Options}
		}
		b.inputs = append(b.inputs, in)
	}
	d.flows = []*flow{{kind: defaultKind(d), target: d, body: b, place: d.place}}
	return addDataset(g, d, st.Name)
}

// onRowErrorProperty is how SQL says what becomes of rows that a function on
// the way to the table refuses; a manifest has a field for it.
const onRowErrorProperty = "weir.onRowError"

// takeSettings takes the settings of Weir's own out of the table properties.
func takeSettings(d *dataset, properties map[string]string) *fault.Error {
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
		if !strings.EqualFold(key, onRowErrorProperty) {
			return fault.New("UNKNOWN_OPTION", "there is no table property %q", key).WithHint("Weir has %s and %s", onRowErrorProperty, refreshPolicyProperty)
		}
		switch policy := stream.RowErrorPolicy(properties[key]); policy {
		case stream.FailOnRowError, stream.SkipRowErrors, stream.QuarantineRowErrors:
			d.onRowError = policy
		default:
			return fault.New("INVALID_OPTION", "%s is %q", onRowErrorProperty, policy).WithHint("Use fail, skip or quarantine")
		}
		delete(d.properties, key)
	}
	return nil
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
	if d.isView() {
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

// registerDeclared adds a dataset of a manifest.
func registerDeclared(g *graph, s *Spec, m *module, decl *abi.Dataset) error {
	place := fault.Where{File: m.ref.Path}
	at := fault.Where{Dataset: decl.Name}
	d := &dataset{
		kind: decl.Type, comment: decl.Comment, private: decl.Private,
		partitionBy: decl.PartitionBy, clusterBy: decl.ClusterBy,
		place: place,
	}
	if d.kind == sink {
		return fault.New("NOT_SUPPORTED", "a sink cannot be run yet").At(at).At(place).
			WithHint("Declare a streaming table, a materialized view or a temporary view")
	}
	if err := takeSettings(d, decl.TableProperties); err != nil {
		return err.At(at).At(place)
	}
	if decl.OnRowError != "" {
		d.onRowError = stream.RowErrorPolicy(decl.OnRowError)
	}
	var err error
	if d.columns, err = declaredColumns(decl.Schema); err != nil {
		return fault.Place(err, "INVALID_MANIFEST", at)
	}
	for _, e := range decl.Expectations {
		action, err := expect.ParseAction(e.OnViolation)
		if err != nil {
			return fault.Place(err, "INVALID_EXPECTATION", at)
		}
		d.rules = append(d.rules, expect.Rule{Name: e.Name, Condition: e.Condition, Action: action, NullPass: e.Null == abi.NullPasses})
	}
	if decl.Function != "" {
		b, err := functionBody(s, m, decl.Function, at)
		if err != nil {
			return err
		}
		d.flows = []*flow{{kind: defaultKind(d), target: d, body: *b, place: place}}
	}
	return addDataset(g, d, decl.Name)
}

func declaredColumns(columns []abi.Column) ([]sql.Column, error) {
	var out []sql.Column
	for _, c := range columns {
		t, err := coltype.Parse(c.Type)
		if err != nil {
			return nil, fault.Wrap(err, "INVALID_MANIFEST", "column %q", c.Name)
		}
		out = append(out, sql.Column{Name: c.Name, Type: t, NotNull: !c.Nullable, Comment: c.Comment})
	}
	return out, nil
}

// registerFlow adds a flow of a manifest to its target.
func registerFlow(g *graph, s *Spec, m *module, decl *abi.Flow) error {
	place := fault.Where{File: m.ref.Path}
	name := decl.Name
	if name == "" {
		name = decl.Target
	}
	at := fault.Where{Dataset: decl.Target, Flow: name}
	if decl.Type != abi.FlowAppend {
		return fault.New("NOT_SUPPORTED", "flows of type %s cannot be run yet", decl.Type).At(at).At(place).WithHint("Use an append flow")
	}
	if decl.Once {
		return fault.New("NOT_SUPPORTED", "flows that run once cannot be run yet").At(at).At(place).WithHint("Leave once out")
	}
	target, _, _, err := g.lookup(decl.Target)
	if err != nil {
		return fault.Place(err, "INVALID_TABLE_NAME", at)
	}
	if target == nil {
		e := fault.New("TABLE_OR_VIEW_NOT_FOUND", "the flow's target %q is no dataset of this pipeline", decl.Target).At(at).At(place)
		return suggest(e, decl.Target, g.names(), "")
	}
	if target.isView() {
		return fault.New("INVALID_FLOW_QUERY_TYPE", "the flow's target is a view").At(at).At(place).WithHint("Let the flow fill a streaming table")
	}
	if len(target.flows) > 0 {
		return fault.New("NOT_SUPPORTED", "several flows into one table (%s and %s)", target.flows[0].name, name).At(at).At(place).
			WithHint("Let them read into one temporary view with UNION ALL, or fill two tables")
	}
	f := &flow{name: defaultFlowName(target), kind: appendFlow, target: target, onRowError: stream.RowErrorPolicy(decl.OnRowError), place: place}
	if decl.Name != "" {
		f.name = strings.ToLower(decl.Name)
		if !isFolderName(f.name) || strings.Contains(f.name, ".") {
			return fault.New("INVALID_FLOW_NAME", "%q is also the name of a folder and cannot be used for it", decl.Name).At(at).At(place)
		}
		if other, _, _, err := g.lookup(f.name); err == nil && other != nil && other != target {
			return fault.New("FLOW_NAME_CONFLICTS_WITH_TABLE", "the flow has the name of the dataset %q", f.name).At(at).At(place)
		}
	}
	if decl.Function != "" {
		b, err := functionBody(s, m, decl.Function, at)
		if err != nil {
			return err
		}
		f.body = *b
	} else {
		f.body.inputs = []*input{{alias: "source", stream: true, written: decl.Source, place: place}}
	}
	target.flows = append(target.flows, f)
	return nil
}

// functionBody makes the query of a function.
func functionBody(s *Spec, m *module, name string, at fault.Where) (*body, error) {
	place := fault.Where{File: m.ref.Path}
	fn, _, ok := m.manifest.Function(name)
	if !ok {
		return nil, fault.New("PLUGIN_FUNCTION_NOT_FOUND", "module %s has no function %q", m.name, name).At(at).At(place)
	}
	if fn.Kind != abi.KindMap && fn.Kind != abi.KindStateful {
		return nil, fault.New("NOT_SUPPORTED", "function %s.%s is of kind %s; only map and stateful can be run yet", m.name, name, fn.Kind).At(at).At(place)
	}
	if len(fn.Outputs) > 0 {
		return nil, fault.New("NOT_SUPPORTED", "function %s.%s has several outputs", m.name, name).At(at).At(place)
	}
	b := &body{module: m, function: fn}
	for i, decl := range fn.Inputs {
		in := &input{alias: decl.Dataset, stream: decl.Mode == abi.ModeStream, written: decl.Dataset, columns: decl.Columns, place: place}
		if in.stream && i > 0 {
			return nil, fault.New("NOT_SUPPORTED", "function %s.%s streams input %d; only the first input may be a stream", m.name, name, i).At(at).At(place)
		}
		if decl.Source != nil {
			src, err := declaredFiles(s, decl.Source)
			if err != nil {
				return nil, fault.Place(err, "INVALID_MANIFEST", fault.Where{Dataset: at.Dataset, Flow: at.Flow, File: m.ref.Path})
			}
			in.files = src
		}
		b.inputs = append(b.inputs, in)
	}
	if fn.Kind == abi.KindStateful && len(b.inputs) > 0 && !b.inputs[0].stream {
		return nil, fault.New("NOT_SUPPORTED", "function %s.%s has state and streams nothing; only a flow of micro-batches carries state", m.name, name).At(at).At(place)
	}
	if len(b.inputs) == 0 {
		return nil, fault.New("NOT_SUPPORTED", "function %s.%s has no inputs", m.name, name).At(at).At(place)
	}
	return b, nil
}

// declaredFiles reads a file source of a manifest; ${key} means the configuration.
func declaredFiles(s *Spec, src *abi.Source) (*files, error) {
	if !strings.EqualFold(src.Format, "cloudFiles") {
		return nil, fault.New("NOT_SUPPORTED", "sources of format %q cannot be read yet", src.Format).WithHint("Use cloudFiles")
	}
	path, err := substitute(src.Path, s.Configuration)
	if err != nil {
		return nil, err
	}
	out := &files{kind: ingest.CloudFiles, path: path, options: map[string]string{}}
	for _, k := range slices.Sorted(maps.Keys(src.Options)) {
		if out.options[k], err = substitute(src.Options[k], s.Configuration); err != nil {
			return nil, err
		}
	}
	return out, nil
}
