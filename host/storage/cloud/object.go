package cloud

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"gocloud.dev/blob"

	"github.com/weir-data/weir/host/storage"
)

const (
	// headSize is what Open reads along: most commits and all hints are smaller.
	headSize = 128 << 10
	// blockSize is the least that a read in the middle fetches. Blocks are
	// counted from the end of the object, where Parquet has its footer.
	blockSize = 512 << 10
	// blocksKept of an object bound its memory.
	blocksKept = 8
)

// Get implements storage.Store by one request for all of the object.
func (s *Store) Get(ctx context.Context, name string) ([]byte, error) {
	key, err := s.key(ctx, name)
	var data []byte
	if err == nil {
		err = s.retry(ctx, func() (err error) {
			defer guard(&err)
			r, err := s.bucket.NewReader(ctx, key, nil)
			if err != nil {
				return err
			}
			data, err = readFull(r, r.Size())
			return errors.Join(err, r.Close())
		})
	}
	if err != nil {
		return nil, s.fail(err, "read", name)
	}
	return data, nil
}

// Open implements storage.Store. Its one request fetches the head of the object, too.
func (s *Store) Open(ctx context.Context, name string) (storage.Object, error) {
	key, err := s.key(ctx, name)
	if err != nil {
		return nil, s.fail(err, "open", name)
	}
	o := &object{store: s, ctx: ctx, name: name, key: key, blocks: map[int64]*block{}}
	if err := s.retry(ctx, o.readHead); err != nil {
		return nil, s.fail(err, "open", name)
	}
	return o, nil
}

// object is an open object.
type object struct {
	store *Store
	ctx   context.Context //nolint:containedctx // reads of an io.ReaderAt have no other
	name  string
	key   string
	size  int64
	mod   time.Time
	same  hook // only the version that was opened
	head  []byte

	mu     sync.Mutex
	blocks map[int64]*block
	recent []int64 // the blocks that are kept, oldest use first

	// Read is for one goroutine at a time.
	pos    int64
	stream *blob.Reader
}

func (o *object) Size() int64        { return o.size }
func (o *object) ModTime() time.Time { return o.mod }

// readHead makes the first request.
func (o *object) readHead() (err error) {
	defer guard(&err)
	r, err := o.store.bucket.NewRangeReader(o.ctx, o.key, 0, headSize, nil)
	if err != nil {
		if status, _ := o.store.service.status(err); status != http.StatusRequestedRangeNotSatisfiable {
			return err
		}
		// An empty object has no range.
		a, err := o.store.bucket.Attributes(o.ctx, o.key)
		if err != nil {
			return err
		}
		if a.Size > 0 {
			return &brokenError{errChanged} // written in between: once more
		}
		o.size, o.mod = 0, modTime(a.ModTime)
		return nil
	}
	o.size, o.mod, o.same = r.Size(), modTime(r.ModTime()), o.store.service.pin(r)
	o.head, err = readFull(r, min(o.size, headSize))
	return errors.Join(err, r.Close())
}

// readFull reads n bytes, not fewer. It trusts the announced size only as far as bytes come.
func readFull(r io.Reader, n int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, n))
	if err == nil && int64(len(data)) < n {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		err = &brokenError{err}
	}
	return data, err
}

// fetch reads a range of the version that was opened.
func (o *object) fetch(off int64, p []byte) error {
	return o.store.retry(o.ctx, func() (err error) {
		defer guard(&err)
		r, err := o.store.bucket.NewRangeReader(o.ctx, o.key, off, int64(len(p)), &blob.ReaderOptions{BeforeRead: o.same})
		if err != nil {
			return o.changed(err)
		}
		if _, err = io.ReadFull(r, p); err != nil {
			err = &brokenError{err}
		}
		return errors.Join(err, r.Close())
	})
}

// changed names the answer to a read of a version that is no more.
func (o *object) changed(err error) error {
	if status, _ := o.store.service.status(err); status == http.StatusPreconditionFailed {
		return errChanged
	}
	return err
}

// ReadAt implements io.ReaderAt. Short reads fetch whole blocks, of which a few
// are kept, so that a footer and its neighbours cost one request; long ones
// fetch what they ask for.
func (o *object) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, o.store.fail(errors.New("negative offset"), "read", o.name)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if off >= o.size {
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), o.size-off)]
	var err error
	switch {
	case off+int64(len(want)) <= int64(len(o.head)):
		copy(want, o.head[off:])
	case len(want) >= blockSize:
		err = o.fetch(off, want)
	default:
		err = o.readBlocks(want, off)
	}
	if err != nil {
		return 0, o.store.fail(err, "read", o.name)
	}
	if len(want) < len(p) {
		return len(want), io.EOF
	}
	return len(want), nil
}

// block is a piece of the object. Whoever asks first fetches it, others wait.
type block struct {
	once sync.Once
	data []byte
	err  error
}

// readBlocks reads what lies in one block or two.
func (o *object) readBlocks(p []byte, off int64) error {
	for len(p) > 0 {
		// Block k ends k blocks before the end of the object.
		k := (o.size - off - 1) / blockSize
		end := o.size - k*blockSize
		start := max(end-blockSize, 0)
		b := o.block(k)
		b.once.Do(func() {
			data := make([]byte, end-start)
			if b.err = o.fetch(start, data); b.err == nil {
				b.data = data
			} else {
				o.forget(k)
			}
		})
		if b.err != nil {
			return b.err
		}
		n := copy(p, b.data[off-start:])
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// block gives a block, which may still have to be fetched, and marks its use.
func (o *object) block(k int64) *block {
	o.mu.Lock()
	defer o.mu.Unlock()
	b, ok := o.blocks[k]
	if ok {
		o.drop(k)
	} else {
		b = &block{}
		o.blocks[k] = b
	}
	o.recent = append(o.recent, k)
	if len(o.recent) > blocksKept {
		delete(o.blocks, o.recent[0])
		o.recent = o.recent[1:]
	}
	return b
}

// forget lets the next reader try again.
func (o *object) forget(k int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.blocks, k)
	o.drop(k)
}

func (o *object) drop(k int64) {
	for i, have := range o.recent {
		if have == k {
			o.recent = append(o.recent[:i], o.recent[i+1:]...)
			return
		}
	}
}

// Read implements io.Reader by one request that goes on to the end of the object.
func (o *object) Read(p []byte) (int, error) {
	switch {
	case o.pos >= o.size:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	case o.pos < int64(len(o.head)):
		n := copy(p, o.head[o.pos:])
		o.pos += int64(n)
		return n, nil
	}
	n := 0
	err := o.store.retry(o.ctx, func() (err error) {
		if o.stream == nil {
			if o.stream, err = o.rest(); err != nil {
				return err
			}
		}
		n, err = o.stream.Read(p[:min(int64(len(p)), o.size-o.pos)])
		if n > 0 || err == nil {
			return nil // an error comes again with the next read
		}
		o.endStream()
		return &brokenError{err}
	})
	o.pos += int64(n)
	return n, o.store.fail(err, "read", o.name)
}

func (o *object) rest() (r *blob.Reader, err error) {
	defer guard(&err)
	r, err = o.store.bucket.NewRangeReader(o.ctx, o.key, o.pos, -1, &blob.ReaderOptions{BeforeRead: o.same})
	return r, o.changed(err)
}

func (o *object) endStream() {
	if o.stream != nil {
		_ = o.stream.Close() // a response that is not read to its end tells nothing
		o.stream = nil
	}
}

// Close implements io.Closer.
func (o *object) Close() error {
	o.endStream()
	return nil
}
