package pipeline

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

const productsFile = `CREATE OR REFRESH MATERIALIZED VIEW products
AS SELECT sku, name FROM read_files('${landing}/products', format => 'csv', header => true);
`

// covers A26 A122 A159 A174 A175 A177 A217: a view over a streaming table, a
// batch view and files, a view over views, and what each does in the updates after.
func TestMaterializedViewsFollowWhatTheyRead(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", strings.ReplaceAll(bronzeOrders, "${landing}", "${landing}/orders"))
	p.write("sql/products.sql", productsFile)
	p.write("sql/gold.sql", `
CREATE TEMPORARY VIEW large AS SELECT order_id, sku, qty FROM orders WHERE qty >= 10;
CREATE OR REFRESH MATERIALIZED VIEW gold.sales (
  CONSTRAINT known EXPECT (name IS NOT NULL) ON VIOLATION QUARANTINE
)
COMMENT 'sold in numbers'
CLUSTER BY (name)
AS SELECT p.name, count(*) AS orders, sum(l.qty) AS qty FROM large AS l LEFT JOIN products AS p ON p.sku = l.sku GROUP BY p.name;
CREATE OR REFRESH MATERIALIZED VIEW gold.best AS SELECT name FROM gold.sales ORDER BY qty DESC LIMIT 1;
CREATE OR REFRESH MATERIALIZED VIEW gold.one AS SELECT 1 AS one;
CREATE OR REFRESH MATERIALIZED VIEW gold.refused AS SELECT count(*) AS n FROM gold.sales_quarantine;
`)
	order := func(id, sku string, qty string) string {
		return `{"order_id":"` + id + `","sku":"` + sku + `","qty":` + qty + "}\n"
	}
	p.write("landing/products/a.csv", "sku,name\na,Anchor\nb,Buoy\n")
	p.write("landing/orders/a.json", order("o1", "a", "10")+order("o2", "a", "1")+order("o3", "b", "30"))
	sales, best := "SELECT name, orders, qty FROM gold.sales ORDER BY name", "SELECT name FROM gold.best"
	decided := func(r *Result, table, want string) {
		t.Helper()
		d := r.flow(t, table).Refresh
		if d == nil || d.Technique+" "+d.Reason != want {
			t.Errorf("%s: %+v, want %s", table, d, want)
		}
	}

	r := p.completed(RunOptions{})
	p.wantRows(sales, `{"name":"Anchor","orders":1,"qty":10}`, `{"name":"Buoy","orders":1,"qty":30}`)
	p.wantRows(best, `{"name":"Buoy"}`)
	p.wantRows("SELECT one FROM gold.one", `{"one":1}`)
	p.wantRows("SELECT n FROM gold.refused", `{"n":0}`)
	for _, table := range []string{"products", "gold.sales", "gold.best", "gold.one", "gold.refused"} {
		decided(r, table, "COMPLETE_RECOMPUTE FIRST_REFRESH")
	}

	r = p.completed(RunOptions{})
	for _, table := range []string{"products", "gold.sales", "gold.best", "gold.one", "gold.refused"} {
		decided(r, table, "NO_OP NO_SOURCE_CHANGED")
	}

	p.write("landing/orders/b.json", order("o4", "a", "50")+order("o5", "x", "11"))
	r = p.completed(RunOptions{})
	p.wantRows(sales, `{"name":"Anchor","orders":2,"qty":60}`, `{"name":"Buoy","orders":1,"qty":30}`)
	p.wantRows(best, `{"name":"Anchor"}`)
	p.wantRows("SELECT n FROM gold.refused", `{"n":1}`)
	decided(r, "products", "NO_OP NO_SOURCE_CHANGED")
	decided(r, "gold.sales", "COMPLETE_RECOMPUTE SOURCE_CHANGED")
	decided(r, "gold.best", "COMPLETE_RECOMPUTE SOURCE_CHANGED")
	decided(r, "gold.one", "NO_OP NO_SOURCE_CHANGED")
	if f := r.flow(t, "gold.sales"); f.Quarantined != 1 || f.RowsWritten != 2 || len(f.Expectations) != 1 || f.Expectations[0].Failed != 1 {
		t.Errorf("%+v", f)
	}

	// A file of a batch read that changes is read again; in a stream it would not be.
	p.write("landing/products/a.csv", "sku,name\na,Anker\nb,Boje\n")
	r = p.completed(RunOptions{})
	decided(r, "products", "COMPLETE_RECOMPUTE SOURCE_CHANGED")
	p.wantRows(sales, `{"name":"Anker","orders":2,"qty":60}`, `{"name":"Boje","orders":1,"qty":30}`)

	// Another query, with other columns and types, over the same rows.
	text, err := os.ReadFile(filepath.Join(p.dir, "sql/gold.sql"))
	if err != nil {
		t.Fatal(err)
	}
	p.write("sql/gold.sql", strings.Replace(string(text), "WHERE qty >= 10", "WHERE qty >= 20", 1))
	r = p.completed(RunOptions{})
	decided(r, "gold.sales", "COMPLETE_RECOMPUTE QUERY_FINGERPRINT_CHANGED")
	p.wantRows(sales, `{"name":"Anker","orders":1,"qty":50}`, `{"name":"Boje","orders":1,"qty":30}`)

	r = p.completed(RunOptions{FullRefresh: []string{"gold.best"}})
	decided(r, "gold.best", "COMPLETE_RECOMPUTE FULL_REFRESH_REQUESTED")
	p.wantRows(best, `{"name":"Anker"}`)

	told := p.logged("planning_information")
	if len(told) != 5*5+1 {
		t.Errorf("%d decisions are logged", len(told))
	}
	if want := `{"planning_information":{"technique_information":[{"maintenance_type":"MAINTENANCE_TYPE_NO_OP","is_chosen":true,"is_applicable":true},` +
		`{"maintenance_type":"MAINTENANCE_TYPE_COMPLETE_RECOMPUTE","is_chosen":false,"is_applicable":true}]}}`; !slices.Contains(told, want) {
		t.Errorf("no event is %s but %s", want, told[5])
	}
	if want := `"incrementalization_issues":[{"issue_type":"QUERY_FINGERPRINT_CHANGED","prevent_incrementalization":true}]`; !strings.Contains(strings.Join(told, "\n"), want) {
		t.Errorf("no event tells %s", want)
	}
}

