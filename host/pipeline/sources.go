package pipeline

import (
	"path/filepath"
	"strings"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
)

// openSources checks the options of every file source; nothing is read.
func (p *Pipeline) openSources() error {
	for _, d := range p.graph.order {
		for _, in := range d.flow.body.inputs {
			if in.files == nil {
				continue
			}
			at := fault.Where{Dataset: d.id, Flow: d.flow.name, File: in.place.File, Line: in.place.Line}
			src, err := ingest.Parse(in.files.kind, in.files.path, in.files.options, ingest.Env{Dir: p.spec.Dir})
			if err != nil {
				return located(err, "INVALID_SOURCE", at)
			}
			if err := p.outsideStorage(in.files.path); err != nil {
				return err.At(at)
			}
			p.sources[in] = src
		}
	}
	return nil
}

// outsideStorage refuses a landing folder that holds the pipeline's storage:
// the source would read the tables' own logs.
func (p *Pipeline) outsideStorage(path string) *fault.Error {
	if strings.Contains(path, "://") {
		return nil
	}
	landing := path
	if i := strings.IndexAny(landing, "*?[{"); i >= 0 {
		landing = filepath.Dir(landing[:i] + "x")
	}
	landing = p.spec.abs(landing)
	if rel, err := filepath.Rel(landing, p.spec.Storage); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return fault.New("NESTED_STORAGE", "the files of %s lie around the storage %s, whose tables would be read as input", path, p.spec.Storage).
			WithHint("Make landing folder and storage siblings")
	}
	return nil
}
