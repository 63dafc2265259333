package pipeline

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// repoRoot is the repository's root, seen from this package's folder.
const repoRoot = "../.."

var modulesBuilt sync.Map // folder → *builtModule

type builtModule struct {
	once sync.Once
	path string
	err  error
	text []byte
}

// buildModule compiles a plugin of the repository, once for all tests, and
// gives the path of the module.
func buildModule(t *testing.T, dir string) string {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join(repoRoot, dir))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := modulesBuilt.LoadOrStore(abs, &builtModule{})
	m := v.(*builtModule)
	m.once.Do(func() {
		m.path = filepath.Join(cacheDir(), filepath.Base(dir)+".wasm")
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-trimpath", "-buildvcs=false", "-o", m.path, ".")
		cmd.Dir = abs
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
		m.text, m.err = cmd.CombinedOutput()
	})
	if m.err != nil {
		t.Fatalf("build %s: %v\n%s", dir, m.err, m.text)
	}
	return m.path
}

const rawOrders = `CREATE OR REFRESH STREAMING TABLE orders
AS SELECT * FROM STREAM read_files('landing', format => 'json', schemaHints => 'id BIGINT, city STRING');
CREATE OR REFRESH STREAMING TABLE silver.plain AS SELECT id FROM STREAM(orders);
`

const rawLanding = `{"id":0,"city":"c0"}` + "\n" + `{"id":1,"city":"c1"}` + "\n" + `{"id":2,"city":"c2"}` + "\n" + `{"id":3,"city":"c3"}` + "\n"

// pluginProject has the orders of rawOrders and one module.
func pluginProject(t *testing.T, module string, grants ...string) *project {
	t.Helper()
	path := buildModule(t, "testscripts/testdata/plugins/"+module)
	p := newProject(t, "plugins:", "  - path: "+path, "    grants: {conf: ["+strings.Join(grants, ", ")+"]}")
	p.write("sql/orders.sql", rawOrders)
	p.write("landing/a.json", rawLanding)
	p.conf = map[string]string{}
	return p
}

// A module that traps, fails or exits fails its flow and no other.
func TestAFailingModuleLeavesOthersRunning(t *testing.T) {
	for mode, code := range map[string]string{"trap": "PLUGIN_TRAP", "fail": "PLUGIN_FAILED", "exit": "PLUGIN_TRAP", "rows": "ODD_ID"} {
		t.Run(mode, func(t *testing.T) {
			p := pluginProject(t, "moods", "moods.*")
			p.conf["moods.mode"] = mode
			r := p.run(RunOptions{})
			if f := r.flow(t, "silver.moody"); f.State != Failed || f.Error.Code != code || f.RowsWritten != 0 {
				t.Errorf("moody is %s with %+v", f.State, f.Error)
			}
			if f := r.flow(t, "silver.plain"); f.State != Completed || f.RowsWritten != 4 {
				t.Errorf("plain is %s: %+v", f.State, f.Metrics)
			}
			p.conf["moods.mode"] = "well"
			p.completed(RunOptions{})
			p.wantRows("SELECT id, town, twice FROM silver.moody WHERE id > 1 ORDER BY id",
				`{"id":2,"town":"c2","twice":4}`, `{"id":3,"town":"c3","twice":6}`)
		})
	}
}

func TestRowErrorsFollowThePolicy(t *testing.T) {
	p := pluginProject(t, "moods", "moods.*")
	p.conf["moods.mode"], p.conf["moods.policy"] = "rows", "quarantine"
	r := p.completed(RunOptions{})
	if f := r.flow(t, "silver.moody"); f.RowsWritten != 2 || f.RowErrors != 2 || f.Quarantined != 2 {
		t.Errorf("quarantine: %+v", f.Metrics)
	}
	p.wantRows("SELECT _code, _message, _row->>'$.id' AS id FROM silver.moody_quarantine ORDER BY id",
		`{"_code":"ODD_ID","_message":"this function takes even ids","id":"1"}`,
		`{"_code":"ODD_ID","_message":"this function takes even ids","id":"3"}`)

	p = pluginProject(t, "moods", "moods.*")
	p.conf["moods.mode"], p.conf["moods.policy"] = "rows", "skip"
	r = p.completed(RunOptions{})
	if f := r.flow(t, "silver.moody"); f.RowsWritten != 2 || f.Skipped != 2 || f.Quarantined != 0 {
		t.Errorf("skip: %+v", f.Metrics)
	}
}

// Neither two functions of a module nor two modules see each other's memory,
// and each reads the configuration that it was granted and declares.
func TestFunctionsAndModulesAreIsolated(t *testing.T) {
	one := buildModule(t, "testscripts/testdata/plugins/canary")
	wasm, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	p := newProject(t, "configuration: {secret.a: alpha, secret.b: beta, secret.other: gamma, canary.prefix: two}",
		"plugins:",
		"  - {path: "+one+", grants: {conf: [secret.a, secret.b, secret.other]}}",
		"  - {path: two.wasm, grants: {conf: [canary.prefix, secret.b]}}")
	p.write("two.wasm", string(wasm))
	p.write("sql/orders.sql", rawOrders)
	p.write("landing/a.json", rawLanding)
	p.completed(RunOptions{})
	for table, conf := range map[string]string{
		"canary_one_a": "secret.a=alpha", "canary_one_b": "secret.b=beta",
		"canary_two_a": "", "canary_two_b": "secret.b=beta",
	} {
		p.wantRows("SELECT DISTINCT seen, conf FROM silver."+table, `{"seen":"","conf":"`+conf+`"}`)
	}
}

