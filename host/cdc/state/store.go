package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/uuid"

	"github.com/weir-data/weir/host/storage"
)

const runFolder = "runs"

// Store is the folder of one target's state. Its methods may be called
// concurrently. Close it when every State and reader of it is released.
type Store struct {
	files storage.Store
	cache string
	mem   memory.Allocator
	once  sync.Once
	local *storage.Dir // of copies, see cache.go

	mu    sync.Mutex
	runs  map[string]*run     // open, by name
	fresh map[string]struct{} // runs that this store wrote, as far as no version that was kept names them
	stamp int64               // of runs to be written: the version they build on
	last  Manifest            // that was loaded
}

// Open gives the state that lies in files. Copies of runs that are not on a
// local disk are kept in the folder cache; "" holds them in memory.
func Open(files storage.Store, cache string, mem memory.Allocator) *Store {
	return &Store{files: files, cache: cache, mem: mem, runs: map[string]*run{}, fresh: map[string]struct{}{}, stamp: -1, last: Manifest{K: -1}}
}

// Close gives back the open files. Their copies in the cache stay.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, r := range s.runs {
		errs = append(errs, r.release())
	}
	clear(s.runs)
	return errors.Join(errs...)
}

// runName makes the name of a new run. Its stamp is a number that was in the
// folder when the writer looked: Sweep keeps what is stamped no earlier than
// the state it is told to keep, because that may be in the making.
func (s *Store) runName(ctx context.Context) (string, error) {
	s.mu.Lock()
	stamp := s.stamp
	s.mu.Unlock()
	if stamp < 0 {
		last, err := s.newest(ctx)
		if err != nil {
			return "", err
		}
		stamp = s.raise(max(0, last))
	}
	return fmt.Sprintf("%s/%020d-%s.arrow", runFolder, stamp, uuid.NewString()), nil
}

func (s *Store) raise(stamp int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stamp = max(s.stamp, stamp)
	return s.stamp
}

func runStamp(name string) (int64, bool) {
	stem, ok := strings.CutSuffix(path.Base(name), ".arrow")
	number, _, cut := strings.Cut(stem, "-")
	stamp, err := strconv.ParseInt(number, 10, 64)
	return stamp, ok && cut && err == nil && stamp >= 0 && path.Dir(name) == runFolder
}

// State is one version of a state, open for reading. Release it.
type State struct {
	store    *Store
	manifest Manifest
	schema   *arrow.Schema
	runs     []view    // oldest first
	columns  [][]place // of each run, for each column of the schema
}

// view is the part of a run that counts.
type view struct {
	*run
	from, to []byte // hashes; to is nil at the end of all
}

// Load opens version k, or for k < 0 a state without entries. Entries are given
// with these value columns: those that a run does not have are NULL in its entries.
func (s *Store) Load(ctx context.Context, k int64, values ...arrow.Field) (*State, error) {
	st := &State{store: s, manifest: Manifest{K: -1, Base: -1}, schema: Schema(values...)}
	if k < 0 {
		last, err := s.newest(ctx)
		s.raise(max(0, last))
		return st, err
	}
	m, err := s.Manifest(ctx, k)
	if err != nil {
		return nil, err
	}
	s.raise(k)
	s.mu.Lock()
	s.last = *m
	s.mu.Unlock()
	st.manifest = *m
	for _, info := range m.Runs {
		if err := st.add(ctx, info); err != nil {
			return nil, errors.Join(err, st.Release())
		}
	}
	if err := st.give(values); err != nil {
		return nil, errors.Join(err, st.Release())
	}
	return st, nil
}

// Manifest reads what version k is made of, and opens none of it.
func (s *Store) Manifest(ctx context.Context, k int64) (*Manifest, error) {
	data, err := s.files.Get(ctx, manifestName(k))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, corrupt(manifestName(k), "the target names version %d of it, which is missing", k)
	}
	if err != nil {
		return nil, err
	}
	return decodeManifest(data, k)
}

// add opens a run.
func (st *State) add(ctx context.Context, info RunInfo) error {
	r, err := st.store.open(ctx, info)
	if err == nil {
		st.runs = append(st.runs, view{r, sliceStart(info.From), sliceStart(info.to())})
	}
	return err
}

// give sets the value columns in which entries are given.
func (st *State) give(values []arrow.Field) error {
	st.schema = Schema(values...)
	for _, v := range st.runs {
		places, err := columnsOf(v.run, st.schema, st.store.mem)
		if err != nil {
			return err
		}
		st.columns = append(st.columns, places)
	}
	return nil
}

// Release gives up the state.
func (st *State) Release() error {
	var errs []error
	for _, r := range st.runs {
		errs = append(errs, r.release())
	}
	st.runs = nil
	return errors.Join(errs...)
}

// Manifest gives a copy of what the version is made of. K is -1 for a state without entries.
func (st *State) Manifest() Manifest {
	m := st.manifest
	m.Runs = slices.Clone(m.Runs)
	return m
}

// Schema gives the columns of the entries.
func (st *State) Schema() *arrow.Schema { return st.schema }

// Entries is an upper bound of the entries, and tells whether there are any.
func (st *State) Entries() int64 { return st.manifest.Entries }

// open gives a run, retained. Open runs stay with the store until it closes or sweeps them.
func (s *Store) open(ctx context.Context, info RunInfo) (*run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[info.Name]; r != nil && !r.broken.Load() {
		r.retain()
		return r, nil
	} else if r != nil {
		delete(s.runs, info.Name)
		if err := r.release(); err != nil {
			return nil, err
		}
	}
	r, err := openRun(ctx, s, info)
	if err != nil {
		return nil, err
	}
	s.runs[info.Name] = r
	r.retain()
	return r, nil
}
