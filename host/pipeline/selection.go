package pipeline

import (
	"context"
	"path/filepath"

	"github.com/weir-data/weir/host/fault"
)

// selection is what an update does with each table.
type selection struct {
	run  map[*dataset]bool
	full map[*dataset]bool
}

// anyFull tells whether a table starts again from nothing.
func (s *selection) anyFull() bool {
	for _, full := range s.full {
		if full {
			return true
		}
	}
	return false
}

// choose reads the selections of an update and checks their names.
func (p *Pipeline) choose(opt RunOptions) (*selection, error) {
	s := &selection{run: map[*dataset]bool{}, full: map[*dataset]bool{}}
	some := len(opt.Refresh) > 0 || len(opt.FullRefresh) > 0 || opt.File != ""
	if opt.FullRefreshAll && some {
		return nil, fault.New("INVALID_SELECTION", "a full refresh of everything cannot be combined with a selection")
	}
	if opt.RefreshFailed {
		if some || opt.FullRefreshAll {
			return nil, fault.New("INVALID_SELECTION", "a refresh of what failed cannot be combined with another selection")
		}
		return s, nil // settled when nobody else runs an update
	}
	for _, name := range opt.Refresh {
		d, err := p.tableNamed(name)
		if err != nil {
			return nil, err
		}
		s.run[d] = true
	}
	for _, name := range opt.FullRefresh {
		d, err := p.tableNamed(name)
		if err != nil {
			return nil, err
		}
		if s.run[d] {
			return nil, fault.New("INVALID_SELECTION", "%s is selected both for a refresh and for a full refresh", d.id)
		}
		s.full[d] = true
	}
	for d := range s.full {
		s.run[d] = true
	}
	if opt.File != "" {
		if err := p.chooseFile(s, opt.File); err != nil {
			return nil, err
		}
	}
	if !some {
		for _, d := range p.graph.order {
			if !d.isView() {
				s.run[d] = true
				s.full[d] = opt.FullRefreshAll
			}
		}
	}
	return s, p.keepProtected(s, some)
}

// chooseFailed selects the tables with a flow that the last update did not
// bring to its end: failed, skipped, canceled, or never begun since it was killed.
func (p *Pipeline) chooseFailed(last *updateRecord) *selection {
	s := &selection{run: map[*dataset]bool{}, full: map[*dataset]bool{}}
	if last == nil {
		return s
	}
	undone := map[string]bool{}
	for _, f := range last.Flows {
		if f.State != Completed && f.State != Excluded {
			undone[f.Dataset] = true
		}
	}
	for _, d := range p.graph.order {
		if !d.isView() && undone[d.id] {
			s.run[d] = true
		}
	}
	return s
}

// chooseFile selects the tables that one file defines.
func (p *Pipeline) chooseFile(s *selection, file string) error {
	abs, err := filepath.Abs(file)
	if err != nil {
		return fault.Wrap(err, "INVALID_SELECTION", "the path %q cannot be made absolute", file)
	}
	found := false
	for _, d := range p.graph.order {
		for _, at := range placesOf(d) {
			if at == abs || at == p.spec.abs(file) {
				found = true
				if !d.isView() {
					s.run[d] = true
				}
			}
		}
	}
	if !found {
		return fault.New("INVALID_SELECTION", "the file %s defines no dataset of this pipeline", file)
	}
	if len(s.run) == 0 {
		return fault.New("INVALID_SELECTION", "the file %s defines temporary views only; there is nothing to refresh", file)
	}
	return nil
}

// placesOf lists the files that define a dataset or a flow of it.
func placesOf(d *dataset) []string {
	files := []string{d.place.File}
	for _, f := range d.flows {
		files = append(files, f.place.File)
	}
	return files
}

// tables gives the selected tables in the order of the graph.
func (s *selection) tables(g *graph) []*dataset {
	var out []*dataset
	for _, d := range g.order {
		if s.run[d] {
			out = append(out, d)
		}
	}
	return out
}

// checkDependencies holds that what a selected flow reads, and no selected
// flow makes, is there.
func (p *Pipeline) checkDependencies(ctx context.Context, s *selection) error {
	for _, d := range s.tables(p.graph) {
		for _, up := range d.upstreamTables() {
			if s.run[up] {
				continue
			}
			snapshot, err := snapshotOf(ctx, p.tableOf(up))
			if err != nil {
				return err
			}
			if snapshot == nil {
				return fault.New("TABLE_OR_VIEW_NOT_FOUND", "the dataset reads %s, which is not selected and has not been made yet", up.id).
					At(fault.Where{Dataset: d.id}).WithHint("Select %s as well", up.id)
			}
		}
	}
	return nil
}
