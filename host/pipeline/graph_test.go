package pipeline

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/catalog"
	"github.com/weir-data/weir/host/sql"
)

// built collects statements and manifests for a graph without files or modules.
type built struct {
	spec       *Spec
	statements []sql.Statement
	modules    []*module
	others     []string // tables of other pipelines, with their kind behind a space
}

func build(definitions ...func(*built)) (*graph, error) {
	b := &built{spec: &Spec{Dir: "/project", Catalog: "c", Schema: "s", Configuration: map[string]string{"landing": "/landing"}}}
	for _, def := range definitions {
		def(b)
	}
	g := newGraph(catalog.Name{Catalog: "c", Schema: "s"})
	wrong := &flaws{}
	register(g, b.spec, b.statements, b.modules, wrong)
	g.resolve(context.Background(), func(_ context.Context, n catalog.Name) (*neighbour, error) {
		for _, other := range b.others {
			if name, kind, _ := strings.Cut(other, " "); n.String() == name {
				return &neighbour{kind: kind}, nil
			}
		}
		return nil, nil
	}, wrong)
	return g, wrong.err()
}

// table defines a streaming table; inputs are written as in SQL, STREAM(x) or x.
func table(name string, inputs ...string) func(*built) {
	return statement(sql.StreamingTable, name, inputs...)
}

func view(name string, inputs ...string) func(*built) {
	return statement(sql.TemporaryView, name, inputs...)
}

// mv defines a materialized view, shared a persistent view, target a table that flows fill.
func mv(name string, inputs ...string) func(*built) {
	return statement(sql.MaterializedView, name, inputs...)
}

func shared(name string, inputs ...string) func(*built) { return statement(sql.View, name, inputs...) }

func target(name string) func(*built) { return statement(sql.StreamingTable, name) }

// insert defines a flow, once one that runs one time.
func insert(name, into string, inputs ...string) func(*built) {
	return func(b *built) {
		statement(sql.Flow, name, inputs...)(b)
		b.statements[len(b.statements)-1].Flow = &sql.FlowDef{Name: name, Target: into, ByName: true}
	}
}

func once(name, into string, inputs ...string) func(*built) {
	return func(b *built) {
		insert(name, into, inputs...)(b)
		b.statements[len(b.statements)-1].Flow.Once = true
	}
}

// private makes the statement before it private.
func private(b *built) { b.statements[len(b.statements)-1].Private = true }

func statement(kind sql.Kind, name string, inputs ...string) func(*built) {
	return func(b *built) {
		line := len(b.statements) + 1
		st := sql.Statement{Kind: kind, Name: name, File: "a.sql", Line: line}
		for i, in := range inputs {
			src := sql.SourceRef{Alias: fmt.Sprintf("r%d", i), Line: line}
			if inner, ok := strings.CutPrefix(in, "STREAM("); ok {
				src.Stream, in = true, strings.TrimSuffix(inner, ")")
			}
			if path, ok := strings.CutPrefix(in, "files:"); ok {
				src.Files = &sql.FilesRef{Path: path}
			} else {
				src.Table = in
			}
			st.Sources = append(st.Sources, src)
		}
		b.statements = append(b.statements, st)
	}
}

// constrain adds a constraint to the statement before it.
func constrain(name, onViolation string) func(*built) {
	return func(b *built) {
		st := &b.statements[len(b.statements)-1]
		st.Constraints = append(st.Constraints, sql.Constraint{Name: name, Condition: "a > 0", OnViolation: onViolation})
	}
}

// property sets a table property of the statement before it.
func property(key, value string) func(*built) {
	return func(b *built) {
		b.statements[len(b.statements)-1].Properties = map[string]string{key: value}
	}
}

func manifest(m abi.Manifest) func(*built) {
	return func(b *built) {
		b.modules = append(b.modules, &module{ref: PluginRef{Path: "m.wasm"}, name: "m", manifest: &m})
	}
}

func other(names ...string) func(*built) {
	return func(b *built) { b.others = append(b.others, names...) }
}

