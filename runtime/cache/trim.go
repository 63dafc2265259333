package cache

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// unfinished begins the names of files and directories that are being written
// or deleted.
const unfinished = ".tmp-"

// abandoned is the age at which an unfinished one has nobody any more.
const abandoned = time.Hour

// entry is a manifest or a directory of code.
type entry struct {
	path  string
	stamp string // the file whose time says when it was last used
	bytes int64
	used  time.Time
}

// used notes that an entry was of use just now.
func used(stamp string) {
	now := time.Now()
	_ = os.Chtimes(stamp, now, now) // where that cannot be, the entry goes a little earlier
}

// entries lists what is finished.
func (c *Cache) entries() []entry {
	var out []entry
	for _, kind := range []string{"manifest", "code"} {
		dir, err := os.ReadDir(c.path(kind))
		if err != nil {
			continue
		}
		for _, d := range dir {
			if strings.HasPrefix(d.Name(), unfinished) {
				continue
			}
			e := entry{path: c.path(kind, d.Name())}
			e.stamp = e.path
			if d.IsDir() {
				e.stamp = filepath.Join(e.path, sums)
			}
			if info, err := os.Stat(e.stamp); err == nil {
				e.used = info.ModTime()
			}
			_ = filepath.WalkDir(e.path, func(_ string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return nil
				}
				if info, err := d.Info(); err == nil {
					e.bytes += info.Size()
				}
				return nil
			})
			out = append(out, e)
		}
	}
	return out
}

// trim deletes what was used longest ago until the rest is within bounds, but
// never the entry with this stamp.
func (c *Cache) trim(keep string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.entries()
	total := int64(0)
	for _, e := range all {
		total += e.bytes
	}
	slices.SortFunc(all, func(a, b entry) int { return a.used.Compare(b.used) })
	for _, e := range all {
		if total <= c.most {
			return
		}
		if e.stamp == keep {
			continue
		}
		if c.remove(e.path) == nil {
			total -= e.bytes
		}
	}
}

// remove deletes an entry, by another name, so that nobody finds half of it.
func (c *Cache) remove(path string) error {
	dir, err := os.MkdirTemp(c.dir, unfinished+"*")
	if err != nil {
		return err
	}
	err = os.Rename(path, filepath.Join(dir, "entry"))
	if e := os.RemoveAll(dir); err == nil || os.IsNotExist(err) {
		err = e
	}
	return err
}

// clear deletes what was left unfinished.
func (c *Cache) clear() {
	for _, dir := range []string{c.dir, c.path("manifest"), c.path("code")} {
		list, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, d := range list {
			info, err := d.Info()
			if err == nil && strings.HasPrefix(d.Name(), unfinished) && time.Since(info.ModTime()) > abandoned {
				_ = os.RemoveAll(filepath.Join(dir, d.Name()))
			}
		}
	}
}
