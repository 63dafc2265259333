package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/runtime/plugin"
)

var testEnv = map[string]string{"DWH_CATALOG": "dwh_test", "EMPTY": ""}

func lookupTestEnv(name string) (string, bool) { v, ok := testEnv[name]; return v, ok }

func parseText(t *testing.T, text string, overrides map[string]string) (*Spec, error) {
	t.Helper()
	return parseSpec("/project/weir.yaml", []byte(text), overrides, lookupTestEnv)
}

// covers A9 A141 A220 B6
func TestSpecIsReadWithItsDefaultsPathsAndEnvironment(t *testing.T) {
	s, err := parseText(t, `
name: dwh
catalog: ${env:DWH_CATALOG:-dwh_dev}
storage: ./lake
configuration: {dwh.batch_id: manual, dwh.landing: ./landing, "pipelines.maxFlowRetryAttempts": "0"}
libraries:
  - glob: {include: transformations/**}
  - file: extra/one.sql
  - file: {path: extra/two.sql}
plugins:
  - path: plugins/sap.wasm
    sha256: 9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08
    limits: {memory: 256MB, output_rows: 1000000, fuel: 1e9}
    grants: {conf: [dwh.catalog, "sap.*"]}
  - path: /opt/other.wasm
limits: {memory: 64MiB, time: 30s}
`, map[string]string{"dwh.batch_id": "nightly"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "dwh" || s.Catalog != "dwh_test" || s.Schema != DefaultSchema {
		t.Errorf("got %q %q %q", s.Name, s.Catalog, s.Schema)
	}
	if s.Storage != "/project/lake" || s.Plugins[0].Path != "/project/plugins/sap.wasm" || s.Plugins[1].Path != "/opt/other.wasm" {
		t.Errorf("paths are not relative to the spec: %q %q", s.Storage, s.Plugins[0].Path)
	}
	if s.Configuration["dwh.batch_id"] != "nightly" || s.Configuration["dwh.landing"] != "./landing" {
		t.Errorf("configuration %v", s.Configuration)
	}
	if s.settings.maxFlowRetries != 0 {
		t.Errorf("retries %d", s.settings.maxFlowRetries)
	}
	var includes []string
	for _, l := range s.Libraries {
		includes = append(includes, l.Include)
	}
	if got := strings.Join(includes, " "); got != "transformations/** extra/one.sql extra/two.sql" {
		t.Errorf("libraries %s", got)
	}
	p := s.Plugins[0]
	if p.SHA256 != strings.ToLower("9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08") || p.Limits != (plugin.Limits{MemoryBytes: 256e6, OutputRows: 1e6, Fuel: 1e9}) {
		t.Errorf("plugin %+v", p)
	}
	if s.Limits != (plugin.Limits{MemoryBytes: 64 << 20, GuestTime: 30 * time.Second}) {
		t.Errorf("limits %+v", s.Limits)
	}
	if got := narrow(map[string]string{"dwh.catalog": "a", "dwh.landing": "b", "sap.max_rate_age": "c", "sapx": "d"}, p.Conf); len(got) != 2 || got["dwh.catalog"] != "a" || got["sap.max_rate_age"] != "c" {
		t.Errorf("the grant gives %v", got)
	}
}

// Each refusal names the line and column it is about, and what to write instead.
func TestSpecRefusals(t *testing.T) {
	const head = "name: p\nstorage: s\n"
	for name, c := range map[string]struct{ text, code, line, says string }{
		"empty":                        {"", "INVALID_SPEC", "", "empty"},
		"only a comment":               {"# nothing\n", "INVALID_SPEC", "", "empty"},
		"not YAML":                     {"name: [", "INVALID_SPEC", "line 1", "not YAML"},
		"a list":                       {"- a\n", "INVALID_SPEC", "line 1", "must be a mapping"},
		"two documents":                {head + "---\nname: q\n", "INVALID_SPEC", "line 4", "second YAML document"},
		"no name":                      {"storage: s\n", "INVALID_SPEC", "line 1", `"name" is missing`},
		"no storage":                   {"name: p\n", "INVALID_SPEC", "line 1", `"storage" is missing`},
		"null name":                    {"name:\nstorage: s\n", "INVALID_SPEC", "", `"name" is missing`},
		"empty name":                   {"name: ' '\nstorage: s\n", "INVALID_SPEC", "line 1", "name is empty"},
		"name is a path":               {"name: a/b\nstorage: s\n", "INVALID_SPEC", "line 1", "name of a folder"},
		"name is dots":                 {"name: ..\nstorage: s\n", "INVALID_SPEC", "line 1", "name of a folder"},
		"name is hidden":               {"name: _weir\nstorage: s\n", "INVALID_SPEC", "line 1", "name of a folder"},
		"catalog is a path":            {head + "catalog: a/b\n", "INVALID_SPEC", "line 3", "the catalog name holds a slash"},
		"unknown field, near":          {head + "configurations: {}\n", "INVALID_SPEC", "line 3, column 1", `Did you mean "configuration"?`},
		"unknown field, far":           {head + "quality: good\n", "INVALID_SPEC", "line 3", "It has catalog, configuration"},
		"duplicate field":              {head + "name: q\n", "INVALID_SPEC", "line 3", "already defined"},
		"schema and database":          {head + "schema: a\ndatabase: b\n", "INVALID_SPEC", "line 4", "both schema and database"},
		"number as name":               {"name: 5\nstorage: s\n", "INVALID_SPEC", "line 1", `Write "5"`},
		"alias":                        {"name: &a p\nstorage: *a\n", "INVALID_SPEC", "line 1", "anchor"},
		"tag":                          {"name: !!str 5\nstorage: s\n", "INVALID_SPEC", "line 1", "tagged"},
		"other storage":                {"name: p\nstorage: hdfs://bucket/x\n", "NOT_SUPPORTED", "line 2", "only local folders"},
		"env not set":                  {head + "catalog: ${env:NOPE}\n", "INVALID_SPEC", "line 3", "NOPE is not set"},
		"env not closed":               {head + "catalog: ${env:NOPE\n", "INVALID_SPEC", "line 3", "no closing }"},
		"env without name":             {head + "catalog: ${env:-x}\n", "INVALID_SPEC", "line 3", "no name of an environment variable"},
		"configuration number":         {head + "configuration:\n  a: 5\n", "INVALID_SPEC", "line 4", `Write "5"`},
		"configuration bool":           {head + "configuration:\n  a: true\n", "INVALID_SPEC", "line 4", `Write "true"`},
		"configuration nested":         {head + "configuration:\n  a: {b: c}\n", "INVALID_SPEC", "line 4", "must be text, not a mapping"},
		"configuration null":           {head + "configuration:\n  a:\n", "INVALID_SPEC", "line 4", "must be text, not nothing"},
		"configuration list":           {head + "configuration: [a]\n", "INVALID_SPEC", "line 3", "must be a mapping"},
		"retries not a number":         {head + "configuration:\n  pipelines.maxFlowRetryAttempts: two\n", "INVALID_SPEC", "line 4", "whole number"},
		"retries negative":             {head + "configuration:\n  pipelines.maxFlowRetryAttempts: '-1'\n", "INVALID_SPEC", "line 4", "whole number"},
		"misspelt setting":             {head + "configuration:\n  pipelines.maxFlowRetryAttemps: '1'\n", "NOT_SUPPORTED", "line 4", `Did you mean "pipelines.maxFlowRetryAttempts"?`},
		"unknown setting":              {head + "configuration:\n  spark.master: local\n", "NOT_SUPPORTED", "line 4", "has no effect"},
		"time zone":                    {head + "configuration:\n  spark.sql.session.timeZone: Europe/Berlin\n", "NOT_SUPPORTED", "line 4", "UTC only"},
		"libraries mapping":            {head + "libraries: {glob: x}\n", "INVALID_SPEC", "line 3", "must be a list"},
		"library kind":                 {head + "libraries:\n  - workbook: {path: x}\n", "INVALID_SPEC", "line 4", `no field "workbook"`},
		"library notebook":             {head + "libraries:\n  - notebook: {path: x}\n", "NOT_SUPPORTED", "line 4", "Save it as .sql"},
		"library jar":                  {head + "libraries:\n  - jar: x.jar\n", "NOT_SUPPORTED", "line 4", "as a plugin"},
		"library maven":                {head + "libraries:\n  - maven: {coordinates: 'a:b:1'}\n", "NOT_SUPPORTED", "line 4", "as a plugin"},
		"schema and target":            {head + "schema: a\ntarget: b\n", "INVALID_SPEC", "line 4", "both schema and target"},
		"continuous":                   {head + "continuous: true\n", "NOT_SUPPORTED", "line 3", "a scheduler start `weir run`"},
		"notifications":                {head + "notifications:\n  - {alerts: [on-update-failure]}\n", "NOT_SUPPORTED", "line 4", "exit code"},
		"trigger":                      {head + "trigger: {periodic: {interval: 1, unit: HOURS}}\n", "NOT_SUPPORTED", "line 3", "schedule"},
		"filters":                      {head + "filters: {include: [a]}\n", "NOT_SUPPORTED", "line 3", "under libraries"},
		"managed connector":            {head + "ingestion_definition: {}\n", "NOT_SUPPORTED", "line 3", "managed connectors"},
		"gateway":                      {head + "gateway_definition: {}\n", "NOT_SUPPORTED", "line 3", "managed service"},
		"dry_run":                      {head + "dry_run: true\n", "NOT_SUPPORTED", "line 3", "weir dry-run"},
		"serverless as text":           {head + "serverless: 'yes'\n", "INVALID_SPEC", "line 3", "must be true or false, not text"},
		"clusters as mapping":          {head + "clusters: {label: default}\n", "INVALID_SPEC", "line 3", "must be a list"},
		"edition":                      {head + "edition: ADVANCE\n", "INVALID_SPEC", "line 3", `Did you mean "ADVANCED"?`},
		"development as text":          {head + "development: 'true'\n", "INVALID_SPEC", "line 3", "true or false"},
		"event_log without name":       {head + "event_log: {catalog: a}\n", "INVALID_SPEC", "line 3", "name of a table"},
		"event_log unknown":            {head + "event_log: {nam: a}\n", "INVALID_SPEC", "line 3", `Did you mean "name"?`},
		"event_log name":               {head + "event_log: {name: a/b}\n", "INVALID_SPEC", "line 3", "slash"},
		"memory without unit":          {head + "memory_limit: much\n", "INVALID_MEMORY_LIMIT", "line 3", "2GiB"},
		"memory of nothing":            {head + "memory_limit: 1MiB\n", "INVALID_MEMORY_LIMIT", "line 3", "128MiB or more"},
		"volume of two parts":          {head + "volumes: {a.b: ./x}\n", "INVALID_SPEC", "line 3", "catalog.schema.volume"},
		"volume of dots":               {head + "volumes: {a.b..: ./x}\n", "INVALID_SPEC", "line 3", "catalog.schema.volume"},
		"volume twice":                 {head + "volumes:\n  a.b.c: ./x\n  A.b.c: ./y\n", "INVALID_SPEC", "line 5", "twice"},
		"volume without folder":        {head + "volumes: {a.b.c: ''}\n", "INVALID_SPEC", "line 3", "is empty"},
		"secrets unknown":              {head + "secrets: {files: x}\n", "INVALID_SPEC", "line 3", `Did you mean "file"?`},
		"secrets not there":            {head + "secrets: {file: nowhere.yaml}\n", "SECRETS_UNREADABLE", "line 3", "nowhere.yaml"},
		"update retries":               {head + "configuration:\n  pipelines.numUpdateRetryAttempts: many\n", "INVALID_SPEC", "line 4", "whole number"},
		"library empty":                {head + "libraries:\n  - {}\n", "INVALID_SPEC", "line 4", "names one of"},
		"library both":                 {head + "libraries:\n  - glob: {include: a/**}\n    file: b.sql\n", "INVALID_SPEC", "line 4", "names one of"},
		"glob pattern":                 {head + "libraries:\n  - glob: {include: 'a/*.sql'}\n", "INVALID_SPEC", "line 4", "end in /**"},
		"glob unknown":                 {head + "libraries:\n  - glob: {includes: a/**}\n", "INVALID_SPEC", "line 4", `Did you mean "include"?`},
		"file pattern":                 {head + "libraries:\n  - file: 'a/**'\n", "INVALID_SPEC", "line 4", "names one file"},
		"plugin without path":          {head + "plugins:\n  - sha256: " + strings.Repeat("a", 64) + "\n", "INVALID_SPEC", "line 4", "needs a path"},
		"plugin pin":                   {head + "plugins:\n  - path: a.wasm\n    sha256: abc\n", "INVALID_SPEC", "line 5", "64 hexadecimal"},
		"plugin unknown limit":         {head + "plugins:\n  - path: a.wasm\n    limits: {memroy: 1MB}\n", "INVALID_SPEC", "line 5", `Did you mean "memory"?`},
		"plugin limit without unit":    {head + "plugins:\n  - path: a.wasm\n    limits:\n      time: 30\n", "INVALID_SPEC", "line 6", "as in 90s"},
		"plugin limit out of range":    {head + "plugins:\n  - path: a.wasm\n    limits: {memory: 1}\n", "INVALID_SPEC", "line 5", "between 64KiB and 4GiB"},
		"unknown limit of all modules": {head + "limits: {tme: 1s}\n", "INVALID_SPEC", "line 3", `Did you mean "time"?`},
		"limits as text":               {head + "limits: none\n", "INVALID_SPEC", "line 3", "must be a mapping"},
		"plugin unknown grant":         {head + "plugins:\n  - path: a.wasm\n    grants: {network: [x]}\n", "INVALID_SPEC", "line 5", `no field "network"`},
		"plugin grant of everything":   {head + "plugins:\n  - path: a.wasm\n    grants: {conf: ['*']}\n", "INVALID_SPEC", "line 5", "neither a key nor prefix.*"},
		"plugin grant is not a list":   {head + "plugins:\n  - path: a.wasm\n    grants: {conf: a}\n", "INVALID_SPEC", "line 5", "must be a list"},
		"plugin as text":               {head + "plugins:\n  - a.wasm\n", "INVALID_SPEC", "line 4", "must be a mapping"},
		"configuration key with brace": {head + "configuration:\n  'a}b': x\n", "INVALID_SPEC", "line 4", "configuration key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseText(t, c.text, nil)
			wantFault(t, err, c.code, c.line, c.says)
		})
	}
	t.Run("override of a setting", func(t *testing.T) {
		_, err := parseText(t, head, map[string]string{"pipelines.maxFlowRetryAttempts": "x"})
		wantFault(t, err, "INVALID_SPEC", "", "whole number")
	})
}

func wantFault(t *testing.T, err error, code string, says ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want [%s]", code)
	}
	if got := fault.CodeOf(err); got != code {
		t.Errorf("code %q, want %q: %v", got, code, err)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
}

// covers B6
func TestSpecIsSearchedUpwards(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("name: p\nstorage: lake\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(deep)
	if _, err := LoadSpec("", nil); fault.CodeOf(err) != "SPEC_NOT_FOUND" {
		t.Fatalf("without a spec: %v", err)
	}
	write(filepath.Join(root, "weir.yaml"))
	s, err := LoadSpec("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Dir != root || s.Storage != filepath.Join(root, "lake") {
		t.Errorf("found in %s, storage %s", s.Dir, s.Storage)
	}
	if s, err = LoadSpec(root, nil); err != nil || s.Dir != root {
		t.Errorf("by folder: %v", err)
	}
	if _, err = LoadSpec(deep, nil); fault.CodeOf(err) != "SPEC_NOT_FOUND" {
		t.Errorf("a named folder is not searched upwards: %v", err)
	}
	if _, err = LoadSpec(filepath.Join(root, "other.yaml"), nil); fault.CodeOf(err) != "SPEC_NOT_FOUND" {
		t.Errorf("a named file that is not there: %v", err)
	}
	write(filepath.Join(root, "weir.yml"))
	if _, err = LoadSpec("", nil); fault.CodeOf(err) != "AMBIGUOUS_SPEC" {
		t.Errorf("two specs in one folder: %v", err)
	}
}

func FuzzLoadSpec(f *testing.F) {
	f.Add("name: dwh\ncatalog: ${env:DWH_CATALOG:-dwh_dev}\nstorage: ./lake\nconfiguration: {a.b: c}\nlibraries:\n  - glob: {include: t/**}\nplugins:\n  - path: p.wasm\n    grants: {conf: [a.*]}\n")
	f.Add("name: [\n")
	f.Add("? [a]\n: b\n")
	f.Add("name: &a x\nstorage: *a\n")
	f.Add("<<: {name: x}\n")
	f.Add("name: |\n  ${env:X\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSpec("/project/weir.yaml", []byte(text), nil, lookupTestEnv)
		if err == nil {
			if s.Name == "" || s.Storage == "" {
				t.Errorf("accepted without name or storage: %+v", s)
			}
			return
		}
		var e *fault.Error
		if !errors.As(err, &e) || e.Code == "" || e.Where.File == "" {
			t.Errorf("the error has no code or place: %v", err)
		}
	})
}

func TestNearestName(t *testing.T) {
	names := []string{"configuration", "storage", "name"}
	for word, want := range map[string]string{"Storage": "storage", "sotrage": "storage", "namme": "name", "colour": "", "x": ""} {
		if got := nearest(word, names); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
