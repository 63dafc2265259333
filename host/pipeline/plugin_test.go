package pipeline

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weir-data/weir/host/fault"
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
		m.path = filepath.Join(modulesDir, filepath.Base(dir)+".wasm")
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

// pluginProject has the orders of rawOrders, one module and SQL that reads its views.
func pluginProject(t *testing.T, dir, sql string, grants ...string) *project {
	t.Helper()
	p := newProject(t, "plugins:", "  - path: "+buildModule(t, dir), "    grants: {conf: ["+strings.Join(grants, ", ")+"]}")
	p.write("sql/orders.sql", rawOrders+sql)
	p.write("landing/a.json", rawLanding)
	p.conf = map[string]string{}
	return p
}

// failingProject has a table whose function goes wrong as the configuration asks.
func failingProject(t *testing.T) *project {
	p := pluginProject(t, "plugins/fixtures/failing", `CREATE OR REFRESH STREAMING TABLE silver.shaky
TBLPROPERTIES ('weir.onRowError' = '${policy}') AS SELECT id, n FROM STREAM(failing);`, "failing.*")
	p.conf["failing.key"], p.conf["policy"] = "id", "fail"
	return p
}

// A module that exits or fails, and one that lies about its output,
// fails its flow and no other.
func TestAFailingModuleLeavesOthersRunning(t *testing.T) {
	for mode, code := range map[string]string{
		"exit": "PLUGIN_TRAP", "panic": "PLUGIN_FAILED", "fail": "PLUGIN_FAILED",
		"row_error": "ASKED_TO_FAIL", "lie": "PLUGIN_FAILED", "short": "PLUGIN_OUTPUT_INVALID",
	} {
		t.Run(mode, func(t *testing.T) {
			p := failingProject(t)
			p.conf["failing.mode"], p.conf["failing.at"] = mode, "1"
			r := p.run(RunOptions{})
			if f := r.flow(t, "silver.shaky"); f.State != Failed || f.Error.Code != code || f.RowsWritten != 0 {
				t.Errorf("shaky is %s with %+v", f.State, f.Error)
			}
			if f := r.flow(t, "silver.plain"); f.State != Completed || f.RowsWritten != 4 {
				t.Errorf("plain is %s: %+v", f.State, f.Metrics)
			}
			p.conf["failing.mode"] = "none"
			p.completed(RunOptions{})
			p.wantRows("SELECT id, n FROM silver.shaky WHERE id > 1 ORDER BY id", `{"id":2,"n":2}`, `{"id":3,"n":3}`)
		})
	}
}

func TestRowErrorsFollowThePolicy(t *testing.T) {
	p := failingProject(t)
	p.conf["failing.mode"], p.conf["failing.every"], p.conf["policy"] = "row_error", "2", "quarantine"
	r := p.completed(RunOptions{})
	if f := r.flow(t, "silver.shaky"); f.RowsWritten != 2 || f.RowErrors != 2 || f.Quarantined != 2 {
		t.Errorf("quarantine: %+v", f.Metrics)
	}
	p.wantRows("SELECT id FROM silver.shaky ORDER BY id", `{"id":1}`, `{"id":3}`)
	p.wantRows("SELECT _code, _row->>'$.id' AS id FROM silver.shaky_quarantine ORDER BY id",
		`{"_code":"ASKED_TO_FAIL","id":"0"}`, `{"_code":"ASKED_TO_FAIL","id":"2"}`)

	p = failingProject(t)
	p.conf["failing.mode"], p.conf["failing.every"], p.conf["policy"] = "row_error", "2", "skip"
	r = p.completed(RunOptions{})
	if f := r.flow(t, "silver.shaky"); f.RowsWritten != 2 || f.Skipped != 2 || f.Quarantined != 0 {
		t.Errorf("skip: %+v", f.Metrics)
	}
}

