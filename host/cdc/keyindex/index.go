package keyindex

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"
	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// Options is what an Index is of.
type Options struct {
	// Cache is the folder for index files; those of one table lie in a folder below it.
	Cache string
	// Table is the id of the table (Metadata.ID).
	Table string
	// Keys are the columns that identify a row, Start is the one that tells the
	// versions of a key apart (__START_AT of SCD type 2); "" is none.
	Keys  []string
	Start string
	// Rows is how many records are held while index files are made, 20 bytes
	// each; 0 is 6,000,000. A larger data file is read several times.
	Rows int
	// Memory holds the columns that are read; nil is the default allocator.
	Memory memory.Allocator
}

// Index finds rows of one table. It may be used by several goroutines.
type Index struct {
	opt    Options
	folder string

	mu      sync.Mutex
	open    map[string]*reader // by the name of the index file
	vectors map[string]vector  // by path of the data file
	swept   bool               // since the last index file was made
}

// vector is the deletion vector of a data file, as read last.
type vector struct {
	id   string
	rows *delta.RowSet
}

// Open gives the index of a table. Nothing is read or made before it is asked.
func Open(opt Options) *Index {
	if opt.Rows <= 0 {
		opt.Rows = 6_000_000
	}
	if opt.Memory == nil {
		opt.Memory = memory.DefaultAllocator
	}
	table := xxh3.HashString128(opt.Table).Bytes()
	return &Index{
		opt: opt, folder: filepath.Join(opt.Cache, "keyindex", hex.EncodeToString(table[:])),
		open: map[string]*reader{}, vectors: map[string]vector{},
	}
}

// Place is where the live row of a hash lies; File is nil when there is none.
type Place struct {
	// File is the snapshot's own and must not be changed.
	File *delta.AddFile
	Row  int64
}

// Locate gives the place of each of the hashes, in their order. Sorted ones are
// found faster. Index files that are missing are made first.
func (x *Index) Locate(ctx context.Context, snap *delta.Snapshot, ids []rowcode.Hash) ([]Place, error) {
	out := make([]Place, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	files, err := x.ready(ctx, snap)
	if err != nil {
		return nil, err
	}
	sorted, at := order(ids)
	found, err := x.probe(ctx, snap, files, sorted)
	if err != nil {
		return nil, err
	}
	var twice []collision
	for _, h := range found {
		p := &out[h.at]
		if at != nil {
			p = &out[at[h.at]]
		}
		if p.File != nil {
			twice = append(twice, collision{*p, Place{h.file, h.row}})
			continue
		}
		*p = Place{h.file, h.row}
	}
	if len(twice) > 0 {
		return nil, x.duplicates(ctx, snap, twice)
	}
	// A hash that was asked for more than once has its answer at the first.
	for i := 1; i < len(sorted); i++ {
		switch {
		case sorted[i] != sorted[i-1]:
		case at == nil:
			out[i] = out[i-1]
		default:
			out[at[i]] = out[at[i-1]]
		}
	}
	return out, nil
}

// Build makes the index files of a snapshot that are missing, so that the next
// Locate finds them.
func (x *Index) Build(ctx context.Context, snap *delta.Snapshot) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, err := x.ready(ctx, snap)
	return err
}

// Warm does of a Locate to come what is little work: it opens index files and
// reads deletion vectors, and makes the index files that are missing unless their
// data files take more bytes than that together. Locate tries again what fails.
func (x *Index) Warm(ctx context.Context, snap *delta.Snapshot, most int64) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	identity, err := x.identity(snap)
	if err != nil {
		return err
	}
	missing := int64(0)
	for f := range snap.EachFile() {
		name := indexName(identity, f)
		if x.open[name] != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(x.folder, name)); err != nil {
			missing += f.Size
		}
	}
	if missing > most {
		return nil
	}
	files, err := x.ready(ctx, snap)
	if err != nil {
		return err
	}
	_, err = x.deleted(ctx, snap, files)
	return err
}

// Close closes the files that are open. The Index may be used again.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var errs []error
	for _, r := range x.open {
		errs = append(errs, r.close())
	}
	x.open, x.vectors = map[string]*reader{}, map[string]vector{}
	return errors.Join(errs...)
}

// order gives the hashes sorted, and where each of them stood; nil when they were sorted.
func order(ids []rowcode.Hash) (sorted []rowcode.Hash, at []int) {
	compare := func(a, b rowcode.Hash) int { return compareHashes(&a, &b) }
	if slices.IsSortedFunc(ids, compare) {
		return ids, nil
	}
	at = make([]int, len(ids))
	for i := range at {
		at[i] = i
	}
	slices.SortFunc(at, func(a, b int) int { return cmp.Or(compareHashes(&ids[a], &ids[b]), a-b) })
	sorted = make([]rowcode.Hash, len(ids))
	for i, j := range at {
		sorted[i] = ids[j]
	}
	return sorted, at
}