// logged gives the details of the events of a type.
func (p *project) logged(kind string) []string {
	p.t.Helper()
	pl, err := p.tryOpen()
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = pl.Close(context.Background()) }()
	snapshot, err := snapshotOf(p.t.Context(), pl.openTable(pl.folder("event_log")))
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := snapshot.Scan(p.t.Context(), delta.ScanOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Release()
	var out []string
	for r.Next() {
		rec := r.RecordBatch()
		types, details := rec.Column(rec.Schema().FieldIndices("event_type")[0]), rec.Column(rec.Schema().FieldIndices("details")[0])
		for i := range int(rec.NumRows()) {
			if types.ValueStr(i) == kind {
				out = append(out, details.ValueStr(i))
			}
		}
	}
	if err := r.Err(); err != nil {
		p.t.Fatal(err)
	}
	return out
}

// covers A151 A174 A176: what is not the same twice is computed each time; a policy may
// ask for that, and one that cannot be kept is refused.
func TestRefreshPolicies(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("landing/products/a.csv", "sku,name\na,Anchor\n")
	p.write("sql/products.sql", productsFile+`
CREATE OR REFRESH MATERIALIZED VIEW stamped AS SELECT sku, current_timestamp() AS at FROM products;
CREATE OR REFRESH MATERIALIZED VIEW always REFRESH POLICY FULL AS SELECT sku FROM products;
CREATE OR REFRESH MATERIALIZED VIEW slowly REFRESH POLICY INCREMENTAL AS SELECT count(*) AS n FROM products;
CREATE OR REFRESH MATERIALIZED VIEW auto REFRESH POLICY AUTO AS SELECT count(*) AS n FROM products;
`)
	p.completed(RunOptions{})
	r := p.completed(RunOptions{})
	for table, want := range map[string]string{"stamped": "NON_DETERMINISTIC", "always": "REFRESH_POLICY_FULL", "slowly": "NO_SOURCE_CHANGED", "auto": "NO_SOURCE_CHANGED"} {
		if got := r.flow(t, table).Refresh; got.Reason != want {
			t.Errorf("%s: %+v", table, got)
		}
	}
	p.write("sql/strict.sql", "CREATE OR REFRESH MATERIALIZED VIEW strict REFRESH POLICY INCREMENTAL STRICT AS SELECT count(*) AS n FROM products;")
	if _, err := p.tryOpen(); fault.CodeOf(err) != "NOT_SUPPORTED" || !strings.Contains(err.Error(), "INCREMENTAL STRICT") {
		t.Errorf("%v", err)
	}
}

