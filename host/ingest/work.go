package ingest

import (
	"context"
	"errors"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// give hands a job to the consumer's queue and the workers; false when nobody wants it any more.
func (r *Reader) give(work chan<- *job, j *job) bool {
	j.out = make(chan result, 2)
	select {
	case r.pending <- j:
	case <-r.ctx.Done():
		return false
	}
	select {
	case work <- j:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// produce makes jobs of the files, in their order.
func (r *Reader) produce(work chan<- *job) {
	defer func() {
		if p := recover(); p != nil {
			r.fail(fault.New("INTERNAL_ERROR", "reading failed: %v", p))
		}
	}()
	var group []*source
	size := int64(0)
	flush := func() bool {
		if len(group) == 0 {
			return true
		}
		ok := r.give(work, &job{files: group})
		group, size = nil, 0
		return ok
	}
	for _, f := range r.sources {
		if f.large() {
			if !flush() || !r.produceLarge(work, f) {
				return
			}
			continue
		}
		group = append(group, f)
		if f.Size < 0 {
			size += unknownSize
		}
		size += max(f.Size, 0)
		if len(group) == groupFiles || size >= groupBytes {
			if !flush() {
				return
			}
		}
	}
	flush()
}

func (f *source) large() bool {
	if len(f.Path) > 3 && f.Path[len(f.Path)-3:] == ".gz" {
		return f.Size > largeGzip
	}
	return f.Size > largeFile
}

// fail reports an error of the producer in its place, behind the jobs before; it is always false.
func (r *Reader) fail(err error) bool {
	j := &job{out: make(chan result, 1)}
	j.out <- result{err: err}
	close(j.out)
	select {
	case r.pending <- j:
	case <-r.ctx.Done():
	}
	return false
}

// produceLarge reads one large file and gives its pieces away.
func (r *Reader) produceLarge(work chan<- *job, f *source) bool {
	k, state, err := r.open(f)
	if err != nil {
		return r.fail(err)
	}
	if state != "" {
		return r.give(work, &job{files: []*source{f}, skip: state})
	}
	defer k.close()
	for {
		ch, err := k.next()
		if err != nil {
			return r.fail(readError(r.ctx, err, f.Path))
		}
		if ch == nil {
			return true
		}
		if !r.give(work, &job{chunk: ch}) {
			return false
		}
	}
}

// open opens a file; a state instead of a chunker says that it is passed over.
func (r *Reader) open(f *source) (*chunker, FileState, error) {
	c, name := r.src.config, r.src.place.name(f.Path)
	if c.ignoreCorrupt {
		// None of the rows of a broken file may be kept, so its end is seen before its
		// beginning is used.
		if err := drain(r.ctx, c, r.store, name, f); err != nil && r.ctx.Err() == nil &&
			!errors.Is(err, storage.ErrNotExist) && !errors.Is(err, storage.ErrPermission) {
			return nil, FileSkippedCorrupted, nil
		}
	}
	k, err := openChunks(r.ctx, c, r.store, name, f)
	if errors.Is(err, storage.ErrNotExist) && c.ignoreMissing {
		return nil, FileSkippedMissing, nil
	}
	if err != nil {
		return nil, "", readError(r.ctx, err, f.Path)
	}
	return k, "", nil
}

// drain reads a file to its end for nothing but the errors.
func drain(ctx context.Context, c *config, store storage.Store, name string, f *source) error {
	k, err := openChunks(ctx, c, store, name, f)
	if err != nil {
		return err
	}
	defer k.close()
	for {
		ch, err := k.next()
		if ch == nil || err != nil {
			return err
		}
		ch.recycle()
	}
}

// recordDecoder is a decoder of one of the formats.
type recordDecoder interface {
	decode(ch *chunk, full func() error) error
	base() *decoder
}

func (d *decoder) base() *decoder { return d }

// work decodes jobs until there are no more.
func (r *Reader) work(jobs <-chan *job) {
	base, err := newDecoder(r.src, r.from, r.opt.Alloc, &r.fresh)
	if err != nil {
		for j := range jobs {
			j.out <- result{err: err}
			close(j.out)
		}
		return
	}
	var dec recordDecoder
	if r.src.config.format == formatJSON {
		dec = &jsonDecoder{decoder: *base}
	} else {
		dec = &csvDecoder{decoder: *base}
	}
	defer dec.base().release()
	for j := range jobs {
		err := r.run(dec, j)
		if err != nil {
			j.send(r.ctx, result{err: err})
			dec.base().discard()
		}
		close(j.out)
	}
}

// send gives a result to the consumer; one that nobody takes is released.
func (j *job) send(ctx context.Context, res result) bool {
	select {
	case j.out <- res:
		return true
	case <-ctx.Done():
		res.release()
		return false
	}
}

// discard throws away the rows so far.
func (d *decoder) discard() {
	for _, c := range d.cols {
		c.truncate(d.rows)
	}
	p := d.flush()
	p.release()
	d.res.reset()
}

// run decodes one job. A panic is a fault of this package and ends the read, not the process.
func (r *Reader) run(dec recordDecoder, j *job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New("INTERNAL_ERROR", "decoding failed: %v", p)
		}
	}()
	d := dec.base()
	bytes := 0
	emit := func() error {
		if d.rows > 0 || d.out.rescued+d.out.malformed+d.out.dropped+d.out.lost > 0 {
			if !j.send(r.ctx, result{partial: d.flush(), bytes: bytes}) {
				return r.ctx.Err()
			}
			bytes = 0
		}
		return nil
	}
	checked := 0
	full := func() error {
		if d.rows >= r.opt.BatchRows {
			return emit()
		}
		// The size is looked at now and then: it walks over all columns.
		if checked++; checked&1023 == 0 && d.size() >= batchBytes {
			return emit()
		}
		return nil
	}
	if j.chunk != nil {
		defer j.chunk.recycle()
		bytes += j.chunk.n
		if err := dec.decode(j.chunk, full); err != nil {
			return err
		}
		return r.finish(d, j, emit)
	}
	for _, f := range j.files {
		if j.skip != "" {
			j.send(r.ctx, result{state: &fileState{f.index, j.skip}})
			continue
		}
		k, state, err := r.open(f)
		if err != nil {
			return err
		}
		if state != "" {
			if err := emit(); err != nil {
				return err
			}
			j.send(r.ctx, result{state: &fileState{f.index, state}})
			continue
		}
		err = r.decodeFile(dec, k, &bytes, full, emit)
		k.close()
		if err != nil {
			return readError(r.ctx, err, f.Path)
		}
	}
	return r.finish(d, j, emit)
}

// decodeFile decodes a file piece by piece.
func (r *Reader) decodeFile(dec recordDecoder, k *chunker, bytes *int, full, emit func() error) error {
	for {
		ch, err := k.next()
		if ch == nil || err != nil {
			return err
		}
		*bytes += ch.n
		err = dec.decode(ch, full)
		ch.recycle()
		if err == nil && dec.base().size() >= batchBytes {
			err = emit()
		}
		if err != nil {
			return err
		}
	}
}

// finish sends the last rows of a job and what was new in it.
func (r *Reader) finish(d *decoder, j *job, emit func() error) error {
	if err := emit(); err != nil {
		return err
	}
	if d.news.first.set {
		n := d.takeNews()
		j.send(r.ctx, result{news: &n})
	}
	return nil
}
