package delta

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// follow looks at what others committed since the writer read the table, up to
// version to. It fails when the outcome of the commit would have been another
// one, and takes over what they did to the files of which it deletes rows.
func (x *transaction) follow(ctx context.Context, to int64) error {
	if x.commit.Read == nil || x.seen >= to {
		return nil
	}
	for e, err := range x.table.Log(ctx, x.seen+1, to) {
		if err != nil {
			return err
		}
		if err := x.check(ctx, e); err != nil {
			return err
		}
		x.seen = e.Version
	}
	if x.seen < to {
		return fault.New("DELTA_LOG_GAP", "version %d, on which the commit is to land, is gone from the log", x.seen+1).Retryable()
	}
	return nil
}

// winner is a version that was committed before ours could be.
type winner struct {
	*Entry
	// adds are its files by canonical path. Within a version a path is added once.
	adds map[string]*AddFile
	// changed are the files of which it only changed the deletion vector.
	changed map[string]bool
}

func newWinner(e *Entry) (*winner, error) {
	w := &winner{Entry: e, adds: map[string]*AddFile{}, changed: map[string]bool{}}
	for i := range e.Adds {
		path, err := canonicalPath(e.Adds[i].Path)
		if err != nil {
			return nil, err
		}
		w.adds[path] = &e.Adds[i]
	}
	for i := range e.Removes {
		path, err := canonicalPath(e.Removes[i].Path)
		if err != nil {
			return nil, err
		}
		if w.adds[path] != nil {
			w.changed[path] = true
		}
	}
	return w, nil
}

func (w *winner) operation() string {
	if w.CommitInfo == nil || w.CommitInfo.Operation == "" {
		return "an unnamed operation"
	}
	return w.CommitInfo.Operation
}

func (w *winner) blind() bool {
	return w.CommitInfo != nil && w.CommitInfo.IsBlindAppend != nil && *w.CommitInfo.IsBlindAppend
}

// conflict is the failure of a commit that has to be made anew; it names both operations.
func (x *transaction) conflict(w *winner, code, format string, args ...any) error {
	return fault.New(code, "%s, which read version %d, conflicts with %s of version %d, committed meanwhile: it %s",
		x.commit.operation(), x.commit.Read.version, w.operation(), w.Version, fmt.Sprintf(format, args...)).
		WithHint("Read the table again and redo the change").Retryable()
}

func (x *transaction) check(ctx context.Context, e *Entry) error {
	w, err := newWinner(e)
	if err != nil {
		return err
	}
	c := x.commit
	switch {
	case e.Protocol != nil:
		return x.conflict(w, "DELTA_PROTOCOL_CHANGED", "changed the protocol")
	case e.Metadata != nil:
		return x.conflict(w, "DELTA_METADATA_CHANGED", "changed schema or properties")
	}
	if i := slices.IndexFunc(e.Txns, func(t Txn) bool { return c.sets(t.AppID) }); i >= 0 {
		return x.conflict(w, "DELTA_CONCURRENT_TRANSACTION", "is of the same application %q", e.Txns[i].AppID)
	}
	for _, d := range e.Domains {
		if c.touchesDomain(d.Domain) {
			return x.conflict(w, "DELTA_CONCURRENT_DOMAIN", "changed the metadata domain %q, too", d.Domain)
		}
	}
	if err := x.checkReads(ctx, w); err != nil {
		return err
	}
	if err := x.checkRemoves(w); err != nil {
		return err
	}
	return x.checkDeletes(ctx, w)
}

func (c *Commit) touchesDomain(name string) bool {
	return c.ClusterBy != nil && name == clusteringDomainName ||
		slices.ContainsFunc(c.Domains, func(d DomainMetadata) bool { return d.Domain == name })
}

// checkRemoves fails when a file that the commit takes out as a whole is not what it was.
func (x *transaction) checkRemoves(w *winner) error {
	if len(x.removed) == 0 {
		return nil
	}
	for i := range w.Removes {
		r := &w.Removes[i]
		key, err := fileKey(r.Path, r.DeletionVector)
		if err != nil {
			return err
		}
		if !x.removed[key] {
			continue
		}
		code, did := "DELTA_CONCURRENT_DELETE_DELETE", "removed file %s, too"
		if x.commit.Rearranges {
			// The rows were read in order to be written elsewhere.
			code, did = "DELTA_CONCURRENT_DELETE_READ", "removed file %s, whose rows were to be moved"
		}
		if path, err := canonicalPath(r.Path); err != nil {
			return err
		} else if w.changed[path] {
			did = "deleted rows of file %s, which was to be replaced"
		}
		return x.conflict(w, code, did, r.Path)
	}
	return nil
}