// A function that reads a table whole refuses rows as one of a stream does, and
// its module is part of what the view follows from.
func TestFunctionsInMaterializedViews(t *testing.T) {
	for policy, want := range map[string]struct {
		state                State
		quarantined, skipped int64
		rows                 []string
	}{
		"fail":       {Failed, 0, 0, nil},
		"skip":       {Completed, 0, 2, []string{`{"n":1,"cities":1}`, `{"n":3,"cities":1}`}},
		"quarantine": {Completed, 2, 0, []string{`{"n":1,"cities":1}`, `{"n":3,"cities":1}`}},
	} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			p := pluginProject(t, "plugins/fixtures/failing", `CREATE OR REFRESH MATERIALIZED VIEW gold.shaky (CONSTRAINT some EXPECT (cities > 0))
TBLPROPERTIES ('weir.onRowError' = '${policy}') AS SELECT f.n, count(o.city) AS cities FROM failing AS f LEFT JOIN orders AS o USING (id) GROUP BY f.n;`, "failing.*")
			maps.Copy(p.conf, map[string]string{"failing.key": "id", "policy": policy, "failing.input": "batch", "failing.mode": "row_error", "failing.every": "2"})
			r := p.run(RunOptions{})
			f := r.flow(t, "gold.shaky")
			if f.State != want.state || f.Quarantined != want.quarantined || f.Skipped != want.skipped {
				t.Fatalf("%s %v %+v", f.State, f.Err, f.Metrics)
			}
			if want.state == Failed {
				if f.Error.Code != "ASKED_TO_FAIL" || f.Error.Row != 1 {
					t.Errorf("%+v", f.Error)
				}
				return
			}
			p.wantRows("SELECT n, cities FROM gold.shaky ORDER BY n", want.rows...)
			if policy == "quarantine" {
				p.wantRows("SELECT _code, _row->>'$.id' AS id FROM gold.shaky_quarantine ORDER BY id",
					`{"_code":"ASKED_TO_FAIL","id":"0"}`, `{"_code":"ASKED_TO_FAIL","id":"2"}`)
			}
			if r := p.completed(RunOptions{}); r.flow(t, "gold.shaky").Refresh.Reason != "NO_SOURCE_CHANGED" {
				t.Errorf("%+v", r.flow(t, "gold.shaky").Refresh)
			}
			p.conf["failing.every"] = "4" // what a function may read of the configuration
			r = p.completed(RunOptions{})
			if d := r.flow(t, "gold.shaky").Refresh; d.Reason != "QUERY_FINGERPRINT_CHANGED" {
				t.Errorf("%+v", d)
			}
			p.wantRows("SELECT count(*) AS n FROM gold.shaky", `{"n":3}`)
		})
	}
}

