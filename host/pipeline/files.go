package pipeline

import (
	"context"
	"iter"
	"strings"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/stream"
)

// Files gives every file that a flow knows, ascending by path. The flow is
// named by itself or by its table (one to three parts).
func (p *Pipeline) Files(ctx context.Context, flow string) (iter.Seq2[stream.FileState, error], error) {
	f, err := p.flowNamed(flow)
	if err != nil {
		return nil, err
	}
	if source := p.chainOf(f, nil, nil).source; source.files == nil {
		return nil, fault.New("NOT_A_FILE_SOURCE", "the flow reads %s, not files", source.id()).
			At(fault.Where{Dataset: f.target.id, Flow: f.name})
	}
	return stream.FileStates(ctx, p.checkpoint(f)), nil
}

// flowNamed finds a flow by its own name or, when it is the only one, its table's.
func (p *Pipeline) flowNamed(name string) (*flow, error) {
	for _, d := range p.graph.order {
		for _, f := range d.flows {
			if !d.isView() && strings.EqualFold(f.name, name) && f.name != d.name.Table {
				return f, nil
			}
		}
	}
	d, err := p.tableNamed(name)
	if err != nil {
		return nil, err
	}
	if len(d.flows) > 1 {
		var names []string
		for _, f := range d.flows {
			names = append(names, f.name)
		}
		return nil, fault.New("UNKNOWN_FLOW", "%d flows fill the table", len(d.flows)).At(fault.Where{Dataset: d.id}).
			WithHint("Name one of them: %s", strings.Join(names, ", "))
	}
	return d.flows[0], nil
}

// tableNamed finds a table of this pipeline that a command names.
func (p *Pipeline) tableNamed(name string) (*dataset, error) {
	d, _, _, err := p.graph.lookup(name)
	if err != nil {
		return nil, err
	}
	if d != nil && d.isView() {
		return nil, fault.New("UNKNOWN_DATASET", "%q is a view; only tables can be named here", name).
			WithHint("Name a table that reads it")
	}
	if d == nil {
		e := fault.New("UNKNOWN_DATASET", "the pipeline has no dataset %q", name)
		return nil, suggest(e, name, p.graph.names(), "It has "+strings.Join(p.graph.tableNames(), ", "))
	}
	return d, nil
}
