package delta

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// deletion is what a commit deletes of one file.
type deletion struct {
	// file is as the version has it that the commit is to land on.
	file AddFile
	// rows are newly deleted.
	rows *RowSet
	// before were deleted in that version; known once loaded.
	before *RowSet
	loaded bool
}

// writtenVectors is the file of vectors of the last attempt. It serves the next
// one, too, when the winner did not change any of the vectors it builds on.
type writtenVectors struct {
	name    string
	on      map[string]string // canonical path: id of the vector it builds on
	vectors map[string]*DeletionVector
}

func (v *writtenVectors) serves(deletes map[string]*deletion) bool {
	if v == nil {
		return false
	}
	for path, d := range deletes {
		if on, ok := v.on[path]; !ok || on != d.file.DeletionVector.id() {
			return false
		}
	}
	return true
}

// resolveDeletes finds the files of which rows are deleted in the snapshot that was read.
func (x *transaction) resolveDeletes() error {
	c := x.commit
	for i := range c.Delete {
		f := &c.Delete[i]
		if f.Rows.Len() == 0 {
			continue
		}
		if c.Read == nil || c.ReplaceAll || c.Rearranges {
			return fault.New("DELTA_COMMIT_FAILED", "rows of file %s cannot be deleted by a commit that replaces the whole table or only moves rows", f.File.Path)
		}
		key, err := fileKey(f.File.Path, f.File.DeletionVector)
		if err != nil {
			return err
		}
		live, ok := c.Read.files.get(key)
		if !ok {
			return fault.New("DELTA_COMMIT_FAILED", "file %s, of which rows are deleted, is not in version %d", f.File.Path, c.Read.version)
		}
		path, err := canonicalPath(f.File.Path)
		if err != nil {
			return err
		}
		if x.deletes[path] != nil || x.removed[key] {
			return fault.New("DELTA_COMMIT_FAILED", "file %s is deleted from twice", f.File.Path)
		}
		x.deletes[path] = &deletion{file: *live, rows: f.Rows, before: f.gone, loaded: f.known}
	}
	return nil
}

// planDeletes turns the deletions into removes, and adds with the new vectors.
func (x *transaction) planDeletes(ctx context.Context, a *attempt, p *Protocol, m *Metadata) error {
	partly := map[string]*RowSet{} // what of each file is deleted, unless it is all of it
	for _, path := range slices.Sorted(maps.Keys(x.deletes)) {
		d := x.deletes[path]
		before, err := x.deletedBefore(ctx, d)
		if err != nil {
			return err
		}
		physical, err := x.physicalRows(ctx, &d.file)
		if err != nil {
			return err
		}
		all := before.Union(d.rows)
		if all.Len() >= physical || all.Last() >= physical {
			// Statistics may be wrong, and a file with a live row must not go.
			if physical, err = x.table.footerRows(ctx, &d.file); err != nil {
				return err
			}
			x.counted[d.file.Path] = physical
		}
		if last := all.Last(); last >= physical {
			return fault.New("DELTA_COMMIT_FAILED", "row %d of file %s cannot be deleted: it has %d", last, d.file.Path, physical)
		}
		a.actions.removes = append(a.actions.removes, d.file.removal(a.now.UnixMilli(), true))
		a.deleted.rows += d.rows.Len() - overlap(before, d.rows)
		switch had := d.file.DeletionVector != nil; {
		case all.Len() == physical:
			if had {
				a.deleted.vectorsRemoved++
			}
			continue
		case had:
			a.deleted.vectorsUpdated++
		}
		a.deleted.vectorsAdded++
		partly[path] = all
	}
	if len(partly) > 0 && !(p.has("deletionVectors") && isTrue(m, "delta.enableDeletionVectors")) {
		return fault.New("DELTA_DELETION_VECTORS_DISABLED", "rows cannot be deleted by deletion vectors: the table does not enable them").
			WithHint("Set the property delta.enableDeletionVectors to true, or rewrite the files")
	}
	return x.planVectors(ctx, a, partly)
}

func overlap(a, b *RowSet) int64 {
	if !a.Intersects(b) {
		return 0
	}
	return b.Len() - b.Minus(a).Len()
}

func (x *transaction) planVectors(ctx context.Context, a *attempt, partly map[string]*RowSet) error {
	if len(partly) == 0 {
		return nil
	}
	if !x.vectors.serves(x.deletes) {
		x.discardVectors(ctx)
		if err := x.writeVectors(ctx, partly); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(partly)) {
		f := x.deletes[path].file
		physical, err := x.physicalRows(ctx, &f)
		if err != nil {
			return err
		}
		f.Stats = wideStats(f.Stats, physical)
		f.DeletionVector, f.DataChange = x.vectors.vectors[path], true
		a.actions.adds = append(a.actions.adds, f)
	}
	return nil
}

func (x *transaction) writeVectors(ctx context.Context, partly map[string]*RowSet) error {
	file, err := x.table.createVectors(ctx)
	if err != nil {
		return fault.Place(err, "DELTA_WRITE_FAILED", fault.Where{})
	}
	written := &writtenVectors{name: file.name, on: map[string]string{}, vectors: map[string]*DeletionVector{}}
	for _, path := range slices.Sorted(maps.Keys(partly)) {
		if written.vectors[path], err = file.add(partly[path]); err != nil {
			break
		}
	}
	if err == nil {
		err = file.w.Commit()
	}
	if err != nil {
		return fault.Place(errors.Join(err, file.w.Abort()), "DELTA_WRITE_FAILED", fault.Where{File: file.name})
	}
	for path, d := range x.deletes {
		written.on[path] = d.file.DeletionVector.id()
	}
	x.vectors = written
	return nil
}

// discardVectors deletes a file of vectors that no version will ever name. What
// stays behind is VACUUM's to clean up.
func (x *transaction) discardVectors(ctx context.Context) {
	if x.vectors != nil {
		_ = x.table.store.Delete(context.WithoutCancel(ctx), x.vectors.name)
		x.vectors = nil
	}
}

// physicalRows counts the rows of a file, deleted ones included.
func (x *transaction) physicalRows(ctx context.Context, f *AddFile) (int64, error) {
	if n, ok := x.counted[f.Path]; ok {
		return n, nil
	}
	if n, ok := f.NumRecords(); ok {
		return n, nil
	}
	n, err := x.table.footerRows(ctx, f)
	if err == nil {
		x.counted[f.Path] = n
	}
	return n, err
}

// wideStats gives the statistics of a file with a deletion vector: numRecords
// is there and counts physical rows, and the bounds need not be tight.
func wideStats(stats string, physical int64) string {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal([]byte(stats), &fields) != nil {
		fields = map[string]json.RawMessage{} // foreign bounds that nobody can read are worth nothing
	}
	var b bytes.Buffer
	b.WriteString(`{"numRecords":` + itoa(physical))
	for _, name := range []string{"minValues", "maxValues", "nullCount"} {
		if raw, ok := fields[name]; ok {
			b.WriteString(`,"` + name + `":`)
			b.Write(bytes.TrimSpace(raw))
		}
	}
	b.WriteString(`,"tightBounds":false}`)
	return b.String()
}

// isTrue tells whether a property of the table is true.
func isTrue(m *Metadata, property string) bool {
	return strings.EqualFold(m.Configuration[property], "true")
}