// covers A129: a sum over nothing but NULLs is NULL, as SQL has it, also when
// the last other value goes away. Lakeflow's incremental refresh gives 0 there.
func TestASumOfNothingIsNull(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("landing/products/a.json", `{"sku":"a","qty":1}`+"\n"+`{"sku":"b","qty":null}`)
	p.write("sql/sums.sql", `CREATE OR REFRESH MATERIALIZED VIEW sums AS
SELECT sku, sum(qty) AS qty FROM read_files('${landing}/products', format => 'json') GROUP BY sku;`)
	p.completed(RunOptions{})
	p.wantRows("SELECT sku, qty FROM sums ORDER BY sku", `{"sku":"a","qty":1}`, `{"sku":"b","qty":null}`)
	p.write("landing/products/a.json", `{"sku":"a","qty":null}`+"\n"+`{"sku":"b","qty":null}`+"\n"+`{"sku":"c","qty":5}`)
	p.completed(RunOptions{})
	p.wantRows("SELECT sku, qty FROM sums ORDER BY sku", `{"sku":"a","qty":null}`, `{"sku":"b","qty":null}`, `{"sku":"c","qty":5}`)
}

// covers A129 A122: what no table can be made of is refused before anything is written.
func TestViewsThatAreRefused(t *testing.T) {
	for _, c := range []struct{ query, code, says string }{
		{"SELECT count(*) FROM orders", "CREATE_PERMANENT_VIEW_WITHOUT_ALIAS", "count_star()"},
		{"SELECT order_id, qty + 1 FROM orders", "CREATE_PERMANENT_VIEW_WITHOUT_ALIAS", "(qty + 1)"},
		{"SELECT upper(order_id) FROM orders UNION ALL SELECT order_id FROM orders", "CREATE_PERMANENT_VIEW_WITHOUT_ALIAS", "upper"},
		{"SELECT order_id, qty AS order_id FROM orders", "COLUMN_ALREADY_EXISTS", "order_id"},
		{"SELECT order_id FROM STREAM(orders)", "INVALID_FLOW_QUERY_TYPE", "STREAM"},
		{"SELECT order_id FROM STREAM read_files('${landing}', format => 'json')", "INVALID_FLOW_QUERY_TYPE", "STREAM"},
		{"SELECT nobody FROM orders", "UNRESOLVED_COLUMN", "nobody"},
		{"SELECT order_id FROM nobody", "TABLE_OR_VIEW_NOT_FOUND", "nobody"},
		{"SELECT m.order_id FROM m", "CIRCULAR_DEPENDENCY", "reads itself"},
	} {
		p := newProject(t, landingConf)
		p.write("landing/a.json", ordersLine(1, 2, ""))
		p.write("sql/a.sql", bronzeOrders+"CREATE OR REFRESH MATERIALIZED VIEW m AS "+c.query+";")
		if err := p.plans(t); fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: [%s] %v, want %s", c.query, fault.CodeOf(err), err, c.code)
		}
	}
}

