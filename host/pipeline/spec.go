package pipeline

import "github.com/weir-data/weir/host/fault"

// Spec is a pipeline's spec file, weir.yaml, with its environment references
// replaced, its defaults filled in and its paths made absolute.
type Spec struct {
	// Path is the file, Dir its folder; relative paths start there.
	Path string
	Dir  string

	Name          string
	Catalog       string
	Schema        string
	Storage       string
	Configuration map[string]string
	Libraries     []Library
	Plugins       []PluginRef
}

// Library names SQL files: one file, or all below a folder (`dir/**`).
type Library struct {
	Include string
	Line    int
}

// PluginRef names a module, what it may do and how much of it.
type PluginRef struct {
	Path   string
	SHA256 string
	// Conf lists the configuration keys, or `prefix.*`, that the module may read.
	Conf   []string
	Limits map[string]string
	Line   int
}

// LoadSpec reads a spec file. An empty path searches weir.yaml or weir.yml in
// the working directory and upwards; a directory means the file in it. The
// overrides replace or add configuration values.
func LoadSpec(path string, overrides map[string]string) (*Spec, error) {
	return nil, fault.New("NOT_SUPPORTED", "specs are not read yet")
}
