package state

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"github.com/weir-data/weir/host/storage"
)

// Runs in an object store are read from copies on local disk. A copy has the
// name of its run, whose content never changes, so that it is right or damaged
// but never old. It goes when Sweep finds that no manifest names the run.

// copies gives the folder of local copies; nil when the store is a local disk
// itself, or when there is no place for them.
func (s *Store) copies() storage.Store {
	s.once.Do(func() {
		if _, local := storage.LocalPath(s.files, runFolder); local || s.cache == "" {
			return
		}
		id := xxh3.HashString128(storage.Root(s.files)).Bytes()
		// Without fsync: a copy that a crash of the machine cut short does not check out, and is fetched again.
		if dir, err := storage.OpenDir(filepath.Join(s.cache, hex.EncodeToString(id[:])), storage.NoSync); err == nil {
			s.local = dir
		}
	})
	if s.local == nil {
		return nil // not a nil *Dir in an interface
	}
	return s.local
}

// bytesOf gives the bytes of a run, mapped where that is possible, and whether they are a copy's.
func (s *Store) bytesOf(ctx context.Context, info RunInfo) (data []byte, unmap func() error, copied bool, err error) {
	if p, ok := storage.LocalPath(s.files, info.Name); ok {
		data, err := mapFile(p, info.Bytes)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, false, corrupt(info.Name, "it is missing")
		}
		if errors.Is(err, errSize) {
			return nil, nil, false, corrupt(info.Name, "it does not have its %d bytes", info.Bytes)
		}
		if err != nil {
			return nil, nil, false, storage.Coded(err, "map", info.Name)
		}
		return data, func() error { return unix.Munmap(data) }, false, nil
	}
	local := s.copies()
	if local == nil {
		data, err := s.files.Get(ctx, info.Name)
		return data, func() error { return nil }, false, missing(err, info.Name)
	}
	p, _ := storage.LocalPath(local, path.Base(info.Name))
	if data, err = mapFile(p, info.Bytes); err != nil {
		if err := s.fetch(ctx, local, info); err != nil {
			return nil, nil, false, err
		}
		if data, err = mapFile(p, info.Bytes); err != nil {
			return nil, nil, false, storage.Coded(err, "map", p)
		}
	}
	return data, func() error { return unix.Munmap(data) }, true, nil
}

// fetch makes the copy of a run.
func (s *Store) fetch(ctx context.Context, local storage.Store, info RunInfo) (err error) {
	src, err := s.files.Open(ctx, info.Name)
	if err != nil {
		return missing(err, info.Name)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	if src.Size() != info.Bytes {
		return corrupt(info.Name, "it does not have its %d bytes", info.Bytes)
	}
	dst, err := local.Create(ctx, path.Base(info.Name))
	if err != nil {
		return err
	}
	n, err := io.Copy(dst, io.LimitReader(src, info.Bytes+1))
	if err != nil {
		return errors.Join(err, dst.Abort())
	}
	if n != info.Bytes {
		return errors.Join(corrupt(info.Name, "it does not have its %d bytes", info.Bytes), dst.Abort())
	}
	return dst.Commit()
}

func missing(err error, name string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return corrupt(name, "it is missing")
	}
	return err
}

// tee is where a run is written: to the store, and beside it to the copy that
// the next batch will read. The copy may fail, the store may not.
type tee struct {
	storage.Writer
	copy storage.Writer
}

func (s *Store) create(ctx context.Context, name string) (storage.Writer, error) {
	w, err := s.files.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	local := s.copies()
	if local == nil {
		return w, nil
	}
	c, err := local.Create(ctx, path.Base(name))
	if err != nil {
		return w, nil
	}
	return &tee{w, c}, nil
}

func (t *tee) Write(p []byte) (int, error) {
	if t.copy != nil {
		if _, err := t.copy.Write(p); err != nil {
			_ = t.copy.Abort()
			t.copy = nil
		}
	}
	return t.Writer.Write(p)
}

func (t *tee) Commit() error {
	err := t.Writer.Commit()
	if t.copy != nil && err == nil {
		_ = t.copy.Commit()
	} else if t.copy != nil {
		_ = t.copy.Abort()
	}
	return err
}

func (t *tee) Abort() error {
	if t.copy != nil {
		_ = t.copy.Abort()
	}
	return t.Writer.Abort()
}

// evict removes copies of runs that nobody names, and what killed processes left of copying.
func (s *Store) evict(ctx context.Context, named func(name string) bool) error {
	local := s.copies()
	if local == nil {
		return nil
	}
	for info, err := range local.List(ctx, "", storage.ListOptions{NamesOnly: true}) {
		if err != nil {
			return err
		}
		if _, ok := runStamp(path.Join(runFolder, info.Name)); ok && !named(path.Join(runFolder, info.Name)) {
			if err := local.Delete(ctx, info.Name); err != nil {
				return err
			}
		}
	}
	day := time.Now().Add(-24 * time.Hour)
	return storage.Sweep(ctx, local, day, false, func(storage.Info) error { return nil })
}

// uncopy removes a copy that is damaged.
func (s *Store) uncopy(name string) {
	if local := s.copies(); local != nil {
		_ = local.Delete(context.Background(), path.Base(name))
	}
}

var errSize = errors.New("unexpected size")

// mapFile maps a file of a known size for reading.
func mapFile(name string, size int64) (_ []byte, err error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() != size || size <= 0 {
		return nil, errSize
	}
	return unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
}
