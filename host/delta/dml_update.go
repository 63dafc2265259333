package delta

import (
	"context"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// setter is a column that UPDATE sets.
type setter struct {
	index int // of the column in the table
	expr  string
}

// setters finds the columns, in the table's order.
func (d *dml) setters(set map[string]string) ([]setter, error) {
	byName := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		f := d.snapshot.schema.findFold(name)
		if f == nil {
			return nil, fault.New("DELTA_COLUMN_NOT_FOUND", "the table has no column %q", name)
		}
		if _, twice := byName[f.name]; twice {
			return nil, fault.New("DELTA_DUPLICATE_COLUMNS_FOUND", "column %q is set twice", f.name)
		}
		byName[f.name] = castTo(set[name], f.typ)
	}
	if len(byName) == 0 {
		return nil, fault.New("DELTA_INVALID_MUTATION", "UPDATE sets no column")
	}
	var out []setter
	for i, f := range d.snapshot.schema.fields {
		if expr, ok := byName[f.name]; ok {
			out = append(out, setter{i, expr})
		}
	}
	return out, nil
}

func (d *dml) updateRows(ctx context.Context, set map[string]string) error {
	setters, err := d.setters(set)
	if err != nil {
		return err
	}
	exprs := make([]string, len(setters))
	for i, s := range setters {
		exprs[i] = s.expr
	}
	program, err := d.snapshot.table.compile(ctx, d.snapshot.arrow, exprs)
	if err != nil {
		return err
	}
	d.programs = append(d.programs, program)
	files, err := d.where.files(ctx, d.snapshot)
	if err != nil {
		return err
	}
	if d.where.ofPartitions() {
		if files, err = d.where.wholeFiles(ctx, files); err != nil {
			return err
		}
	}
	// All columns: the rows are written anew.
	var columns []string
	for _, f := range d.snapshot.schema.fields {
		columns = append(columns, f.name)
	}
	return d.search(ctx, files, columns, func(f *AddFile, rec arrow.RecordBatch, rows, at []int64) error {
		return d.updateBatch(ctx, f, rec, rows, at, setters, program)
	})
}

// updateBatch writes the new images of some rows of a batch.
func (d *dml) updateBatch(ctx context.Context, f *AddFile, rec arrow.RecordBatch, rows, at []int64, setters []setter, program Program) error {
	with := newExtension(rec)
	defer with.release()
	with.drop(int(rec.NumCols()) - 1)
	old, err := gather(d.snapshot.table.mem, with.batch(), runsOf(rows))
	if err != nil {
		return err
	}
	defer old.Release()
	values, err := evaluate(ctx, program, old)
	if err != nil {
		return err
	}
	defer values.Release()
	post := newExtension(old)
	defer post.release()
	isSet := map[int]bool{}
	for i, s := range setters {
		post.fields[s.index].Type, post.cols[s.index] = values.Column(i).DataType(), values.Column(i)
		isSet[s.index] = true
	}
	for i := len(post.cols) - 1; i >= 0; i-- {
		if d.snapshot.schema.fields[i].metaString(generationKey) != "" && !isSet[i] && d.snapshot.protocol.has("generatedColumns") {
			post.drop(i) // it follows from the others
		}
	}
	return d.mutation.Update(ctx, *f, NewRowSet(at...), post.batch())
}

// runsOf makes runs of ascending rows.
func runsOf(rows []int64) (runs [][2]int64) {
	for _, r := range rows {
		if n := len(runs); n > 0 && runs[n-1][1] == r {
			runs[n-1][1]++
		} else {
			runs = append(runs, [2]int64{r, r + 1})
		}
	}
	return runs
}
