package cdc

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/stream"
)

// output writes the rows of a batch: a table that is new or replaced gets files,
// one that is there is mutated.
type output struct {
	*apply
	c      *delta.Commit
	counts stream.Counts

	rewrite  bool              // all rows of the table are written anew
	files    *delta.FileWriter // of a table that is new or replaced
	mutation *delta.Mutation
}

func newOutput(a *apply, c *delta.Commit) *output { return &output{apply: a, c: c} }

// anew tells whether no row that is there stays.
func (o *output) anew() bool { return o.b.Target == nil || o.b.Replace }

// traced tells whether the table keeps track of single rows, so that those that
// stay must not be written anew.
func (o *output) traced() bool {
	properties := o.b.Target.Properties()
	return strings.EqualFold(properties["delta.enableChangeDataFeed"], "true") || strings.EqualFold(properties["delta.enableRowTracking"], "true")
}

// take writes what comes of a part.
func (o *output) take(ctx context.Context, p *outcome) error {
	if p.inserted == nil && p.updated == nil && len(p.removed) == 0 {
		return nil
	}
	if err := o.open(ctx); err != nil {
		return err
	}
	if o.files != nil {
		return o.files.Write(ctx, p.inserted)
	}
	if p.inserted != nil {
		if err := o.mutation.Insert(ctx, p.inserted); err != nil {
			return err
		}
	}
	return o.change(ctx, p)
}

// end lets what is left of the rows be written beside the rest of the batch.
func (o *output) end(ctx context.Context) error {
	if o.mutation == nil {
		return nil
	}
	return o.mutation.EndRows(ctx)
}

func (o *output) open(ctx context.Context) (err error) {
	switch {
	case o.files != nil || o.mutation != nil:
	case o.anew() || o.rewrite:
		o.files, err = o.b.Table.Write(ctx, o.b.Write)
	default:
		o.mutation, err = o.b.Target.Mutate(ctx, delta.MutateOptions{Name: o.b.Name, Schema: o.c.Schema})
	}
	return err
}

// found is a row of the target and which of the rows that are looked for it is.
type found struct {
	row int64
	at  int32
}

// locate finds rows of the target, by file.
func (o *output) locate(ctx context.Context, ids []rowcode.Hash, visit func(f delta.AddFile, rows []found) error) error {
	if len(ids) == 0 {
		return nil
	}
	if o.index == nil {
		o.index = o.def.openIndex(o.b.Target, o.mem)
	}
	places, err := o.index.Locate(ctx, o.b.Target, ids)
	if err != nil {
		return err
	}
	files := map[*delta.AddFile][]found{}
	missing := int64(0)
	for i, p := range places {
		if p.File == nil {
			missing++
			continue
		}
		files[p.File] = append(files[p.File], found{p.Row, int32(i)}) //nolint:gosec // bounded by memory
	}
	if missing > 0 {
		return o.def.fault("CDC_TARGET_CHANGED", "%s not in the target, although its state has them", countText(missing, "row is", "rows are")).
			WithHint("Another engine has changed the target, or two flows with different states write it. Run a full refresh of it")
	}
	sorted := make([]*delta.AddFile, 0, len(files))
	for f := range files {
		sorted = append(sorted, f)
	}
	slices.SortFunc(sorted, func(a, b *delta.AddFile) int { return strings.Compare(a.Path, b.Path) })
	for _, f := range sorted {
		rows := files[f]
		slices.SortFunc(rows, func(a, b found) int { return cmp.Compare(a.row, b.row) })
		if err := visit(*f, rows); err != nil {
			return err
		}
	}
	return nil
}

// tableName gives a column's name as the table spells it.
func tableName(s *delta.Snapshot, name string) string {
	if i := columnNamed(s.Schema(), name); i >= 0 {
		return s.Schema().Field(i).Name
	}
	return name
}

// change takes the rows that go out of their files, and gives others their new images.
func (o *output) change(ctx context.Context, p *outcome) error {
	gone := int32(len(p.removed)) //nolint:gosec // bounded by memory
	return o.locate(ctx, slices.Concat(p.removed, p.replaced), func(f delta.AddFile, rows []found) error {
		removed := delta.NewRowSet()
		replaced := delta.NewRowSet()
		var at []int32
		for _, r := range rows {
			if r.at < gone {
				removed.Add(r.row)
				continue
			}
			replaced.Add(r.row)
			at = append(at, r.at-gone)
		}
		if removed.Len() > 0 {
			if err := o.mutation.Delete(ctx, f, removed); err != nil {
				return err
			}
		}
		if len(at) == 0 {
			return nil
		}
		post, err := takeRows(ctx, p.updated, at, o.mem)
		if err != nil {
			return err
		}
		defer post.Release()
		return o.mutation.Update(ctx, f, replaced, post)
	})
}

// commit makes the commit with what was written.
func (o *output) commit(ctx context.Context) (delta.Result, error) {
	switch {
	case o.mutation != nil:
		// A key that another writer puts in meanwhile would stand there twice.
		o.c.Reads.Table = true
		return o.mutation.Commit(ctx, *o.c)
	case o.files != nil:
		add, err := o.files.Close(ctx)
		if err != nil {
			return delta.Result{}, err
		}
		o.c.Add = append(o.c.Add, add...)
	}
	if o.rewrite {
		o.c.ReplaceAll, o.c.Reads.Table = true, true
	}
	return o.b.Table.Commit(ctx, *o.c)
}

// drop is abort for a batch that goes on without what was written.
func (o *output) drop(ctx context.Context) error {
	err := o.abort(ctx)
	o.files, o.mutation, o.rewrite = nil, nil, false
	return err
}

// abort drops what was written.
func (o *output) abort(ctx context.Context) error {
	switch {
	case o.mutation != nil:
		return o.mutation.Abort(ctx)
	case o.files != nil:
		return o.files.Abort(ctx)
	}
	return nil
}
