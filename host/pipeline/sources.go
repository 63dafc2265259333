package pipeline

import (
	"context"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/cloud"
	"github.com/weir-data/weir/host/stream"
)

// openSources checks the options of every file source; nothing is read.
func (p *Pipeline) openSources(ctx context.Context) {
	wrong := map[*dataset]bool{}
	for _, d := range p.graph.order {
		for f, in := range d.inputs() {
			at := fault.Where{Dataset: d.id, Flow: f.name, File: in.place.File, Line: in.place.Line}
			if in.changes != nil {
				_, err := in.changes.Options()
				if err == nil && in.dataset != nil && in.dataset.isView() {
					err = fault.New("DELTA_MISSING_CHANGE_DATA", "%s is a view, which has no change data feed", in.dataset.id)
				}
				if p.flaws.add(located(err, "DELTA_INVALID_CDC_RANGE", at)) {
					wrong[d] = true
				}
			}
			if in.files == nil {
				continue
			}
			src, err := p.openSource(ctx, in, at)
			if p.flaws.add(err) {
				wrong[d] = true
				continue
			}
			p.sources[in] = src
		}
	}
	p.graph.without(wrong)
}

// openSource checks the options of one file source.
func (p *Pipeline) openSource(ctx context.Context, in *input, at fault.Where) (*ingest.Source, error) {
	path, options, err := p.spec.readable(in.files)
	if err != nil {
		return nil, located(err, "INVALID_SOURCE", at)
	}
	src, err := ingest.Parse(in.files.kind, path, options, ingest.Env{
		Dir: p.spec.Dir, Open: func(root string) (storage.Store, error) { return p.openLanding(ctx, root) },
	})
	if err != nil {
		return nil, located(err, "INVALID_SOURCE", at)
	}
	if err := p.outsideStorage(path); err != nil {
		return nil, err.At(at)
	}
	return src, nil
}

// readable gives path and options of a file source as they are used: volumes
// are folders and secrets revealed.
func (s *Spec) readable(f *files) (string, map[string]string, error) {
	if hasSecret(f.path) {
		return "", nil, fault.New("SECRET_NOT_ALLOWED", "a path must not hold a secret: it is shown and recorded").
			WithHint("Credentials of a bucket come from the environment")
	}
	path, err := s.locate(f.path)
	if err != nil {
		return "", nil, err
	}
	options := maps.Clone(f.options)
	for _, k := range slices.Sorted(maps.Keys(options)) {
		if options[k], err = s.secrets.reveal(options[k]); err != nil {
			return "", nil, err
		}
	}
	return path, options, nil
}

// tableSource makes the source of a flow that streams a table.
func (p *Pipeline) tableSource(in *input, table *delta.Table) (stream.Source, error) {
	return stream.NewDeltaSource(in.id(), table, in.options)
}

// openLanding opens the folder of a source. One that does not exist, which in a
// bucket is one without anything in it, must not look like one without news.
func (p *Pipeline) openLanding(ctx context.Context, root string) (storage.Store, error) {
	if !strings.Contains(root, "://") {
		return ingest.OpenLocal(root)
	}
	if !cloud.IsURL(root) {
		return nil, fault.New("NOT_SUPPORTED", "path %s: local folders, s3://, azblob:// and gs:// can be read", root)
	}
	ctx = context.WithoutCancel(ctx) // the store is used after the call that opened the pipeline
	scheme, rest, _ := strings.Cut(root, "://")
	bucket, path, _ := strings.Cut(rest, "/")
	s, err := p.openBucket(ctx, scheme+"://"+bucket+"/"+(&url.URL{Path: path}).EscapedPath())
	if err != nil {
		return nil, err
	}
	for _, err := range s.List(ctx, "", storage.ListOptions{NamesOnly: true}) {
		return s, err
	}
	return nil, fault.New("PATH_NOT_FOUND", "there is nothing in %s", root).
		WithHint("Correct the path, name a folder instead of a file, or put the first file there")
}

// outsideStorage refuses a landing folder that holds the pipeline's storage:
// the source would read the tables' own logs.
func (p *Pipeline) outsideStorage(path string) *fault.Error {
	landing := path
	if i := strings.IndexAny(landing, "*?[{"); i >= 0 {
		landing = landing[:strings.LastIndexByte(landing[:i], '/')+1]
	}
	around := false
	if remote := cloud.IsURL(p.spec.Storage); remote || strings.Contains(path, "://") {
		storage, _, _ := strings.Cut(p.spec.Storage, "?")
		around = remote && strings.HasPrefix(strings.TrimSuffix(storage, "/")+"/", strings.TrimSuffix(landing, "/")+"/")
	} else if rel, err := filepath.Rel(p.spec.abs(landing), p.spec.Storage); err == nil {
		around = rel != ".." && !strings.HasPrefix(rel, "../")
	}
	if around {
		return fault.New("NESTED_STORAGE", "the files of %s lie around the storage %s, whose tables would be read as input", path, p.spec.Storage).
			WithHint("Make landing folder and storage siblings")
	}
	return nil
}
