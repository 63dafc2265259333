package ingest

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// source is a file being read.
type source struct {
	File
	index  int // in the list of files
	parts  []partition
	header []string // names of a CSV file with a header
}

// chunk is a piece of a file: whole records, decompressed, followed by padding.
type chunk struct {
	file   *source
	data   []byte
	n      int
	offset int64 // in the decompressed file
	line   int64 // number of its first line
	// inArray says that a piece of a JSON file begins inside a top-level array.
	inArray bool
	// overlong says that data is the beginning of a record of total bytes that is too long to read.
	overlong bool
	total    int64
}

const (
	// chunkBytes is the size of pieces: large enough for full batches, small
	// enough that a few in flight are no memory.
	chunkBytes = 8 << 20
	// keptOfOverlong is how much of a record beyond maxRecordBytes is kept.
	keptOfOverlong = 4 << 10
)

var chunkBuffers = sync.Pool{New: func() any { b := make([]byte, chunkBytes+padding); return &b }}

// buffer gives room for a piece of the configured size.
func (c *config) buffer() []byte {
	if c.chunkBytes == chunkBytes {
		return *chunkBuffers.Get().(*[]byte)
	}
	return make([]byte, c.chunkBytes+padding)
}

// recycle gives the memory of a chunk back; its bytes must not be used any more.
func (c *chunk) recycle() {
	if cap(c.data) == chunkBytes+padding {
		b := c.data[:cap(c.data)]
		chunkBuffers.Put(&b)
	}
	c.data = nil
}

// chunker reads a file as chunks.
type chunker struct {
	c      *config
	file   *source
	closer io.Closer
	r      io.Reader
	gzip   *gzip.Reader // when r is one
	left   int64        // bytes not read yet; -1 when not known
	cut    cutter
	json   *jsonCutter

	buf    []byte // what was read and not given out
	n      int
	looked int
	eof    bool
	offset int64
	line   int64
	array  bool
	ready  bool // the header was read
}

// openChunks opens a file and looks at its first bytes: gzip or not, a byte
// order mark, an encoding that is not UTF-8.
func openChunks(ctx context.Context, c *config, store storage.Store, name string, f *source) (*chunker, error) {
	obj, err := store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	if f.Size < 0 {
		f.Size, f.ModTimeMicros = obj.Size(), obj.ModTime().UnixMicro()
	}
	k := &chunker{c: c, file: f, closer: obj, line: 1, r: contextReader{ctx, obj}, left: obj.Size(), eof: obj.Size() == 0}
	switch {
	case !c.multiLine:
		k.cut = &lineCutter{}
	case c.format == formatCSV:
		k.cut = newCSVCutter(&c.csv)
	default:
		k.json = &jsonCutter{lexer: jsonLexer{rules: c.json}}
		k.cut = k.json
	}
	k.buf = k.c.buffer()
	if err = k.fill(); err == nil {
		if err = k.decompress(); err == nil {
			err = k.checkEncoding()
		}
	}
	if err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

func (k *chunker) close() {
	_ = k.closer.Close() // read only: nothing to lose
	if k.gzip != nil {
		gzipReaders.Put(k.gzip)
		k.gzip = nil
	}
	(&chunk{data: k.buf}).recycle()
	k.buf = nil
}

// contextReader ends a read between two calls when the context does.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// otherCompressions are what Hadoop reads by these endings and we do not.
var otherCompressions = []string{".bz2", ".deflate", ".lz4", ".snappy", ".zst", ".zstd", ".xz", ".zip", ".br"}

var gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}

// decompress unwraps gzip, told by its first bytes, of one or several members.
func (k *chunker) decompress() error {
	path := k.file.Path
	for _, ext := range otherCompressions {
		if strings.HasSuffix(path, ext) {
			return fault.New("UNSUPPORTED_COMPRESSION", "%s files are not read yet", ext).WithHint("gzip and plain files are")
		}
	}
	if !bytes.HasPrefix(k.buf[:k.n], []byte{0x1f, 0x8b}) {
		if strings.HasSuffix(path, ".gz") && k.n > 0 {
			return gzip.ErrHeader
		}
		return nil
	}
	raw := io.Reader(bytes.NewReader(bytes.Clone(k.buf[:k.n])))
	if !k.eof {
		raw = io.MultiReader(raw, k.r)
	}
	k.gzip = gzipReaders.Get().(*gzip.Reader)
	if err := k.gzip.Reset(raw); err != nil {
		return err
	}
	k.r, k.n, k.eof, k.left = k.gzip, 0, false, -1
	return k.fill()
}

// checkEncoding steps over a UTF-8 byte order mark and refuses UTF-16 and UTF-32.
func (k *chunker) checkEncoding() error {
	switch h := k.buf[:min(k.n, 4)]; {
	case bytes.HasPrefix(h, []byte{0xef, 0xbb, 0xbf}):
		k.drop(3)
	case bytes.HasPrefix(h, []byte{0xfe, 0xff}), bytes.HasPrefix(h, []byte{0xff, 0xfe}), bytes.Equal(h, []byte{0, 0, 0xfe, 0xff}):
		return fault.New("UNSUPPORTED_ENCODING", "the file is UTF-16 or UTF-32; files are read as UTF-8").WithHint("Convert the file")
	}
	return nil
}

// next gives the next piece, nil at the end.
func (k *chunker) next() (*chunk, error) {
	for {
		if err := k.fill(); err != nil {
			return nil, err
		}
		if !k.ready {
			ok, err := k.readHeader()
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
		}
		if k.n == 0 && k.eof {
			return nil, nil
		}
		end := k.cut.cut(k.buf[:k.n], k.looked, false)
		k.looked = k.n
		if k.eof {
			end = k.n
		}
		if end > 0 && end <= k.c.maxRecordBytes+k.c.chunkBytes {
			return k.take(end), nil
		}
		if k.n > k.c.maxRecordBytes {
			return k.overlong()
		}
		k.grow()
	}
}

