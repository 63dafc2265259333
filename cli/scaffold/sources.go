package scaffold

import (
	"io/fs"
	"path"
	"strings"

	"github.com/weir-data/weir/plugins"
	"github.com/weir-data/weir/sdk/go/embedsdk"
)

// addSDK adds the SDK below sdk/, where the project's go.mod looks for it.
func addSDK(out map[string][]byte) error {
	return embedsdk.Files(func(name string, content []byte) error {
		out[path.Join("sdk", name)] = content
		return nil
	})
}

// addPlugins adds the example plugins below plugins/, without their tests:
// those need fixtures that stay with the repository.
func addPlugins(out map[string][]byte) error {
	return fs.WalkDir(plugins.Sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := plugins.Sources.ReadFile(name)
		if err != nil {
			return err
		}
		out[path.Join("plugins", name)] = text
		return nil
	})
}
