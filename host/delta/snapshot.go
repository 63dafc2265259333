package delta

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// Snapshot is the table at one version. It never changes.
type Snapshot struct {
	table    *Table
	version  int64
	time     time.Time
	modified time.Time // of the commit's file; zero when that is gone
	protocol *Protocol
	metadata *Metadata
	schema   *structType
	arrow    *arrow.Schema
	mapping  string // "none", "name" or "id"

	files   *fileSet[AddFile]
	tombs   *fileSet[RemoveFile]
	txns    map[string]Txn
	domains map[string]DomainMetadata

	sidecars []sidecarPlan // of the checkpoint that the table was opened with
}

// Version gives the version of the table that the snapshot shows.
func (s *Snapshot) Version() int64 { return s.version }

// Timestamp gives the time of that version: its in-commit timestamp, or the time of its file.
func (s *Snapshot) Timestamp() time.Time { return s.time }

// Schema gives the columns, the partition columns among them, in the table's order.
func (s *Snapshot) Schema() *arrow.Schema { return s.arrow }

// Protocol gives the table's protocol action.
func (s *Snapshot) Protocol() Protocol { return *s.protocol }

// Metadata gives the table's metaData action.
func (s *Snapshot) Metadata() Metadata { return *s.metadata }

// Properties gives a copy of the table's properties.
func (s *Snapshot) Properties() map[string]string { return maps.Clone(s.metadata.Configuration) }

// PartitionColumns names the columns the files are partitioned by.
func (s *Snapshot) PartitionColumns() []string { return slices.Clone(s.metadata.PartitionColumns) }

// Features lists the table features, those that the versions imply included, sorted.
func (s *Snapshot) Features() []string { return s.protocol.names() }

// NumFiles counts the live files.
func (s *Snapshot) NumFiles() int { return s.files.n }

// Files gives the live files sorted by path.
func (s *Snapshot) Files(ctx context.Context) ([]AddFile, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sorted := s.sortedFiles()
	out := make([]AddFile, len(sorted))
	for i, f := range sorted {
		out[i] = *f
	}
	return out, nil
}

// EachFile gives the live files in no order, without a copy of them: they are
// the snapshot's own and must not be changed. It is how a table of very many
// files is listed.
func (s *Snapshot) EachFile() iter.Seq[*AddFile] {
	return func(yield func(*AddFile) bool) {
		s.files.eachWhile(func(_ string, f *AddFile) bool { return yield(f) })
	}
}

// sortedFiles gives the live files sorted by path. A checkpoint holds them in
// that order as a rule, so that only what came later is to be sorted in.
func (s *Snapshot) sortedFiles() []*AddFile {
	base, above := s.files.split()
	if !slices.IsSortedFunc(base, compareFiles) {
		base, above = append(base, above...), nil
		slices.SortFunc(base, compareFiles)
	}
	slices.SortFunc(above, compareFiles)
	return merge(base, above, compareFiles)
}

// merge merges two sorted lists.
func merge[T any](a, b []T, compare func(a, b T) int) []T {
	if len(b) == 0 {
		return a
	}
	out := make([]T, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compare(a[0], b[0]) <= 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

func sortTombstones(files []*RemoveFile) {
	slices.SortFunc(files, func(a, b *RemoveFile) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.DeletionVector.id(), b.DeletionVector.id()))
	})
}

func sortFiles(files []AddFile) {
	slices.SortFunc(files, func(a, b AddFile) int { return compareFiles(&a, &b) })
}

func compareFiles(a, b *AddFile) int {
	if c := strings.Compare(a.Path, b.Path); c != 0 {
		return c
	}
	return strings.Compare(a.DeletionVector.id(), b.DeletionVector.id())
}

// Txn gives the last transaction version of an application.
func (s *Snapshot) Txn(appID string) (int64, bool) {
	txn, ok := s.txns[appID]
	return txn.Version, ok
}

// Domains gives the configurations of the metadata domains the table has, by name.
func (s *Snapshot) Domains() map[string]string {
	out := make(map[string]string, len(s.domains))
	for name, d := range s.domains {
		out[name] = d.Configuration
	}
	return out
}

