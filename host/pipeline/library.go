package pipeline

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// maxSQLBytes bounds one SQL file.
const maxSQLBytes = 16 << 20

// sqlFile is one file of pipeline SQL.
type sqlFile struct {
	path string // absolute
	text string
}

// sqlFiles reads the files that the libraries name, in the order of their
// paths, each once.
func (s *Spec) sqlFiles() ([]sqlFile, error) {
	paths := map[string]bool{}
	for _, lib := range s.Libraries {
		found, err := s.matches(lib)
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			paths[path] = true
		}
	}
	files := make([]sqlFile, 0, len(paths))
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		text, err := readBounded(path, maxSQLBytes)
		if err != nil {
			return nil, err
		}
		files = append(files, sqlFile{path: path, text: string(text)})
	}
	return files, nil
}

// matches gives the SQL files of one library.
func (s *Spec) matches(lib Library) ([]string, error) {
	dir, recursive := strings.CutSuffix(lib.Include, "/**")
	if lib.Include == "**" {
		dir, recursive = ".", true
	}
	root := s.abs(dir)
	place := fault.Where{File: s.Path, Line: int64(lib.Line)}
	info, err := os.Stat(root)
	if err != nil {
		return nil, fault.Wrap(err, "LIBRARY_NOT_FOUND", "the library %s cannot be read", lib.Include).At(place)
	}
	if !recursive {
		if info.IsDir() {
			return nil, fault.New("INVALID_SPEC", "the library %s is a folder", lib.Include).At(place).
				WithHint("Write %s/** for all files in it", lib.Include)
		}
		if err := supportedFile(root); err != nil {
			return nil, err.At(place)
		}
		return []string{root}, nil
	}
	if !info.IsDir() {
		return nil, fault.New("INVALID_SPEC", "the library %s: %s is no folder", lib.Include, dir).At(place)
	}
	var found []string
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(entry.Name(), ".") && path != root
		if entry.IsDir() {
			if hidden {
				return fs.SkipDir
			}
			return nil
		}
		if hidden {
			return nil
		}
		switch strings.ToLower(filepath.Ext(path)) {
		case ".sql":
			found = append(found, path)
		case ".py", ".ipynb":
			// In Lakeflow these define datasets: to pass over one would lose them in silence.
			return supportedFile(path)
		}
		return nil
	})
	if err != nil {
		if fault.CodeOf(err) != "" {
			return nil, err
		}
		return nil, fault.Wrap(err, "LIBRARY_NOT_FOUND", "the library %s cannot be read", lib.Include).At(place)
	}
	return found, nil
}

// supportedFile refuses a file that defines no datasets Weir can read.
func supportedFile(path string) *fault.Error {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".sql":
		return nil
	case ".py", ".ipynb":
		return fault.New("NOT_SUPPORTED", "pipeline code in Python is not run").At(fault.Where{File: path}).
			WithHint("Write SQL, or a plugin, or move the file out of the library")
	default:
		return fault.New("NOT_SUPPORTED", "a library file must end in .sql, not %q", ext).At(fault.Where{File: path})
	}
}

// readBounded reads a whole file, up to a size.
func readBounded(path string, limit int64) ([]byte, error) {
	place := fault.Where{File: path}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.Wrap(err, "LIBRARY_NOT_FOUND", "the file cannot be read").At(place)
	}
	if info.Size() > limit {
		return nil, fault.New("INVALID_SPEC", "the file has %d bytes; at most %d are read", info.Size(), limit).At(place)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(err, "LIBRARY_NOT_FOUND", "the file cannot be read").At(place)
	}
	return text, nil
}

// SourceFiles gives what the pipeline is made of, as absolute paths: the spec,
// the SQL files of its libraries and its modules.
func (s *Spec) SourceFiles() ([]string, error) {
	out := []string{s.Path}
	sql, err := s.sqlFiles()
	if err != nil {
		return nil, err
	}
	for _, f := range sql {
		out = append(out, f.path)
	}
	for _, p := range s.Plugins {
		out = append(out, s.abs(p.Path))
	}
	return out, nil
}
