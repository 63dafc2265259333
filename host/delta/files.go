package delta

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// openFile opens a file that the log names. An absolute path is resolved when
// it leads into the table's own root; others need WithOutside.
func (t *Table) openFile(ctx context.Context, uri string) (storage.Object, error) {
	name, err := canonicalPath(uri)
	if err != nil {
		return nil, err
	}
	var o storage.Object
	switch root := storage.Root(t.store); {
	case !isAbsolute(name):
		o, err = t.store.Open(ctx, name)
	case root != "" && strings.HasPrefix(name, root+"/"):
		o, err = t.store.Open(ctx, strings.TrimPrefix(name, root+"/"))
	case t.outside != nil:
		o, err = t.outside(ctx, uri)
	default:
		return nil, unsupported("file %s lies outside the table", uri)
	}
	if errors.Is(err, storage.ErrNotExist) {
		return nil, fault.Wrap(err, "DELTA_FILE_NOT_FOUND", "the log names file %s, which is gone", uri)
	}
	return o, err
}

// parquetFile is an open Parquet file.
type parquetFile struct {
	object storage.Object
	reader *file.Reader
}

func (t *Table) openParquet(ctx context.Context, uri string) (*parquetFile, error) {
	o, err := t.openFile(ctx, uri)
	if err != nil {
		return nil, err
	}
	r, err := t.newParquetReader(o)
	if err != nil {
		return nil, fault.Wrap(errors.Join(err, o.Close()), "DELTA_INVALID_DATA_FILE", "%s is no readable Parquet file", uri)
	}
	return &parquetFile{o, r}, nil
}

func (t *Table) newParquetReader(o storage.Object) (r *file.Reader, err error) {
	defer guard(&err, "DELTA_INVALID_DATA_FILE", "the footer")
	// Scratch memory of the decoders comes from the Go heap: not all of it is
	// given back (arrow-go v18.8.0, DELTA_BINARY_PACKED). Arrays come from t.mem.
	props := parquet.NewReaderProperties(newBoundedAllocator(memory.NewGoAllocator(), pageRoom, o.Size()))
	r, err = file.NewParquetReader(io.NewSectionReader(o, 0, o.Size()), file.WithReadProps(props))
	if err != nil {
		return nil, err
	}
	if err := checkFooter(r, o.Size()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	streamLargeChunks(r, props)
	return r, nil
}

// checkFooter refuses a footer whose columns lie outside of the file: what it
// says of their lengths is asked of memory before it is read.
func checkFooter(r *file.Reader, size int64) error {
	for g := range r.NumRowGroups() {
		group := r.MetaData().RowGroup(g)
		for i := range group.NumColumns() {
			chunk, err := group.ColumnChunk(i)
			if err != nil {
				return err
			}
			if n := chunk.TotalCompressedSize(); n < 0 || n > size || chunk.DataPageOffset() < 0 || chunk.DataPageOffset() > size {
				return fault.New("DELTA_INVALID_DATA_FILE", "column %d of row group %d lies outside of the file", i, g)
			}
		}
	}
	return nil
}

func (p *parquetFile) close() (err error) {
	defer guard(&err, "DELTA_INVALID_DATA_FILE", "closing")
	return errors.Join(p.reader.Close(), p.object.Close())
}

// footerRows reads how many physical rows a file has.
func (t *Table) footerRows(ctx context.Context, f *AddFile) (int64, error) {
	p, err := t.openParquet(ctx, f.Path)
	if err != nil {
		return 0, err
	}
	n := p.reader.NumRows()
	return n, p.close()
}

// escapePath makes a URI of a decoded relative path.
func escapePath(name string) string { return (&url.URL{Path: name}).EscapedPath() }
