package pipeline

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/catalog"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/cloud"
	"github.com/weir-data/weir/runtime/plugin"
)

// Options are the settings of the machine a pipeline runs on; none of them
// changes what is written.
type Options struct {
	// CacheDir holds compiled modules and other things that can be rebuilt.
	CacheDir string
	// Logger takes what is not for the event log; nil drops it.
	Logger *slog.Logger
	// Clock gives the batch timestamps; nil means the system's.
	Clock func() time.Time
	// Threads bounds the SQL engine, the flows and the tasks that run at once;
	// 0 means the number of processors.
	Threads int
	// MemoryLimit in bytes of the process; 0 takes the spec's, else most of the machine.
	MemoryLimit int64
	// TempDir is where the SQL engine spills; "" means below CacheDir.
	TempDir string
	// Tolerant opens a project that has flaws, so that Plan can tell all of them.
	Tolerant bool
	// File is the only file whose flaws keep the pipeline from being opened, when
	// nothing but its datasets is to be refreshed.
	File string
	// Alloc is where Arrow memory comes from; nil means the default.
	Alloc memory.Allocator
	// Storage replaces the spec's storage folder, for tests that make it fail.
	Storage storage.Store

	shortPauses bool // for tests of retries

	taskBytes int64 // for tests of batches with several tasks; 0 means the default
}

// Pipeline is an opened pipeline. It is safe for concurrent use; Close frees it.
type Pipeline struct {
	spec    *Spec
	opts    Options
	budget  budget
	engine  *lazyEngine
	wasm    *plugin.Engine
	modules []*module
	graph   *graph
	sources map[*input]*ingest.Source
	flaws   *flaws
	// readsLog says that a query of the pipeline reads its event log.
	readsLog bool

	mu    sync.Mutex
	store storage.Store
	// made is false while the storage folder does not exist.
	made bool
	// tables are those that were opened, by where they lie. The versions of many
	// large tables would be much to hold until the end, so nothing is held here.
	tables map[string]weak.Pointer[delta.Table]
	// buckets are open object stores.
	buckets []*cloud.Store

	// What a person should know of the spec and the SQL files.
	deprecated []deprecation
	notices    []Notice
}

// Open registers the pipeline's datasets and flows. It reads the SQL files and
// the modules' manifests and writes nothing to the storage.
func Open(ctx context.Context, spec *Spec, opts Options) (*Pipeline, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Alloc == nil {
		opts.Alloc = memory.DefaultAllocator
	}
	p := &Pipeline{spec: spec, opts: opts, budget: findBudget(opts.MemoryLimit, spec.MemoryLimit), sources: map[*input]*ingest.Source{}, tables: map[string]weak.Pointer[delta.Table]{}, flaws: &flaws{}}
	if opts.File != "" {
		p.flaws.only = opts.File
		if abs, err := filepath.Abs(opts.File); err == nil {
			p.flaws.only = abs
		}
		if _, err := os.Stat(p.flaws.only); err != nil {
			p.flaws.only = spec.abs(opts.File)
		}
	}
	p.budget.apply()
	p.engine = &lazyEngine{opts: opts, memory: p.budget.sqlLimit()}
	if err := p.load(ctx); err != nil {
		if closing := p.Close(context.WithoutCancel(ctx)); closing != nil {
			return nil, errors.Join(err, closing)
		}
		return nil, err
	}
	return p, nil
}

func (p *Pipeline) load(ctx context.Context) error {
	if err := p.findStorage(ctx); err != nil {
		return err
	}
	texts, err := p.spec.sqlFiles()
	if err != nil {
		return err
	}
	if len(p.spec.Plugins) > 0 {
		if p.wasm, err = plugin.NewEngine(ctx, plugin.Options{CacheDir: p.opts.CacheDir, Limits: p.spec.Limits}); err != nil {
			return err
		}
	}
	for _, ref := range p.spec.Plugins {
		m, err := loadModule(ctx, p.wasm, p.spec, ref)
		if !p.flaws.add(err) {
			p.modules = append(p.modules, m)
		}
	}
	p.graph = newGraph(catalog.Name{Catalog: p.spec.Catalog, Schema: p.spec.Schema})
	statements := parseFiles(p.spec, texts, p.flaws)
	p.deprecated = p.graph.deprecations(statements)
	register(p.graph, p.spec, statements, p.modules, p.flaws)
	p.notices = append(slices.Clone(p.spec.Notices), p.graph.idle()...)
	if log := p.spec.EventLog; log != nil && p.graph.tables[*log] != nil {
		p.flaws.add(fault.New("PIPELINE_DUPLICATE_IDENTIFIERS", "%s is both a dataset and the published event log", log).
			At(p.graph.tables[*log].place).WithHint("Give event_log in %s another name", p.spec.Path))
	}
	p.graph.resolve(ctx, p.around, p.flaws)
	p.notices = append(p.notices, p.graph.feedNotices()...)
	p.checkEdition()
	p.checkEventLogs(ctx)
	p.openSources(ctx)
	p.openSinks(ctx)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case p.opts.Tolerant:
		return nil // Plan tells
	}
	return p.flaws.err()
}

