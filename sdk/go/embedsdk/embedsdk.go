// Package embedsdk carries the SDK's own source, so that the weir command can write it beside an
// author's code: a plugin then builds without a registry, with
//
//	require github.com/weir-data/weir/sdk/go v0.0.0
//	replace github.com/weir-data/weir/sdk/go => ./sdk
//
// It is for native programs; nothing of it enters a module. It does not write go.mod files of authors.
package embedsdk

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-data/weir/sdk/go"
)

// ModulePath is the import path of the SDK.
const ModulePath = "github.com/weir-data/weir/sdk/go"

// Files calls each with every file of the SDK but its tests and this package, in the order of their
// slash-separated names.
func Files(each func(name string, content []byte) error) error {
	files := weir.Sources()
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") || name == "embed.go" {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		return each(name, content)
	})
}

// Write writes the SDK into a directory, which it makes. It replaces files of the same names and leaves
// others alone.
func Write(dir string) error {
	return Files(func(name string, content []byte) error {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("writing the SDK: %w", err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("writing the SDK: %w", err)
		}
		return nil
	})
}
