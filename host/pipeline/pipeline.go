package pipeline

import (
	"context"
	"log/slog"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/weir-data/weir/host/fault"
)

// Options are the settings of the machine a pipeline runs on; none of them
// changes what is written.
type Options struct {
	// CacheDir holds compiled modules and other things that can be rebuilt.
	CacheDir string
	Logger   *slog.Logger
	Clock    func() time.Time
	// Threads bounds the SQL engine and the flows that run at once; 0 means
	// the number of processors.
	Threads int
	// MemoryLimit of the SQL engine, such as "2GB"; "" leaves it to the engine.
	MemoryLimit string
	// TempDir is where the SQL engine spills; "" means below CacheDir.
	TempDir string
}

// Pipeline is an opened pipeline. It is safe for concurrent use; Close frees it.
type Pipeline struct {
	spec *Spec
	opts Options
}

// Open registers the pipeline's datasets and flows. It reads the SQL files and
// the modules' manifests and writes nothing to the storage.
func Open(ctx context.Context, spec *Spec, opts Options) (*Pipeline, error) {
	return &Pipeline{spec: spec, opts: opts}, nil
}

// Close frees the engines.
func (p *Pipeline) Close(ctx context.Context) error { return nil }

// Spec gives the spec the pipeline was opened with.
func (p *Pipeline) Spec() *Spec { return p.spec }

// Graph gives the datasets and their edges without reading any data.
func (p *Pipeline) Graph(ctx context.Context) (*Graph, error) {
	return nil, fault.New("NOT_SUPPORTED", "graphs are not made yet")
}

// Plan works out every dataset's schema and writes nothing.
func (p *Pipeline) Plan(ctx context.Context) (*Plan, error) {
	return nil, fault.New("NOT_SUPPORTED", "plans are not made yet")
}

// Run runs one update. The error is set when the update could not start; a
// flow that failed is told by Result.State and its FlowResult.
func (p *Pipeline) Run(ctx context.Context, opt RunOptions) (*Result, error) {
	return nil, fault.New("NOT_SUPPORTED", "updates are not run yet")
}

// Query runs one read-only SELECT over the pipeline's datasets, named by one
// to three parts. The caller releases the reader.
func (p *Pipeline) Query(ctx context.Context, text string) (array.RecordReader, error) {
	return nil, fault.New("NOT_SUPPORTED", "queries are not run yet")
}