// covers A73 A157: a view over the change data feed of a table, and one over
// the pipeline's own event log.
func TestViewsOfChangesAndEvents(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	p.write("sql/a.sql", `CREATE OR REFRESH STREAMING TABLE orders TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')
AS SELECT order_id, qty FROM STREAM read_files('${landing}', format => 'json');
CREATE OR REFRESH MATERIALIZED VIEW changes AS
SELECT order_id, _change_type AS change, _commit_version AS version FROM table_changes('orders', 0);
CREATE OR REFRESH MATERIALIZED VIEW early AS SELECT count(*) AS n FROM table_changes('orders', 0, 1);
CREATE OR REFRESH MATERIALIZED VIEW updates AS
SELECT count(DISTINCT origin.update_id) AS n FROM event_log('test') WHERE event_type = 'create_update';
CREATE OR REFRESH MATERIALIZED VIEW of_table AS
SELECT count(*) > 0 AS filled FROM event_log(TABLE(orders));
`)
	p.completed(RunOptions{})
	p.write("landing/b.json", ordersLine(2, 2, ""))
	p.completed(RunOptions{})
	p.write("landing/c.json", ordersLine(3, 2, ""))
	r := p.completed(RunOptions{})
	p.wantRows("SELECT order_id, change FROM changes ORDER BY version",
		`{"order_id":"o1","change":"insert"}`, `{"order_id":"o2","change":"insert"}`, `{"order_id":"o3","change":"insert"}`)
	p.wantRows("SELECT n FROM early", `{"n":2}`)
	p.wantRows("SELECT n >= 2 AS several FROM updates", `{"several":true}`)
	p.wantRows("SELECT filled FROM of_table", `{"filled":true}`)
	if d := r.flow(t, "changes").Refresh; d.Reason != "SOURCE_CHANGED" {
		t.Errorf("%+v", d)
	}
	for query, code := range map[string]string{
		"SELECT order_id FROM table_changes('orders', 3, 1)":        "DELTA_INVALID_CDC_RANGE",
		"SELECT order_id FROM table_changes('orders', 'yesterday')": "DELTA_INVALID_CDC_RANGE",
		"SELECT id FROM event_log('another')":                       "EVENT_LOG_UNAVAILABLE",
		"SELECT order_id FROM table_changes('nothing', 0)":          "TABLE_OR_VIEW_NOT_FOUND",
	} {
		p.write("sql/refused.sql", "CREATE OR REFRESH MATERIALIZED VIEW refused AS "+query+";")
		if err := p.plans(t); fault.CodeOf(err) != code {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// A refresh whose groups do not fit into the engine's share of the memory
// spills, and what passes through Go's heap does not pile up there.
func TestARefreshLargerThanItsMemory(t *testing.T) {
	p := newProject(t, "memory_limit: 128MiB")
	p.write("sql/a.sql", `CREATE OR REFRESH MATERIALIZED VIEW rows AS
SELECT i AS id, md5(CAST(i AS STRING)) AS a, concat(md5(CAST(i * 7 AS STRING)), md5(CAST(i * 11 AS STRING))) AS b FROM range(0, 600000) AS t(i);
CREATE OR REFRESH MATERIALIZED VIEW groups AS SELECT a, max(b) AS b, count(*) AS n FROM rows GROUP BY a;`)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	most, done := make(chan uint64), make(chan struct{})
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		peak := uint64(0)
		for {
			metrics.Read(sample)
			peak = max(peak, sample[0].Value.Uint64())
			select {
			case <-done:
				most <- peak
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	r := p.run(RunOptions{})
	close(done)
	peak := <-most
	if f := r.flow(t, "groups"); f.State != Completed || f.RowsWritten != 600000 {
		t.Fatalf("%s %v, rows: %v", f.State, f.Err, r.flow(t, "rows").Err)
	}
	// The engine's share is 64 MiB, and the groups take more. What is on the heap,
	// garbage included, is what the task that encodes them takes.
	if peak > 2*taskMemory {
		t.Errorf("%d MiB of heap", peak>>20)
	}
}

// covers A109: a snippet of an older pipeline does not make the wrong kind of
// table in silence. LIVE TABLE over a batch is a view and computed as one; a
// streaming table over a batch, in SQL or in a manifest, is an error.
func TestOlderSnippetsMakeTheRightKind(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	p.write("sql/a.sql", bronzeOrders+"CREATE OR REFRESH LIVE TABLE legacy AS SELECT count(*) AS n FROM LIVE.orders;")
	p.completed(RunOptions{})
	p.write("landing/b.json", ordersLine(2, 2, ""))
	if d := p.completed(RunOptions{}).flow(t, "legacy").Refresh; d == nil || d.Technique != "COMPLETE_RECOMPUTE" {
		t.Errorf("%+v", d)
	}
	p.wantRows("SELECT n FROM legacy", `{"n":2}`)
	p.write("sql/b.sql", "CREATE OR REFRESH STREAMING TABLE wrong AS SELECT order_id FROM orders;")
	if err := p.plans(t); fault.CodeOf(err) != "STREAMING_TABLE_QUERY_INVALID" || !strings.Contains(err.Error(), "Cannot create streaming table from batch query") {
		t.Errorf("%v", err)
	}
}
