package delta

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

const (
	maxGroupRows  = 1 << 20
	maxGroupBytes = 128 << 20
)

// codec is a compression that we write.
type codec struct {
	name     string
	compress compress.Compression
}

func codecOf(properties map[string]string) (codec, error) {
	name := strings.ToLower(properties["delta.parquet.compression.codec"])
	switch name {
	case "", "zstd":
		return codec{"zstd", compress.Codecs.Zstd}, nil
	case "snappy":
		return codec{"snappy", compress.Codecs.Snappy}, nil
	case "gzip":
		return codec{"gz", compress.Codecs.Gzip}, nil
	case "lz4_raw":
		return codec{"lz4raw", compress.Codecs.Lz4Raw}, nil
	case "none", "uncompressed":
		return codec{"none", compress.Codecs.Uncompressed}, nil
	}
	return codec{}, unsupported("property delta.parquet.compression.codec = %s", name)
}

// partFile is one data file in the making. Nothing in it depends on the clock,
// on chance or on how rows were batched.
type partFile struct {
	w      *FileWriter
	name   string
	values map[string]*string
	sink   storage.Writer
	count  *countingWriter
	pq     *pqarrow.FileWriter
	stats  *fileStats
	used   int

	groupRows  int
	groupBytes int64
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func (w *FileWriter) newPartFile(ctx context.Context, name string, values map[string]*string) (*partFile, error) {
	sink, err := w.table.store.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	p := &partFile{w: w, name: name, values: values, sink: sink, count: &countingWriter{w: sink}, stats: newFileStats(w.file, w.properties, w.always)}
	props := parquet.NewWriterProperties(
		parquet.WithAllocator(w.table.mem),
		parquet.WithCompression(w.codec.compress),
		parquet.WithStoreDecimalAsInteger(true), // as Spark writes them
		parquet.WithMaxRowGroupLength(maxGroupRows+chunkRows),
	)
	if p.pq, err = pqarrow.NewFileWriter(w.file, p.count, props, pqarrow.NewArrowWriterProperties(pqarrow.WithAllocator(w.table.mem))); err != nil {
		return nil, fault.Wrap(errors.Join(err, sink.Abort()), "DELTA_WRITE_FAILED", "file %s cannot be begun", name)
	}
	return p, nil
}

// write appends columns and tells whether the file is full.
func (p *partFile) write(cols []arrow.Array, rows int) (full bool, err error) {
	rec := array.NewRecordBatch(p.w.file, cols, int64(rows))
	defer rec.Release()
	var g errgroup.Group
	g.Go(func() (err error) {
		defer guard(&err, "DELTA_WRITE_FAILED", "statistics of "+p.name)
		p.stats.observe(cols, rows)
		return nil
	})
	err = p.encode(rec)
	if err := errors.Join(err, g.Wait()); err != nil {
		return false, err
	}
	p.groupRows += rows
	p.groupBytes += batchBytes(rec, 0, int64(rows))
	if p.groupRows >= maxGroupRows || p.groupBytes >= min(maxGroupBytes, 4*p.w.opt.TargetSize) {
		p.groupRows, p.groupBytes = 0, 0
		if err := p.nextGroup(); err != nil {
			return false, err
		}
		return p.count.n >= p.w.opt.TargetSize, nil
	}
	return false, nil
}

func (p *partFile) encode(rec arrow.RecordBatch) (err error) {
	defer guard(&err, "DELTA_WRITE_FAILED", "file "+p.name)
	if err := p.pq.WriteBuffered(rec); err != nil {
		return fault.Wrap(err, "DELTA_WRITE_FAILED", "file %s", p.name)
	}
	return nil
}

// nextGroup ends the row group, which brings its bytes to the sink.
func (p *partFile) nextGroup() (err error) {
	defer guard(&err, "DELTA_WRITE_FAILED", "file "+p.name)
	if err := p.pq.NewBufferedRowGroupChecked(); err != nil {
		return fault.Wrap(err, "DELTA_WRITE_FAILED", "file %s", p.name)
	}
	return nil
}

func (p *partFile) closeParquet() (err error) {
	defer guard(&err, "DELTA_WRITE_FAILED", "file "+p.name)
	if err := p.pq.Close(); err != nil {
		return fault.Wrap(err, "DELTA_WRITE_FAILED", "file %s", p.name)
	}
	return nil
}

func (p *partFile) close() (AddFile, error) {
	if err := p.closeParquet(); err != nil {
		return AddFile{}, errors.Join(err, p.sink.Abort())
	}
	if err := p.sink.Commit(); err != nil {
		return AddFile{}, err
	}
	values := p.values
	if values == nil {
		values = map[string]*string{}
	}
	return AddFile{
		Path: uriPath(p.name), PartitionValues: values, Size: p.count.n, ModificationTime: p.w.table.now().UnixMilli(),
		DataChange: true, Stats: p.stats.json(),
	}, nil
}

func (p *partFile) abort() error {
	// The encoder's buffers go with it; what it writes goes to a sink that is dropped.
	_ = p.closeParquet()
	return p.sink.Abort()
}
