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
	d, err := p.flowTarget(flow)
	if err != nil {
		return nil, err
	}
	if source := p.chainOf(d, nil, nil).source; source.files == nil {
		return nil, fault.New("NOT_A_FILE_SOURCE", "the flow reads %s, not files", source.id()).
			At(fault.Where{Dataset: d.id, Flow: d.flow.name})
	}
	return stream.FileStates(ctx, p.checkpoint(d)), nil
}

// flowTarget finds the table of a flow by the flow's name or the table's.
func (p *Pipeline) flowTarget(name string) (*dataset, error) {
	for _, d := range p.graph.order {
		if !d.isView() && strings.EqualFold(d.flow.name, name) && d.flow.name != d.name.Table {
			return d, nil
		}
	}
	return p.tableNamed(name)
}

// tableNamed finds a table of this pipeline that a command names.
func (p *Pipeline) tableNamed(name string) (*dataset, error) {
	d, _, _, err := p.graph.lookup(name)
	if err != nil {
		return nil, err
	}
	if d != nil && d.isView() {
		return nil, fault.New("UNKNOWN_DATASET", "%q is a temporary view; only tables can be named here", name).
			WithHint("Name a table that reads it")
	}
	if d == nil {
		e := fault.New("UNKNOWN_DATASET", "the pipeline has no dataset %q", name)
		return nil, suggest(e, name, p.graph.names(), "It has "+strings.Join(p.graph.tableNames(), ", "))
	}
	return d, nil
}
