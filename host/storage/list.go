package storage

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
)

// List implements Store. Links to files are listed as files, links to folders
// are not followed (they could form loops); what is neither file nor folder is left out.
func (d *Dir) List(ctx context.Context, prefix string, opt ListOptions) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		folder, err := CheckPrefix(prefix)
		if err != nil {
			yield(Info{}, Coded(err, "list", prefix))
			return
		}
		d.walk(ctx, folder, opt, yield)
	}
}

// entry is one name in a folder; folders carry a trailing slash, so that the
// order of the entries is the order of the full names below them.
type entry struct {
	key string
	de  fs.DirEntry
}

// walk lists one folder and reports whether to go on.
func (d *Dir) walk(ctx context.Context, folder string, opt ListOptions, yield func(Info, error) bool) bool {
	fail := func(err error) bool {
		yield(Info{}, Coded(err, "list", folder))
		return false
	}
	entries, err := d.entries(folder)
	if err != nil {
		if errors.Is(err, ErrNotExist) {
			return true
		}
		return fail(err)
	}
	if folder != "" {
		folder += "/"
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return fail(err)
		}
		name := folder + e.key
		if strings.HasSuffix(e.key, "/") {
			// All names below lie on one side of After unless After is below, too.
			if name > opt.After || strings.HasPrefix(opt.After, name) {
				if !d.walk(ctx, strings.TrimSuffix(name, "/"), opt, yield) {
					return false
				}
			}
			continue
		}
		if name <= opt.After {
			continue
		}
		info := Info{Name: name, Size: -1}
		if link := e.de.Type()&fs.ModeSymlink != 0; link || !opt.NamesOnly {
			st, err := d.lookup(name, e.de, link)
			if errors.Is(err, ErrNotExist) {
				continue // gone since the folder was read, or a dangling link
			}
			if err != nil {
				return fail(err)
			}
			if !st.Mode().IsRegular() {
				continue
			}
			if !opt.NamesOnly {
				info.Size, info.ModTime = st.Size(), st.ModTime()
			}
		}
		if !yield(info, nil) {
			return false
		}
	}
	return true
}

func (d *Dir) lookup(name string, de fs.DirEntry, link bool) (fs.FileInfo, error) {
	if link {
		return os.Stat(d.path(name))
	}
	return de.Info()
}

// entries reads the files, links and folders of a folder in the order of List.
func (d *Dir) entries(folder string) ([]entry, error) {
	f, err := os.Open(d.path(folder))
	if err != nil {
		return nil, missing(err)
	}
	des, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, missing(err)
	}
	entries := make([]entry, 0, len(des))
	for _, de := range des {
		name := de.Name()
		if strings.HasPrefix(name, tempPrefix) {
			continue
		}
		switch t := de.Type(); {
		case t.IsDir():
			entries = append(entries, entry{name + "/", de})
		case t.IsRegular() || t&fs.ModeSymlink != 0:
			entries = append(entries, entry{name, de})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	return entries, nil
}
