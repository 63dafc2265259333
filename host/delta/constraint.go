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
	if err := c.holdNotNull(ctx); err != nil {
		return err
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

// holdNotNull checks that the rows there are have values in the columns that
// the commit makes NOT NULL.
func (c *Commit) holdNotNull(ctx context.Context) error {
	if len(c.Change.NotNull) == 0 {
		return nil
	}
	tree := cloneType(c.Read.schema).(*structType)
	var columns []string
	for _, path := range c.Change.NotNull {
		p, err := tree.locateField(path)
		if err != nil {
			return err
		}
		p.field.nullable = false
		if top := tree.findFold(path[0]).name; !slices.Contains(columns, top) {
			columns = append(columns, top)
		}
	}
	files, err := c.Read.Files(ctx)
	if err != nil {
		return err
	}
	c.Reads.Table = true
	r, err := c.Read.Scan(ctx, ScanOptions{Columns: columns, Files: append(files, c.Add...)})
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
		for i, name := range columns {
			f := tree.find(name)
			if err := checkNulls(f.typ, r.RecordBatch().Column(i), f.nullable, f.name); err != nil {
				return err
			}
		}
	}
	return r.Err()
}
