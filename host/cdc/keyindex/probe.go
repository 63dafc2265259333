package keyindex

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/delta"
)

// found is a live row with one of the hashes that were asked for.
type found struct {
	at   int // which of the hashes, as they were given sorted
	file *delta.AddFile
	row  int64
}

// piece is how many hashes one goroutine looks up in a file.
const piece = 2048

// probe looks sorted hashes up in every file. An index file that proves to be
// damaged is made anew and asked again.
func (x *Index) probe(ctx context.Context, snap *delta.Snapshot, files []indexed, ids []rowcode.Hash) ([]found, error) {
	deleted, err := x.deleted(ctx, snap, files)
	if err != nil {
		return nil, err
	}
	out := make([][][]found, len(files))
	damaged := make([]atomic.Bool, len(files))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range files {
		parts := 1
		if files[i].r.head.blocks() > readAhead {
			parts = (len(ids) + piece - 1) / piece
		}
		out[i] = make([][]found, parts)
		for part := range parts {
			g.Go(func() error {
				if err := gctx.Err(); err != nil {
					return err
				}
				err := files[i].search(ids, cut(ids, part, parts), cut(ids, part+1, parts), deleted[i], &out[i][part])
				if errors.Is(err, errBroken) {
					damaged[i].Store(true)
					return nil
				}
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i := range files {
		if !damaged[i].Load() {
			continue
		}
		if err := x.remake(ctx, snap, &files[i]); err != nil {
			return nil, err
		}
		out[i] = make([][]found, 1)
		if err := files[i].search(ids, 0, len(ids), deleted[i], &out[i][0]); err != nil {
			return nil, x.cacheFault(err)
		}
	}
	return slices.Concat(slices.Concat(out...)...), nil
}

// cut divides hashes into parts, none between two that are equal.
func cut(ids []rowcode.Hash, part, parts int) int {
	at := part * len(ids) / parts
	for at > 0 && at < len(ids) && ids[at] == ids[at-1] {
		at++
	}
	return at
}

// search looks some of the hashes up and keeps those whose row is live.
func (f *indexed) search(ids []rowcode.Hash, from, to int, deleted *delta.RowSet, out *[]found) error {
	return f.r.search(ids[from:to], func(at int, row int64) {
		if !deleted.Contains(row) {
			*out = append(*out, found{from + at, f.file, row})
		}
	})
}

// remake replaces an index file that is damaged.
func (x *Index) remake(ctx context.Context, snap *delta.Snapshot, f *indexed) error {
	delete(x.open, f.name)
	if err := f.r.close(); err != nil {
		return x.cacheFault(err)
	}
	if err := os.Remove(filepath.Join(x.folder, f.name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return x.cacheFault(err)
	}
	identity, err := x.identity(snap)
	if err != nil {
		return err
	}
	f.r = nil
	if _, err := x.make(ctx, snap, identity, []*indexed{f}); err != nil {
		return err
	}
	x.open[f.name] = f.r
	return nil
}

// deleted gives the deletion vectors of the files. One that is known is not read again.
func (x *Index) deleted(ctx context.Context, snap *delta.Snapshot, files []indexed) ([]*delta.RowSet, error) {
	out := make([]*delta.RowSet, len(files))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range files {
		f := files[i].file
		if f.DeletionVector == nil {
			continue
		}
		id := f.DeletionVector.UniqueID()
		if v := x.vectors[f.Path]; v.id == id {
			out[i] = v.rows
			continue
		}
		g.Go(func() (err error) {
			out[i], err = snap.DeletedRows(gctx, f)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i := range files {
		if f := files[i].file; f.DeletionVector != nil {
			x.vectors[f.Path] = vector{f.DeletionVector.UniqueID(), out[i]}
		}
	}
	return out, nil
}
