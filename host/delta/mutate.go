package delta

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/google/uuid"

	"github.com/weir-data/weir/host/fault"
)

// MutateOptions says how a Mutation writes.
type MutateOptions struct {
	// Name is what the names of the files are made of; empty is a random one.
	// The same changes under the same name give the same files.
	Name string
	// TargetSize is about how large a file becomes; 0 is the table's.
	TargetSize int64
	// Schema holds the columns of the table as they will be with the commit; nil takes the snapshot's.
	Schema *arrow.Schema

	holds []rule // for inserted and updated rows, beside those of the table
}

// Mutation changes single rows of a table: the caller knows where they lie, by
// file and position (ScanOptions.RowIndex). Its cost follows the change. With
// deletion vectors no row of the table is read but the old images of changed
// rows, and those only when the change data feed is on; without vectors the
// files that hold changed rows are written anew.
//
// It is for one goroutine at a time, and Commit or Abort must end it.
type Mutation struct {
	snapshot *Snapshot
	opt      MutateOptions
	random   bool // the name is
	vectors  bool // delta.enableDeletionVectors
	feed     bool // delta.enableChangeDataFeed
	tracking bool // delta.enableRowTracking

	touched map[string]*touchedFile // by key
	written *FileWriter             // inserted and updated rows; nil before the first
	rows    []AddFile               // its files, when it is closed
	full    bool                    // it is
	copies  *FileWriter             // rows that stay, of files that are written anew
	changes *FileWriter             // change data

	inserted, updated, deleted, copied int64
	ended                              bool
}

// touchedFile is a file that loses rows.
type touchedFile struct {
	file    AddFile
	gone    *RowSet // before the mutation
	deleted *RowSet
	updated *RowSet
	whole   bool // all live rows are deleted, whichever they are
}

// Mutate begins to change rows of the snapshot.
func (s *Snapshot) Mutate(ctx context.Context, opt MutateOptions) (*Mutation, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkWritable(s.protocol, s.metadata, s.schema); err != nil {
		return nil, err
	}
	m := &Mutation{snapshot: s, opt: opt, touched: map[string]*touchedFile{},
		vectors:  s.enabled("delta.enableDeletionVectors", "deletionVectors"),
		feed:     s.enabled("delta.enableChangeDataFeed", "changeDataFeed"),
		tracking: s.enabled("delta.enableRowTracking", "rowTracking"),
	}
	if opt.Name == "" {
		m.opt.Name, m.random = uuid.NewString(), true
	}
	return m, nil
}

// enabled tells whether a property is true and the protocol has the feature that it turns on.
func (s *Snapshot) enabled(property, feature string) bool {
	return strings.EqualFold(s.metadata.Configuration[property], "true") && s.protocol.has(feature)
}

// Delete takes rows out of a file, by their positions.
func (m *Mutation) Delete(ctx context.Context, f AddFile, rows *RowSet) error {
	t, err := m.touch(ctx, &f, rows)
	if err != nil {
		return err
	}
	t.deleted = t.deleted.Union(rows)
	m.deleted += rows.Len()
	return nil
}

// DeleteFile takes a file out with all its rows.
func (m *Mutation) DeleteFile(ctx context.Context, f AddFile) error {
	t, err := m.touch(ctx, &f, nil)
	if err != nil {
		return err
	}
	if t.deleted.Len() > 0 || t.updated.Len() > 0 {
		return changedTwice(&f)
	}
	n, ok := f.NumRecords()
	if !ok {
		if n, err = m.snapshot.table.footerRows(ctx, &f); err != nil {
			return err
		}
	}
	t.whole = true
	m.deleted += n - t.gone.Len()
	return nil
}

// Insert adds rows. What a batch needs is what FileWriter.Write says.
func (m *Mutation) Insert(ctx context.Context, rec arrow.RecordBatch) error {
	if err := m.open(ctx); err != nil {
		return err
	}
	if err := m.write(ctx, rec, nil, "insert"); err != nil {
		return err
	}
	m.inserted += rec.NumRows()
	return nil
}