// fill reads until the buffer is full or the file ends.
func (k *chunker) fill() error {
	for room := len(k.buf) - padding; k.n < room && !k.eof; {
		n, err := k.r.Read(k.buf[k.n:room])
		k.n += n
		if k.left >= 0 {
			k.left -= int64(n)
			k.eof = k.left <= 0 // spares the read that tells the end
		}
		if err == io.EOF {
			k.eof = true
		} else if err != nil {
			return err
		}
	}
	return nil
}

// grow makes room for a record longer than the buffer.
func (k *chunker) grow() {
	size := min(2*len(k.buf), k.c.maxRecordBytes+k.c.chunkBytes+padding)
	if size <= len(k.buf) {
		size = len(k.buf) + k.c.chunkBytes
	}
	bigger := make([]byte, size)
	copy(bigger, k.buf[:k.n])
	(&chunk{data: k.buf}).recycle()
	k.buf = bigger
}

// take cuts the first end bytes off as a chunk.
func (k *chunker) take(end int) *chunk {
	ch := &chunk{file: k.file, data: k.buf, n: end, offset: k.offset, line: k.line, inArray: k.array}
	rest := k.n - end
	k.buf = k.c.buffer()
	if rest+padding > len(k.buf) {
		k.buf = make([]byte, rest+k.c.chunkBytes+padding)
	}
	copy(k.buf, ch.data[end:k.n])
	clear(ch.data[end : end+padding])
	if !k.eof || rest > 0 {
		k.line += int64(countLines(ch.data[:end]))
	}
	k.offset += int64(end)
	k.n, k.looked = rest, rest
	k.cut.shift(end)
	if k.json != nil {
		k.array = k.json.array
	}
	return ch
}

// drop forgets the first n bytes.
func (k *chunker) drop(n int) {
	k.line += int64(countLines(k.buf[:n]))
	k.offset += int64(n)
	copy(k.buf, k.buf[n:k.n])
	k.n -= n
	k.looked = max(k.looked-n, 0)
	k.cut.shift(n)
}

// overlong passes over a record longer than maxRecordBytes in bounded memory:
// what is kept is its beginning and its length.
func (k *chunker) overlong() (*chunk, error) {
	if k.json != nil {
		skip := 0
		for skip < k.n-1 && (k.buf[skip] <= ' ' || k.buf[skip] == ',') {
			skip++
		}
		k.drop(skip)
	}
	if _, ok := k.cut.(*csvCutter); ok {
		k.looked = 0
	}
	ch := &chunk{file: k.file, offset: k.offset, line: k.line, inArray: k.array, overlong: true}
	ch.n = min(keptOfOverlong, k.n)
	ch.data = make([]byte, ch.n+padding)
	copy(ch.data, k.buf[:ch.n])
	for {
		if end := k.cut.cut(k.buf[:k.n], k.looked, true); end > 0 {
			ch.total += int64(len(bytes.TrimRight(k.buf[:end], "\r\n")))
			k.drop(end)
			k.looked = 0
			if k.json != nil {
				k.array = k.json.array
			}
			k.shrink()
			return ch, nil
		}
		// Keep the last byte: a \r there may be half of a line end.
		keep := min(1, k.n)
		if k.eof {
			keep = 0
		}
		ch.total += int64(k.n - keep)
		k.drop(k.n - keep)
		k.looked = k.n
		if k.eof {
			k.shrink()
			return ch, nil
		}
		if err := k.fill(); err != nil {
			return nil, err
		}
	}
}

// shrink goes back to a buffer of the usual size.
func (k *chunker) shrink() {
	if len(k.buf) <= k.c.chunkBytes+padding || k.n > k.c.chunkBytes {
		return
	}
	usual := k.c.buffer()
	copy(usual, k.buf[:k.n])
	k.buf = usual
}

// readHeader takes skipRows and the header off the beginning of a CSV file; false asks for more bytes.
func (k *chunker) readHeader() (bool, error) {
	if k.c.format != formatCSV {
		k.ready = true
		return true, nil
	}
	clear(k.buf[k.n : k.n+padding])
	s := csvScan{b: k.buf, end: k.n, rules: &k.c.csv, multi: k.c.multiLine}
	p := 0
	for range k.c.csv.skipRows {
		p = s.afterLine(s.ends.find(s.b, p, s.end))
	}
	if k.c.csv.header {
		for p < s.end {
			q := s.pass(p)
			if q == p {
				break
			}
			p = q
		}
		if p < s.end {
			end, why := s.record(p)
			complete := end < s.end || k.eof
			if why != "" && complete && !k.c.multiLine || why != "" && k.eof {
				return false, fault.New("MALFORMED_CSV_HEADER", "the header cannot be split: %s", why).At(fault.Where{Line: 1 + int64(countLines(k.buf[:p]))})
			}
			if complete && why == "" {
				k.file.header = s.header()
				k.ready = true
				k.drop(s.afterLine(end))
				return true, nil
			}
		}
	} else if p < s.end || k.eof {
		k.ready = true
		k.drop(p)
		return true, nil
	}
	if k.eof {
		k.ready = true
		k.drop(k.n)
		return true, nil
	}
	if k.n > k.c.maxRecordBytes {
		return false, fault.New("MALFORMED_CSV_HEADER", "the header is longer than maxRecordBytes")
	}
	k.grow()
	return false, nil
}
