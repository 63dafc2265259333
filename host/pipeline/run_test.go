package pipeline

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

const landingConf = `configuration: {landing: ./landing}`

const silverOrders = `CREATE OR REFRESH STREAMING TABLE silver.orders (
  CONSTRAINT positive EXPECT (qty > 0) ON VIOLATION DROP ROW,
  CONSTRAINT small EXPECT (qty < 100) ON VIOLATION QUARANTINE,
  CONSTRAINT even EXPECT (qty % 2 = 0)
)
AS SELECT order_id, qty, qty * 2 AS twice FROM STREAM(orders);
`

// covers A1 A2 A3 A22 A52 A96 A98 A104 A106 A118 A158
func TestFilesBecomeBronzeAndSilver(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("sql/silver/orders.sql", silverOrders)
	p.write("landing/a.json", ordersLine(1, 2, "")+ordersLine(2, 3, "")+ordersLine(3, 0, ""))
	p.write("landing/b.json", ordersLine(4, 200, "")+ordersLine(5, 4, ""))

	r := p.completed(RunOptions{})
	bronze, silver := r.flow(t, "bronze.orders"), r.flow(t, "silver.orders")
	if bronze.RowsRead != 5 || bronze.RowsWritten != 5 || bronze.Files != 2 || bronze.Batches != 1 {
		t.Errorf("bronze %+v", bronze.Metrics)
	}
	if silver.RowsWritten != 3 || silver.Dropped != 1 || silver.Quarantined != 1 {
		t.Errorf("silver %+v", silver.Metrics)
	}
	want := []ExpectationCount{
		{"positive", "dev.silver.orders", "DROP ROW", 4, 1},
		{"small", "dev.silver.orders", "QUARANTINE", 4, 1},
		{"even", "dev.silver.orders", "WARN", 4, 1},
	}
	if !slices.Equal(silver.Expectations, want) {
		t.Errorf("expectations %+v", silver.Expectations)
	}
	p.wantRows("SELECT order_id, qty, twice FROM silver.orders ORDER BY order_id",
		`{"order_id":"o1","qty":2,"twice":4}`, `{"order_id":"o2","qty":3,"twice":6}`, `{"order_id":"o5","qty":4,"twice":8}`)
	p.wantRows("SELECT order_id, _tech_source_file FROM dev.bronze.orders WHERE order_id = 'o4'", `{"order_id":"o4","_tech_source_file":"b.json"}`)
	p.wantRows("SELECT _rule, _flow FROM silver.orders_quarantine", `{"_rule":["small"],"_flow":"orders"}`)

	again := p.completed(RunOptions{})
	for _, f := range again.Flows {
		if f.RowsRead != 0 || f.RowsWritten != 0 || f.Batches != 0 {
			t.Errorf("a run without new files does something: %s %+v", f.Dataset, f.Metrics)
		}
	}
	p.write("landing/a0-late.json", ordersLine(6, 6, ""))
	late := p.completed(RunOptions{})
	if got := late.flow(t, "silver.orders").RowsWritten; got != 1 {
		t.Errorf("the late file gives %d rows", got)
	}
	p.wantRows("SELECT count(*) AS n FROM orders", `{"n":6}`)
	if again.PipelineID != r.PipelineID || again.UpdateID == r.UpdateID {
		t.Error("a pipeline keeps its identity, each update has its own")
	}
}

