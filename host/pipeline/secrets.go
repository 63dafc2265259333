package pipeline

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/sql"
)

// secretsPrefix begins the environment variables that hold secrets.
const secretsPrefix = "WEIR_SECRET_"

// maxSecretsBytes bounds the file of secrets.
const maxSecretsBytes = 1 << 20

// secretReference is {{secrets/scope/key}}, as Databricks writes it.
var secretReference = regexp.MustCompile(`\{\{\s*secrets/([A-Za-z0-9_.@-]+)/([A-Za-z0-9_.@-]+)\s*\}\}`)

// secrets finds the values of {{secrets/scope/key}}. Values are looked up where
// they are used, never written into the configuration, so that no SQL text,
// plan or record holds one.
type secrets struct {
	file   string // "" when the spec names none
	place  fault.Where
	env    func(string) (string, bool)
	values map[string]string // of the file, by scope/key; nil until it is read
	seen   *Redactor
}

// read notes the file of secrets, a YAML mapping of scopes to mappings of keys.
func (s *secrets) read(f *yamlFile, spec *Spec, n ast.Node) error {
	return f.fields(n, "secrets", map[string]func(ast.Node) error{"file": func(n ast.Node) error {
		path, err := f.requiredText(n, "secrets file")
		if err != nil {
			return err
		}
		s.file, s.place = spec.abs(path), f.errAt(n, "").Where
		return s.load()
	}})
}

// load reads the file. One that others can read holds no secrets.
func (s *secrets) load() error {
	fail := func(err error, what string) error {
		return fault.Wrap(err, "SECRETS_UNREADABLE", "the file of secrets %s %s", s.file, what).At(s.place)
	}
	info, err := os.Stat(s.file)
	if err != nil {
		return fail(err, "cannot be read")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fault.New("SECRETS_EXPOSED", "the file of secrets %s can be read by others (mode %04o)", s.file, info.Mode().Perm()).
			At(s.place).WithHint("chmod 600 %s", s.file)
	}
	if info.Size() > maxSecretsBytes {
		return fail(nil, "is too large")
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		return fail(err, "cannot be read")
	}
	s.values = map[string]string{}
	f := &yamlFile{path: s.file, env: s.env, secret: true}
	root, err := f.parse(text)
	if err != nil {
		return err
	}
	for _, scope := range root.Values {
		name, err := f.key(scope)
		if err != nil {
			return err
		}
		keys, err := f.mapping(scope.Value, "scope "+name)
		if err != nil {
			return err
		}
		for _, kv := range keys.Values {
			key, err := f.key(kv)
			if err != nil {
				return err
			}
			value, err := f.literal(kv.Value, "secret "+name+"/"+key)
			if err != nil {
				return err
			}
			s.values[name+"/"+key] = value
			s.seen.Add(value)
		}
	}
	return nil
}

// lookup gives one secret: from the environment, else from the file.
func (s *secrets) lookup(scope, key string) (string, error) {
	variable := secretsPrefix + envPart(scope) + "_" + envPart(key)
	if value, ok := s.env(variable); ok {
		s.seen.Add(value)
		return value, nil
	}
	if value, ok := s.values[scope+"/"+key]; ok {
		return value, nil
	}
	e := fault.New("SECRET_NOT_FOUND", "there is no secret {{secrets/%s/%s}}", scope, key)
	if s.file == "" {
		return "", e.WithHint("Set %s, or name a file under secrets in the spec", variable)
	}
	return "", e.WithHint("Set %s, or add it to %s", variable, s.file)
}

// reveal puts the secrets into a text that is about to be used.
func (s *secrets) reveal(text string) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	var failed error
	out := secretReference.ReplaceAllStringFunc(text, func(ref string) string {
		m := secretReference.FindStringSubmatch(ref)
		value, err := s.lookup(m[1], m[2])
		if err != nil && failed == nil {
			failed = err
		}
		return value
	})
	return out, failed
}

// envPart spells a scope or key as part of a variable's name.
func envPart(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s)
}

// hasSecret tells whether a text refers to a secret.
func hasSecret(text string) bool { return secretReference.MatchString(text) }

// noSecrets refuses a reference to a secret where its value would become data
// or be shown: only options of a source and the configuration of a module take one.
func noSecrets(st *sql.Statement) error {
	at := fault.Where{Dataset: st.Name, File: st.File, Line: int64(st.Line)}
	texts := []string{st.Query, st.Comment}
	for _, c := range st.Constraints {
		texts = append(texts, c.Condition)
	}
	for _, v := range st.Properties {
		texts = append(texts, v)
	}
	if slices.ContainsFunc(texts, hasSecret) {
		return fault.New("SECRET_NOT_ALLOWED", "a secret can stand in the options of read_files and in the configuration of a module, not in a query").At(at).
			WithHint("Leave it out: a query's rows and text are there to be read")
	}
	return nil
}
