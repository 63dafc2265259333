package scaffold

import (
	"embed"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

//go:embed all:files
var files embed.FS

// Templates lists the names that Write takes.
func Templates() []string { return []string{"demo", "empty"} }

// Write writes the template into dir, which must be missing or hold nothing
// but hidden files. It gives the files written, sorted, relative to dir.
func Write(dir, template, name string) ([]string, error) {
	if !slices.Contains(Templates(), template) {
		return nil, fault.New("INVALID_ARGUMENT", "there is no template %q", template).
			WithHint("Use one of %s", strings.Join(Templates(), ", "))
	}
	if err := mustBeEmpty(dir); err != nil {
		return nil, err
	}
	contents, err := project(template, name)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(contents))
	for _, n := range names {
		if err := writeNew(filepath.Join(dir, filepath.FromSlash(n)), contents[n]); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// project gives every file of a project by its path.
func project(template, name string) (map[string][]byte, error) {
	out := map[string][]byte{}
	root := path.Join("files", template)
	err := fs.WalkDir(files, root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(p)
		if err != nil {
			return err
		}
		target := strings.TrimPrefix(p, root+"/")
		if bare, ok := strings.CutSuffix(target, ".tmpl"); ok {
			target = bare
			text = []byte(strings.ReplaceAll(string(text), "@NAME@", name))
		}
		out[target] = text
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := addSDK(out); err != nil {
		return nil, err
	}
	if template == "demo" {
		if err := addPlugins(out); err != nil {
			return nil, err
		}
		addLanding(out)
	}
	return out, nil
}

func mustBeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(err, "INVALID_ARGUMENT", "%s cannot be a project's folder", dir)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			return fault.New("DIRECTORY_NOT_EMPTY", "%s holds %s already; nothing was written", dir, e.Name()).
				WithHint("Name a new folder")
		}
	}
	return nil
}

// writeNew writes a file that does not exist yet. Scripts keep being scripts.
func writeNew(name string, text []byte) error {
	mode := fs.FileMode(0o644)
	if strings.HasPrefix(string(text), "#!") {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fault.Wrap(err, "WRITE_FAILED", "the project cannot be written")
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return fault.Wrap(err, "WRITE_FAILED", "the project cannot be written")
	}
	_, err = f.Write(text)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fault.Wrap(err, "WRITE_FAILED", "the project cannot be written")
	}
	return nil
}
