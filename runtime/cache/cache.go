package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// DefaultBytes is what a cache may hold unless Bound says otherwise: the code of
// a hundred Go modules.
const DefaultBytes = 1 << 30

// Cache is a directory of entries. It may be used by many goroutines, and the
// directory by many processes, at once.
type Cache struct {
	dir string

	mu   sync.Mutex // of trimming
	most int64
}

// Open makes the directory, if need be, takes it from everybody but its owner,
// and clears away what processes left that died while they wrote.
func Open(dir string) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("plugin cache: %w", err)
	}
	c := &Cache{dir: dir, most: DefaultBytes}
	for _, d := range []string{dir, c.path("manifest"), c.path("code")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("plugin cache: %w", err)
		}
		if err := os.Chmod(d, 0o700); err != nil {
			return nil, fmt.Errorf("plugin cache: %w", err)
		}
	}
	c.clear()
	return c, nil
}

// Bound sets what the cache may hold, in bytes. What was used longest ago goes
// first, when something is added; the newest entry stays whatever its size.
func (c *Cache) Bound(bytes int64) { c.most = bytes }

// Key makes one key of parts; no two lists of parts share one.
func Key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (c *Cache) path(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}

// Manifest gives the manifest kept under a key of Key; false when there is
// none or it is damaged.
func (c *Cache) Manifest(key string) ([]byte, bool) {
	path := c.path("manifest", key)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	sum, text, ok := bytes.Cut(data, []byte("\n"))
	if !ok || string(sum) != hexSum(text) {
		_ = os.Remove(path)
		return nil, false
	}
	used(path)
	return text, true
}

// PutManifest keeps a manifest.
func (c *Cache) PutManifest(key string, text []byte) error {
	path := c.path("manifest", key)
	if err := writeAtomic(path, append([]byte(hexSum(text)+"\n"), text...)); err != nil {
		return err
	}
	c.trim(path)
	return nil
}

// sums is the file of an entry of code that names its files and their hashes.
const sums = "SHA256SUMS"

// Code is the directory of one entry of compiled code: a sealed one, or one of
// the caller's own that Seal puts in its place. An entry is thus whole or not
// there, however many write it at once.
type Code struct {
	cache  *Cache
	dir    string
	place  string // where it belongs
	sealed bool
}

// Code checks the entry of a key and gives it: with its files when all of
// them have their hashes, else empty. A damaged one is deleted.
func (c *Cache) Code(key string) (*Code, error) {
	place := c.path("code", key)
	k := &Code{cache: c, dir: place, place: place, sealed: true}
	if k.intact() {
		used(filepath.Join(place, sums))
		return k, nil
	}
	if err := c.remove(place); err != nil {
		return nil, fmt.Errorf("plugin cache: %w", err)
	}
	var err error
	if k.dir, err = os.MkdirTemp(c.path("code"), unfinished+"*"); err != nil {
		return nil, fmt.Errorf("plugin cache: %w", err)
	}
	k.sealed = false
	return k, nil
}

// Dir is where the entry's files are, or shall be written.
func (k *Code) Dir() string { return k.dir }

// Sealed reports whether the entry has files whose hashes were checked.
func (k *Code) Sealed() bool { return k.sealed }

// Seal writes down the hashes of the entry's files and puts it in its place.
// Where another process was faster, its entry stays and this one goes.
func (k *Code) Seal() error {
	text, err := k.hashes()
	if err == nil {
		err = writeAtomic(filepath.Join(k.dir, sums), text)
	}
	if err == nil && os.Rename(k.dir, k.place) != nil {
		err = k.Discard()
	} else if err != nil {
		_ = k.Discard()
		return err
	}
	k.dir, k.sealed = k.place, true
	k.cache.trim(filepath.Join(k.place, sums))
	return err
}

// Discard deletes the entry.
func (k *Code) Discard() error {
	if k.sealed {
		return k.cache.remove(k.dir)
	}
	return os.RemoveAll(k.dir)
}

func (k *Code) intact() bool {
	want, err := os.ReadFile(filepath.Join(k.dir, sums))
	if err != nil {
		return false
	}
	got, err := k.hashes()
	return err == nil && bytes.Equal(want, got)
}

// hashes lists "hash  path" of all files of the entry but the list itself.
// Anything that is neither file nor directory, such as a link, is refused.
func (k *Code) hashes() ([]byte, error) {
	var b bytes.Buffer
	err := filepath.WalkDir(k.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return errors.New("plugin cache: " + path + " is not a regular file")
		}
		name, err := filepath.Rel(k.dir, path)
		if err != nil || name == sums {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", hexSum(data), filepath.ToSlash(name))
		return nil
	})
	return b.Bytes(), err
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func writeAtomic(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), unfinished+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
