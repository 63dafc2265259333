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
)

// Cache is a directory of entries.
type Cache struct{ dir string }

// Open makes the directory, if need be, and takes it from everybody but its owner.
func Open(dir string) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("plugin cache: %w", err)
	}
	c := &Cache{dir: dir}
	for _, d := range []string{dir, c.path("manifest"), c.path("code")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("plugin cache: %w", err)
		}
		if err := os.Chmod(d, 0o700); err != nil {
			return nil, fmt.Errorf("plugin cache: %w", err)
		}
	}
	return c, nil
}

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
	return text, true
}

// PutManifest keeps a manifest.
func (c *Cache) PutManifest(key string, text []byte) error {
	return writeAtomic(c.path("manifest", key), append([]byte(hexSum(text)+"\n"), text...))
}

// sums is the file of an entry of code that names its files and their hashes.
const sums = "SHA256SUMS"

// Code is the directory of one entry of compiled code.
type Code struct{ dir string }

// Code checks the entry of a key and gives it: with its files when all of
// them have their hashes, else empty.
func (c *Cache) Code(key string) (*Code, error) {
	k := &Code{dir: c.path("code", key)}
	if !k.intact() {
		if err := k.Discard(); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return nil, fmt.Errorf("plugin cache: %w", err)
	}
	return k, nil
}

// Dir is where the entry's files are, or shall be written.
func (k *Code) Dir() string { return k.dir }

// Sealed reports whether the entry has files whose hashes were checked.
func (k *Code) Sealed() bool {
	_, err := os.Stat(filepath.Join(k.dir, sums))
	return err == nil
}

// Seal writes down the hashes of the entry's files.
func (k *Code) Seal() error {
	text, err := k.hashes()
	if err != nil {
		return err
	}
	return writeAtomic(filepath.Join(k.dir, sums), text)
}

// Discard deletes the entry.
func (k *Code) Discard() error { return os.RemoveAll(k.dir) }

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
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
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