// Update replaces rows of a file: row i of post is the new image of the i-th of
// rows, in ascending order. It has all columns of the table; generated columns
// it may lack. When the table tracks rows they keep their ids.
func (m *Mutation) Update(ctx context.Context, f AddFile, rows *RowSet, post arrow.RecordBatch) error {
	if n := rows.Len(); n != post.NumRows() {
		return fault.New("DELTA_INVALID_MUTATION", "%d rows of file %s are updated by %d", n, f.Path, post.NumRows())
	}
	if post.NumRows() == 0 {
		return nil
	}
	if err := m.open(ctx); err != nil {
		return err
	}
	t, err := m.touch(ctx, &f, rows)
	if err != nil {
		return err
	}
	var ids arrow.Array
	if m.tracking {
		if ids, err = m.rowIDs(ctx, &f, rows); err != nil {
			return err
		}
		defer ids.Release()
	}
	if err := m.write(ctx, post, ids, "update_postimage"); err != nil {
		return err
	}
	t.updated = t.updated.Union(rows)
	m.updated += rows.Len()
	return nil
}

// touch finds a file among those that are live, and refuses rows that it does
// not have, that are deleted, or that the mutation has changed already.
func (m *Mutation) touch(ctx context.Context, f *AddFile, rows *RowSet) (*touchedFile, error) {
	if m.ended {
		return nil, fault.New("DELTA_INVALID_MUTATION", "the mutation has ended")
	}
	key, err := fileKey(f.Path, f.DeletionVector)
	if err != nil {
		return nil, err
	}
	t := m.touched[key]
	if t == nil {
		live, ok := m.snapshot.files.get(key)
		if !ok {
			return nil, fault.New("DELTA_FILE_NOT_FOUND", "file %s is not in version %d, or not with this deletion vector", f.Path, m.snapshot.version)
		}
		t = &touchedFile{file: *live}
		if t.gone, err = m.snapshot.table.DeletedRows(ctx, live); err != nil {
			return nil, err
		}
		m.touched[key] = t
	}
	if n, ok := t.file.NumRecords(); ok && rows.Last() >= n {
		return nil, fault.New("DELTA_INVALID_MUTATION", "file %s has no row %d", f.Path, rows.Last())
	}
	if rows.Intersects(t.gone) {
		return nil, fault.New("DELTA_INVALID_MUTATION", "a row of file %s that is changed was deleted before", f.Path)
	}
	if t.whole || rows.Intersects(t.deleted) || rows.Intersects(t.updated) {
		return nil, changedTwice(f)
	}
	return t, nil
}

func changedTwice(f *AddFile) error {
	return fault.New("DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE", "a row of file %s is changed twice in one commit", f.Path).
		WithHint("Bring the changes of a row together first")
}

// open begins the files of inserted and updated rows.
func (m *Mutation) open(ctx context.Context) (err error) {
	if m.ended {
		return fault.New("DELTA_INVALID_MUTATION", "the mutation has ended")
	}
	if m.full {
		return fault.New("DELTA_INVALID_MUTATION", "rows come after EndRows")
	}
	if m.written == nil {
		m.written, err = m.writer(ctx, WriteOptions{Name: m.opt.Name, RowTracking: m.tracking, changeType: m.feed, holds: m.opt.holds})
	}
	return err
}

func (m *Mutation) writer(ctx context.Context, opt WriteOptions) (*FileWriter, error) {
	opt.Snapshot, opt.Schema, opt.TargetSize = m.snapshot, m.opt.Schema, m.opt.TargetSize
	opt.quick = m.vectors // without, files are written anew whole
	return m.snapshot.table.Write(ctx, opt)
}