// Snapshot gives the newest version of the table. It reads what was committed
// since the last call, not the whole log.
func (t *Table) Snapshot(ctx context.Context) (*Snapshot, error) {
	t.mu.Lock()
	s := t.cached
	t.mu.Unlock()
	if s != nil {
		next, ok, err := t.advance(ctx, s)
		if err != nil {
			return nil, err
		}
		if ok {
			t.remember(next)
			return next, nil
		}
	}
	s, err := t.load(ctx, -1)
	if err != nil {
		return nil, err
	}
	t.forget()
	t.remember(s)
	return s, nil
}

// SnapshotAt gives one version of the table.
func (t *Table) SnapshotAt(ctx context.Context, version int64) (*Snapshot, error) {
	if version < 0 {
		return nil, fault.New("DELTA_VERSION_NOT_FOUND", "version %d", version)
	}
	t.mu.Lock()
	s := t.cached
	t.mu.Unlock()
	if s != nil && s.version == version {
		if same, err := t.unchanged(ctx, s); err != nil || same {
			return s, err
		}
	}
	return t.load(ctx, version)
}

func (t *Table) remember(s *Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cached == nil || t.cached.version < s.version {
		t.cached = s
		if t.sidecars == nil {
			t.sidecars = s.sidecars
		}
	}
}

func (t *Table) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cached, t.sidecars = nil, nil
}