// checkDeletes follows the files of which the commit deletes rows. Rows that
// the winner deleted join the vector; that it deleted one of ours is a conflict.
func (x *transaction) checkDeletes(ctx context.Context, w *winner) error {
	if len(x.deletes) == 0 {
		return nil
	}
	for i := range w.Removes {
		r := &w.Removes[i]
		path, err := canonicalPath(r.Path)
		if err != nil {
			return err
		}
		d := x.deletes[path]
		if d == nil || d.file.DeletionVector.id() != r.DeletionVector.id() {
			continue
		}
		if w.adds[path] == nil {
			did := "removed file %s, of which rows were to be deleted"
			if !r.DataChange {
				did = "moved the rows of file %s, some of which were to be deleted"
			}
			return x.conflict(w, "DELTA_CONCURRENT_DELETE_DELETE", did, r.Path)
		}
		before, err := x.deletedBefore(ctx, d)
		if err != nil {
			return err
		}
		now, err := x.table.DeletedRows(ctx, w.adds[path])
		if err != nil {
			return err
		}
		if newly := now.Minus(before); newly.Intersects(d.rows) {
			return x.conflict(w, "DELTA_CONCURRENT_DELETE_DELETE", "deleted %d of the same rows of file %s", overlap(newly, d.rows), r.Path)
		}
		d.before, d.loaded = now, true
	}
	for path, d := range x.deletes {
		if f := w.adds[path]; f != nil {
			d.file = *f // a new vector, statistics or row ids
		}
	}
	return nil
}

// deletedBefore gives the rows that are deleted in the version that d has been followed to.
func (x *transaction) deletedBefore(ctx context.Context, d *deletion) (*RowSet, error) {
	if !d.loaded {
		rows, err := x.table.DeletedRows(ctx, &d.file)
		if err != nil {
			return nil, err
		}
		d.before, d.loaded = rows, true
	}
	return d.before, nil
}

// checkReads fails when the winner added or took away rows that the commit
// would have had to see. Rearranged rows are the same rows.
func (x *transaction) checkReads(ctx context.Context, w *winner) error {
	reads := x.commit.Reads
	if !reads.Table && reads.Where == nil {
		return nil
	}
	// WriteSerializable: a blind append may just as well have come after us,
	// unless it would have had to obey what we change about the table.
	blind := w.blind() && !x.serializable && !x.commit.changesMetadata()
	for path, f := range w.adds {
		if !f.DataChange || blind || !x.reads(f) {
			continue
		}
		if w.changed[path] {
			revived, err := x.revived(ctx, w, path)
			if err != nil {
				return err
			}
			if !revived {
				continue
			}
		}
		return x.conflict(w, "DELTA_CONCURRENT_APPEND", "added file %s, whose rows may be among those that mattered", f.Path)
	}
	// The rows that the commit found and changes are in Delete and Remove.
	// That others are gone matters only if it depends on their presence.
	if !reads.Table && !x.serializable {
		return nil
	}
	for i := range w.Removes {
		r := &w.Removes[i]
		if !r.DataChange {
			continue
		}
		path, err := canonicalPath(r.Path)
		if err != nil {
			return err
		}
		if x.deletes[path] != nil {
			continue // looked at row by row
		}
		if x.reads(&AddFile{Path: r.Path, PartitionValues: r.PartitionValues, Stats: r.Stats}) {
			return x.conflict(w, "DELTA_CONCURRENT_DELETE_READ", "removed rows of file %s, which may be among those that mattered", r.Path)
		}
	}
	return nil
}

// reads tells whether the commit depends on rows that may be in a file.
func (x *transaction) reads(f *AddFile) bool {
	return x.commit.Reads.Table || x.where.mayHold(f)
}

// revived tells whether a change of a vector brought rows back, as RESTORE does.
func (x *transaction) revived(ctx context.Context, w *winner, path string) (bool, error) {
	now, err := x.table.DeletedRows(ctx, w.adds[path])
	if err != nil {
		return false, err
	}
	for i := range w.Removes {
		r := &w.Removes[i]
		if p, err := canonicalPath(r.Path); err != nil {
			return false, err
		} else if p != path || r.DeletionVector == nil {
			continue
		}
		before, err := x.table.DeletedRows(ctx, &AddFile{Path: r.Path, DeletionVector: r.DeletionVector})
		if err != nil {
			return false, err
		}
		return before.Minus(now).Len() > 0, nil
	}
	return false, nil
}

func (s *Snapshot) serializable() bool {
	return strings.EqualFold(s.metadata.Configuration["delta.isolationLevel"], "Serializable")
}