// A function that is not row-aligned gives rows that come from no source row in
// particular: an expectation sets such a row aside as it is.
func TestRowsOfUnknownOriginAreQuarantinedAsTheyAre(t *testing.T) {
	const table = `CREATE OR REFRESH STREAMING TABLE silver.echoed
(CONSTRAINT even EXPECT (id % 2 = 0) ON VIOLATION QUARANTINE, CONSTRAINT first EXPECT (id < 1)) AS SELECT id, city FROM STREAM(echo);`
	p := pluginProject(t, "plugins/fixtures/echo", table)
	r := p.completed(RunOptions{})
	f := r.flow(t, "silver.echoed")
	if f.RowsWritten != 2 || f.Quarantined != 2 || f.Expectations[1].Failed != 3 {
		t.Errorf("echoed %+v %+v", f.Metrics, f.Expectations)
	}
	p.wantRows("SELECT * FROM silver.echoed ORDER BY id", `{"id":0,"city":"c0"}`, `{"id":2,"city":"c2"}`)
	p.wantRows("SELECT _rule, _row->>'$.city' AS city FROM silver.echoed_quarantine ORDER BY city", `{"_rule":["even"],"city":"c1"}`, `{"_rule":["even"],"city":"c3"}`)

	p.write("sql/orders.sql", rawOrders+strings.Replace(table, "QUARANTINE", "FAIL UPDATE", 1))
	p.write("landing/b.json", `{"id":5,"city":"c5"}`)
	r = p.run(RunOptions{})
	if f := r.flow(t, "silver.echoed"); f.State != Failed || f.Error.Code != "EXPECTATION_VIOLATED" {
		t.Errorf("echoed %s %+v", f.State, f.Error)
	}
}

// Neither two functions of a module nor two tasks see each other's memory, and
// each reads the configuration that it was granted and declares.
func TestFunctionsAreIsolated(t *testing.T) {
	const sql = `CREATE OR REFRESH STREAMING TABLE silver.a AS SELECT * FROM STREAM(canary_a);
CREATE OR REFRESH STREAMING TABLE silver.b AS SELECT * FROM STREAM(canary_b);`
	p := pluginProject(t, "plugins/fixtures/canary", sql, "canary.key", "canary.a.*", "canary.b.*")
	p.conf["canary.key"], p.conf["canary.a.secret"], p.conf["canary.b.secret"] = "id", "alpha", "beta"
	p.completed(RunOptions{})
	p.write("landing/b.json", rawLanding)
	p.completed(RunOptions{})
	p.wantRows("SELECT DISTINCT memory, calls, own_secret, other_secret FROM silver.a", `{"memory":null,"calls":1,"own_secret":"alpha","other_secret":null}`)
	p.wantRows("SELECT DISTINCT memory, calls, own_secret, other_secret FROM silver.b", `{"memory":null,"calls":1,"own_secret":"beta","other_secret":null}`)

	p = pluginProject(t, "plugins/fixtures/canary", sql, "canary.key", "canary.b.*")
	p.conf["canary.key"], p.conf["canary.a.secret"], p.conf["canary.b.secret"] = "id", "alpha", "beta"
	p.completed(RunOptions{})
	p.wantRows("SELECT DISTINCT own_secret FROM silver.a", `{"own_secret":null}`)
	p.wantRows("SELECT DISTINCT own_secret FROM silver.b", `{"own_secret":"beta"}`)
}

