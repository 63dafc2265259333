package storage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Sweeper is implemented by stores in which a process that dies leaves files in
// the making, which no List shows.
type Sweeper interface {
	// Sweep removes those that were last written to before a time, and tells
	// each of them first; with dry it only tells.
	Sweep(ctx context.Context, before time.Time, dry bool, each func(Info) error) error
}

// Sweep removes what dead processes left behind, if the store is one in which they do.
func Sweep(ctx context.Context, s Store, before time.Time, dry bool, each func(Info) error) error {
	if sw, ok := s.(Sweeper); ok {
		return sw.Sweep(ctx, before, dry, each)
	}
	return nil
}

// Sweep implements Sweeper. A writer that is alive writes: its file is not old.
func (d *Dir) Sweep(ctx context.Context, before time.Time, dry bool, each func(Info) error) error {
	return Coded(d.sweep(ctx, "", before, dry, each), "sweep", "")
}

func (d *Dir) sweep(ctx context.Context, folder string, before time.Time, dry bool, each func(Info) error) error {
	return filepath.WalkDir(d.path(folder), func(p string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone since its folder was read
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), tempPrefix) {
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.ModTime().Before(before) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(d.root, p)
		if err == nil {
			err = each(Info{Name: filepath.ToSlash(name), Size: info.Size(), ModTime: info.ModTime()})
		}
		if err == nil && !dry {
			if err = os.Remove(p); errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
		return err
	})
}

// Sweep implements Sweeper when the store below does.
func (s *sub) Sweep(ctx context.Context, before time.Time, dry bool, each func(Info) error) error {
	if d, ok := s.store.(*Dir); ok {
		prefix := strings.TrimSuffix(s.prefix, "/")
		err := d.sweep(ctx, prefix, before, dry, func(i Info) error {
			i.Name = strings.TrimPrefix(i.Name, s.prefix)
			return each(i)
		})
		return Coded(err, "sweep", prefix)
	}
	return nil
}