// write adds rows with what is kept about them beside the table's columns.
func (m *Mutation) write(ctx context.Context, rec arrow.RecordBatch, ids arrow.Array, change string) error {
	with := newExtension(rec)
	defer with.release()
	if ids != nil {
		with.add(RowIDColumn, ids)
	}
	if m.feed {
		types := constantStrings(m.snapshot.table.mem, change, int(rec.NumRows()))
		defer types.Release()
		with.add(changeTypeColumn, types)
	}
	return m.written.Write(ctx, with.batch())
}

// rowIDs gives the stable ids of rows of a file, in ascending order of the rows.
func (m *Mutation) rowIDs(ctx context.Context, f *AddFile, rows *RowSet) (arrow.Array, error) {
	r, err := m.snapshot.pick(ctx, f, rows, ScanOptions{Columns: []string{}, RowTracking: true})
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var parts []arrow.Array
	defer func() { releaseArrays(parts) }()
	for r.Next() {
		ids := r.RecordBatch().Column(0)
		ids.Retain()
		parts = append(parts, ids)
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	ids, err := array.Concatenate(parts, m.snapshot.table.mem)
	if err != nil {
		return nil, fault.Wrap(err, "DELTA_WRITE_FAILED", "row ids of file %s", f.Path)
	}
	if int64(ids.Len()) != rows.Len() {
		defer ids.Release()
		return nil, fault.New("DELTA_INVALID_MUTATION", "file %s has %d of %d rows", f.Path, ids.Len(), rows.Len())
	}
	return ids, nil
}

// EndRows writes what is left of the inserted and updated rows; none can come
// after it. Commit does so itself: who calls it before lets it go on beside
// other work. Without vectors their files wait for the rows that stay.
func (m *Mutation) EndRows(ctx context.Context) error {
	if !m.vectors || m.written == nil {
		return nil
	}
	return m.endRows(ctx)
}

func (m *Mutation) endRows(ctx context.Context) (err error) {
	if !m.full {
		m.full = true
		m.rows, err = m.written.Close(ctx)
	}
	return err
}

// Commit makes the changes a version of the table: c says what the commit is
// beside them. After an error nothing has changed, unless its code is
// DELTA_COMMIT_OUTCOME_UNKNOWN.
func (m *Mutation) Commit(ctx context.Context, c Commit) (Result, error) {
	if m.ended {
		return Result{}, fault.New("DELTA_INVALID_MUTATION", "the mutation has ended")
	}
	if err := m.finish(ctx, &c); err != nil {
		return Result{}, errors.Join(err, m.Abort(ctx))
	}
	m.ended = true
	res, err := m.snapshot.table.Commit(ctx, c)
	if m.random && isConflict(err) {
		// The files are ours alone: no other attempt can have had their name.
		err = errors.Join(err, m.removeFiles(ctx))
	}
	return res, err
}

// isConflict tells whether a commit failed before it reached the log.
func isConflict(err error) bool {
	code := fault.CodeOf(err)
	return strings.HasPrefix(code, "DELTA_CONCURRENT_") || slices.Contains([]string{"DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED", "DELTA_ALREADY_COMMITTED"}, code)
}

// Abort drops the changes and removes the files that were written. After Commit it does nothing.
func (m *Mutation) Abort(ctx context.Context) error {
	if m.ended {
		return nil
	}
	m.ended = true
	var errs []error
	for _, w := range []*FileWriter{m.written, m.copies, m.changes} {
		if w != nil {
			errs = append(errs, w.Abort(ctx))
		}
	}
	return errors.Join(append(errs, m.removeFiles(ctx))...)
}

// removeFiles deletes the files of writers that were closed.
func (m *Mutation) removeFiles(ctx context.Context) error {
	var errs []error
	for _, w := range []*FileWriter{m.written, m.copies, m.changes} {
		if w != nil {
			errs = append(errs, w.remove(ctx))
		}
	}
	return errors.Join(errs...)
}
