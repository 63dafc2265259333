package delta

import (
	"context"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/weir-data/weir/host/fault"
)

// column gives the values of one column of the table in one file.
type column interface {
	// next gives the next n rows in the table's type.
	next(n int) (arrow.Array, error)
	// skip passes over n rows. Row groups that are passed over as a whole are not read.
	skip(n int64)
	release()
}

// columns finds the columns in a file.
func (s *Snapshot) columns(ctx context.Context, add *AddFile, pf *parquetFile, fields []*field) (out []column, err error) {
	defer guard(&err, "DELTA_INVALID_DATA_FILE", "the schema")
	out = make([]column, len(fields))
	defer func() {
		if err != nil {
			for _, c := range out {
				if c != nil {
					c.release()
				}
			}
			out = nil
		}
	}()
	adapt := &adapter{mem: s.table.mem, match: s.matcher(), stored: true}
	fr, err := newArrowReader(pf.reader, newBoundedAllocator(s.table.mem, arrayRoom, pf.object.Size()))
	if err != nil {
		return out, err
	}
	stored := make([]arrow.Field, len(fr.Manifest.Fields))
	for i := range fr.Manifest.Fields {
		stored[i] = *fr.Manifest.Fields[i].Field
	}
	for i, f := range fields {
		if slices.Contains(s.metadata.PartitionColumns, f.name) {
			out[i], err = s.partitionColumn(add, f)
		} else if j := adapt.match(f, stored); j < 0 || isVoid(f.typ) {
			out[i] = &nullColumn{adapt, f.typ}
		} else {
			out[i], err = newStoredColumn(ctx, fr, j, adapt, f)
		}
		if err != nil {
			return out, within(err, "column "+f.name)
		}
	}
	return out, nil
}

// matcher tells how the table's columns are found in its files.
func (s *Snapshot) matcher() func(f *field, candidates []arrow.Field) int {
	switch s.mapping {
	case "name":
		return matchPhysical
	case "id":
		return matchID
	}
	return matchName
}

// newArrowReader reads by the Parquet schema alone: an Arrow schema that a
// writer left in the file would bring its own types.
func newArrowReader(r *file.Reader, mem memory.Allocator) (*pqarrow.FileReader, error) {
	props := pqarrow.ArrowReadProperties{}
	fr, err := pqarrow.NewFileReader(r, props, mem)
	if err != nil {
		return nil, err
	}
	fr.Manifest, err = pqarrow.NewSchemaManifest(r.MetaData().Schema, nil, &props)
	return fr, err
}

func (s *Snapshot) partitionColumn(add *AddFile, f *field) (column, error) {
	key := f.storedName(s.mapping != "none")
	p, ok := f.typ.(*primitive)
	if !ok {
		return nil, fault.New("DELTA_INVALID_PARTITION_COLUMN_TYPE", "type %s cannot partition a table", f.typ.sparkName())
	}
	return &partitionColumn{s.table.mem, add.PartitionValues[key], p}, nil
}

type nullColumn struct {
	adapt *adapter
	typ   dataType
}

func (c *nullColumn) next(n int) (arrow.Array, error) { return c.adapt.nulls(c.typ, n), nil }
func (c *nullColumn) skip(int64)                      {}
func (c *nullColumn) release()                        {}

// indexColumn gives the position of each row in its file.
type indexColumn struct {
	mem memory.Allocator
	at  int64
}

func (c *indexColumn) next(n int) (arrow.Array, error) {
	b := array.NewInt64Builder(c.mem)
	defer b.Release()
	b.Reserve(n)
	for range n {
		b.UnsafeAppend(c.at)
		c.at++
	}
	return b.NewArray(), nil
}

func (c *indexColumn) skip(n int64) { c.at += n }
func (c *indexColumn) release()     {}

type partitionColumn struct {
	mem   memory.Allocator
	value *string
	typ   *primitive
}

func (c *partitionColumn) next(n int) (arrow.Array, error) {
	b := array.NewBuilder(c.mem, c.typ.arrow)
	defer b.Release()
	b.Reserve(n)
	if err := appendPartition(b, c.value, c.typ, n); err != nil {
		return nil, err
	}
	return b.NewArray(), nil
}

func (c *partitionColumn) skip(int64) {}
func (c *partitionColumn) release()   {}

// storedColumn reads a column of the file and adapts it.
type storedColumn struct {
	adapt  *adapter
	typ    dataType
	leaves map[int]bool // its Parquet columns
	open   func(groups []int) (columnReader, error)
	groups []int64 // the first row of each row group, and behind the last one

	reader columnReader // nil until the first row is read, or after a row group was passed over
	at     int64        // the next row
	ahead  int64        // rows behind the reader that are to be passed over
}