// A failed flow takes those with it that read from it, and no others.
// covers A102
func TestAFailedFlowLeavesOthersRunning(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/all.sql", bronzeOrders+`
CREATE OR REFRESH STREAMING TABLE strict (CONSTRAINT some EXPECT (qty > 0) ON VIOLATION FAIL UPDATE) AS SELECT * EXCLUDE (_rescued_data) FROM STREAM(orders);
CREATE OR REFRESH STREAMING TABLE after_strict AS SELECT * FROM STREAM(strict);
CREATE OR REFRESH STREAMING TABLE after_after AS SELECT * FROM STREAM(after_strict);
CREATE OR REFRESH STREAMING TABLE lenient AS SELECT order_id FROM STREAM(orders);
`)
	p.write("landing/a.json", ordersLine(1, 1, "")+ordersLine(2, 0, ""))
	r := p.run(RunOptions{})
	if r.State != Failed {
		t.Fatalf("the update is %s", r.State)
	}
	for table, want := range map[string]State{"bronze.orders": Completed, "strict": Failed, "after_strict": Skipped, "after_after": Skipped, "lenient": Completed} {
		if f := r.flow(t, table); f.State != want {
			t.Errorf("%s is %s, want %s: %v", table, f.State, want, f.Err)
		}
	}
	f := r.flow(t, "strict")
	if f.Error == nil || f.Error.Code != "EXPECTATION_VIOLATED" || f.Error.Dataset != "dev.bronze.strict" || !strings.Contains(f.Error.Message, "some") {
		t.Errorf("error %+v", f.Error)
	}
	p.wantRows("SELECT count(*) AS n FROM lenient", `{"n":2}`)
	if _, err := queryRows(t.Context(), p.open(), "SELECT * FROM strict"); err == nil {
		p.wantRows("SELECT count(*) AS n FROM strict", `{"n":0}`)
	}
}

// covers A30 A35 A41 A180 A204
func TestANewColumnStopsTheBatchOnceAndIsRetriedWithinTheRun(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	p.completed(RunOptions{})

	p.conf = map[string]string{"pipelines.maxFlowRetryAttempts": "0"}
	p.write("landing/b.json", ordersLine(2, 2, `,"gift_note":"hello"`))
	r := p.run(RunOptions{})
	if f := r.flow(t, "orders"); f.State != Failed || f.Error.Code != "UNKNOWN_FIELD" || !strings.Contains(f.Error.Message, "gift_note") {
		t.Fatalf("without retries: %s %+v", f.State, f.Error)
	}
	p.wantRows("SELECT count(*) AS n FROM orders", `{"n":1}`)
	p.completed(RunOptions{})
	p.wantRows("SELECT gift_note FROM orders ORDER BY order_id", `{"gift_note":null}`, `{"gift_note":"hello"}`)

	p.conf = nil
	p.write("landing/c.json", ordersLine(3, 2, `,"colour":"red"`))
	r = p.completed(RunOptions{})
	if f := r.flow(t, "orders"); f.Retries != 1 || !slices.Equal(f.NewColumns, []string{"colour"}) {
		t.Errorf("retries %d, new columns %v", f.Retries, f.NewColumns)
	}
	p.wantRows("SELECT colour FROM orders WHERE order_id = 'o3'", `{"colour":"red"}`)
}

// covers A146 A147
func TestFullRefreshReplacesTheRows(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("sql/silver.sql", silverOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	p.completed(RunOptions{})
	p.write("landing/a.json", ordersLine(7, 2, "")+ordersLine(8, 2, ""))
	p.completed(RunOptions{})
	p.wantRows("SELECT order_id FROM orders", `{"order_id":"o1"}`)

	r := p.completed(RunOptions{FullRefreshAll: true})
	if f := r.flow(t, "silver.orders"); !f.FullRefresh || f.RowsWritten != 2 {
		t.Errorf("silver %+v", f)
	}
	p.wantRows("SELECT order_id FROM silver.orders ORDER BY 1", `{"order_id":"o7"}`, `{"order_id":"o8"}`)

	r = p.completed(RunOptions{FullRefresh: []string{"dev.silver.orders"}})
	if f := r.flow(t, "bronze.orders"); f.State != Excluded {
		t.Errorf("bronze is %s", f.State)
	}
	p.wantRows("SELECT order_id FROM silver.orders ORDER BY 1", `{"order_id":"o7"}`, `{"order_id":"o8"}`)
}

// covers A146 A148 A150 B6
func TestSelections(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("sql/silver.sql", silverOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	pl := p.open()
	for name, c := range map[string]struct {
		opt  RunOptions
		code string
		says string
	}{
		"unknown name":        {RunOptions{Refresh: []string{"silver.oders"}}, "UNKNOWN_DATASET", `Did you mean "silver.orders"?`},
		"unknown full":        {RunOptions{FullRefresh: []string{"x"}}, "UNKNOWN_DATASET", "It has orders, silver.orders"},
		"both":                {RunOptions{Refresh: []string{"orders"}, FullRefresh: []string{"ORDERS"}}, "INVALID_SELECTION", "both"},
		"all and some":        {RunOptions{FullRefreshAll: true, Refresh: []string{"orders"}}, "INVALID_SELECTION", "cannot be combined"},
		"missing dependency":  {RunOptions{Refresh: []string{"silver.orders"}}, "TABLE_OR_VIEW_NOT_FOUND", "dev.bronze.orders"},
		"a file without":      {RunOptions{File: "sql/none.sql"}, "INVALID_SELECTION", "defines no dataset"},
		"a name of four":      {RunOptions{Refresh: []string{"a.b.c.d"}}, "INVALID_TABLE_NAME", "three parts"},
		"a quarantine table":  {RunOptions{Refresh: []string{"silver.orders_quarantine"}}, "UNKNOWN_DATASET", ""},
		"another's full name": {RunOptions{Refresh: []string{"prod.silver.orders"}}, "UNKNOWN_DATASET", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pl.Run(t.Context(), c.opt)
			wantFault(t, err, c.code, c.says)
		})
	}
	if _, err := os.Stat(filepath.Join(p.dir, "lake")); !os.IsNotExist(err) {
		t.Error("a refused selection wrote to the storage")
	}
	r, err := pl.Run(t.Context(), RunOptions{File: filepath.Join(p.dir, "sql", "bronze.sql")})
	if err != nil || r.flow(t, "silver.orders").State != Excluded || r.flow(t, "bronze.orders").State != Completed {
		t.Errorf("by file: %+v %v", r, err)
	}
}

// covers A153
func TestOneUpdateAtATime(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	pl := p.open()
	dir, err := storage.OpenDir(filepath.Join(p.dir, "lake"))
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := storage.Lock(t.Context(), storage.Sub(dir, "_weir/test"), "update.lock", false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = pl.Run(t.Context(), RunOptions{})
	wantFault(t, err, "UPDATE_ALREADY_RUNNING", "--wait")

	var waiting sync.WaitGroup
	waiting.Go(func() {
		r, err := pl.Run(t.Context(), RunOptions{Wait: true})
		if err != nil || r.State != Completed {
			t.Errorf("after waiting: %+v %v", r, err)
		}
	})
	time.Sleep(20 * time.Millisecond) // either order is right; this makes the waiting one likely
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
}

// covers A124 A189 A190
func TestATableHasOneOwner(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	p.completed(RunOptions{})

	other := newProject(t)
	other.write("weir.yaml", "name: other\ncatalog: dev\nschema: gold\nstorage: "+filepath.Join(p.dir, "lake")+"\nconfiguration: {landing: ./landing}\nlibraries: [{glob: {include: sql/**}}]\n")
	other.write("landing/a.json", ordersLine(9, 2, ""))
	other.write("sql/a.sql", strings.Replace(bronzeOrders, "TABLE orders", "TABLE bronze.orders", 1))
	pl := other.open()
	_, err := pl.Plan(t.Context())
	wantFault(t, err, "TABLE_OWNED_BY_ANOTHER_PIPELINE", "dev.bronze.orders", "a.sql", "line 1")
	_, err = pl.Run(t.Context(), RunOptions{})
	wantFault(t, err, "TABLE_OWNED_BY_ANOTHER_PIPELINE")

	other.write("sql/a.sql", "CREATE OR REFRESH STREAMING TABLE orders AS SELECT order_id FROM STREAM(bronze.orders)")
	other.completed(RunOptions{})
	other.wantRows("SELECT * FROM gold.orders", `{"order_id":"o1"}`)
}

// covers A112
func TestPrivateTablesAreNotForOtherPipelines(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", strings.Replace(bronzeOrders, "REFRESH STREAMING", "REFRESH PRIVATE STREAMING", 1)+
		"CREATE OR REFRESH STREAMING TABLE ids AS SELECT order_id FROM STREAM(orders);")
	p.write("landing/a.json", ordersLine(1, 2, ""))
	p.completed(RunOptions{})
	p.wantRows("SELECT order_id FROM orders", `{"order_id":"o1"}`)
	p.wantRows("SELECT order_id FROM ids", `{"order_id":"o1"}`)

	other := newProject(t)
	other.write("weir.yaml", "name: other\ncatalog: dev\nschema: gold\nstorage: "+filepath.Join(p.dir, "lake")+"\nlibraries: [{glob: {include: sql/**}}]\n")
	other.write("sql/a.sql", "CREATE OR REFRESH STREAMING TABLE orders AS SELECT order_id FROM STREAM(bronze.orders)")
	_, err := other.tryOpen()
	wantFault(t, err, "TABLE_OR_VIEW_NOT_FOUND", "bronze.orders")
}

// covers A149
func TestAPlanGivesSchemasAndWritesNothing(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("sql/silver.sql", silverOrders+`
CREATE TEMPORARY VIEW big AS SELECT order_id FROM STREAM(orders) WHERE qty > 10;
CREATE OR REFRESH STREAMING TABLE gold.big (id STRING NOT NULL COMMENT 'the order') AS SELECT order_id AS id FROM STREAM(big);
`)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	plan, err := p.open().Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, d := range plan.Datasets {
		var cols []string
		for _, c := range d.Columns {
			col := c.Name + " " + c.Type
			if !c.Nullable {
				col += " NOT NULL"
			}
			if c.Comment != "" {
				col += " '" + c.Comment + "'"
			}
			cols = append(cols, col)
		}
		got[d.Name] = strings.Join(cols, ", ")
	}
	for name, want := range map[string]string{
		"dev.bronze.orders": "order_id string, qty bigint, _rescued_data string, _tech_source_file string",
		"dev.silver.orders": "order_id string, qty bigint, twice bigint",
		"big":               "order_id string",
		"dev.gold.big":      "id string NOT NULL 'the order'",
	} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "lake")); !os.IsNotExist(err) {
		t.Error("the plan wrote to the storage")
	}
}

// Whatever a dry run can know to be wrong, it tells with the place.
func TestPlanRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		sql, code string
		says      []string
	}{
		"an unknown column":     {"CREATE STREAMING TABLE b AS\nSELECT nope FROM STREAM(orders)", "", []string{"nope", "dev.bronze.b", "a.sql"}},
		"two columns of a name": {"CREATE STREAMING TABLE b AS SELECT order_id AS x, qty AS X FROM STREAM(orders)", "", []string{"dev.bronze.b"}},
		"a type Delta lacks":    {"CREATE STREAMING TABLE b AS SELECT CAST('12:00:00' AS TIME) AS t FROM STREAM(orders)", "", []string{"dev.bronze.b"}},
		"a partition column":    {"CREATE STREAMING TABLE b PARTITIONED BY (nope) AS SELECT order_id FROM STREAM(orders)", "UNRESOLVED_COLUMN", []string{"nope"}},
		"a bad expectation":     {"CREATE STREAMING TABLE b (CONSTRAINT c EXPECT (nope > 0)) AS SELECT order_id FROM STREAM(orders)", "", []string{"nope"}},
		"a declared column":     {"CREATE STREAMING TABLE b (nope STRING) AS SELECT order_id FROM STREAM(orders)", "UNRESOLVED_COLUMN", []string{"nope"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, landingConf)
			p.write("sql/a.sql", c.sql)
			p.write("sql/bronze.sql", bronzeOrders)
			p.write("landing/a.json", ordersLine(1, 2, ""))
			pl, err := p.tryOpen()
			if err == nil {
				defer pl.Close(context.Background())
				_, err = pl.Plan(t.Context())
			}
			if err == nil {
				t.Fatal("no error")
			}
			if c.code == "" {
				c.code = fault.CodeOf(err)
			}
			t.Log(err)
			wantFault(t, err, c.code, c.says...)
		})
	}
}

// covers B1
func TestAnEmptyLandingFolderCannotBePlanned(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	landing := filepath.Join(p.dir, "landing")
	if err := os.Mkdir(landing, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := p.open().Plan(t.Context())
	wantFault(t, err, "UNABLE_TO_INFER_SCHEMA", "dev.bronze.orders", "file "+landing+")")
	if err := os.Remove(landing); err != nil {
		t.Fatal(err)
	}
	_, err = p.open().Plan(t.Context())
	wantFault(t, err, "PATH_NOT_FOUND", landing, "sql/bronze.sql, line 1")
}

// Mistakes that need no engine are told when the pipeline is opened.
func TestOpenRefusals(t *testing.T) {
	bronzeFrom := func(source string) string {
		return "CREATE STREAMING TABLE a AS SELECT * FROM STREAM " + source
	}
	for name, c := range map[string]struct{ sql, code, says string }{
		"an unknown option":       {bronzeFrom("read_files('landing', format => 'json', colour => 'red')"), "UNKNOWN_OPTION", "colour"},
		"an unknown format":       {bronzeFrom("read_files('landing', format => 'parquet')"), "UNSUPPORTED_FORMAT", "parquet"},
		"storage inside landing":  {bronzeFrom("read_files('.', format => 'json')"), "NESTED_STORAGE", "siblings"},
		"an unknown key":          {bronzeFrom("read_files('${nope}', format => 'json')"), "", "nope"},
		"a flow":                  {"CREATE FLOW f AS INSERT INTO t BY NAME SELECT * FROM STREAM(x)", "TABLE_OR_VIEW_NOT_FOUND", "the flow's target"},
		"no SQL":                  {"SELEC 1", "", ""},
		"aggregation of a stream": {bronzeFrom("read_files('landing', format => 'json')") + "; CREATE STREAMING TABLE b AS SELECT count(*) AS n FROM STREAM(a)", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.write("sql/a.sql", c.sql)
			p.write("landing/a.json", ordersLine(1, 2, ""))
			pl, err := p.tryOpen()
			if err == nil {
				defer pl.Close(context.Background())
				_, err = pl.Plan(t.Context())
			}
			if c.code == "" {
				c.code = fault.CodeOf(err)
			}
			t.Log(err)
			wantFault(t, err, c.code, c.says, "a.sql")
		})
	}
	t.Run("a Python file", func(t *testing.T) {
		p := newProject(t)
		p.write("sql/a.py", "from pyspark import pipelines as dp")
		_, err := p.tryOpen()
		wantFault(t, err, "NOT_SUPPORTED", "a.py")
	})
	t.Run("no library", func(t *testing.T) {
		p := newProject(t)
		p.write("weir.yaml", "name: p\nstorage: lake\nlibraries: [{glob: {include: none/**}}]\n")
		_, err := p.tryOpen()
		wantFault(t, err, "LIBRARY_NOT_FOUND", "none/**", "line 3")
	})
	t.Run("the storage is a file", func(t *testing.T) {
		p := newProject(t)
		p.write("lake", "")
		_, err := p.tryOpen()
		wantFault(t, err, "INVALID_SPEC", "no folder")
	})
}

// covers A60
func TestTemporaryViewsAreStepsOfTheFlowsThatReadThem(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/a.sql", bronzeOrders+`
CREATE OR REFRESH STREAMING TABLE prices AS SELECT order_id, price FROM STREAM read_files('prices', format => 'json');
CREATE TEMPORARY VIEW dear AS SELECT order_id, price FROM prices WHERE price > 5;
CREATE TEMPORARY VIEW typed AS SELECT order_id AS id, qty FROM STREAM(orders) WHERE qty > 1;
CREATE TEMPORARY VIEW doubled AS SELECT id, qty * 2 AS qty FROM STREAM(typed);
CREATE OR REFRESH STREAMING TABLE gold (CONSTRAINT few EXPECT (total < 100) ON VIOLATION QUARANTINE)
AS SELECT d.id, d.qty * dear.price AS total FROM STREAM(doubled) AS d JOIN dear ON dear.order_id = d.id;
`)
	p.write("landing/a.json", ordersLine(1, 2, "")+ordersLine(2, 1, "")+ordersLine(3, 3, "")+ordersLine(4, 30, ""))
	p.write("prices/a.json", `{"order_id":"o1","price":7}`+"\n"+`{"order_id":"o3","price":2}`+"\n"+`{"order_id":"o4","price":9}`+"\n")
	r := p.completed(RunOptions{})
	if f := r.flow(t, "gold"); f.RowsRead != 4 || f.RowsWritten != 1 || f.Quarantined != 1 {
		t.Errorf("gold %+v", f.Metrics)
	}
	p.wantRows("SELECT * FROM gold", `{"id":"o1","total":28}`)
	got := p.rows("SELECT _row, _source FROM gold_quarantine")
	if len(got) != 1 || !strings.Contains(got[0], "o4") {
		t.Errorf("quarantine %v", got)
	}
}

func TestQueries(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("sql/silver.sql", silverOrders+"CREATE TEMPORARY VIEW v AS SELECT * FROM STREAM(orders);")
	p.write("landing/a.json", ordersLine(1, 2, ""))
	pl := p.open()
	_, err := pl.Query(t.Context(), "SELECT * FROM orders")
	wantFault(t, err, "TABLE_OR_VIEW_NOT_FOUND", "weir run")
	p.completed(RunOptions{})
	for _, name := range []string{"orders", "bronze.orders", "dev.bronze.orders", "DEV.Bronze.ORDERS"} {
		p.wantRows("SELECT order_id FROM "+name, `{"order_id":"o1"}`)
	}
	p.wantRows("SELECT count(*) AS n FROM silver.orders_quarantine", `{"n":0}`)
	p.wantRows("SELECT a.order_id FROM orders a JOIN silver.orders b USING (order_id)", `{"order_id":"o1"}`)
	for query, code := range map[string]string{
		"SELECT * FROM nope":          "TABLE_OR_VIEW_NOT_FOUND",
		"SELECT * FROM v":             "NOT_SUPPORTED",
		"DROP TABLE orders":           "",
		"SELECT 1; SELECT 2":          "",
		"SELECT * FROM 'weir.yaml'":   "",
		"COPY orders TO '/tmp/x.csv'": "",
	} {
		if _, err := p.open().Query(t.Context(), query); err == nil || (code != "" && fault.CodeOf(err) != code) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// covers A44 A162
func TestInputThatDoesNotFitIsToldAndKept(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", strings.Replace(bronzeOrders, "format => 'json'", "format => 'json', schemaHints => 'qty BIGINT'", 1))
	p.write("landing/a.json", ordersLine(1, 2, "")+ordersLine(2, `"many"`, "")+`{"order_id":"o3`+"\n")
	r := p.completed(RunOptions{})
	f := r.flow(t, "orders")
	if f.RowsWritten != 3 || f.Rescued != 2 || f.Malformed != 1 {
		t.Errorf("%+v", f.Metrics)
	}
	if len(f.Warnings) != 2 || !strings.Contains(f.Warnings[0], "could not be read: 1") || !strings.Contains(f.Warnings[1], "did not fit their columns: 1") {
		t.Errorf("warnings %q", f.Warnings)
	}
	p.wantRows("SELECT count(*) AS n FROM orders WHERE _rescued_data IS NOT NULL", `{"n":2}`)
}

func TestSpillFoldersOfDeadProcessesAreRemoved(t *testing.T) {
	parent := t.TempDir()
	dead, alive, other := filepath.Join(parent, "weir-sql-999999999-a"), filepath.Join(parent, fmt.Sprintf("weir-sql-%d-b", os.Getpid())), filepath.Join(parent, "weir-sql-x-c")
	for _, dir := range []string{dead, alive, other} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	removeStale(parent)
	left, err := filepath.Glob(filepath.Join(parent, "*"))
	if err != nil || !slices.Equal(left, []string{alive, other}) {
		t.Errorf("left %v %v", left, err)
	}
}

// covers A161
func TestFilesOfAFlow(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("sql/silver.sql", silverOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	p.write("landing/b.json", ordersLine(2, 2, ""))
	p.completed(RunOptions{})
	pl := p.open()
	files, err := pl.Files(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for f, err := range files {
		if err != nil {
			t.Fatal(err)
		}
		if f.State != "INGESTED" || f.CommitTime.IsZero() {
			t.Errorf("file %+v", f)
		}
		names = append(names, filepath.Base(f.Path))
	}
	if !slices.Equal(names, []string{"a.json", "b.json"}) {
		t.Errorf("files %v", names)
	}
	_, err = pl.Files(t.Context(), "silver.orders")
	wantFault(t, err, "NOT_A_FILE_SOURCE", "dev.bronze.orders")
	_, err = pl.Files(t.Context(), "nope")
	wantFault(t, err, "UNKNOWN_DATASET")
}

// covers A47 A48
func TestAVanishedCheckpointIsToldAndAFullRefreshHeals(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	p.completed(RunOptions{})
	if err := os.RemoveAll(filepath.Join(p.dir, "lake", "_weir", "test", "checkpoints")); err != nil {
		t.Fatal(err)
	}
	r := p.run(RunOptions{})
	if f := r.flow(t, "orders"); f.State != Failed || f.Error.Code != "CHECKPOINT_MISSING" {
		t.Errorf("%s %+v", f.State, f.Error)
	}
	p.completed(RunOptions{FullRefreshAll: true})
	p.wantRows("SELECT order_id FROM orders", `{"order_id":"o1"}`)
}

func TestACanceledUpdateSaysSo(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	pl := p.open()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := pl.Run(ctx, RunOptions{Observer: func(p Progress) {
		if p.Flow != "" && p.State == Running {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.State != Canceled {
		t.Errorf("the update is %s", r.State)
	}
	p.completed(RunOptions{})
	p.wantRows("SELECT count(*) AS n FROM orders", `{"n":1}`)
}

// covers A157 A158 B5
func TestTheEventLogTellsTheUpdate(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("sql/silver.sql", silverOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	p.completed(RunOptions{})
	pl := p.open()
	snapshot, err := snapshotOf(t.Context(), pl.openTable(pl.folder("event_log")))
	if err != nil || snapshot == nil {
		t.Fatalf("no event log: %v", err)
	}
	rows, err := snapshot.LiveRows()
	if err != nil || rows < 8 {
		t.Errorf("%d events: %v", rows, err)
	}
	wantSchema(t, p, "dev.bronze.orders", "order_id string", "qty bigint", "_rescued_data string", "_tech_source_file string")
}

// eventsOf gives message, level and details of the events of one type, in order.
func eventsOf(t *testing.T, p *project, event string) []map[string]any {
	t.Helper()
	read, err := p.open().Events(t.Context(), events.Filter{Types: []string{event}})
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for i := range read {
		details, _ := events.DetailsOf[map[string]any](&read[i])
		found := map[string]any{"message": read[i].Message, "level": string(read[i].Level)}
		maps.Copy(found, details)
		out = append(out, found)
	}
	return out
}

// wantSchema compares what the last dataset_definition of a table says of its columns.
func wantSchema(t *testing.T, p *project, table string, want ...string) {
	t.Helper()
	var got []string
	for _, e := range eventsOf(t, p, "dataset_definition") {
		if e["message"] != "dataset "+table {
			continue
		}
		got = nil
		columns, _ := e["schema"].([]any)
		for _, c := range columns {
			got = append(got, fmt.Sprintf("%s %s", c.(map[string]any)["name"], c.(map[string]any)["data_type"]))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the columns of %s are %q, want %q", table, got, want)
	}
}
