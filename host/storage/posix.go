package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// umask of the process at start: temporary files are made private, and are
// opened at the end to those whom an ordinary file would admit.
var umask = func() fs.FileMode {
	m := syscall.Umask(0)
	syscall.Umask(m)
	return fs.FileMode(m)
}()

// missing turns "a parent is no directory" into "does not exist".
func missing(err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %w", ErrNotExist, err)
	}
	return err
}

// TryLock implements Locker with flock on a file of that name.
func (d *Dir) TryLock(ctx context.Context, name string) (func() error, error) {
	if err := ready(ctx, name); err != nil {
		return nil, Coded(err, "lock", name)
	}
	p := d.path(name)
	f, err := os.OpenFile(p, os.O_CREATE|os.O_RDWR, 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.mkdir(filepath.Dir(p)); err == nil {
			f, err = os.OpenFile(p, os.O_CREATE|os.O_RDWR, 0o666)
		}
	}
	if err != nil {
		return nil, Coded(err, "lock", name)
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close() // it was never ours
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, Coded(err, "lock", name)
	}
	return func() error { return Coded(f.Close(), "unlock", name) }, nil
}