// unchanged tells whether the commit of s is still the one that was read: the
// folder may have been removed and the table made anew.
func (t *Table) unchanged(ctx context.Context, s *Snapshot) (bool, error) {
	info, err := t.store.Stat(ctx, commitName(s.version))
	if errors.Is(err, storage.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return info.ModTime.Equal(s.modified), nil
}

// advance applies the commits after s. It is not ok when s is no sound start:
// its commit is gone or changed, or the commits after it were cleaned up.
func (t *Table) advance(ctx context.Context, s *Snapshot) (*Snapshot, bool, error) {
	if same, err := t.unchanged(ctx, s); err != nil || !same {
		return nil, false, err
	}
	r := newReplay(t, s)
	version := s.version
	for {
		c, err := t.readCommit(ctx, version+1)
		if errors.Is(err, storage.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, false, err
		}
		version++
		if err := r.apply(c, version); err != nil {
			return nil, false, err
		}
	}
	if version == s.version {
		hint, ok, err := t.lastCheckpoint(ctx)
		if err != nil || ok && hint > version {
			return nil, false, err
		}
		return s, true, nil
	}
	next, err := r.finish()
	return next, err == nil, err
}

// load builds the snapshot of a version from the log; -1 is the newest.
func (t *Table) load(ctx context.Context, version int64) (*Snapshot, error) {
	const tries = 3
	for try := 1; ; try++ {
		s, err := t.loadOnce(ctx, version)
		// The log may be cleaned up between the listing and the reading.
		if err == nil || try == tries || !errors.Is(err, storage.ErrNotExist) || fault.Is(err, "DELTA_TABLE_NOT_FOUND") {
			return s, err
		}
	}
}

func (t *Table) loadOnce(ctx context.Context, version int64) (*Snapshot, error) {
	hint, ok, err := t.lastCheckpoint(ctx)
	if err != nil {
		return nil, err
	}
	if ok && hint > 0 && (version < 0 || hint <= version) {
		seg, err := t.list(ctx, hint)
		if err != nil {
			return nil, err
		}
		// A hint that leads nowhere is no hint.
		if len(seg.checkpoints) > 0 {
			if s, err := t.loadFrom(ctx, seg, version); err == nil {
				return s, nil
			}
		}
	}
	seg, err := t.list(ctx, 0)
	if err != nil {
		return nil, err
	}
	return t.loadFrom(ctx, seg, version)
}

func (t *Table) loadFrom(ctx context.Context, seg *segment, version int64) (*Snapshot, error) {
	latest := seg.latest()
	if latest < 0 {
		return nil, fault.Wrap(storage.ErrNotExist, "DELTA_TABLE_NOT_FOUND", "there is no Delta table in %q", storage.Root(t.store))
	}
	if version < 0 {
		version = latest
	}
	if version > latest {
		return nil, fault.New("DELTA_VERSION_NOT_FOUND", "version %d: the newest is %d", version, latest)
	}
	r, from, err := t.start(ctx, seg, version)
	if err != nil {
		return nil, err
	}
	if err := t.eachPart(ctx, seg.parts(from+1, version), r.apply); err != nil {
		return nil, err
	}
	return r.finish()
}

// start reads the newest usable checkpoint at or before version. A damaged one
// is passed over when an older one, or the commits alone, give the same state.
func (t *Table) start(ctx context.Context, seg *segment, version int64) (*replay, int64, error) {
	var first error
	for _, cp := range seg.checkpoints {
		if cp.version > version {
			continue
		}
		err := seg.after(cp.version, version)
		if err == nil {
			r := newReplay(t, nil)
			if err = t.readCheckpoint(ctx, r, cp); err == nil {
				return r, cp.version, t.checkpointTime(ctx, r, cp)
			}
			if ctx.Err() != nil || fault.Is(err, "DELTA_UNSUPPORTED_FEATURE") {
				return nil, 0, err
			}
		}
		if first == nil {
			first = err
		}
	}
	if err := seg.after(-1, version); err != nil {
		if first != nil {
			err = first
		}
		return nil, 0, err
	}
	return newReplay(t, nil), -1, nil
}

// checkpointTime gives the state of a checkpoint the time of its commit, or of its own file when that is gone.
func (t *Table) checkpointTime(ctx context.Context, r *replay, cp checkpointFiles) error {
	c, err := t.readCommit(ctx, cp.version)
	if err == nil {
		r.s.time, r.s.modified = c.time(), c.modified
		return nil
	}
	info, err := t.store.Stat(ctx, cp.names[0])
	r.s.time, r.s.modified = info.ModTime.UTC(), time.Time{}
	return err
}

// replay builds the next snapshot.
type replay struct{ s *Snapshot }

// newReplay starts from a snapshot, or from nothing.
func newReplay(t *Table, from *Snapshot) *replay {
	if from == nil {
		return &replay{&Snapshot{
			table: t, version: -1, files: newFileSet[AddFile](), tombs: newFileSet[RemoveFile](),
			txns: map[string]Txn{}, domains: map[string]DomainMetadata{},
		}}
	}
	next := *from
	next.files, next.tombs = from.files.fork(), from.tombs.fork()
	next.txns, next.domains = maps.Clone(from.txns), maps.Clone(from.domains)
	return &replay{&next}
}

// apply takes one version in. Within a version actions have no order: removes
// go first, so that a file that is taken out and put back stays.
func (r *replay) apply(c *commitActions, version int64) error {
	s := r.s
	if c.protocol != nil {
		if err := c.protocol.checkReadable(); err != nil {
			return err
		}
		s.protocol, s.schema = c.protocol, nil // the mapping follows from both
	}
	if c.metadata != nil {
		s.metadata, s.schema = c.metadata, nil
	}
	for _, txn := range c.txns {
		s.txns[txn.AppID] = txn
	}
	for _, d := range c.domains {
		if d.Removed {
			delete(s.domains, d.Domain)
		} else {
			s.domains[d.Domain] = d
		}
	}
	for i := range c.removes {
		key, err := fileKey(c.removes[i].Path, c.removes[i].DeletionVector)
		if err != nil {
			return err
		}
		s.files.drop(key)
		s.tombs.set(key, &c.removes[i])
	}
	for i := range c.adds {
		key, err := fileKey(c.adds[i].Path, c.adds[i].DeletionVector)
		if err != nil {
			return err
		}
		s.files.set(key, &c.adds[i])
		s.tombs.drop(key)
	}
	s.version, s.time, s.modified = version, c.time(), c.modified
	return nil
}

// finish checks that the state is a table and derives what follows from it.
func (r *replay) finish() (*Snapshot, error) {
	s := r.s
	if s.protocol == nil {
		return nil, fault.New("DELTA_INVALID_LOG", "the log has no protocol action")
	}
	if s.metadata == nil {
		return nil, fault.New("DELTA_INVALID_LOG", "the log has no metaData action")
	}
	if s.schema == nil {
		schema, err := parseSchema(s.metadata.SchemaString)
		if err != nil {
			return nil, err
		}
		if s.mapping, err = mappingMode(s.protocol, s.metadata); err != nil {
			return nil, err
		}
		if err := checkTypeChanges(s.protocol, schema); err != nil {
			return nil, err
		}
		for _, p := range s.metadata.PartitionColumns {
			if !slices.ContainsFunc(schema.fields, func(f *field) bool { return f.name == p }) {
				return nil, fault.New("DELTA_INVALID_LOG", "partition column %q is not in the schema", p)
			}
		}
		s.schema, s.arrow = schema, arrow.NewSchema(arrowFields(schema), nil)
	}
	s.files.freeze()
	s.tombs.freeze()
	return s, nil
}
