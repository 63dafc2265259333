package pipeline

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/weir-data/weir/host/catalog"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage/cloud"
	"github.com/weir-data/weir/runtime/plugin"
)

// SpecNames are the names under which a spec file is searched.
var SpecNames = []string{"weir.yaml", "weir.yml"}

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
			return "", fault.New("AMBIGUOUS_SPEC", "the folder %s has both %s and %s", dir, SpecNames[0], SpecNames[1]).
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
	s := &Spec{Path: file, Dir: filepath.Dir(file), Configuration: map[string]string{}}
	var schemaNode ast.Node
	schema := func(n ast.Node) (err error) {
		if schemaNode != nil {
			return f.errAt(n, "both schema and database are given; they mean the same")
		}
		schemaNode = n
		s.Schema, err = f.requiredText(n, "schema")
		return err
	}
	var nameNode, catalogNode ast.Node
	confNodes := map[string]ast.Node{}
	err = f.fields(root, "the spec", map[string]func(ast.Node) error{
		"name": func(n ast.Node) (err error) {
			nameNode = n
			s.Name, err = f.requiredText(n, "name")
			return err
		},
		"catalog": func(n ast.Node) (err error) {
			catalogNode = n
			s.Catalog, err = f.requiredText(n, "catalog")
			return err
		},
		"schema":   schema,
		"database": schema,
		"storage": func(n ast.Node) error {
			path, err := f.requiredText(n, "storage")
			if err != nil {
				return err
			}
			if cloud.IsURL(path) {
				s.Storage = path
				return nil
			}
			if scheme, _, ok := strings.Cut(path, "://"); ok && scheme != "file" {
				e := f.errAt(n, "storage %q: only local folders and s3://, azblob:// and gs:// can be used", path)
				e.Code = "NOT_SUPPORTED"
				return e
			}
			s.Storage = s.abs(strings.TrimPrefix(path, "file://"))
			return nil
		},
		"configuration": func(n ast.Node) error { return s.readConfiguration(f, n, confNodes) },
		"libraries": func(n ast.Node) error {
			return f.list(n, "libraries", func(item ast.Node) error { return s.readLibrary(f, item) })
		},
		"limits": func(n ast.Node) (err error) {
			s.Limits, err = readLimits(f, n)
			return err
		},
		"plugins": func(n ast.Node) error {
			return f.list(n, "plugins", func(item ast.Node) error { return s.readPlugin(f, item) })
		},
	})
	if err != nil {
		return nil, err
	}
	for _, required := range []struct{ field, value string }{{"name", s.Name}, {"storage", s.Storage}} {
		if required.value == "" {
			return nil, f.errAt(root, "the required field %q is missing", required.field)
		}
	}
	if s.Catalog == "" {
		s.Catalog = DefaultCatalog
	}
	if s.Schema == "" {
		s.Schema = DefaultSchema
	}
	if !isFolderName(s.Name) {
		return nil, f.errAt(nameNode, "name %q is also the name of a folder: it must not start with . or _ nor hold any of / \\ : * ? \" < > |", s.Name)
	}
	if _, err := catalog.ParseName("t", catalog.Name{Catalog: s.Catalog, Schema: "s"}); err != nil {
		return nil, f.errAt(catalogNode, "catalog: %v", err)
	}
	if _, err := catalog.ParseName("t", catalog.Name{Catalog: "c", Schema: s.Schema}); err != nil {
		return nil, f.errAt(schemaNode, "schema: %v", err)
	}
	for k, v := range overrides {
		s.Configuration[k] = v
		delete(confNodes, k)
	}
	s.settings, err = readSettings(s.Configuration, func(key string, e *fault.Error) *fault.Error {
		if n := confNodes[key]; n != nil {
			return e.At(f.errAt(n, "").Where)
		}
		return e
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Spec) readConfiguration(f *yamlFile, n ast.Node, nodes map[string]ast.Node) error {
	m, err := f.mapping(n, "configuration")
	if err != nil {
		return err
	}
	for _, kv := range m.Values {
		key, err := f.key(kv)
		if err != nil {
			return err
		}
		value, err := f.text(kv.Value, "configuration "+key)
		if err != nil {
			return err
		}
		s.Configuration[key] = value
		nodes[key] = kv.Value
	}
	return nil
}

func (s *Spec) readLibrary(f *yamlFile, item ast.Node) error {
	before := len(s.Libraries)
	file := func(n ast.Node) error {
		path, err := f.requiredText(n, "file")
		if err != nil {
			return err
		}
		if strings.ContainsAny(path, "*?[") {
			return f.errAt(n, "file %q names one file", path).WithHint("Use glob: {include: %s} for several", path)
		}
		s.Libraries = append(s.Libraries, Library{Include: path, Line: lineOf(n)})
		return nil
	}
	err := f.fields(item, "a library", map[string]func(ast.Node) error{
		"glob": func(n ast.Node) error {
			return f.fields(n, "glob", map[string]func(ast.Node) error{"include": func(n ast.Node) error {
				include, err := f.requiredText(n, "glob include")
				if err != nil {
					return err
				}
				if strings.ContainsAny(strings.TrimSuffix(include, "/**"), "*?[") {
					return f.errAt(n, "glob include %q must be a file or end in /**", include).WithHint("Write a folder and /**, such as transformations/**")
				}
				s.Libraries = append(s.Libraries, Library{Include: include, Line: lineOf(n)})
				return nil
			}})
		},
		// Lakeflow writes {file: {path: x}}; `file: x` says the same.
		"file": func(n ast.Node) error {
			if _, ok := n.(*ast.StringNode); ok {
				return file(n)
			}
			return f.fields(n, "file", map[string]func(ast.Node) error{"path": file})
		},
	})
	if err != nil {
		return err
	}
	if len(s.Libraries) != before+1 {
		return f.errAt(item, "a library names one of glob: {include: …} and file: …")
	}
	return nil
}

func (s *Spec) readPlugin(f *yamlFile, item ast.Node) error {
	ref := PluginRef{Line: lineOf(item)}
	err := f.fields(item, "a plugin", map[string]func(ast.Node) error{
		"path": func(n ast.Node) error {
			path, err := f.requiredText(n, "path")
			ref.Path, ref.Line = s.abs(path), lineOf(n)
			return err
		},
		"sha256": func(n ast.Node) error {
			pin := n.GetToken().Value // a hash of digits alone looks like a number
			if _, ok := n.(*ast.IntegerNode); !ok {
				if _, ok := n.(*ast.FloatNode); !ok {
					var err error
					if pin, err = f.requiredText(n, "sha256"); err != nil {
						return err
					}
				}
			}
			if raw, err := hex.DecodeString(pin); err != nil || len(raw) != 32 {
				return f.errAt(n, "sha256 %q is not 64 hexadecimal digits", pin)
			}
			ref.SHA256 = strings.ToLower(pin)
			return nil
		},
		"limits": func(n ast.Node) (err error) {
			ref.Limits, err = readLimits(f, n)
			return err
		},
		"grants": func(n ast.Node) error {
			return f.fields(n, "grants", map[string]func(ast.Node) error{"conf": func(n ast.Node) error {
				return f.list(n, "grants conf", func(n ast.Node) error {
					key, err := f.requiredText(n, "a granted key")
					if err != nil {
						return err
					}
					if strings.Contains(strings.TrimSuffix(key, ".*"), "*") {
						return f.errAt(n, "the grant %q is neither a key nor prefix.*", key)
					}
					ref.Conf = append(ref.Conf, key)
					return nil
				})
			}})
		},
	})
	if err != nil {
		return err
	}
	if ref.Path == "" {
		return f.errAt(item, "a plugin needs a path")
	}
	s.Plugins = append(s.Plugins, ref)
	return nil
}

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
