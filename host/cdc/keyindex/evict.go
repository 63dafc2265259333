package keyindex

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-data/weir/host/delta"
)

const (
	// evictAfter is how old an index file is that is removed when its data file is
	// not live: another process may look at an older version of the table.
	evictAfter = time.Hour
	// sweepLimit bounds what one sweep removes.
	sweepLimit = 1000
)

// forget closes what belongs to files that are not live any more.
func (x *Index) forget(snap *delta.Snapshot, live map[string]bool) {
	for name, r := range x.open {
		if !live[name] {
			_ = r.close() // it was only read
			delete(x.open, name)
		}
	}
	if len(x.vectors) <= 2*snap.NumFiles() {
		return
	}
	paths := make(map[string]bool, snap.NumFiles())
	for f := range snap.EachFile() {
		paths[f.Path] = true
	}
	for path := range x.vectors {
		if !paths[path] {
			delete(x.vectors, path)
		}
	}
}

// sweep removes index files whose data files are not live, and what builders
// that were killed left behind. That it cannot is no failure: it is only a cache.
func (x *Index) sweep(live map[string]bool) {
	entries, err := os.ReadDir(x.folder)
	if err != nil {
		return
	}
	removed := 0
	for _, e := range entries {
		name := e.Name()
		if live[name] || !strings.HasSuffix(name, ".kix") && !strings.HasSuffix(name, ".tmp") {
			continue
		}
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < evictAfter {
			continue
		}
		if os.Remove(filepath.Join(x.folder, name)) == nil {
			removed++
		}
		if removed == sweepLimit {
			return
		}
	}
}
