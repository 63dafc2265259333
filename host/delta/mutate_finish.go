package delta

import (
	"context"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
)

// finish writes what is left to write and puts it into the commit.
func (m *Mutation) finish(ctx context.Context, c *Commit) error {
	c.Read = m.snapshot
	if len(c.Add) > 0 || len(c.Remove) > 0 || len(c.Delete) > 0 || len(c.ChangeData) > 0 || c.ReplaceAll {
		return fault.New("DELTA_INVALID_MUTATION", "the commit of a mutation brings files of its own")
	}
	if m.opt.Schema != nil && c.Schema == nil {
		c.Schema = m.opt.Schema
	}
	touched := m.sorted()
	for _, t := range touched {
		if err := m.takeOut(ctx, c, t); err != nil {
			return err
		}
	}
	if err := m.writeChanges(ctx, c, touched); err != nil {
		return err
	}
	if m.copies != nil && m.copies != m.written {
		add, err := m.copies.Close(ctx)
		if err != nil {
			return err
		}
		c.Add = append(c.Add, add...)
	}
	if m.written != nil {
		if err := m.endRows(ctx); err != nil {
			return err
		}
		c.Add = append(c.Add, m.rows...)
		if m.changes != nil {
			// All their rows are new and say how they changed: they are change files, too.
			for _, f := range m.rows {
				c.ChangeData = append(c.ChangeData, changeFile(&f))
			}
		}
	}
	c.Metrics = m.metrics(c)
	return nil
}

// sorted gives the touched files in an order of their own.
func (m *Mutation) sorted() []*touchedFile {
	out := slices.Collect(maps.Values(m.touched))
	slices.SortFunc(out, func(a, b *touchedFile) int { return compareFiles(&a.file, &b.file) })
	return slices.DeleteFunc(out, func(t *touchedFile) bool { return !t.whole && t.changed().Len() == 0 })
}

// changed are the rows that the file loses.
func (t *touchedFile) changed() *RowSet { return t.deleted.Union(t.updated) }

// takeOut removes the changed rows of a file.
func (m *Mutation) takeOut(ctx context.Context, c *Commit, t *touchedFile) error {
	if t.whole {
		c.Remove = append(c.Remove, t.file)
		return nil
	}
	if m.vectors {
		c.Delete = append(c.Delete, FileDelete{File: t.file, Rows: t.changed(), gone: t.gone, known: true})
		return nil
	}
	c.Remove = append(c.Remove, t.file)
	return m.copyRest(ctx, t)
}

// copyRest writes the rows of a file that stay.
func (m *Mutation) copyRest(ctx context.Context, t *touchedFile) error {
	rows, ok := t.file.NumRecords()
	if !ok {
		var err error
		if rows, err = m.snapshot.table.footerRows(ctx, &t.file); err != nil {
			return err
		}
	}
	rest := NewRowSet()
	rest.AddRange(0, rows)
	rest = rest.Minus(t.gone).Minus(t.changed())
	if rest.Len() == 0 {
		return nil
	}
	if m.copies == nil {
		if err := m.openCopies(ctx); err != nil {
			return err
		}
	}
	r, err := m.snapshot.pick(ctx, &t.file, rest, ScanOptions{RowTracking: m.tracking})
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
		if err := m.copies.take(ctx, r.RecordBatch(), nil); err != nil {
			return err
		}
		m.copied += r.RecordBatch().NumRows()
	}
	return r.Err()
}

// openCopies lets copied rows go to the files of the new ones, but for the
// change data feed: a file of copies is no change file.
func (m *Mutation) openCopies(ctx context.Context) (err error) {
	if m.feed {
		m.copies, err = m.writer(ctx, WriteOptions{Name: m.opt.Name + "-copied", RowTracking: m.tracking})
		return err
	}
	if err := m.open(ctx); err != nil {
		return err
	}
	m.copies = m.written
	return nil
}

// writeChanges writes the old images of changed rows, when the feed needs files
// of its own. Without any readers derive the changes: rows of new files are
// inserted, those of removed files and newly marked ones are deleted. That
// cannot tell updates, nor rows that were only copied.
func (m *Mutation) writeChanges(ctx context.Context, c *Commit, touched []*touchedFile) (err error) {
	if !m.feed || m.updated == 0 && m.copied == 0 {
		return nil
	}
	if m.changes, err = m.writer(ctx, WriteOptions{Name: m.opt.Name, changeType: true, folder: changeFolder}); err != nil {
		return err
	}
	for _, t := range touched {
		if err := m.oldImages(ctx, t); err != nil {
			return err
		}
	}
	files, err := m.changes.Close(ctx)
	if err != nil {
		return err
	}
	for i := range files {
		c.ChangeData = append(c.ChangeData, changeFile(&files[i]))
	}
	return nil
}

const changeFolder = "_change_data/"

func changeFile(f *AddFile) CDCFile {
	return CDCFile{Path: f.Path, PartitionValues: f.PartitionValues, Size: f.Size}
}

func (m *Mutation) oldImages(ctx context.Context, t *touchedFile) error {
	var only *RowSet // all that are live
	if !t.whole {
		only = t.changed()
	}
	r, err := m.snapshot.pick(ctx, &t.file, only, ScanOptions{RowIndex: true})
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
		if err := m.oldBatch(ctx, t, r.RecordBatch()); err != nil {
			return err
		}
	}
	return r.Err()
}

// oldBatch writes old images; their last column is the row index.
func (m *Mutation) oldBatch(ctx context.Context, t *touchedFile, rec arrow.RecordBatch) error {
	b := array.NewStringBuilder(m.snapshot.table.mem)
	defer b.Release()
	last := int(rec.NumCols()) - 1
	for _, at := range rec.Column(last).(*array.Int64).Int64Values() {
		if t.updated.Contains(at) {
			b.Append("update_preimage")
		} else {
			b.Append("delete")
		}
	}
	types := b.NewArray()
	defer types.Release()
	with := newExtension(rec)
	defer with.release()
	with.drop(last)
	with.add(changeTypeColumn, types)
	return m.changes.take(ctx, with.batch(), nil)
}