type columnReader interface {
	NextBatch(int64) (*arrow.Chunked, error)
	Release()
}

func newStoredColumn(ctx context.Context, fr *pqarrow.FileReader, index int, adapt *adapter, f *field) (column, error) {
	sf := &fr.Manifest.Fields[index]
	c := &storedColumn{adapt: adapt, typ: f.typ, leaves: leavesOf(sf, nil), groups: []int64{0}}
	for i := range fr.ParquetReader().NumRowGroups() {
		c.groups = append(c.groups, c.groups[i]+fr.ParquetReader().RowGroup(i).NumRows())
	}
	if sf.IsLeaf() && fr.ParquetReader().MetaData().Schema.Column(sf.ColIndex).PhysicalType() == parquet.Types.Int96 {
		c.open = func(groups []int) (columnReader, error) {
			return newInt96Reader(fr.ParquetReader(), sf, groups, adapt.mem), nil
		}
		return c, nil
	}
	legacy := int96Leaves(fr.ParquetReader(), sf, nil)
	c.open = func(groups []int) (columnReader, error) {
		r, err := fr.GetFieldReader(ctx, index, c.leaves, groups)
		if err != nil {
			return nil, fault.Wrap(err, "DELTA_INVALID_DATA_FILE", "the column cannot be read")
		}
		if r == nil {
			return nil, fault.New("DELTA_INVALID_DATA_FILE", "the column has no values")
		}
		if len(legacy) == 0 {
			return r, nil
		}
		return newInt96Within(r, fr.ParquetReader(), legacy, groups, adapt.mem), nil
	}
	var err error
	c.reader, err = c.open(c.from(0))
	return c, err
}

// from lists the row groups from one on.
func (c *storedColumn) from(group int) []int {
	var out []int
	for i := group; i+1 < len(c.groups); i++ {
		out = append(out, i)
	}
	return out
}

// leavesOf adds the Parquet columns below a field to the set.
func leavesOf(f *pqarrow.SchemaField, set map[int]bool) map[int]bool {
	if set == nil {
		set = map[int]bool{}
	}
	if f.IsLeaf() {
		set[f.ColIndex] = true
	}
	for i := range f.Children {
		leavesOf(&f.Children[i], set)
	}
	return set
}

func (c *storedColumn) next(n int) (arrow.Array, error) {
	if err := c.pass(); err != nil {
		return nil, err
	}
	arr, err := nextArray(c.reader, n, c.adapt.mem)
	if err != nil {
		return nil, err
	}
	defer arr.Release()
	c.at += int64(arr.Len())
	return c.adapt.adapt(arr, c.typ)
}

func (c *storedColumn) skip(n int64) { c.ahead += n }

// pass brings the reader to the next row that is wanted.
func (c *storedColumn) pass() error {
	target := c.at + c.ahead
	group := sort.Search(len(c.groups), func(i int) bool { return c.groups[i] > target }) - 1
	if c.reader == nil || c.ahead > 0 && c.groups[group] > c.at {
		c.release()
		var err error
		if c.reader, err = c.open(c.from(group)); err != nil {
			return err
		}
		c.at = c.groups[group]
	}
	for c.at < target {
		chunked, err := c.reader.NextBatch(min(target-c.at, defaultBatchRows))
		if err != nil {
			return fault.Wrap(err, "DELTA_INVALID_DATA_FILE", "the values cannot be read")
		}
		n := int64(chunked.Len())
		chunked.Release()
		if n == 0 {
			return fault.New("DELTA_INVALID_DATA_FILE", "the column ends at row %d", c.at)
		}
		c.at += n
	}
	c.ahead = 0
	return nil
}

func (c *storedColumn) release() {
	if c.reader != nil {
		c.reader.Release()
		c.reader = nil
	}
}

// nextArray reads rows into one array.
func nextArray(r interface {
	NextBatch(int64) (*arrow.Chunked, error)
}, n int, mem memory.Allocator) (arrow.Array, error) {
	chunked, err := r.NextBatch(int64(n))
	if err != nil {
		return nil, fault.Wrap(err, "DELTA_INVALID_DATA_FILE", "the values cannot be read")
	}
	defer chunked.Release()
	if len(chunked.Chunks()) == 1 {
		arr := chunked.Chunk(0)
		arr.Retain()
		return arr, nil
	}
	if len(chunked.Chunks()) == 0 {
		return array.MakeArrayOfNull(mem, chunked.DataType(), 0), nil
	}
	arr, err := array.Concatenate(chunked.Chunks(), mem)
	if err != nil {
		return nil, fault.Wrap(err, "DELTA_INVALID_DATA_FILE", "the values do not fit one batch")
	}
	return arr, nil
}
