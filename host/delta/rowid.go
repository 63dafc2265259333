package delta

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// trackingFields are the columns that ScanOptions.RowTracking adds.
func trackingFields() []arrow.Field {
	return []arrow.Field{
		{Name: RowIDColumn, Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: RowCommitVersionColumn, Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}
}

// trackingColumns read the stable row ids and commit versions of a file: what a
// writer kept in the file, and where it kept nothing what the log gives the file.
func (s *Snapshot) trackingColumns(ctx context.Context, add *AddFile, pf *parquetFile) (out []column, err error) {
	defer guard(&err, "DELTA_INVALID_DATA_FILE", "the schema")
	defer func() {
		if err != nil {
			for _, c := range out {
				c.release()
			}
			out = nil
		}
	}()
	fr, err := newArrowReader(pf.reader, s.table.mem)
	if err != nil {
		return nil, err
	}
	long := &primitive{"long", arrow.PrimitiveTypes.Int64}
	for _, c := range []struct {
		property string
		log      *int64
		step     int64
	}{{rowIDNameKey, add.BaseRowID, 1}, {rowCommitVersionNameKey, add.DefaultRowCommitVersion, 0}} {
		t := &trackedColumn{mem: s.table.mem, log: c.log, step: c.step}
		name := s.metadata.Configuration[c.property]
		if j := slices.IndexFunc(fr.Manifest.Fields, func(f pqarrow.SchemaField) bool { return name != "" && f.Field.Name == name }); j >= 0 {
			adapt := &adapter{mem: s.table.mem, match: matchName}
			if t.kept, err = newStoredColumn(ctx, fr, j, adapt, &field{name: name, typ: long, nullable: true}); err != nil {
				return out, within(err, "column "+name)
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// trackedColumn is what the file keeps, and log + step × position where that is null.
type trackedColumn struct {
	mem  memory.Allocator
	kept column // nil: nothing
	log  *int64 // nil: unknown
	step int64
	at   int64
}

func (c *trackedColumn) next(n int) (arrow.Array, error) {
	var kept *array.Int64
	if c.kept != nil {
		arr, err := c.kept.next(n)
		if err != nil {
			return nil, err
		}
		defer arr.Release()
		kept = arr.(*array.Int64)
		n = kept.Len()
	}
	b := array.NewInt64Builder(c.mem)
	defer b.Release()
	b.Reserve(n)
	for i := range n {
		switch {
		case kept != nil && kept.IsValid(i):
			b.UnsafeAppend(kept.Value(i))
		case c.log != nil:
			b.UnsafeAppend(*c.log + c.step*(c.at+int64(i)))
		default:
			b.AppendNull()
		}
	}
	c.at += int64(n)
	return b.NewArray(), nil
}

func (c *trackedColumn) skip(n int64) {
	c.at += n
	if c.kept != nil {
		c.kept.skip(n)
	}
}

func (c *trackedColumn) release() {
	if c.kept != nil {
		c.kept.release()
	}
}
