package storage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"
)

// Dir is a store in a directory of a local file system.
type Dir struct {
	root string
	sync bool
}

// Option changes how OpenDir works.
type Option func(*Dir)

// NoSync leaves out every fsync: fast, and not durable. For tests.
func NoSync(d *Dir) { d.sync = false }

// OpenDir opens a directory as a store and creates it when missing.
func OpenDir(dir string, opts ...Option) (*Dir, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, Coded(err, "open", dir)
	}
	d := &Dir{root: root, sync: true}
	for _, o := range opts {
		o(d)
	}
	if err := d.mkdir(root); err != nil {
		return nil, Coded(err, "open", dir)
	}
	return d, nil
}

// Root gives the absolute path of the directory.
func (d *Dir) Root() string { return d.root }

func (d *Dir) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

// Get implements Store.
func (d *Dir) Get(ctx context.Context, name string) ([]byte, error) {
	if err := ready(ctx, name); err != nil {
		return nil, Coded(err, "read", name)
	}
	f, err := d.open(name)
	if err != nil {
		return nil, Coded(err, "read", name)
	}
	data := make([]byte, f.Size())
	_, err = io.ReadFull(f, data)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, Coded(err, "read", name)
	}
	return data, nil
}

// Open implements Store.
func (d *Dir) Open(ctx context.Context, name string) (Object, error) {
	if err := ready(ctx, name); err != nil {
		return nil, Coded(err, "open", name)
	}
	f, err := d.open(name)
	if err != nil {
		return nil, Coded(err, "open", name)
	}
	return f, nil
}

type object struct {
	*os.File
	info fs.FileInfo
}

func (o *object) Size() int64        { return o.info.Size() }
func (o *object) ModTime() time.Time { return o.info.ModTime() }

func (d *Dir) open(name string) (*object, error) {
	// Without O_NONBLOCK a named pipe in the way would hold the open forever.
	f, err := os.OpenFile(d.path(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, missing(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notAFile(name, info)
	}
	if err != nil {
		_ = f.Close() // read only: nothing to lose
		return nil, err
	}
	return &object{f, info}, nil
}

// Stat implements Store.
func (d *Dir) Stat(ctx context.Context, name string) (Info, error) {
	if err := ready(ctx, name); err != nil {
		return Info{}, Coded(err, "stat", name)
	}
	info, err := os.Stat(d.path(name))
	if err != nil {
		return Info{}, Coded(missing(err), "stat", name)
	}
	if !info.Mode().IsRegular() {
		return Info{}, Coded(notAFile(name, info), "stat", name)
	}
	return Info{Name: name, Size: info.Size(), ModTime: info.ModTime()}, nil
}

// Put implements Store.
func (d *Dir) Put(ctx context.Context, name string, data []byte) error {
	w, err := d.Create(ctx, name)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Commit()
}

// PutIfAbsent implements Store: a temporary file is linked under its name, which
// fails for all but one of the processes that try.
func (d *Dir) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	w, err := d.create(ctx, name)
	if err != nil {
		return Coded(err, "create", name)
	}
	// The temporary name goes in every case; the link keeps the content.
	defer func() { _ = w.Abort() }()
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return Coded(err, "write", name)
	}
	if err := os.Link(w.file.Name(), d.path(name)); err != nil {
		return Coded(err, "create", name)
	}
	return Coded(d.syncDir(filepath.Dir(d.path(name))), "create", name)
}

// Create implements Store.
func (d *Dir) Create(ctx context.Context, name string) (Writer, error) {
	w, err := d.create(ctx, name)
	if err != nil {
		return nil, Coded(err, "create", name)
	}
	return w, nil
}

func (d *Dir) create(ctx context.Context, name string) (*writer, error) {
	if err := ready(ctx, name); err != nil {
		return nil, err
	}
	dir, base := filepath.Dir(d.path(name)), path.Base(name)
	if len(base) > 64 {
		base = base[:64] // the file system's limit is on the whole name
	}
	f, err := os.CreateTemp(dir, tempPrefix+base+"-*")
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.mkdir(dir); err == nil {
			f, err = os.CreateTemp(dir, tempPrefix+base+"-*")
		}
	}
	if err != nil {
		return nil, err
	}
	return &writer{dir: d, name: name, file: f, buf: bufio.NewWriterSize(f, 1<<16)}, nil
}

type writer struct {
	dir  *Dir
	name string
	file *os.File
	buf  *bufio.Writer
	done bool
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.buf.Write(p)
	return n, Coded(err, "write", w.name)
}

// flush brings the bytes to the disk, readable for those whom the umask lets.
func (w *writer) flush() error {
	if err := w.buf.Flush(); err != nil {
		return err
	}
	if err := w.file.Chmod(0o666 &^ umask); err != nil {
		return err
	}
	if !w.dir.sync {
		return nil
	}
	return w.file.Sync()
}

// Commit makes the object visible and durable.
func (w *writer) Commit() error {
	if w.done {
		return Coded(fs.ErrClosed, "commit", w.name)
	}
	target := w.dir.path(w.name)
	if err := w.flush(); err != nil {
		return Coded(errors.Join(err, w.Abort()), "write", w.name)
	}
	if err := os.Rename(w.file.Name(), target); err != nil {
		return Coded(errors.Join(err, w.Abort()), "commit", w.name)
	}
	w.done = true
	return Coded(errors.Join(w.file.Close(), w.dir.syncDir(filepath.Dir(target))), "commit", w.name)
}

// Abort removes what was written.
func (w *writer) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	return Coded(errors.Join(w.file.Close(), os.Remove(w.file.Name())), "abort", w.name)
}

// Delete implements Store.
func (d *Dir) Delete(ctx context.Context, name string) error {
	if err := ready(ctx, name); err != nil {
		return Coded(err, "delete", name)
	}
	p := d.path(name)
	info, err := os.Lstat(p)
	if err == nil && info.IsDir() {
		err = notAFile(name, info)
	}
	if err == nil {
		err = os.Remove(p)
	}
	if err = missing(err); errors.Is(err, ErrNotExist) {
		return nil
	}
	if err == nil {
		err = d.syncDir(filepath.Dir(p))
	}
	return Coded(err, "delete", name)
}

// mkdir makes a directory and its parents and brings their entries to the disk.
func (d *Dir) mkdir(dir string) error {
	err := os.Mkdir(dir, 0o777)
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.mkdir(filepath.Dir(dir)); err == nil {
			err = os.Mkdir(dir, 0o777)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
			return nil
		}
	}
	if err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(dir))
}

func (d *Dir) syncDir(dir string) error {
	if !d.sync {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func ready(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return CheckName(name)
}

// notAFile: folders are no objects, so for the user of the store nothing is there.
func notAFile(name string, info fs.FileInfo) error {
	return fmt.Errorf("%w: %s is no regular file (%s)", ErrNotExist, name, info.Mode().Type())
}