// indexed is a live data file with its index.
type indexed struct {
	file *delta.AddFile
	name string // of the index file
	r    *reader
}

// ready opens the index of every live file, and makes those that are missing.
func (x *Index) ready(ctx context.Context, snap *delta.Snapshot) ([]indexed, error) {
	identity, err := x.identity(snap)
	if err != nil {
		return nil, err
	}
	var files []indexed
	for f := range snap.EachFile() {
		files = append(files, indexed{file: f})
	}
	// The greatest first: they take longest to make.
	slices.SortFunc(files, func(a, b indexed) int {
		return cmp.Or(cmp.Compare(b.file.Size, a.file.Size), cmp.Compare(a.file.Path, b.file.Path))
	})
	var missing []*indexed
	live := make(map[string]bool, len(files))
	for i := range files {
		f := &files[i]
		f.name = indexName(identity, f.file)
		live[f.name] = true
		if f.r = x.open[f.name]; f.r == nil {
			missing = append(missing, f)
		}
	}
	made, err := x.make(ctx, snap, identity, missing)
	for _, f := range missing {
		if f.r != nil {
			x.open[f.name] = f.r
		}
	}
	if err != nil {
		return nil, err
	}
	x.forget(snap, live)
	if made || !x.swept {
		x.sweep(live)
		x.swept = true
	}
	return files, nil
}

// make opens or makes index files, several at once.
func (x *Index) make(ctx context.Context, snap *delta.Snapshot, identity [16]byte, missing []*indexed) (made bool, err error) {
	var absent []*indexed
	for _, f := range missing {
		if f.r, err = x.openReader(f, identity); err != nil {
			absent = append(absent, f)
		}
	}
	if len(absent) == 0 {
		return false, nil
	}
	workers := min(runtime.GOMAXPROCS(0), len(absent))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, f := range absent {
		g.Go(func() error { return x.build(ctx, snap, f, identity, max(1, x.opt.Rows/workers)) })
	}
	return true, g.Wait()
}

// openReader opens an index file that is there and is of this data file and identity.
func (x *Index) openReader(f *indexed, identity [16]byte) (*reader, error) {
	r, err := openReader(filepath.Join(x.folder, f.name))
	if err != nil {
		return nil, err
	}
	if r.head.identity != identity || r.head.file != fileID(f.file) {
		return nil, errors.Join(broken("it is of another file"), r.close())
	}
	if n, ok := f.file.NumRecords(); ok && n != r.head.rows {
		return nil, errors.Join(broken("it is of %d rows, the data file has %d", r.head.rows, n), r.close())
	}
	return r, nil
}

// identity is what index files of the same data file may differ in: the columns and their types.
func (x *Index) identity(snap *delta.Snapshot) ([16]byte, error) {
	var b []byte
	schema := snap.Schema()
	for _, name := range x.columns() {
		i := schema.FieldIndices(name)
		if len(i) != 1 {
			return [16]byte{}, fault.New("DELTA_COLUMN_NOT_FOUND", "the table has no column %q, which identifies its rows", name)
		}
		b = strconv.AppendQuote(b, name)
		b = strconv.AppendQuote(b, schema.Field(i[0]).Type.String())
	}
	if x.opt.Start != "" {
		b = append(b, "start"...)
	}
	return xxh3.Hash128(b).Bytes(), nil
}

// columns are those that identify a row.
func (x *Index) columns() []string {
	if x.opt.Start == "" {
		return x.opt.Keys
	}
	return append(slices.Clone(x.opt.Keys), x.opt.Start)
}

// indexName gives the name of the index file of a data file.
func indexName(identity [16]byte, f *delta.AddFile) string {
	id := fileID(f)
	return hex.EncodeToString(identity[:8]) + "-" + hex.EncodeToString(id[:]) + ".kix"
}

// fileID tells data files apart. A path is never used for other bytes by us, but others may.
func fileID(f *delta.AddFile) [16]byte {
	b := strconv.AppendInt([]byte(f.Path), f.Size, 10)
	b = strconv.AppendInt(append(b, ' '), f.ModificationTime, 10)
	return xxh3.Hash128(b).Bytes()
}

func (x *Index) cacheFault(err error) error {
	return fault.Wrap(err, "CDC_INDEX_CACHE", "the key index cannot be kept in %s", x.folder).
		WithHint("WEIR_CACHE_DIR must name a folder that can be written and has room: about 20 bytes for each row of the target")
}