// Close frees the engines and the modules.
func (p *Pipeline) Close(ctx context.Context) error {
	errs := []error{p.engine.close()}
	for _, m := range p.modules {
		errs = append(errs, m.loaded.Close(ctx))
	}
	if p.wasm != nil {
		errs = append(errs, p.wasm.Close(ctx))
	}
	for _, b := range p.buckets {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// Spec gives the spec the pipeline was opened with.
func (p *Pipeline) Spec() *Spec { return p.spec }

// findStorage opens the storage if it is there.
func (p *Pipeline) findStorage(ctx context.Context) (err error) {
	if p.opts.Storage != nil {
		p.store, p.made = p.opts.Storage, true
		return nil
	}
	if cloud.IsURL(p.spec.Storage) {
		// A bucket has no folders that could be missing.
		p.store, err = p.openBucket(ctx, p.spec.Storage)
		p.made = err == nil
		if err != nil {
			return fault.Place(err, "INVALID_SPEC", fault.Where{File: p.spec.Path})
		}
		return nil
	}
	p.store = absentStore{}
	info, err := os.Stat(p.spec.Storage)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.Wrap(err, "STORAGE_IO_ERROR", "the storage %s cannot be read", p.spec.Storage)
	case !info.IsDir():
		return fault.New("INVALID_SPEC", "the storage %s is no folder", p.spec.Storage).At(fault.Where{File: p.spec.Path})
	}
	return p.makeStorage()
}

// openBucket opens a folder of an object store; Close closes it.
func (p *Pipeline) openBucket(ctx context.Context, url string) (storage.Store, error) {
	s, err := cloud.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buckets = append(p.buckets, s)
	return s, nil
}

// makeStorage opens the storage and makes its folder when it is missing.
func (p *Pipeline) makeStorage() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made {
		return nil
	}
	dir, err := storage.OpenDir(p.spec.Storage)
	if err != nil {
		return err
	}
	p.store, p.made = dir, true
	return nil
}

func (p *Pipeline) storage() storage.Store {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.store
}

func (p *Pipeline) catalog() *catalog.Catalog { return catalog.Open(p.storage()) }

// folder is where the pipeline keeps what is not a dataset.
func (p *Pipeline) folder(parts ...string) storage.Store {
	path := "_weir/" + p.spec.Name
	for _, part := range parts {
		path += "/" + part
	}
	return storage.Sub(p.storage(), path)
}

// openTable gives the Delta table of a store: the same as long as somebody holds
// it, and mostly longer, since a table knows its newest version and reads of the
// log only what came after it.
func (p *Pipeline) openTable(s storage.Store) *delta.Table {
	open := func() *delta.Table {
		return delta.Open(s, delta.WithAllocator(p.opts.Alloc), delta.WithClock(p.opts.Clock), delta.WithEngine(sql.NewEvaluator(p.engine.get, p.opts.Clock)))
	}
	root := storage.Root(s)
	if root == "" {
		return open()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.tables[root].Value(); t != nil {
		return t
	}
	t := open()
	p.tables[root] = weak.Make(t)
	return t
}

// tableOf gives a table of this pipeline. A private one lies where no other
// pipeline looks.
func (p *Pipeline) tableOf(d *dataset) *delta.Table {
	if d.private {
		return p.openTable(p.folder("private", d.name.Path()))
	}
	return p.openTable(p.catalog().Table(d.name))
}

func (p *Pipeline) quarantineOf(d *dataset) *delta.Table {
	if d.private {
		return p.openTable(p.folder("private", d.name.Quarantine().Path()))
	}
	return p.openTable(p.catalog().Table(p.quarantineName(d)))
}

// quarantineName is what the quarantine table of a dataset is called. A sink
// has no schema of its own; its table is in the pipeline's.
func (p *Pipeline) quarantineName(d *dataset) catalog.Name {
	name := d.name
	if d.kind == sink {
		name = p.graph.defaults
		name.Table = d.id
	}
	return name.Quarantine()
}

// inputTable gives the table that an input reads.
func (p *Pipeline) inputTable(in *input) *delta.Table {
	switch {
	case in.log != nil:
		return p.eventTable()
	case in.dataset != nil:
		return p.tableOf(in.dataset)
	case in.quarantine != nil:
		return p.quarantineOf(in.quarantine)
	}
	return p.openTable(p.catalog().Table(in.external))
}

// around tells what the storage holds under a name that is not this pipeline's.
func (p *Pipeline) around(ctx context.Context, name catalog.Name) (*neighbour, error) {
	snapshot, err := snapshotOf(ctx, p.openTable(p.catalog().Table(name)))
	if err != nil {
		return nil, err
	}
	if snapshot != nil {
		return &neighbour{kind: kindOf(snapshot)}, nil
	}
	v, found, err := p.catalog().View(ctx, name)
	if err != nil || !found {
		return nil, err
	}
	return &neighbour{kind: persistentView, view: &v}, nil
}

// snapshotOf gives the newest snapshot, nil when there is no table.
func snapshotOf(ctx context.Context, t *delta.Table) (*delta.Snapshot, error) {
	s, err := t.Snapshot(ctx)
	if fault.CodeOf(err) == "DELTA_TABLE_NOT_FOUND" {
		return nil, nil
	}
	return s, err
}

// Table gives the Delta table of a name of one to three parts: a dataset's, a
// quarantine table or another table of the storage.
func (p *Pipeline) Table(name string) (*delta.Table, error) {
	in, err := p.named(name)
	if err != nil {
		return nil, err
	}
	return p.inputTable(in), nil
}

// named gives what a name outside of the graph, such as one of a query, means.
func (p *Pipeline) named(name string) (*input, error) {
	d, quarantineOf, full, err := p.graph.lookup(name)
	switch {
	case err != nil:
		return nil, err
	case d != nil && d.kind == temporaryView:
		return nil, fault.New("NOT_SUPPORTED", "%s is a temporary view; it exists only within an update", d.id).
			WithHint("Query a table that reads it")
	case d != nil && d.kind == sink:
		return nil, fault.New("TABLE_OR_VIEW_NOT_FOUND", "%s is a sink, which cannot be read", d.id)
	case d != nil:
		return &input{written: name, dataset: d}, nil
	case quarantineOf != nil:
		return &input{written: name, quarantine: quarantineOf}, nil
	}
	return &input{written: name, external: full}, nil
}
