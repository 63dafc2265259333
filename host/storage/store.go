package storage

import (
	"context"
	"io"
	"iter"
	"time"
)

// Store is a space of named objects. All methods may be called concurrently.
//
// Errors match ErrNotExist, ErrExist, ErrPermission, ErrFull or ErrInvalidName
// with errors.Is and carry a code.
type Store interface {
	// Get reads a whole object.
	Get(ctx context.Context, name string) ([]byte, error)
	// Open opens an object for reading; the caller closes it.
	Open(ctx context.Context, name string) (Object, error)
	// Stat tells size and modification time.
	Stat(ctx context.Context, name string) (Info, error)
	// Put writes a whole object, replacing what was there atomically.
	Put(ctx context.Context, name string, data []byte) error
	// PutIfAbsent writes a whole object unless the name is taken, which is ErrExist.
	// After any other error the outcome is unknown: the object may be there.
	PutIfAbsent(ctx context.Context, name string, data []byte) error
	// Create starts a streaming write. Nothing is visible until Commit, which
	// replaces what was there atomically.
	Create(ctx context.Context, name string) (Writer, error)
	// List walks the objects under the folder prefix ("" is everything), recursively,
	// ascending by the bytes of the name. An error ends the walk. A missing folder lists nothing.
	List(ctx context.Context, prefix string, opt ListOptions) iter.Seq2[Info, error]
	// Delete removes an object; a missing one is no error.
	Delete(ctx context.Context, name string) error
}

// ListOptions narrows and cheapens a List.
type ListOptions struct {
	// After leaves out names up to and including this one (a full name, prefix included).
	After string
	// NamesOnly spares the lookup of size and time: Size is -1 and ModTime zero.
	NamesOnly bool
}

// Info describes an object.
type Info struct {
	Name    string
	Size    int64
	ModTime time.Time
}

// Object is an open object. Read reads from the start on; ReadAt may be called concurrently.
type Object interface {
	io.Reader
	io.ReaderAt
	io.Closer
	Size() int64
	ModTime() time.Time
}

// Writer is a streaming write. Exactly one of Commit and Abort ends it; Abort after Commit does nothing.
type Writer interface {
	io.Writer
	Commit() error
	Abort() error
}

// Locker is implemented by stores that can lock a name against other processes.
type Locker interface {
	// TryLock takes the lock or fails with ErrLocked. The lock is released by
	// unlock or by the death of the process.
	TryLock(ctx context.Context, name string) (unlock func() error, err error)
}