// A batch whose commit is undone and run again gives the same bytes, although
// its function ranges over a map and reads the clock and the random source.
func TestAReplayGivesTheSameBytes(t *testing.T) {
	p := pluginProject(t, "plugins/fixtures/nondet", "CREATE OR REFRESH STREAMING TABLE silver.shuffled AS SELECT * FROM STREAM(nondet);", "nondet.*")
	p.conf["nondet.key"] = "id"
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
	p := pluginProject(t, "testscripts/testdata/plugins/cloudfiles", "", "test.*")
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
	good := buildModule(t, "plugins/fixtures/nondet")
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

// A dry run plans functions without running them over data.
func TestAPlanKnowsTheOutputOfFunctions(t *testing.T) {
	p := failingProject(t)
	pl := p.open()
	plan, err := pl.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string]string{}
	for _, d := range plan.Datasets {
		var cols []string
		for _, c := range d.Columns {
			cols = append(cols, c.Name+" "+c.Type)
		}
		columns[d.Name] = strings.Join(cols, ", ")
	}
	for _, name := range []string{"failing", "dev.silver.shaky"} {
		if columns[name] != "id bigint, n bigint" {
			t.Errorf("%s has %s", name, columns[name])
		}
	}
	graph, err := pl.Graph(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range graph.Nodes {
		if n.ID == "failing" && (n.Kind != "temporary_view" || !strings.HasPrefix(n.Function, "failing.")) {
			t.Errorf("node %+v", n)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "lake")); !os.IsNotExist(err) {
		t.Error("the plan wrote to the storage")
	}
}

func TestWhatFunctionsLogGoesToTheEventLogUpToABound(t *testing.T) {
	p := failingProject(t)
	p.conf["failing.mode"], p.conf["failing.every"] = "log", "3"
	p.completed(RunOptions{})
	lines := eventsOf(t, p, "function_log")
	if len(lines) != 2 || lines[0]["level"] != "WARN" || lines[0]["function"] != "failing.failing" || lines[0]["message"] != "the configuration asked for a line" {
		t.Errorf("%v", lines)
	}

	p = failingProject(t)
	p.conf["failing.mode"] = "log"
	var many strings.Builder
	for i := range maxLogLines + 50 {
		fmt.Fprintf(&many, "{\"id\":%d,\"city\":\"c\"}\n", i)
	}
	p.write("landing/a.json", many.String())
	p.completed(RunOptions{})
	lines = eventsOf(t, p, "function_log")
	if len(lines) != maxLogLines+1 || !strings.Contains(lines[maxLogLines]["message"].(string), "the rest is left out") {
		t.Errorf("%d lines, the last is %v", len(lines), lines[len(lines)-1])
	}
}

// The spec bounds what a module takes: each by its own limits, else by those of
// the pipeline.
func TestLimitsOfTheSpecHold(t *testing.T) {
	const table = `CREATE OR REFRESH STREAMING TABLE silver.shaky AS SELECT id, n FROM STREAM(failing);`
	module := buildModule(t, "plugins/fixtures/failing")
	for name, c := range map[string]struct{ limits, code string }{
		"time of all":       {"limits: {time: 50ms}", "PLUGIN_LIMIT_EXCEEDED"},
		"fuel of one":       {"    limits: {fuel: 100000000}", "PLUGIN_LIMIT_EXCEEDED"},
		"one before all":    {"    limits: {time: 50ms}\nlimits: {time: 1h}", "PLUGIN_LIMIT_EXCEEDED"},
		"all where not one": {"    limits: {module_bytes: 32MB}\nlimits: {module_bytes: 1kB, time: 50ms}", "PLUGIN_LIMIT_EXCEEDED"},
		"when opening":      {"    limits: {module_bytes: 1kB}", "open: PLUGIN_LIMIT_EXCEEDED"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, "plugins:", "  - path: "+module, "    grants: {conf: [failing.*]}", c.limits)
			p.conf = map[string]string{"failing.key": "id", "failing.mode": "spin"}
			p.write("sql/orders.sql", rawOrders+table)
			p.write("landing/a.json", rawLanding)
			if code, ok := strings.CutPrefix(c.code, "open: "); ok {
				if _, err := p.tryOpen(); fault.CodeOf(err) != code {
					t.Error(err)
				}
				return
			}
			if f := p.run(RunOptions{}).flow(t, "silver.shaky"); f.State != Failed || f.Error.Code != c.code {
				t.Errorf("%s: %+v", f.State, f.Error)
			}
		})
	}
}

// Tasks that run at the same time give the files that they give one by one, with
// functions, SQL, joins and rows in quarantine.
func TestTasksInParallelGiveTheSameBytes(t *testing.T) {
	p := pluginProject(t, "plugins/fixtures/nondet", `
CREATE OR REFRESH STREAMING TABLE cities AS SELECT city FROM STREAM(orders) WHERE id < 2;
CREATE OR REFRESH STREAMING TABLE silver.shuffled (CONSTRAINT even EXPECT (id % 2 = 0) ON VIOLATION QUARANTINE)
AS SELECT n.*, o.city AS known FROM STREAM(nondet) n LEFT JOIN cities o ON o.city = 'c' || n.id;`, "nondet.*")
	p.conf["nondet.key"] = "id"
	for i := range 6 {
		p.write(fmt.Sprintf("landing/%d.json", i), fmt.Sprintf("{\"id\":%d,\"city\":\"c%d\"}\n{\"id\":%d,\"city\":\"x\"}\n", 10*i, 10*i, 10*i+1))
	}
	run := func(threads int) {
		t.Helper()
		p.threads, p.taskBytes = threads, 1
		p.completed(RunOptions{})
	}
	run(1)
	lake := filepath.Join(p.dir, "lake")
	tables := []string{"dev/bronze/orders", "dev/bronze/cities", "dev/silver/shuffled", "dev/silver/shuffled_quarantine"}
	files := map[string]map[string]string{}
	for _, table := range tables {
		files[table] = dataFiles(t, filepath.Join(lake, table))
		if n := len(files[table]); n < 2 {
			t.Errorf("%s has %d files, not one a task", table, n)
		}
	}
	undo := []string{"dev/silver/shuffled", "dev/silver/shuffled_quarantine", "_weir/test/checkpoints/dev.silver.shuffled/shuffled/0/commits"}
	for _, gone := range undo {
		if err := os.RemoveAll(filepath.Join(lake, gone)); err != nil {
			t.Fatal(err)
		}
	}
	run(8)
	for _, table := range tables {
		again := dataFiles(t, filepath.Join(lake, table))
		if !maps.Equal(files[table], again) {
			t.Errorf("the %d files of %s are %d others", len(files[table]), table, len(again))
		}
	}
}
