package storage

import "path/filepath"

// LocalPath gives the path under which the operating system knows an object,
// for what needs a file, such as mapping it into memory. It is false for
// stores that have none; the object need not exist. What is read there
// bypasses the store, so that only objects that never change are read so.
func LocalPath(s Store, name string) (string, bool) {
	l, ok := s.(interface {
		LocalPath(name string) (string, bool)
	})
	if !ok || CheckName(name) != nil {
		return "", false
	}
	return l.LocalPath(name)
}

// LocalPath implements the ability of the function LocalPath.
func (d *Dir) LocalPath(name string) (string, bool) {
	return filepath.Join(d.root, filepath.FromSlash(name)), true
}

// LocalPath implements the ability of the function LocalPath when the store below does.
func (s *sub) LocalPath(name string) (string, bool) { return LocalPath(s.store, s.prefix+name) }