// A batch whose commit is undone and run again gives the same bytes, although
// its function ranges over a map and reads the clock and the random source.
func TestAReplayGivesTheSameBytes(t *testing.T) {
	p := pluginProject(t, "nondet")
	p.completed(RunOptions{})
	before := p.rows("SELECT * FROM silver.shuffled ORDER BY id")
	lake := filepath.Join(p.dir, "lake")
	table := filepath.Join(lake, "dev", "silver", "shuffled")
	files := dataFiles(t, table)
	// Undo the commit: the batch's offset entry stays, so the same batch runs again.
	for _, gone := range []string{
		filepath.Join(table, "_delta_log"),
		filepath.Join(lake, "_weir", "test", "checkpoints", "dev.silver.shuffled", "shuffled", "0", "commits"),
	} {
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
	}
	for name := range files {
		if err := os.Remove(filepath.Join(table, name)); err != nil {
			t.Fatal(err)
		}
	}
	p.completed(RunOptions{})
	again := dataFiles(t, table)
	if len(files) == 0 || len(files) != len(again) {
		t.Fatalf("%d files, then %d", len(files), len(again))
	}
	for name, data := range files {
		if again[name] != data {
			t.Errorf("%s differs after the replay", name)
		}
	}
	p.wantRows("SELECT * FROM silver.shuffled ORDER BY id", before...)
}

func dataFiles(t *testing.T, table string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(table, "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(path)] = string(data)
	}
	return out
}

// covers A16
func TestModulesReadFilesAsAutoLoaderDoes(t *testing.T) {
	p := pluginProject(t, "cloudfiles", "test.*")
	p.write("landing/b.json", `{"id":7}`)
	p.write("landing/c.json", `{"id":8}`)
	r := p.completed(RunOptions{})
	if f := r.flow(t, "bronze.loaded"); f.Batches != 2 || f.RowsWritten != 6 {
		t.Errorf("two files a batch: %+v", f.Metrics)
	}
	p.conf["test.option"] = "maxFilesPerTrigger"
	_, err := p.tryOpen()
	wantFault(t, err, "CF_UNPREFIXED_OPTION", "cloudFiles.maxFilesPerTrigger", "cloudfiles.wasm", "dev.bronze.loaded")
}

func TestModuleRefusals(t *testing.T) {
	good := buildModule(t, "testscripts/testdata/plugins/nondet")
	for name, c := range map[string]struct {
		plugin string
		code   string
		says   []string
	}{
		"missing":      {"{path: none.wasm}", "PLUGIN_NOT_FOUND", []string{"none.wasm", "line 8"}},
		"no module":    {"{path: weir.yaml}", "PLUGIN_INVALID_MODULE", []string{"weir.yaml", "line 8"}},
		"another hash": {"{path: " + good + ", sha256: " + strings.Repeat("0", 64) + "}", "PLUGIN_HASH_MISMATCH", []string{strings.Repeat("0", 64), "line 8"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, "plugins:", "  - "+c.plugin)
			p.write("sql/orders.sql", rawOrders)
			_, err := p.tryOpen()
			wantFault(t, err, c.code, c.says...)
		})
	}
}

// What a manifest promises and a function does not keep fails the flow.
func TestALyingManifestFailsItsFlow(t *testing.T) {
	p := pluginProject(t, "liar")
	r := p.run(RunOptions{})
	if f := r.flow(t, "silver.lies"); f.State != Failed || f.Error.Code != "PLUGIN_SCHEMA_MISMATCH" {
		t.Errorf("%s %+v", f.State, f.Error)
	}
}

// A dry run plans functions without running them over data.
func TestAPlanKnowsTheOutputOfFunctions(t *testing.T) {
	p := pluginProject(t, "moods", "moods.*")
	pl := p.open()
	plan, err := pl.Plan(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range plan.Datasets {
		if d.Name != "dev.silver.moody" {
			continue
		}
		var cols []string
		for _, c := range d.Columns {
			cols = append(cols, c.Name+" "+c.Type)
		}
		if got := strings.Join(cols, ", "); got != "id bigint, town string, twice bigint" {
			t.Errorf("columns %s", got)
		}
	}
	graph, err := pl.Graph(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range graph.Nodes {
		if n.ID == "dev.silver.moody" && !strings.HasPrefix(n.Function, "moods.") {
			t.Errorf("node %+v", n)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "lake")); !os.IsNotExist(err) {
		t.Error("the plan wrote to the storage")
	}
}