func order(g *graph) string {
	var out []string
	for _, d := range g.order {
		out = append(out, fmt.Sprintf("%s:%d", strings.TrimPrefix(strings.TrimPrefix(d.id, "c."), "s."), g.level[d]))
	}
	return strings.Join(out, " ")
}

// covers A118 A119 A120 A128
func TestNamesResolveToThreePartsAndOrderFollowsReads(t *testing.T) {
	g, err := build(
		table("gold.totals", "STREAM(silver.orders)", "rates"),
		table("silver.orders", "STREAM(typed)"),
		view("typed", "STREAM(c.s.ORDERS)"),
		table("orders", "STREAM(files:/landing/orders)"),
		table("`rates`", "STREAM(files:/landing/rates)"),
		table("other.live", "STREAM(LIVE.orders)"),
	)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := order(g), "orders:0 rates:0 typed:1 silver.orders:1 other.live:1 gold.totals:2"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}

// covers A190
func TestTablesOfOtherPipelinesCanBeRead(t *testing.T) {
	g, err := build(table("gold", "STREAM(silver.orders)"), other("c.silver.orders"))
	if err != nil {
		t.Fatal(err)
	}
	view := g.view("p")
	if len(view.Nodes) != 2 || view.Nodes[0].Kind != "table" || view.Edges[0].From != "c.silver.orders" || view.Edges[0].Mode != "stream" {
		t.Errorf("graph %+v", view)
	}
}

func TestQuarantineTablesCanBeRead(t *testing.T) {
	g, err := build(table("orders", "STREAM(files:/l)"), constrain("ok", "quarantine"), table("refused", "STREAM(orders_quarantine)"))
	if err != nil {
		t.Fatal(err)
	}
	if got := order(g); got != "orders:0 refused:1" {
		t.Errorf("order %s", got)
	}
}

