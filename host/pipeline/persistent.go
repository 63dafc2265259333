package pipeline

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/catalog"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/sql"
)

// definition is what others need to compute a persistent view.
func (p *Pipeline) definition(d *dataset, pipelineID string) catalog.View {
	b := d.query()
	v := catalog.View{PipelineID: pipelineID, Query: b.statement.Query, Comment: d.comment, Sources: []catalog.Source{}}
	for _, in := range b.inputs {
		name := in.id()
		if in.log != nil {
			name = p.spec.EventLog.String() // checkEventLogs saw that there is one
		}
		v.Sources = append(v.Sources, catalog.Source{Alias: in.alias, Name: name})
	}
	return v
}

// publishedViews gives the pipeline's persistent views in the order of the graph.
func (g *graph) publishedViews() []*dataset {
	var out []*dataset
	for _, d := range g.order {
		if d.kind == persistentView {
			out = append(out, d)
		}
	}
	return out
}

// publishViews takes the names of the pipeline's persistent views and writes
// their definitions down. They are no part of a selection: there is nothing to
// refresh in them.
func (p *Pipeline) publishViews(ctx context.Context, pipelineID string) error {
	for _, d := range p.graph.publishedViews() {
		err := p.catalog().Claim(ctx, d.name, pipelineID)
		if err == nil {
			err = p.catalog().Publish(ctx, d.name, p.definition(d, pipelineID))
		}
		if err != nil {
			return fault.Place(err, "CATALOG_UNAVAILABLE", d.place)
		}
	}
	return nil
}

// foreignView makes a dataset of another pipeline's view: to the flows that
// read it, it is like a view of their own. It stands in no order and is not
// planned, published or shown by itself.
func foreignView(name catalog.Name, v catalog.View) *dataset {
	place := fault.Where{File: "view " + name.String()}
	d := &dataset{id: name.String(), kind: persistentView, name: name, comment: v.Comment, place: place, foreign: true}
	st := &sql.Statement{Kind: sql.View, Name: d.id, Query: v.Query, File: place.File, Line: 1, QueryLine: 1}
	f := &flow{name: d.id, kind: viewFlow, target: d, body: body{statement: st}, place: place}
	for _, src := range v.Sources {
		st.Sources = append(st.Sources, sql.SourceRef{Alias: src.Alias, Table: src.Name, Line: 1})
		f.body.inputs = append(f.body.inputs, &input{alias: src.Alias, written: src.Name, place: place})
	}
	d.flows = []*flow{f}
	return d
}

// resolveForeign finds what a view of another pipeline reads. The dataset is
// made once for each name.
func (g *graph) resolveForeign(ctx context.Context, name catalog.Name, v catalog.View, around func(context.Context, catalog.Name) (*neighbour, error)) (*dataset, error) {
	if d := g.foreign[name]; d != nil {
		return d, nil // also when it is in the midst of being resolved: a cycle, which sorting shows
	}
	d := foreignView(name, v)
	g.foreign[name] = d
	for _, in := range d.inputs() {
		if err := g.resolveInput(ctx, d, in, around); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// viewNamed gives the persistent view that an input reads, the pipeline's own or
// another's; nil when it is none.
func (p *Pipeline) viewNamed(ctx context.Context, in *input) (*dataset, error) {
	if in.dataset != nil {
		if in.dataset.kind == persistentView {
			return in.dataset, nil
		}
		return nil, nil
	}
	if in.quarantine != nil || in.log != nil {
		return nil, nil
	}
	v, found, err := p.catalog().View(ctx, in.external)
	if err != nil || !found {
		return nil, err
	}
	p.graph.foreignMu.Lock()
	defer p.graph.foreignMu.Unlock()
	return p.graph.resolveForeign(ctx, in.external, v, p.around)
}

// readView computes a persistent view for a query. reading are the views that
// are being computed from it.
func (p *Pipeline) readView(ctx context.Context, d *dataset, reading []*dataset) (array.RecordReader, error) {
	if slices.Contains(reading, d) {
		return nil, fault.New("CIRCULAR_DEPENDENCY", "the view reads itself").At(fault.Where{Dataset: d.id}).
			WithHint("Change the definition of one of the views between")
	}
	reading = append(slices.Clone(reading), d)
	b := d.query()
	inputs, keys := map[string]array.RecordReader{}, map[string][]string{}
	var opened openReaders
	for _, in := range b.inputs {
		r, err := p.scan(ctx, in, nil, reading...)
		if err != nil {
			opened.release()
			return nil, located(err, "QUERY_FAILED", fault.Where{Dataset: d.id})
		}
		opened = append(opened, r)
		inputs[in.alias], keys[in.alias] = r, in.historyKeys()
	}
	q := b.statement.Select()
	q.Clock, q.Keys = p.opts.Clock(), keys
	out, err := p.engine.run(ctx, q, inputs)
	if err != nil {
		opened.release()
		return nil, located(err, "QUERY_FAILED", fault.Where{Dataset: d.id})
	}
	return releasing(out, opened.release), nil
}
