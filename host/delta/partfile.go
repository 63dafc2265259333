package delta

import (
	"context"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

const (
	maxGroupRows  = 1 << 20
	maxGroupBytes = 128 << 20
)

var errAborted = errors.New("aborted")

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

// targetSize reads the property that says how large files become: a number of
// bytes, or of a unit.
func targetSize(properties map[string]string) (int64, error) {
	text := strings.ToLower(strings.ReplaceAll(properties["delta.targetFileSize"], " ", ""))
	if text == "" {
		return defaultTargetSize, nil
	}
	digits := strings.TrimRight(text, "bkmgti")
	unit, ok := map[string]int64{"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20,
		"g": 1 << 30, "gb": 1 << 30, "gib": 1 << 30, "t": 1 << 40, "tb": 1 << 40, "tib": 1 << 40}[text[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || n <= 0 || n > math.MaxInt64/unit {
		return 0, fault.New("DELTA_INVALID_PROPERTY", "property delta.targetFileSize = %s is no size", properties["delta.targetFileSize"]).
			WithHint("Give bytes, or a number with a unit, such as 128mb")
	}
	return n * unit, nil
}

// partFile is one data file in the making. Nothing in it depends on the clock,
// on chance or on how rows were batched.
type partFile struct {
	w      *FileWriter
	name   string
	values map[string]*string
	sink   storage.Writer
	count  *countingWriter
	pq     *encoder
	stats  *fileStats
	used   int

	groupRows  int
	groupBytes int64
	groupEnds  bool // with the next write: an empty row group at the end is of no use
}

// countingWriter counts what is written. It keeps the first failure for err and
// takes the rest as written: the Parquet encoder gives its memory back only
// where its sink does not fail.
type countingWriter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *countingWriter) Write(p []byte) (int, error) {
	if c.err == nil {
		var n int
		n, c.err = c.w.Write(p)
		c.n += int64(n)
	}
	return len(p), nil
}

func (w *FileWriter) newPartFile(ctx context.Context, name string, values map[string]*string, first []arrow.Array) (*partFile, error) {
	sink, err := w.table.store.Create(ctx, name)
	if err != nil {
		return nil, fault.Place(err, "DELTA_WRITE_FAILED", fault.Where{File: name})
	}
	p := &partFile{w: w, name: name, values: values, sink: sink, count: &countingWriter{w: sink}, stats: newFileStats(w.layout, w.properties, w.always)}
	props := parquet.NewWriterProperties(append(withoutDictionary(w.parquet, first),
		parquet.WithAllocator(w.table.mem),
		parquet.WithCompression(w.codec.compress),
		parquet.WithCompressionLevel(w.level()),
		parquet.WithStoreDecimalAsInteger(true), // as Spark writes them
		parquet.WithMaxRowGroupLength(maxGroupRows+chunkRows),
	)...)
	if p.pq, err = newEncoder(w.parquet, p.count, props); err != nil {
		return nil, fault.Wrap(errors.Join(err, sink.Abort()), "DELTA_WRITE_FAILED", "file %s cannot be begun", name)
	}
	return p, nil
}

// level is how hard files are compressed.
func (w *FileWriter) level() int {
	if w.opt.quick && w.codec.compress == compress.Codecs.Zstd {
		return 1
	}
	return compress.DefaultCompressionLevel
}

// write appends columns.
func (p *partFile) write(ctx context.Context, cols []arrow.Array, rows int) error {
	if p.groupEnds {
		if err := p.nextGroup(); err != nil {
			return err
		}
	}
	rec := array.NewRecordBatch(p.w.parquet, cols, int64(rows))
	defer rec.Release()
	countNulls(cols)
	var g errgroup.Group
	g.Go(func() (err error) {
		defer guard(&err, "DELTA_WRITE_FAILED", "statistics of "+p.name)
		p.stats.observe(cols, rows)
		return nil
	})
	err := p.try(func() error { return p.pq.write(ctx, cols) })
	if err := errors.Join(err, g.Wait()); err != nil {
		return err
	}
	p.groupRows += rows
	p.groupBytes += batchBytes(rec, 0, int64(rows))
	p.groupEnds = p.groupRows >= maxGroupRows || p.groupBytes >= min(maxGroupBytes, 4*p.w.opt.TargetSize)
	return nil
}

// full tells whether the file has reached its size; it is looked at where a row group ends.
func (p *partFile) full() bool {
	return p.groupEnds && p.count.n+p.pq.size() >= p.w.opt.TargetSize
}

// nextGroup ends the row group, which brings its bytes to the sink.
func (p *partFile) nextGroup() error {
	p.groupRows, p.groupBytes, p.groupEnds = 0, 0, false
	return p.try(p.pq.next)
}

// endGroup does so without beginning another one.
func (p *partFile) endGroup() error {
	p.groupRows, p.groupBytes, p.groupEnds = 0, 0, false
	return p.try(p.pq.end)
}

// try runs a step of the encoder.
func (p *partFile) try(step func() error) (err error) {
	defer guard(&err, "DELTA_WRITE_FAILED", "file "+p.name)
	err = step()
	if p.count.err != nil {
		err = p.count.err
	}
	if err != nil {
		return fault.Wrap(err, "DELTA_WRITE_FAILED", "file %s", p.name)
	}
	return nil
}

func (p *partFile) close() (AddFile, error) {
	if err := p.try(p.pq.close); err != nil {
		return AddFile{}, errors.Join(err, p.sink.Abort())
	}
	if err := p.sink.Commit(); err != nil {
		return AddFile{}, fault.Place(errors.Join(err, p.sink.Abort()), "DELTA_WRITE_FAILED", fault.Where{File: p.name})
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
	// Closing gives the encoder's memory back; what it writes is dropped.
	p.count.err = errAborted
	_ = p.try(p.pq.close)
	return p.sink.Abort()
}
