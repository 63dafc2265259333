package delta

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// holdNewConstraints checks that the rows of a table meet the constraints that
// a commit adds, and makes the commit depend on all rows: one that is added
// meanwhile has not been checked. Rows of a new table, and those that replace
// all others, were checked when their files were written.
func (t *Table) holdNewConstraints(ctx context.Context, c *Commit) error {
	if c.Read == nil || c.ReplaceAll {
		return nil
	}
	rules := newRowRules(t, c.Read.schema)
	for _, k := range slices.Sorted(maps.Keys(c.Properties)) {
		if isConstraint(k) && c.Read.metadata.Configuration[k] != c.Properties[k] {
			rules.constrain(k, c.Properties[k])
		}
	}
	if len(rules.checks) == 0 {
		return nil
	}
	files, err := c.Read.Files(ctx)
	if err != nil {
		return err
	}
	c.Reads.Table = true
	return errors.Join(c.Read.hold(ctx, rules, append(files, c.Add...)), rules.close())
}

// hold checks the rows of files.
func (s *Snapshot) hold(ctx context.Context, rules *rowRules, files []AddFile) error {
	r, err := s.Scan(ctx, ScanOptions{Files: files})
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
		rec := r.RecordBatch()
		if err := rules.check(ctx, rec.Columns(), nil, rec.NumRows()); err != nil {
			return err
		}
	}
	return r.Err()
}
