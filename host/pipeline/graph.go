package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/weir-data/weir/host/catalog"
	"github.com/weir-data/weir/host/fault"
)

// graph is every dataset of a pipeline with its inputs resolved.
type graph struct {
	defaults catalog.Name
	tables   map[catalog.Name]*dataset // persistent views, too
	views    map[string]*dataset       // temporary views and sinks, by lower-case name
	flows    map[string]*flow          // those with a name of their own
	// foreign are persistent views of other pipelines that something reads;
	// foreignMu guards it once the graph is resolved.
	foreign   map[catalog.Name]*dataset
	foreignMu sync.Mutex
	// order has upstream before downstream and is always the same; level counts
	// the longest way from a source.
	order []*dataset
	level map[*dataset]int
}

func newGraph(defaults catalog.Name) *graph {
	return &graph{defaults: defaults, tables: map[catalog.Name]*dataset{}, views: map[string]*dataset{}, flows: map[string]*flow{}, foreign: map[catalog.Name]*dataset{}, level: map[*dataset]int{}}
}

// add registers a dataset under the name it was written with.
func (g *graph) add(d *dataset, written string) error {
	if d.kind == temporaryView || d.kind == sink {
		key := bareKey(written)
		if _, err := catalog.ParseName(written, g.defaults); err != nil {
			return fault.Place(err, "INVALID_TABLE_NAME", d.place)
		}
		if strings.Contains(key, ".") {
			return fault.New("INVALID_TABLE_NAME", "%q: a %s has no catalog and no schema", written, strings.ReplaceAll(d.kind, "_", " ")).At(d.place).
				WithHint("Give it a name of one part")
		}
		d.id = key
		name, err := catalog.ParseName(key, g.defaults)
		if err != nil {
			return fault.Place(err, "INVALID_TABLE_NAME", d.place)
		}
		if other := g.views[key]; other != nil {
			return duplicate(d, other)
		}
		if other := g.tables[name]; other != nil {
			return duplicate(d, other)
		}
		g.views[key] = d
		return nil
	}
	name, err := catalog.ParseName(stripLive(written), g.defaults)
	if err != nil {
		return fault.Place(err, "INVALID_TABLE_NAME", d.place)
	}
	d.name, d.id = name, name.String()
	if other := g.tables[name]; other != nil {
		return duplicate(d, other)
	}
	if other := g.views[name.Table]; other != nil && name.Catalog == g.defaults.Catalog && name.Schema == g.defaults.Schema {
		return duplicate(d, other)
	}
	g.tables[name] = d
	return nil
}

func duplicate(d, other *dataset) error {
	return fault.New("PIPELINE_DUPLICATE_IDENTIFIERS", "the dataset is defined twice; the other definition is at %s", placeName(other.place)).
		At(fault.Where{Dataset: d.id}).At(d.place).
		WithHint("Rename one of them")
}

func placeName(w fault.Where) string {
	if w.Line > 0 {
		return fmt.Sprintf("%s:%d", w.File, w.Line)
	}
	return w.File
}

// stripLive drops the LIVE prefix of older pipelines, which means nothing.
func stripLive(written string) string {
	if len(written) > 5 && strings.EqualFold(written[:5], "live.") {
		return written[5:]
	}
	return written
}

// lookup resolves a name as written; all is nil when it is none of this
// pipeline's, and name is then the full one.
func (g *graph) lookup(written string) (table, quarantineOf *dataset, name catalog.Name, err error) {
	written = stripLive(written)
	if v := g.views[bareKey(written)]; v != nil {
		return v, nil, catalog.Name{}, nil
	}
	name, err = catalog.ParseName(written, g.defaults)
	if err != nil {
		return nil, nil, name, err
	}
	if d := g.tables[name]; d != nil {
		return d, nil, name, nil
	}
	if base, ok := strings.CutSuffix(name.Table, "_quarantine"); ok {
		of := name
		of.Table = base
		if d := g.tables[of]; d != nil {
			return nil, d, name, nil
		}
	}
	return nil, nil, name, nil
}

// neighbour is what the storage holds under a name that is not this pipeline's.
type neighbour struct {
	kind string        // as a dataset's; "" when nothing says
	view *catalog.View // of a persistent view
}

// resolve finds what every input names, checks streams against batches, and
// puts the datasets in order. around tells what lies under a name that is not
// this pipeline's, nil for nothing.
func (g *graph) resolve(ctx context.Context, around func(context.Context, catalog.Name) (*neighbour, error), found *flaws) {
	all := g.sorted()
	if !found.any() && !slices.ContainsFunc(all, func(d *dataset) bool { return d.kind != temporaryView }) {
		found.add(fault.New("RUN_EMPTY_PIPELINE", "the pipeline defines no table").
			WithHint("Name SQL files under libraries, or modules under plugins"))
		return
	}
	unknown := found.any() // what is missing may be in what could not be read
	wrong := map[*dataset]bool{}
	for _, d := range all {
		if len(d.flows) == 0 {
			wrong[d] = true
			if !unknown {
				found.add(fault.New("PIPELINE_DATASET_WITHOUT_FLOW", "no flow fills the dataset").At(fault.Where{Dataset: d.id}).At(d.place).
					WithHint("Give it a query or a function, or a flow with this target"))
			}
		}
		for _, in := range d.inputs() {
			err := g.resolveInput(ctx, d, in, around)
			if err == nil {
				continue
			}
			wrong[d] = true
			if !unknown || found.only != "" || fault.CodeOf(err) != "TABLE_OR_VIEW_NOT_FOUND" {
				found.add(err)
			}
		}
	}
	g.without(wrong)
	if found.add(g.sortByInputs(g.sorted())) {
		g.order = nil
		return
	}
	for _, d := range g.order {
		if found.add(g.checkDataset(d)) {
			wrong[d] = true
		}
		for _, f := range d.flows {
			if found.add(checkFlow(f)) {
				wrong[d] = true
			}
		}
	}
	g.without(wrong)
}

