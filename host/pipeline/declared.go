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
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/stream"
)

// registerDeclared adds a dataset of a manifest.
func registerDeclared(g *graph, s *Spec, m *module, decl *abi.Dataset) error {
	place := fault.Where{File: m.ref.Path}
	at := fault.Where{Dataset: decl.Name}
	d := &dataset{
		kind: decl.Type, comment: decl.Comment, private: decl.Private, properties: decl.TableProperties,
		partitionBy: decl.PartitionBy, clusterBy: decl.ClusterBy,
		onRowError: stream.RowErrorPolicy(decl.OnRowError), guest: true, place: place,
	}
	if d.kind == sink {
		d.format, d.options = decl.Format, decl.Options
	}
	if err := takeSettings(d, decl.TableProperties); err != nil {
		return fault.Place(err, "INVALID_OPTION", fault.Where{Dataset: decl.Name, File: place.File})
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
		d.rules = append(d.rules, expect.Rule{Name: e.Name, Condition: e.Condition, Action: action, NullPass: e.Null == abi.NullPasses, Guest: true})
	}
	switch {
	case decl.Function == "":
	case d.kind == sink:
		b, err := functionBody(s, m, decl.Function, at)
		if err != nil {
			return err
		}
		// What the function reads is the flow's query; the function itself is its end.
		d.module, d.function, b.module, b.function = m, b.function, nil, nil
		d.flows = []*flow{{kind: handlerFlow, target: d, body: *b, place: place}}
	default:
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
	f := &flow{kind: appendFlow, byName: true, onRowError: stream.RowErrorPolicy(decl.OnRowError), place: place}
	switch decl.Type {
	case abi.FlowAppend:
		if decl.Once {
			f.kind = onceFlow
		}
	case abi.FlowAutoCDC:
		f.kind, f.once = autoCDCFlow, decl.Once
		f.cdc = changesOfManifest(decl)
	case abi.FlowAutoCDCFromSnapshot:
		f.kind = snapshotFlow
		f.cdc = changesOfManifest(decl)
	default:
		return fault.New("NOT_SUPPORTED", "flows of type %s", decl.Type).At(at).At(place).WithHint("Use append, auto_cdc or auto_cdc_from_snapshot")
	}
	if decl.Function != "" {
		b, err := functionBody(s, m, decl.Function, at)
		if err != nil {
			return err
		}
		f.body = *b
	} else {
		f.body.inputs = []*input{{alias: "source", stream: !f.runsOnce() && f.kind != snapshotFlow, written: decl.Source, options: decl.SourceOptions, place: place}}
	}
	return addFlow(g, f, decl.Name, decl.Target)
}

// functionBody makes the query of a function.
func functionBody(s *Spec, m *module, name string, at fault.Where) (*body, error) {
	place := fault.Where{File: m.ref.Path}
	fn, _, ok := m.manifest.Function(name)
	if !ok {
		return nil, fault.New("PLUGIN_FUNCTION_NOT_FOUND", "module %s has no function %q", m.name, name).At(at).At(place)
	}
	switch fn.Kind {
	case abi.KindMap, abi.KindStateful, abi.KindQuery, abi.KindForeachBatch, abi.KindSnapshot:
	default:
		return nil, fault.New("NOT_SUPPORTED", "function %s.%s is of kind %s, which gives no rows of a dataset", m.name, name, fn.Kind).At(at).At(place)
	}
	handles := fn.Kind == abi.KindForeachBatch
	switch {
	case !handles && len(fn.Outputs) > 0:
		return nil, fault.New("NOT_SUPPORTED", "function %s.%s has several outputs, which only functions of kind %s have", m.name, name, abi.KindForeachBatch).At(at).At(place)
	case handles && len(fn.Outputs) == 0:
		return nil, fault.New("NOT_SUPPORTED", "function %s.%s handles micro-batches and names no outputs", m.name, name).At(at).At(place).
			WithHint("Name the tables that it writes to")
	}
	b := &body{module: m, function: fn}
	for i, decl := range fn.Inputs {
		in := &input{alias: decl.Dataset, stream: decl.Mode == abi.ModeStream, written: decl.Dataset, columns: decl.Columns, options: decl.Options, place: place}
		if in.stream && fn.Kind == abi.KindQuery {
			return nil, queryOverStream(m.name, name).At(at).At(place)
		}
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
	if handles && !b.inputs[0].stream {
		return nil, fault.New("INVALID_FLOW_QUERY_TYPE", "function %s.%s handles micro-batches and streams nothing", m.name, name).At(at).At(place).
			WithHint("Let its first input be a stream")
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
