package delta

import (
	"context"
	"errors"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// DMLOptions are what Delete, Update and Overwrite have in common.
type DMLOptions struct {
	// Name is what the names of the files are made of; empty is a random one.
	Name string
	// TargetSize is about how large a file becomes; 0 is the table's.
	TargetSize int64
	// EngineInfo, UserMetadata, Txn and Timestamp are those of the commit.
	EngineInfo   string
	UserMetadata string
	Txn          *Txn
	Timestamp    time.Time
}

// DeleteOptions says which rows go.
type DeleteOptions struct {
	DMLOptions
	// Where is the condition; rows for which it is true go. Empty is all rows.
	Where string
}

// UpdateOptions says which rows change and how.
type UpdateOptions struct {
	DMLOptions
	// Where is the condition; rows for which it is true change. Empty is all rows.
	Where string
	// Set gives the new values of columns, as expressions over the old row.
	Set map[string]string
}

// OverwriteOptions says which rows are replaced and by what.
type OverwriteOptions struct {
	DMLOptions
	// Where is the condition of the rows that are replaced, and which all new
	// rows must meet (replaceWhere). Empty replaces all rows.
	Where string
	// Rows are the new ones; nil is none. It is read to its end, and stays the caller's.
	Rows array.RecordReader
}

// DMLResult tells what was done.
type DMLResult struct {
	Result
	// Committed is false when no row was concerned: Version is then that which was read.
	Committed bool
	// Rows that were taken out, changed and put in, and those that were only
	// written anew because they shared a file with them.
	Deleted, Updated, Inserted, Copied int64
}

// Delete takes out the rows that meet a condition. Files that hold no such row
// are not read where partition values or statistics tell, and files that hold
// no other are removed as they are when the condition is on partition columns.
func (t *Table) Delete(ctx context.Context, opt DeleteOptions) (DMLResult, error) {
	d, err := t.dml(ctx, opt.Where, opt.DMLOptions, "DELETE")
	if err != nil {
		return DMLResult{}, err
	}
	return d.end(ctx, d.deleteRows(ctx))
}

// Update changes the rows that meet a condition. Generated columns that are
// not set are computed anew.
func (t *Table) Update(ctx context.Context, opt UpdateOptions) (DMLResult, error) {
	d, err := t.dml(ctx, opt.Where, opt.DMLOptions, "UPDATE")
	if err != nil {
		return DMLResult{}, err
	}
	return d.end(ctx, d.updateRows(ctx, opt.Set))
}

// Overwrite replaces the rows that meet a condition by others that meet it, too.
func (t *Table) Overwrite(ctx context.Context, opt OverwriteOptions) (DMLResult, error) {
	d, err := t.dml(ctx, opt.Where, opt.DMLOptions, "WRITE")
	if err != nil {
		return DMLResult{}, err
	}
	d.commit.Parameters["mode"] = "Overwrite"
	if opt.Where != "" {
		d.mutation.opt.holds = []rule{{"the condition of the rows that are replaced", opt.Where, "DELTA_REPLACE_WHERE_MISMATCH"}}
	}
	return d.end(ctx, errors.Join(d.deleteRows(ctx), d.insertRows(ctx, opt.Rows)))
}

// dml is one such operation on its way.
type dml struct {
	snapshot *Snapshot
	where    *condition
	mutation *Mutation
	commit   Commit
	programs []Program
}

func (t *Table) dml(ctx context.Context, where string, opt DMLOptions, operation string) (*dml, error) {
	s, err := t.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	d := &dml{snapshot: s, commit: Commit{
		Operation: operation, Parameters: map[string]any{}, EngineInfo: opt.EngineInfo, UserMetadata: opt.UserMetadata, Txn: opt.Txn, Timestamp: opt.Timestamp,
	}}
	if err := checkTxn(s, opt.Txn); err != nil {
		return nil, err
	}
	if d.mutation, err = s.Mutate(ctx, MutateOptions{Name: opt.Name, TargetSize: opt.TargetSize}); err != nil {
		return nil, err
	}
	if d.where, err = s.condition(ctx, where); err != nil {
		return nil, err
	}
	d.commit.Reads = d.where.reads()
	if where != "" {
		d.commit.Parameters["predicate"] = []string{where}
	}
	return d, nil
}

// end commits what was done, unless that is nothing or went wrong.
func (d *dml) end(ctx context.Context, err error) (DMLResult, error) {
	err = errors.Join(err, d.where.close())
	for _, p := range d.programs {
		err = errors.Join(err, p.Close())
	}
	m := d.mutation
	if err != nil {
		return DMLResult{}, errors.Join(err, m.Abort(ctx))
	}
	out := DMLResult{Result: Result{Version: d.snapshot.version}}
	if len(m.sorted()) == 0 && m.inserted == 0 && d.commit.Txn == nil {
		return out, m.Abort(ctx)
	}
	if out.Result, err = m.Commit(ctx, d.commit); err != nil {
		return DMLResult{}, err
	}
	out.Committed = true
	out.Deleted, out.Updated, out.Inserted, out.Copied = m.deleted, m.updated, m.inserted, m.copied
	return out, nil
}

func (d *dml) deleteRows(ctx context.Context) error {
	files, err := d.where.files(ctx, d.snapshot)
	if err != nil {
		return err
	}
	if d.where.ofPartitions() {
		if files, err = d.where.wholeFiles(ctx, files); err != nil {
			return err
		}
		for i := range files {
			if err := d.mutation.DeleteFile(ctx, files[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return d.search(ctx, files, d.where.columns, func(f *AddFile, _ arrow.RecordBatch, _, at []int64) error {
		return d.mutation.Delete(ctx, *f, NewRowSet(at...))
	})
}

// search reads files and calls visit for each batch with rows that meet the
// condition: the batch, the rows of it, and their places in the file.
func (d *dml) search(ctx context.Context, files []AddFile, columns []string, visit func(f *AddFile, rec arrow.RecordBatch, rows, at []int64) error) error {
	if columns == nil {
		columns = []string{}
	}
	for i := range files {
		r, err := d.snapshot.Scan(ctx, ScanOptions{Columns: columns, Files: files[i : i+1], RowIndex: true})
		if err != nil {
			return err
		}
		err = d.searchFile(ctx, r, &files[i], visit)
		r.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dml) searchFile(ctx context.Context, r array.RecordReader, f *AddFile, visit func(f *AddFile, rec arrow.RecordBatch, rows, at []int64) error) error {
	for r.Next() {
		rec := r.RecordBatch()
		index := rec.Column(int(rec.NumCols()) - 1).(*array.Int64).Int64Values()
		rows, err := d.matches(ctx, rec)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			continue
		}
		at := make([]int64, len(rows))
		for i, row := range rows {
			at[i] = index[row]
		}
		if err := visit(f, rec, rows, at); err != nil {
			return err
		}
	}
	return r.Err()
}

// matches gives the rows of a batch, whose last column is the row index, that meet the condition.
func (d *dml) matches(ctx context.Context, rec arrow.RecordBatch) ([]int64, error) {
	if d.where == nil {
		rows := make([]int64, rec.NumRows())
		for i := range rows {
			rows[i] = int64(i)
		}
		return rows, nil
	}
	with := newExtension(rec)
	defer with.release()
	with.drop(int(rec.NumCols()) - 1)
	return d.where.eval(ctx, with.batch())
}

func (d *dml) insertRows(ctx context.Context, r array.RecordReader) error {
	if r == nil {
		return nil
	}
	for r.Next() {
		if err := d.mutation.Insert(ctx, r.RecordBatch()); err != nil {
			return err
		}
	}
	return r.Err()
}