func (g *graph) resolveInput(ctx context.Context, d *dataset, in *input, around func(context.Context, catalog.Name) (*neighbour, error)) error {
	if in.files != nil || in.log != nil {
		return nil
	}
	place := func(e *fault.Error) error { return e.At(fault.Where{Dataset: d.id}).At(in.place).At(d.place) }
	if v := g.views[bareKey(in.bare)]; in.bare != "" && v != nil {
		in.dataset = v
	}
	table, quarantineOf, name, err := g.lookup(in.written)
	switch {
	case in.dataset != nil:
	case err != nil:
		return fault.Place(err, "INVALID_TABLE_NAME", in.place)
	case table != nil:
		in.dataset = table
	case quarantineOf != nil:
		in.quarantine = quarantineOf
	}
	if in.dataset != nil && in.dataset.kind == sink {
		return place(fault.New("TABLE_OR_VIEW_NOT_FOUND", "%q is a sink, which cannot be read", in.written).
			WithHint("Read the table that its flow reads"))
	}
	if in.upstream() != nil {
		return nil
	}
	found, err := around(ctx, name)
	if err != nil {
		return err
	}
	if found == nil {
		e := fault.New("TABLE_OR_VIEW_NOT_FOUND", "there is no dataset or table %q", in.written)
		return place(suggest(e, in.written, g.names(), "Names without catalog and schema mean "+g.defaults.Catalog+"."+g.defaults.Schema))
	}
	if found.view != nil {
		in.dataset, err = g.resolveForeign(ctx, name, *found.view, around)
		return err
	}
	in.external, in.externalKind = name, found.kind
	return nil
}

func bareKey(written string) string { return strings.ToLower(strings.Trim(written, "`")) }

// names lists the spellings under which the datasets can be read.
func (g *graph) names() []string {
	var out []string
	for _, d := range g.sorted() {
		switch d.kind {
		case temporaryView:
			out = append(out, d.id)
			continue
		case sink:
			continue
		}
		out = append(out, d.name.Table, d.name.Schema+"."+d.name.Table, d.id)
	}
	return out
}

// tableNames lists the tables, as short as is clear.
func (g *graph) tableNames() []string {
	var out []string
	for _, d := range g.sorted() {
		switch {
		case !d.isTable():
		case d.name.Catalog != g.defaults.Catalog:
			out = append(out, d.id)
		case d.name.Schema != g.defaults.Schema:
			out = append(out, d.name.Schema+"."+d.name.Table)
		default:
			out = append(out, d.name.Table)
		}
	}
	return out
}

// sorted gives all datasets by name.
func (g *graph) sorted() []*dataset {
	all := make([]*dataset, 0, len(g.tables)+len(g.views))
	for _, d := range g.tables {
		all = append(all, d)
	}
	for _, d := range g.views {
		all = append(all, d)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].id < all[j].id })
	return all
}

// sortByInputs fills order and level; a cycle is an error that shows it.
func (g *graph) sortByInputs(all []*dataset) error {
	var path []*dataset
	visiting := map[*dataset]bool{}
	var visit func(d *dataset) error
	visit = func(d *dataset) error {
		if _, done := g.level[d]; done {
			return nil
		}
		path = append(path, d)
		defer func() { path = path[:len(path)-1] }()
		if visiting[d] {
			var ids []string
			for i := len(path) - 2; i >= 0; i-- {
				ids = append([]string{path[i].id}, ids...)
				if path[i] == d {
					break
				}
			}
			return fault.New("CIRCULAR_DEPENDENCY", "the dataset reads itself: %s", strings.Join(append(ids, d.id), " ← ")).
				At(fault.Where{Dataset: d.id}).At(d.place).WithHint("Let one of them read another table")
		}
		visiting[d] = true
		level := 0
		for _, in := range d.inputs() {
			up := in.upstream()
			if up == nil {
				continue
			}
			if err := visit(up); err != nil {
				return err
			}
			// A view is part of the flows that read it, so it adds no level.
			above := g.level[up]
			if !up.isView() {
				above++
			}
			level = max(level, above)
		}
		g.level[d] = level
		if !d.foreign {
			g.order = append(g.order, d)
		}
		return nil
	}
	for _, d := range all {
		if err := visit(d); err != nil {
			return err
		}
	}
	sort.SliceStable(g.order, func(i, j int) bool { return g.level[g.order[i]] < g.level[g.order[j]] })
	return nil
}

// upstreamTables gives the tables of this pipeline that the flows of a dataset
// read, through views or not, by name.
func (d *dataset) upstreamTables() []*dataset {
	var out []*dataset
	for _, f := range d.flows {
		out = append(out, f.upstreamTables()...)
	}
	slices.SortFunc(out, func(a, b *dataset) int { return strings.Compare(a.id, b.id) })
	return slices.Compact(out)
}

// upstreamTables gives the tables of this pipeline that a flow reads, through
// views or not, by name.
func (f *flow) upstreamTables() []*dataset {
	found := map[*dataset]bool{}
	seen := map[*dataset]bool{}
	var walk func(*body)
	walk = func(b *body) {
		for _, in := range b.inputs {
			up := in.upstream()
			switch {
			case up == nil:
			case !up.isView():
				found[up] = true
			case !seen[up]:
				seen[up] = true
				walk(up.query())
			}
		}
	}
	walk(&f.body)
	out := make([]*dataset, 0, len(found))
	for up := range found {
		out = append(out, up)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].id < out[j].id })
	return out
}
