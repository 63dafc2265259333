package pipeline

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/weir-data/weir/host/catalog"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/runtime/plugin"
)

// SpecNames are the names under which a spec file is searched; the last two
// are Spark's.
var SpecNames = []string{"weir.yaml", "weir.yml", "spark-pipeline.yml", "spark-pipeline.yaml"}

// maxSpecBytes bounds a spec file: a larger one is not a spec.
const maxSpecBytes = 4 << 20

// Where unqualified names go when the spec does not say.
const (
	DefaultCatalog = "main"
	DefaultSchema  = "default"
)

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
	// Limits of every module, where its own say nothing else.
	Limits plugin.Limits
	// Volumes are the folders that /Volumes/catalog/schema/volume means, by
	// catalog.schema.volume in lower case.
	Volumes map[string]string
	// Development is true while somebody works on the pipeline: nothing is retried.
	Development bool
	// Edition is what the pipeline may use: CORE, PRO or ADVANCED.
	Edition string
	// IntervalColumns is which columns tables with history have.
	IntervalColumns string
	// EventLog is the table that the event log is published as; nil means none.
	EventLog *catalog.Name
	// MemoryLimit in bytes of an update as a whole; 0 leaves it to the machine.
	MemoryLimit int64
	// Notices tell which settings have no effect.
	Notices []Notice

	secrets *secrets

	// settings are the configuration keys that the pipeline itself reads.
	settings settings
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
	Limits plugin.Limits
	Line   int
}

// LoadSpec reads a spec file. An empty path searches weir.yaml or weir.yml in
// the working directory and upwards; a directory means the file in it. The
// overrides replace or add configuration values.
func LoadSpec(path string, overrides map[string]string) (*Spec, error) {
	file, err := findSpec(path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(file); err == nil && info.Size() > maxSpecBytes {
		return nil, fault.New("INVALID_SPEC", "the file has %d bytes; a spec has at most %d", info.Size(), maxSpecBytes).
			At(fault.Where{File: file})
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fault.Wrap(err, "SPEC_NOT_FOUND", "the spec file cannot be read").At(fault.Where{File: file})
	}
	return parseSpec(file, text, overrides, os.LookupEnv)
}

// findSpec gives the absolute path of the spec file.
func findSpec(path string) (string, error) {
	if path != "" {
		abs, err := filepath.Abs(path)
		if err != nil {
			return "", fault.Wrap(err, "SPEC_NOT_FOUND", "the path %q cannot be made absolute", path)
		}
		info, err := os.Stat(abs)
		if err != nil {
			return "", fault.Wrap(err, "SPEC_NOT_FOUND", "there is no spec file %s", abs)
		}
		if !info.IsDir() {
			return abs, nil
		}
		found, err := specIn(abs)
		if err == nil && found == "" {
			err = fault.New("SPEC_NOT_FOUND", "the folder %s has no %s", abs, SpecNames[0])
		}
		return found, err
	}
	start, err := os.Getwd()
	if err != nil {
		return "", fault.Wrap(err, "SPEC_NOT_FOUND", "the working directory is not known")
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		found, err := specIn(dir)
		if err != nil || found != "" {
			return found, err
		}
		if dir == filepath.Dir(dir) {
			return "", fault.New("SPEC_NOT_FOUND", "there is no %s in %s or above", SpecNames[0], start).
				WithHint("Make one with `weir init`, or name it with -f")
		}
	}
}

// specIn gives the spec file of a folder, or "" when it has none; two are an error.
func specIn(dir string) (string, error) {
	var found string
	for _, name := range SpecNames {
		path := filepath.Join(dir, name)
		switch info, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", fault.Wrap(err, "SPEC_NOT_FOUND", "the folder %s cannot be searched", dir)
		case info.IsDir():
			continue
		}
		if found != "" {
			return "", fault.New("AMBIGUOUS_SPEC", "the folder %s has both %s and %s", dir, filepath.Base(found), name).
				WithHint("Keep one, or name one with -f")
		}
		found = path
	}
	return found, nil
}

// parseSpec reads the text of a spec file whose absolute path is file.
func parseSpec(file string, text []byte, overrides map[string]string, env func(string) (string, bool)) (*Spec, error) {
	f := &yamlFile{path: file, env: env}
	root, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	s := &Spec{Path: file, Dir: filepath.Dir(file), Configuration: map[string]string{}, Edition: editionAdvanced, IntervalColumns: intervalsAutoCDC}
	s.secrets = &secrets{env: env, seen: &Redactor{}}
	nodes := map[string]ast.Node{}
	confNodes := map[string]ast.Node{}
	handlers := s.fields(f, nodes, confNodes)
	s.foreignFields(f, handlers)
	if err := f.fields(root, "the spec", handlers); err != nil {
		return nil, err
	}
	if err := s.complete(f, root, nodes); err != nil {
		return nil, err
	}
	for k, v := range overrides {
		s.Configuration[k] = v
		delete(confNodes, k)
	}
	if err := s.readSettings(func(key string, e *fault.Error) *fault.Error {
		if n := confNodes[key]; n != nil {
			return e.At(f.errAt(n, "").Where)
		}
		return e
	}, func(key string) int { return lineOf(confNodes[key]) }); err != nil {
		return nil, err
	}
	slices.SortStableFunc(s.Notices, func(a, b Notice) int { return a.Line - b.Line })
	return s, nil
}

// Redactor knows the secrets that have been looked up so far.
func (s *Spec) Redactor() *Redactor { return s.secrets.seen }

// abs makes a path of the spec absolute.
func (s *Spec) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.Dir, path)
}

// isFolderName holds for names that can be one folder on every storage.
func isFolderName(s string) bool {
	if s == "" || len(s) > 255 || strings.HasPrefix(s, ".") || strings.HasPrefix(s, "_") || strings.TrimSpace(s) != s {
		return false
	}
	for _, r := range s {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|`+"\x7f", r) {
			return false
		}
	}
	return true
}
