package delta

import (
	"context"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
)

// condition is a WHERE over the rows of a snapshot.
type condition struct {
	snapshot  *Snapshot
	text      string
	program   Program
	columns   []string // that it reads
	predicate *Predicate
}

// condition compiles a text; the empty one is nil and holds for every row.
func (s *Snapshot) condition(ctx context.Context, text string) (*condition, error) {
	if text == "" {
		return nil, nil
	}
	c := &condition{snapshot: s, text: text}
	for _, f := range s.schema.fields {
		c.columns = append(c.columns, f.name)
	}
	var err error
	if c.program, err = s.table.compile(ctx, s.arrow, []string{text}); err != nil {
		return nil, err
	}
	if t := c.program.Types()[0]; t.ID() != arrow.BOOL && t.ID() != arrow.NULL {
		return nil, errors.Join(fault.New("DATATYPE_MISMATCH", "the condition %s is %s, not BOOLEAN", text, t), c.program.Close())
	}
	if u, ok := c.program.(ColumnUser); ok {
		c.columns = u.Columns()
	}
	if p, ok := s.table.engine.(Pruner); ok {
		if c.predicate, err = p.Predicate(ctx, s.arrow, text); err != nil {
			return nil, errors.Join(err, c.program.Close())
		}
	}
	return c, nil
}

func (c *condition) close() error {
	if c == nil {
		return nil
	}
	return c.program.Close()
}

// reads is what a commit depends on that changes the rows for which c holds.
func (c *condition) reads() Reads {
	switch {
	case c == nil:
		return Reads{Where: And()}
	case c.predicate == nil:
		return Reads{Where: Unknown()}
	}
	return Reads{Where: c.predicate}
}

// files gives the files that may hold a row for which c holds.
func (c *condition) files(ctx context.Context, s *Snapshot) ([]AddFile, error) {
	if c == nil {
		return s.Files(ctx)
	}
	return s.FilesWhere(ctx, c.predicate)
}

// ofPartitions tells whether c reads no columns but those that partition the
// table: it then holds for all rows of a file or for none.
func (c *condition) ofPartitions() bool {
	return c == nil || !slices.ContainsFunc(c.columns, func(name string) bool {
		return !slices.Contains(c.snapshot.metadata.PartitionColumns, name)
	})
}

// wholeFiles gives those of the files for whose rows c, a condition on partition columns, holds.
func (c *condition) wholeFiles(ctx context.Context, files []AddFile) ([]AddFile, error) {
	if c == nil || len(files) == 0 {
		return files, nil
	}
	var fields []arrow.Field
	var cols []arrow.Array
	defer func() { releaseArrays(cols) }()
	for _, name := range c.columns {
		f := c.snapshot.schema.findFold(name)
		arr, err := c.snapshot.partitionValues(files, f)
		if err != nil {
			return nil, err
		}
		cols = append(cols, arr)
		fields = append(fields, arrowFields(&structType{[]*field{f}})...)
	}
	rec := array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(len(files)))
	defer rec.Release()
	holds, err := c.eval(ctx, rec)
	if err != nil {
		return nil, err
	}
	var out []AddFile
	for _, i := range holds {
		out = append(out, files[i])
	}
	return out, nil
}

// partitionValues gives the values of a partition column, one for each file.
func (s *Snapshot) partitionValues(files []AddFile, f *field) (arrow.Array, error) {
	parts := make([]arrow.Array, len(files))
	defer releaseArrays(parts)
	for i := range files {
		c, err := s.partitionColumn(&files[i], f)
		if err != nil {
			return nil, err
		}
		if parts[i], err = c.next(1); err != nil {
			return nil, fault.Place(err, "DELTA_INVALID_LOG", fault.Where{File: files[i].Path})
		}
	}
	return array.Concatenate(parts, s.table.mem)
}

// eval gives the rows of a batch for which c is true, ascending.
func (c *condition) eval(ctx context.Context, rec arrow.RecordBatch) ([]int64, error) {
	out, err := evaluate(ctx, c.program, rec)
	if err != nil {
		return nil, err
	}
	defer out.Release()
	b, ok := out.Column(0).(*array.Boolean)
	if !ok {
		return nil, nil // NULL in every row
	}
	var rows []int64
	for i := range b.Len() {
		if b.IsValid(i) && b.Value(i) {
			rows = append(rows, int64(i))
		}
	}
	return rows, nil
}
