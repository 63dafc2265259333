package delta

import (
	"context"
	"errors"
	"io"
	"runtime"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"golang.org/x/sync/errgroup"
)

// encoder writes batches to a Parquet file as pqarrow's FileWriter does, byte
// for byte, but several columns at a time.
type encoder struct {
	fields []arrow.Field
	arrow  pqarrow.ArrowWriterProperties
	file   *file.Writer
	group  file.BufferedRowGroupWriter // nil before the first batch
}

func newEncoder(schema *arrow.Schema, to io.Writer, props *parquet.WriterProperties) (*encoder, error) {
	e := &encoder{fields: schema.Fields(), arrow: pqarrow.NewArrowWriterProperties(pqarrow.WithAllocator(props.Allocator()))}
	columns, err := pqarrow.ToParquet(schema, props, e.arrow)
	if err != nil {
		return nil, err
	}
	e.file, err = file.NewParquetWriterWithError(to, columns.Root(), file.WithWriterProps(props), file.WithWriteMetadata(metadata.KeyValueMetadata{}))
	return e, err
}

// end ends the row group; the next batch begins another one.
func (e *encoder) end() error {
	if e.group == nil {
		return nil
	}
	group := e.group
	e.group = nil
	if err := flushPages(group); err != nil {
		return errors.Join(err, group.Close())
	}
	return group.Close()
}

// flushPages ends the last page of each column, which compresses it, several at
// a time: closing the group does so for one after the other. A column with a
// dictionary has to wait for that page to come first.
func flushPages(group file.BufferedRowGroupWriter) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range group.NumColumns() {
		column, err := group.Column(i)
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		flusher, ok := column.(interface{ FlushBufferedDataPages() error })
		if !ok || column.Properties().DictionaryEnabledFor(column.Descr().Path()) {
			continue
		}
		g.Go(func() (err error) {
			defer guard(&err, "DELTA_WRITE_FAILED", "column "+column.Descr().Name())
			return flusher.FlushBufferedDataPages()
		})
	}
	return g.Wait()
}

// next begins a row group, and ends the one before.
func (e *encoder) next() (err error) {
	if err := e.end(); err != nil {
		return err
	}
	e.group, err = e.file.AppendBufferedRowGroupChecked()
	return err
}

// write appends columns to the row group. Their nulls have been counted.
func (e *encoder) write(ctx context.Context, cols []arrow.Array) error {
	if e.group == nil {
		if err := e.next(); err != nil {
			return err
		}
	}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	column := 0
	for i, arr := range cols {
		first := column
		column += leafCount(e.fields[i].Type)
		g.Go(func() error { return e.column(ctx, &g, first, e.fields[i], arr) })
	}
	return g.Wait()
}

// column writes the leaves of one column, each beside the others where there is a processor for it.
func (e *encoder) column(ctx context.Context, g *errgroup.Group, first int, f arrow.Field, arr arrow.Array) (err error) {
	defer guard(&err, "DELTA_WRITE_FAILED", "column "+f.Name)
	leaves, err := leavesOfColumn(f, arr)
	for i := range leaves {
		if err != nil {
			leaves[i].values.Release()
			continue
		}
		write := func() (err error) {
			defer guard(&err, "DELTA_WRITE_FAILED", "column "+f.Name)
			defer leaves[i].values.Release()
			return e.leaf(ctx, first+i, leaves[i])
		}
		if i+1 == len(leaves) || !g.TryGo(write) {
			err = write()
		}
	}
	return err
}

func (e *encoder) leaf(ctx context.Context, column int, l leaf) error {
	to, err := e.group.Column(column)
	if err != nil {
		return err
	}
	if to.Descr().MaxDefinitionLevel() == 0 {
		l.def = nil
	}
	return pqarrow.WriteArrowToColumn(pqarrow.NewArrowWriteContext(ctx, &e.arrow), to, l.values, l.def, l.rep, l.nullable)
}

// size is what the row group takes so far.
func (e *encoder) size() int64 {
	if e.group == nil {
		return 0
	}
	return e.group.TotalCompressedBytes()
}

// close ends the file.
func (e *encoder) close() error {
	if err := e.end(); err != nil {
		return err
	}
	return e.file.Close()
}

// leafCount is how many Parquet columns a column of the type has.
func leafCount(t arrow.DataType) int {
	nested, ok := t.(arrow.NestedType)
	if !ok {
		return 1
	}
	n := 0
	for _, f := range nested.Fields() {
		n += leafCount(f.Type)
	}
	return n
}