// Whatever is wrong with the graph is an error with the place of its definition.
// covers A1 A2 A57 A60 A100 A103 A113 A114 A115 A116 A117 A118 A122 A124 A130
func TestGraphRefusals(t *testing.T) {
	streaming := abi.Function{Name: "f", Kind: abi.KindMap, Inputs: []abi.Input{{Dataset: "a", Mode: abi.ModeStream}}}
	fn := func(change func(*abi.Function)) []abi.Function {
		f := streaming
		f.Inputs = append([]abi.Input(nil), streaming.Inputs...)
		change(&f)
		return []abi.Function{f}
	}
	source := table("a", "STREAM(files:/landing)")
	declare := func(d abi.Dataset, fns ...abi.Function) func(*built) {
		return manifest(abi.Manifest{Functions: fns, Datasets: []abi.Dataset{d}})
	}
	for name, c := range map[string]struct {
		definitions []func(*built)
		code        string
		says        []string
	}{
		"no datasets":          {nil, "RUN_EMPTY_PIPELINE", nil},
		"views only":           {[]func(*built){view("v", "STREAM(v2)"), view("v2", "STREAM(files:/l)")}, "RUN_EMPTY_PIPELINE", nil},
		"the same name twice":  {[]func(*built){source, table("S.A", "STREAM(files:/l)")}, "PIPELINE_DUPLICATE_IDENTIFIERS", []string{"a.sql", "line 2", "a.sql:1"}},
		"a view and a table":   {[]func(*built){source, view("A", "STREAM(a)")}, "PIPELINE_DUPLICATE_IDENTIFIERS", []string{"line 2"}},
		"a table and a view":   {[]func(*built){view("A", "STREAM(files:/l)"), source}, "PIPELINE_DUPLICATE_IDENTIFIERS", []string{"line 2"}},
		"two views":            {[]func(*built){view("v", "STREAM(files:/l)"), view("V", "STREAM(files:/l)")}, "PIPELINE_DUPLICATE_IDENTIFIERS", []string{"line 2"}},
		"a view with a schema": {[]func(*built){source, view("s.v", "STREAM(a)")}, "INVALID_TABLE_NAME", []string{"no catalog and no schema"}},
		"four parts":           {[]func(*built){table("a.b.c.d", "STREAM(files:/l)")}, "INVALID_TABLE_NAME", []string{"line 1"}},
		"reserved name":        {[]func(*built){table("_weir.b", "STREAM(files:/l)")}, "INVALID_TABLE_NAME", []string{"reserved"}},
		"unknown source":       {[]func(*built){table("orders", "STREAM(files:/l)"), table("b", "STREAM(oders)")}, "TABLE_OR_VIEW_NOT_FOUND", []string{`"oders"`, "line 2", `Did you mean "orders"?`}},
		"unknown, far":         {[]func(*built){source, table("b", "STREAM(x.orders)")}, "TABLE_OR_VIEW_NOT_FOUND", []string{"mean c.s"}},
		"reads itself":         {[]func(*built){table("a", "STREAM(a)")}, "CIRCULAR_DEPENDENCY", []string{"c.s.a ← c.s.a"}},
		"a cycle through a view": {[]func(*built){table("a", "STREAM(v)"), view("v", "STREAM(b)"), table("b", "STREAM(files:/l)", "a")},
			"CIRCULAR_DEPENDENCY", []string{"c.s.a ← v ← c.s.b ← c.s.a"}},
		"batch query":              {[]func(*built){source, table("b", "a")}, "INVALID_FLOW_QUERY_TYPE", []string{"Cannot create streaming table from batch query", "line 2"}},
		"batch files":              {[]func(*built){table("b", "files:/l")}, "INVALID_FLOW_QUERY_TYPE", []string{"Cannot create streaming table from batch query"}},
		"files as side input":      {[]func(*built){table("b", "STREAM(files:/l)", "files:/m")}, "NOT_SUPPORTED", []string{"as a batch input", "/m"}},
		"two streams":              {[]func(*built){source, table("b", "STREAM(a)", "STREAM(files:/l)")}, "NOT_SUPPORTED", []string{"a join of two streams"}},
		"streaming view as batch":  {[]func(*built){source, view("v", "STREAM(a)"), table("b", "STREAM(a)", "v")}, "INCOMPATIBLE_STREAMING_VIEW_READ", []string{"STREAM(v)"}},
		"batch view as stream":     {[]func(*built){source, view("v", "a"), table("b", "STREAM(v)")}, "INCOMPATIBLE_BATCH_VIEW_READ", nil},
		"a batch view sets aside":  {[]func(*built){source, view("v", "a"), constrain("x", "quarantine"), table("b", "STREAM(a)")}, "NOT_SUPPORTED", []string{"a quarantine for a view that streams nothing"}},
		"an expectation twice":     {[]func(*built){source, constrain("x", "warn"), constrain("x", "drop")}, "DUPLICATE_EXPECTATION", []string{`"x"`}},
		"an unknown action":        {[]func(*built){source, constrain("x", "explode")}, "INVALID_EXPECTATION", []string{"explode"}},
		"an unknown property":      {[]func(*built){source, property("weir.onrowerrors", "skip")}, "UNKNOWN_OPTION", []string{"weir.onRowError", "line 1"}},
		"an unknown policy":        {[]func(*built){source, property("weir.onRowError", "drop")}, "INVALID_OPTION", []string{"quarantine"}},
		"the name of a quarantine": {[]func(*built){source, constrain("x", "quarantine"), table("a_quarantine", "STREAM(files:/l)")}, "PIPELINE_DUPLICATE_IDENTIFIERS", []string{"quarantine table of c.s.a"}},
		"a materialized view":      {[]func(*built){source, declare(abi.Dataset{Name: "m", Type: abi.DatasetMaterializedView, Function: "f"}, streaming)}, "INVALID_FLOW_QUERY_TYPE", []string{"Cannot create materialized view from streaming query", "m.wasm"}},
		"a sink":                   {[]func(*built){source, declare(abi.Dataset{Name: "m", Type: abi.DatasetSink, Format: "delta"})}, "PIPELINE_DATASET_WITHOUT_FLOW", []string{"m"}},
		"a table without a flow":   {[]func(*built){source, declare(abi.Dataset{Name: "m", Type: abi.DatasetStreamingTable})}, "PIPELINE_DATASET_WITHOUT_FLOW", []string{"c.s.m"}},
		"an unknown function":      {[]func(*built){source, declare(abi.Dataset{Name: "m", Type: abi.DatasetStreamingTable, Function: "g"}, streaming)}, "PLUGIN_FUNCTION_NOT_FOUND", []string{`"g"`}},
		"a query function":         {[]func(*built){source, declare(abi.Dataset{Name: "m", Type: abi.DatasetStreamingTable, Function: "f"}, fn(func(f *abi.Function) { f.Kind = abi.KindQuery })...)}, "UNSUPPORTED_STREAMING_OPERATION", []string{"of kind query", "materialized view"}},
		"several outputs":          {[]func(*built){source, declare(abi.Dataset{Name: "m", Type: abi.DatasetStreamingTable, Function: "f"}, fn(func(f *abi.Function) { f.Outputs = []abi.Output{{}} })...)}, "NOT_SUPPORTED", []string{"several outputs"}},
		"no inputs":                {[]func(*built){source, declare(abi.Dataset{Name: "m", Type: abi.DatasetStreamingTable, Function: "f"}, fn(func(f *abi.Function) { f.Inputs = nil })...)}, "NOT_SUPPORTED", []string{"no inputs"}},
		"a second streamed input":  {[]func(*built){source, declare(abi.Dataset{Name: "m", Type: abi.DatasetStreamingTable, Function: "f"}, fn(func(f *abi.Function) { f.Inputs = append(f.Inputs, f.Inputs[0]) })...)}, "NOT_SUPPORTED", []string{"only the first"}},
		"a kafka source":           {[]func(*built){source, declare(abi.Dataset{Name: "m", Type: abi.DatasetStreamingTable, Function: "f"}, fn(func(f *abi.Function) { f.Inputs[0] = abi.Input{Source: &abi.Source{Format: "kafka"}, Mode: "stream"} })...)}, "NOT_SUPPORTED", []string{`"kafka"`}},
		"a source of an unknown key": {[]func(*built){source, declare(abi.Dataset{Name: "m", Type: abi.DatasetStreamingTable, Function: "f"}, fn(func(f *abi.Function) {
			f.Inputs[0] = abi.Input{Source: &abi.Source{Format: "cloudFiles", Path: "${nope}"}, Mode: "stream"}
		})...)}, "CONFIGURATION_NOT_FOUND", []string{`"nope"`}},
		"a source that is not closed": {[]func(*built){source, declare(abi.Dataset{Name: "m", Type: abi.DatasetStreamingTable, Function: "f"}, fn(func(f *abi.Function) {
			f.Inputs[0] = abi.Input{Source: &abi.Source{Format: "cloudFiles", Path: "${nope"}, Mode: "stream"}
		})...)}, "INVALID_CONFIGURATION_REFERENCE", nil},
		"an unknown declared type": {[]func(*built){source, declare(abi.Dataset{Name: "m", Type: abi.DatasetStreamingTable, Function: "f", Schema: []abi.Column{{Name: "x", Type: "money"}}}, streaming)}, "INVALID_MANIFEST", []string{`"x"`}},
		// covers A122: what is appended needs a stream, what is computed as a whole has none.
		"an mv of a stream":            {[]func(*built){source, mv("m", "STREAM(a)")}, "INVALID_FLOW_QUERY_TYPE", []string{"Cannot create materialized view from streaming query", "line 2"}},
		"a stream of an mv":            {[]func(*built){source, mv("m", "a"), table("b", "STREAM(m)")}, "STREAMING_FROM_MATERIALIZED_VIEW", []string{"c.s.m", "line 3"}},
		"a stream of another's mv":     {[]func(*built){table("b", "STREAM(c.gold.m)"), other("c.gold.m materialized_view")}, "STREAMING_FROM_MATERIALIZED_VIEW", []string{"c.gold.m"}},
		"a stream of an mv, by a view": {[]func(*built){source, mv("m", "a"), view("v", "STREAM(m)"), table("b", "STREAM(v)")}, "STREAMING_FROM_MATERIALIZED_VIEW", []string{"line 3"}},
		"an mv of a streaming view":    {[]func(*built){source, view("v", "STREAM(a)"), mv("m", "v")}, "INCOMPATIBLE_STREAMING_VIEW_READ", []string{"line 3"}},
		"a batch flow":                 {[]func(*built){source, target("t"), insert("f", "t", "a")}, "INVALID_FLOW_QUERY_TYPE", []string{"Cannot create streaming table from batch query", "line 3"}},
		"a once flow of a stream":      {[]func(*built){source, target("t"), once("f", "t", "STREAM(a)")}, "INVALID_FLOW_QUERY_TYPE", []string{"runs once", "line 3"}},
		"two streams in a flow":        {[]func(*built){source, target("t"), insert("f", "t", "STREAM(a)", "STREAM(files:/l)")}, "NOT_SUPPORTED", []string{"a join of two streams", "line 3"}},
		"files behind a view":          {[]func(*built){source, view("v", "files:/m"), table("b", "STREAM(a)", "v")}, "NOT_SUPPORTED", []string{"/m", "line 3"}},
		"an empty table":               {[]func(*built){source, target("t")}, "PIPELINE_DATASET_WITHOUT_FLOW", []string{"c.s.t", "line 2"}},

		// covers A114 A116 A124: flows have names and one target.
		"a flow into an mv":             {[]func(*built){source, mv("m", "a"), insert("f", "m", "STREAM(a)")}, "INVALID_FLOW_QUERY_TYPE", []string{"materialized view", "line 3"}},
		"a flow into another's table":   {[]func(*built){source, insert("f", "gold.t", "STREAM(a)"), other("c.gold.t")}, "TABLE_OR_VIEW_NOT_FOUND", []string{"no dataset of this pipeline", "line 2"}},
		"two flows of one name":         {[]func(*built){source, target("t"), insert("f", "t", "STREAM(a)"), insert("F", "t", "STREAM(a)")}, "PIPELINE_DUPLICATE_IDENTIFIERS", []string{"a.sql:3", "line 4"}},
		"two flows, two targets":        {[]func(*built){source, target("t"), target("u"), insert("f", "t", "STREAM(a)"), insert("f", "u", "STREAM(a)")}, "PIPELINE_DUPLICATE_IDENTIFIERS", []string{"a.sql:4", "c.s.t", "line 5"}},
		"a flow named as its table":     {[]func(*built){source, table("t", "STREAM(a)"), insert("t", "t", "STREAM(a)")}, "PIPELINE_DUPLICATE_IDENTIFIERS", []string{"a.sql:2", "line 3"}},
		"a flow named as another table": {[]func(*built){source, target("t"), insert("A", "t", "STREAM(a)")}, "FLOW_NAME_CONFLICTS_WITH_TABLE", []string{`"a"`, "line 3"}},
		"a cycle through a second flow": {[]func(*built){source, table("t", "STREAM(a)"), table("u", "STREAM(t)"), insert("f", "t", "STREAM(u)")}, "CIRCULAR_DEPENDENCY", []string{"c.s.t ← c.s.u ← c.s.t"}},
		"append and auto cdc":           {[]func(*built){source, table("t", "STREAM(a)"), manifest(abi.Manifest{Flows: []abi.Flow{{Name: "f", Type: abi.FlowAutoCDC, Target: "t", Source: "a", Keys: []string{"id"}}}})}, "INCOMPATIBLE_FLOWS", []string{"append flow t"}},
		// covers A76: flows into one table share its rows.
		"two auto cdc flows of other keys": {[]func(*built){source, target("t"), manifest(abi.Manifest{Flows: []abi.Flow{
			{Name: "f", Type: abi.FlowAutoCDC, Target: "t", Source: "a", Keys: []string{"id", "n"}}, {Name: "g", Type: abi.FlowAutoCDC, Target: "t", Source: "a", Keys: []string{"ID"}},
		}})}, "AUTOCDC_FLOWS_DISAGREE", []string{"flow f has (id, n)", "flow g has (ID)"}},
		"two auto cdc flows of other types": {[]func(*built){source, target("t"), manifest(abi.Manifest{Flows: []abi.Flow{
			{Name: "f", Type: abi.FlowAutoCDC, Target: "t", Source: "a", Keys: []string{"id"}, StoredAsSCDType: 1}, {Name: "g", Type: abi.FlowAutoCDC, Target: "t", Source: "a", Keys: []string{"id"}, StoredAsSCDType: 2},
		}})}, "AUTOCDC_FLOWS_DISAGREE", []string{"SCD type"}},
		"two auto cdc flows of other ties": {[]func(*built){source, target("t"), manifest(abi.Manifest{Flows: []abi.Flow{
			{Name: "f", Type: abi.FlowAutoCDC, Target: "t", Source: "a", Keys: []string{"id"}, TiesLastBy: []string{"n"}}, {Name: "g", Type: abi.FlowAutoCDC, Target: "t", Source: "a", Keys: []string{"id"}},
		}})}, "AUTOCDC_FLOWS_DISAGREE", []string{"equal sequences"}},
		"two auto cdc flows of other nulls": {[]func(*built){source, target("t"), manifest(abi.Manifest{Flows: []abi.Flow{
			{Name: "f", Type: abi.FlowAutoCDC, Target: "t", Source: "a", Keys: []string{"id"}, IgnoreNullUpdates: true}, {Name: "g", Type: abi.FlowAutoCDC, Target: "t", Source: "a", Keys: []string{"id"}, IgnoreNullUpdatesExceptList: []string{"n"}},
		}})}, "AUTOCDC_FLOWS_DISAGREE", []string{"all but (n)"}},

		// covers A117: others can compute a persistent view.
		"a streaming persistent view": {[]func(*built){source, shared("v", "STREAM(a)")}, "INVALID_FLOW_QUERY_TYPE", []string{"persistent view", "line 2"}},
		"a stream of it":              {[]func(*built){source, shared("v", "a"), table("b", "STREAM(v)")}, "INCOMPATIBLE_BATCH_VIEW_READ", []string{"line 3"}},
		"it reads a temporary view":   {[]func(*built){source, view("t", "a"), shared("v", "t")}, "INVALID_TEMP_OBJ_REFERENCE", []string{"t is temporary", "line 3"}},
		"it reads a private table":    {[]func(*built){source, table("b", "STREAM(a)"), private, shared("v", "b")}, "INVALID_TEMP_OBJ_REFERENCE", []string{"c.s.b is private", "line 3"}},
		"it reads files":              {[]func(*built){source, shared("v", "files:/m")}, "NOT_SUPPORTED", []string{"/m", "line 2"}},
		"a persistent view's name":    {[]func(*built){source, shared("A", "a")}, "PIPELINE_DUPLICATE_IDENTIFIERS", []string{"line 2"}},
		"a cycle of persistent views": {[]func(*built){source, shared("v", "w"), shared("w", "v")}, "CIRCULAR_DEPENDENCY", []string{"c.s.v ← c.s.w ← c.s.v"}},

		// covers A130: sinks are written to and not read.
		"a sink that is read":           {[]func(*built){source, declare(abi.Dataset{Name: "out", Type: abi.DatasetSink, Format: "delta"}), table("b", "STREAM(out)")}, "TABLE_OR_VIEW_NOT_FOUND", []string{"a sink", "line 2"}},
		"a sink with a schema":          {[]func(*built){source, declare(abi.Dataset{Name: "x.out", Type: abi.DatasetSink, Format: "delta"})}, "INVALID_TABLE_NAME", []string{"a sink has no catalog"}},
		"a once flow into a sink":       {[]func(*built){source, declare(abi.Dataset{Name: "out", Type: abi.DatasetSink, Format: "delta"}), once("f", "out", "a")}, "INVALID_FLOW_QUERY_TYPE", []string{"append flows only"}},
		"a flow into nothing":           {[]func(*built){source, manifest(abi.Manifest{Flows: []abi.Flow{{Type: abi.FlowAppend, Target: "b", Source: "a"}}})}, "TABLE_OR_VIEW_NOT_FOUND", []string{`"b"`}},
		"a flow into a view":            {[]func(*built){source, view("v", "STREAM(a)"), manifest(abi.Manifest{Flows: []abi.Flow{{Type: abi.FlowAppend, Target: "v", Source: "a"}}})}, "INVALID_FLOW_QUERY_TYPE", nil},
		"a snapshot flow beside others": {[]func(*built){source, table("t", "STREAM(a)"), manifest(abi.Manifest{Flows: []abi.Flow{{Name: "f", Type: abi.FlowAutoCDCFromSnapshot, Target: "t", Source: "a", Keys: []string{"id"}}}})}, "INCOMPATIBLE_FLOWS", []string{"a flow of snapshots"}},
		"a flow with a path as name": {[]func(*built){source, manifest(abi.Manifest{
			Datasets: []abi.Dataset{{Name: "b", Type: abi.DatasetStreamingTable}},
			Flows:    []abi.Flow{{Name: "../x", Type: abi.FlowAppend, Target: "b", Source: "a"}}})}, "INVALID_FLOW_NAME", []string{"../x"}},
		"a flow with a table's name": {[]func(*built){source, manifest(abi.Manifest{
			Datasets: []abi.Dataset{{Name: "b", Type: abi.DatasetStreamingTable}},
			Flows:    []abi.Flow{{Name: "A", Type: abi.FlowAppend, Target: "b", Source: "a"}}})}, "FLOW_NAME_CONFLICTS_WITH_TABLE", []string{`"a"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := build(c.definitions...)
			wantFault(t, err, c.code, c.says...)
		})
	}
}

// covers A114
func TestManifestFlowsFillTheirTargets(t *testing.T) {
	g, err := build(table("a", "STREAM(files:/l)"), manifest(abi.Manifest{
		Datasets: []abi.Dataset{{Name: "b", Type: abi.DatasetStreamingTable}},
		Flows:    []abi.Flow{{Name: "Copy", Type: abi.FlowAppend, Target: "b", Source: "a", OnRowError: "skip"}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	b := g.order[1]
	if b.flows[0].name != "copy" || b.flows[0].body.streamInput().dataset != g.order[0] || b.flows[0].rowErrorPolicy() != "skip" {
		t.Errorf("flow %+v", b.flows[0])
	}
}

// The author of a view knows what to do with its bad rows, unless the table says otherwise.
func TestRowErrorPolicyComesFromTheNearest(t *testing.T) {
	policyOf := func(tablePolicy, viewPolicy string) string {
		t.Helper()
		g, err := build(table("a", "STREAM(files:/l)"), manifest(abi.Manifest{
			Functions: []abi.Function{
				{Name: "f", Kind: abi.KindMap, Inputs: []abi.Input{{Dataset: "a", Mode: abi.ModeStream}}},
				{Name: "g", Kind: abi.KindMap, Inputs: []abi.Input{{Dataset: "v", Mode: abi.ModeStream}}},
			},
			Datasets: []abi.Dataset{
				{Name: "v", Type: abi.DatasetTemporaryView, Function: "f", OnRowError: viewPolicy},
				{Name: "b", Type: abi.DatasetStreamingTable, Function: "g", OnRowError: tablePolicy},
			},
		}))
		if err != nil {
			t.Fatal(err)
		}
		return string(g.tables[catalog.Name{Catalog: "c", Schema: "s", Table: "b"}].flows[0].rowErrorPolicy())
	}
	g, err := build(table("a", "STREAM(files:/l)"), property("weir.onRowError", "quarantine"))
	if err != nil {
		t.Fatal(err)
	}
	if d := g.order[0]; d.flows[0].rowErrorPolicy() != "quarantine" || len(d.properties) != 0 {
		t.Errorf("by table property: %s %v", d.flows[0].rowErrorPolicy(), d.properties)
	}
	for _, c := range []struct{ table, view, want string }{
		{"", "", "fail"}, {"", "quarantine", "quarantine"}, {"skip", "quarantine", "skip"}, {"fail", "quarantine", "fail"},
	} {
		if got := policyOf(c.table, c.view); got != c.want {
			t.Errorf("table %q, view %q: %q, want %q", c.table, c.view, got, c.want)
		}
	}
}
