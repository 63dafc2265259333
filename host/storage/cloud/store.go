package cloud

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"gocloud.dev/blob"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// Store is a folder of a bucket.
type Store struct {
	bucket    *blob.Bucket
	service   service
	where     location
	transport *http.Transport

	lease time.Duration // of locks

	probing   sync.Mutex
	probed    bool
	replacing bool
	clock     time.Time // of the store, when it was measured
	measured  time.Time
}

// Open opens a folder of an object store by its URL. It makes no request yet.
// Parameters behind a question mark are those of gocloud.dev: for S3 region,
// endpoint, profile, anonymous, use_path_style and others; for Azure
// storage_account, domain, protocol, localemu; for GCS endpoint, anonymous.
func Open(ctx context.Context, url string) (*Store, error) {
	l, err := parseLocation(url)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one unless somebody replaced it
	transport.MaxIdleConnsPerHost = 64
	transport.ResponseHeaderTimeout = time.Minute
	service := services[l.scheme]
	b, err := service.open(ctx, l, &http.Client{Transport: transport})
	if err != nil {
		return nil, err
	}
	return &Store{bucket: b, service: service, where: l, transport: transport, lease: leaseTime}, nil
}

// Close lets go of the connections. The store must not be used after it.
func (s *Store) Close() error {
	err := s.bucket.Close()
	s.transport.CloseIdleConnections()
	if err != nil {
		return fault.Wrap(err, "STORAGE_IO_ERROR", "close %s", s.where)
	}
	return nil
}

// Root gives the URL of the folder, without parameters: what an absolute path
// in the log of a table begins with.
func (s *Store) Root() string { return s.where.String() }

// key gives the object's name in the bucket.
func (s *Store) key(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := storage.CheckName(name); err != nil {
		return "", err
	}
	return s.where.prefix + name, checkKey(name)
}

// guard turns a panic of a driver that met an answer without what it expects into an error.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the store's answer cannot be understood: %v", p)
	}
}

// Stat implements storage.Store.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	key, err := s.key(ctx, name)
	var a *blob.Attributes
	if err == nil {
		a, err = s.attributes(ctx, key)
	}
	if err != nil {
		return storage.Info{}, s.fail(err, "stat", name)
	}
	return storage.Info{Name: name, Size: a.Size, ModTime: modTime(a.ModTime)}, nil
}

// modTime is a time as all answers of a service tell it: some have fractions of
// a second in one answer and none in another.
func modTime(t time.Time) time.Time { return t.Truncate(time.Second) }

func (s *Store) attributes(ctx context.Context, key string) (a *blob.Attributes, err error) {
	err = s.retry(ctx, func() (err error) {
		defer guard(&err)
		a, err = s.bucket.Attributes(ctx, key)
		return err
	})
	return a, err
}

// Put implements storage.Store.
func (s *Store) Put(ctx context.Context, name string, data []byte) error {
	key, err := s.key(ctx, name)
	if err == nil {
		err = s.retry(ctx, func() error { return s.upload(ctx, key, data, &blob.WriterOptions{}) })
	}
	return s.fail(err, "write", name)
}

// upload makes one attempt to write a whole object.
func (s *Store) upload(ctx context.Context, key string, data []byte, opts *blob.WriterOptions) error {
	opts.ContentType = contentType
	opts.BufferSize = len(data) + 1 // one request, whatever the size, and no larger buffer
	opts.MaxConcurrency = 1
	return s.bucket.Upload(ctx, key, bytes.NewReader(data), opts)
}

const (
	contentType = "application/octet-stream"
	partSize    = 8 << 20
	// partsAtOnce of a streaming write are on their way while the next is filled.
	partsAtOnce = 3
)

// Create implements storage.Store: the parts of a large object are sent as they fill.
func (s *Store) Create(ctx context.Context, name string) (storage.Writer, error) {
	key, err := s.key(ctx, name)
	if err != nil {
		return nil, s.fail(err, "create", name)
	}
	ctx, cancel := context.WithCancel(ctx)
	w, err := s.bucket.NewWriter(ctx, key, &blob.WriterOptions{
		ContentType: contentType, BufferSize: partSize, MaxConcurrency: partsAtOnce,
	})
	if err != nil {
		cancel()
		return nil, s.fail(err, "create", name)
	}
	return &writer{store: s, name: name, w: w, cancel: cancel}, nil
}

type writer struct {
	store  *Store
	name   string
	w      *blob.Writer
	cancel context.CancelFunc
	done   bool
}

func (w *writer) Write(p []byte) (int, error) {
	if w.done {
		return 0, storage.Coded(fs.ErrClosed, "write", w.name)
	}
	n, err := w.w.Write(p)
	return n, w.store.fail(err, "write", w.name)
}

// Commit makes the object visible.
func (w *writer) Commit() error {
	if w.done {
		return storage.Coded(fs.ErrClosed, "commit", w.name)
	}
	w.done = true
	defer w.cancel()
	return w.store.fail(w.w.Close(), "commit", w.name)
}

// Abort ends the upload; nothing becomes visible.
func (w *writer) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	w.cancel()
	// Closing after the context has ended fails by design and frees what the upload holds.
	_ = w.w.Close()
	return nil
}

// Delete implements storage.Store.
func (s *Store) Delete(ctx context.Context, name string) error {
	key, err := s.key(ctx, name)
	if err == nil {
		err = s.retry(ctx, func() error { return s.bucket.Delete(ctx, key) })
	}
	if status, _ := s.service.status(err); err != nil && status == http.StatusNotFound {
		return nil
	}
	return s.fail(err, "delete", name)
}
