package pipeline

import (
	"cmp"
	"encoding/hex"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/weir-data/weir/host/catalog"
	"github.com/weir-data/weir/host/storage/cloud"
)

// fields gives the handlers of the spec's fields. nodes keeps where fields
// stand that are checked once all are read, confNodes where the configuration is.
func (s *Spec) fields(f *yamlFile, nodes, confNodes map[string]ast.Node) map[string]func(ast.Node) error {
	text := func(name string, to *string) func(ast.Node) error {
		return func(n ast.Node) (err error) {
			nodes[name] = n
			*to, err = f.requiredText(n, name)
			return err
		}
	}
	// Lakeflow calls it schema, and target before that; Spark takes database, too.
	schemaField := ""
	schema := func(name string) func(ast.Node) error {
		return func(n ast.Node) (err error) {
			if schemaField != "" {
				return f.errAt(n, "both %s and %s are given; they mean the same", schemaField, name)
			}
			schemaField = name
			nodes["schema"] = n
			s.Schema, err = f.requiredText(n, name)
			return err
		}
	}
	return map[string]func(ast.Node) error{
		"name":     text("name", &s.Name),
		"catalog":  text("catalog", &s.Catalog),
		"schema":   schema("schema"),
		"database": schema("database"),
		"target":   schema("target"),
		"storage":  func(n ast.Node) error { return s.readStorage(f, n) },
		"configuration": func(n ast.Node) error {
			return s.readConfiguration(f, n, confNodes)
		},
		"libraries": func(n ast.Node) error {
			return f.list(n, "libraries", func(item ast.Node) error { return s.readLibrary(f, item) })
		},
		"limits": func(n ast.Node) (err error) {
			s.Limits, err = readLimits(f, n)
			return err
		},
		"memory_limit": func(n ast.Node) (err error) {
			s.MemoryLimit, err = readMemoryLimit(f, n)
			return err
		},
		"plugins": func(n ast.Node) error {
			return f.list(n, "plugins", func(item ast.Node) error { return s.readPlugin(f, item) })
		},
		"volumes": func(n ast.Node) error { return s.readVolumes(f, n) },
		"secrets": func(n ast.Node) error { return s.secrets.read(f, s, n) },
		"edition": func(n ast.Node) (err error) {
			s.Edition, err = readEdition(f, n)
			return err
		},
		"interval_columns": func(n ast.Node) (err error) {
			s.IntervalColumns, err = readIntervalColumns(f, n)
			return err
		},
		"development": func(n ast.Node) (err error) {
			s.Development, err = f.truth(n, "development")
			return err
		},
		"event_log": func(n ast.Node) (err error) {
			nodes["event_log"] = n
			s.EventLog, err = readEventLog(f, n)
			return err
		},
	}
}

// complete checks what depends on several fields and fills in the defaults.
func (s *Spec) complete(f *yamlFile, root ast.Node, nodes map[string]ast.Node) error {
	if s.Name == "" {
		return f.errAt(root, "the required field %q is missing", "name")
	}
	if s.Storage == "" {
		return f.errAt(root, "the required field %q is missing", "storage").
			WithHint("Name the folder of the tables, such as storage: ./lake")
	}
	if s.Catalog == "" {
		s.Catalog = DefaultCatalog
	}
	if s.Schema == "" {
		s.Schema = DefaultSchema
	}
	if !isFolderName(s.Name) {
		return f.errAt(nodes["name"], "name %q is also the name of a folder: it must not start with . or _ nor hold any of / \\ : * ? \" < > |", s.Name)
	}
	if _, err := catalog.ParseName("t", catalog.Name{Catalog: s.Catalog, Schema: "s"}); err != nil {
		return f.errAt(nodes["catalog"], "catalog: %v", err)
	}
	if _, err := catalog.ParseName("t", catalog.Name{Catalog: "c", Schema: s.Schema}); err != nil {
		return f.errAt(nodes["schema"], "schema: %v", err)
	}
	if s.EventLog != nil {
		name, err := catalog.ParseName(s.EventLog.Table, catalog.Name{
			Catalog: cmp.Or(s.EventLog.Catalog, s.Catalog), Schema: cmp.Or(s.EventLog.Schema, s.Schema),
		})
		if err != nil {
			return f.errAt(nodes["event_log"], "event_log: %v", err)
		}
		s.EventLog = &name
	}
	return nil
}

func (s *Spec) readStorage(f *yamlFile, n ast.Node) error {
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
	handlers := map[string]func(ast.Node) error{
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
	}
	for kind, instead := range map[string]string{
		"notebook": "Save it as .sql and name it with file or glob", "jar": "Write the function as a plugin",
		"maven": "Write the function as a plugin", "whl": "Write the function as a plugin",
	} {
		handlers[kind] = func(n ast.Node) error {
			e := f.errAt(n, "a library of kind %s cannot be read", kind).WithHint("%s", instead)
			e.Code = "NOT_SUPPORTED"
			return e
		}
	}
	if err := f.fields(item, "a library", handlers); err != nil {
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
