package pipeline

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// fanOutProject has orders and a handler that spreads them.
func fanOutProject(t *testing.T) *project {
	t.Helper()
	p := newProject(t, "plugins:", "  - path: "+buildModule(t, "plugins/fixtures/fanout"), "    grants: {conf: [fanout.*]}")
	p.write("sql/orders.sql", `CREATE OR REFRESH STREAMING TABLE orders
AS SELECT * FROM STREAM read_files('landing', format => 'json', schemaHints => 'order_id STRING, customer STRING, n BIGINT');`)
	p.write("landing/a.json", `{"order_id":"a","customer":"x","n":1}`+"\n"+`{"order_id":"b","customer":"x","n":2}`+"\n"+`{"customer":"z","n":3}`+"\n")
	p.conf = map[string]string{}
	return p
}

// covers A126 A132 A133 A134: a handler appends to one table and merges into
// another; a full refresh leaves both, so that rows are appended again.
func TestAHandlerOfMicroBatchesFansOut(t *testing.T) {
	p := fanOutProject(t)
	r := p.completed(RunOptions{})
	if f := r.flow(t, "fanout"); f.RowsRead != 3 || f.RowsWritten != 4 || f.Skipped != 1 || f.Batches != 1 {
		t.Errorf("%+v", f.Metrics)
	}
	p.write("landing/b.json", `{"order_id":"a","customer":"y","n":4}`+"\n"+`{"order_id":"a","customer":"w","n":5}`+"\n"+`{"order_id":"c","customer":"x","n":6}`+"\n")
	p.completed(RunOptions{})
	current := []string{`{"order_id":"a","customer":"w","n":5}`, `{"order_id":"b","customer":"x","n":2}`, `{"order_id":"c","customer":"x","n":6}`}
	p.wantRows("SELECT order_id, customer, n FROM gold.current ORDER BY order_id", current...)
	p.wantRows("SELECT batch_id, count(*) AS n FROM gold.audit GROUP BY batch_id ORDER BY batch_id", `{"batch_id":0,"n":2}`, `{"batch_id":1,"n":3}`)
	if r := p.completed(RunOptions{}); r.flow(t, "fanout").Batches != 0 {
		t.Error("a third update did something")
	}
	r = p.completed(RunOptions{FullRefresh: []string{"fanout"}})
	if f := r.flow(t, "fanout"); len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "takes nothing out") {
		t.Error(f.Warnings)
	}
	p.wantRows("SELECT order_id, customer, n FROM gold.current ORDER BY order_id", current...)
	p.wantRows("SELECT batch_id, count(*) AS n FROM gold.audit GROUP BY batch_id ORDER BY batch_id", `{"batch_id":0,"n":7}`, `{"batch_id":1,"n":3}`)
}

// Row errors of a handler follow the sink's policy.
func TestRowErrorsOfAHandlerFollowThePolicy(t *testing.T) {
	p := fanOutProject(t)
	p.conf["fanout.policy"] = "fail"
	if f := p.run(RunOptions{}).flow(t, "fanout"); f.State != Failed || f.Error.Code != "NO_ORDER" {
		t.Errorf("%s %+v", f.State, f.Error)
	}
	p.conf["fanout.policy"] = "quarantine"
	p.completed(RunOptions{})
	p.wantRows("SELECT _code, _flow, _row->>'$.n' AS n FROM fanout_quarantine", `{"_code":"NO_ORDER","_flow":"fanout","n":"3"}`)
	p.wantRows("SELECT count(*) AS n FROM gold.audit", `{"n":2}`)
}

// covers A130 A134 A135: a flow appends to a Delta table by its path or its
// name. It is not the pipeline's: others write to it, and nothing is taken out.
func TestADeltaSinkIsAppendedTo(t *testing.T) {
	for _, by := range []string{"path", "tableName"} {
		t.Run(by, func(t *testing.T) {
			p := fanOutProject(t)
			p.conf["fanout.export_by"], p.conf["fanout.export"] = by, "other.shop.orders"
			folder := filepath.Join(p.dir, "lake/other/shop/orders")
			if by == "path" {
				p.conf["fanout.export"] = "./export/orders"
				folder = filepath.Join(p.dir, "export/orders")
			}
			count := func() int {
				t.Helper()
				store, err := storage.OpenDir(folder)
				if err != nil {
					t.Fatal(err)
				}
				snapshot, err := delta.Open(store).Snapshot(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				n, err := snapshot.LiveRows()
				if err != nil {
					t.Fatal(err)
				}
				return int(n)
			}
			p.completed(RunOptions{})
			p.completed(RunOptions{})
			if n := count(); n != 3 {
				t.Fatalf("%d rows", n)
			}
			r := p.completed(RunOptions{FullRefresh: []string{"export"}})
			if n := count(); n != 6 || r.flow(t, "export").Batches != 1 {
				t.Fatalf("%d rows", n)
			}
			// A column that the table has not is refused, unless mergeSchema is set.
			p.write("landing/c.json", `{"order_id":"c","customer":"x","n":7,"gift":true}`+"\n")
			if f := p.run(RunOptions{}).flow(t, "export"); f.State != Failed || f.Error.Code != "DELTA_METADATA_MISMATCH" {
				t.Fatalf("%s %+v", f.State, f.Error)
			}
			p.conf["fanout.merge_schema"] = "true"
			p.completed(RunOptions{})
			if n := count(); n != 7 {
				t.Fatalf("%d rows", n)
			}
		})
	}
}

// covers A130 A131 A134: what no sink can be, Kafka among it, is refused before anything is written.
func TestSinksThatCannotBeAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		conf map[string]string
		sql  string
		code string
		says string
	}{
		"kafka":               {map[string]string{"fanout.export": "topic", "fanout.format": "kafka"}, "", "NOT_SUPPORTED", "foreach_batch"},
		"a custom format":     {map[string]string{"fanout.export": "x", "fanout.format": "my_sink"}, "", "NOT_SUPPORTED", "my_sink"},
		"an unknown option":   {map[string]string{"fanout.export": "x", "fanout.export_by": "pth"}, "", "UNKNOWN_OPTION", "pth"},
		"a path in the lake":  {map[string]string{"fanout.export": "./lake/dev/bronze/x"}, "", "INVALID_SINK", "tableName"},
		"a dataset":           {map[string]string{"fanout.export": "orders", "fanout.export_by": "tableName"}, "", "INVALID_SINK", "dataset of this pipeline"},
		"an output of ours":   {map[string]string{"fanout.audit": "orders"}, "", "INVALID_SINK", "dataset of this pipeline"},
		"a flow of a handler": {nil, "CREATE FLOW more AS INSERT INTO fanout BY NAME SELECT order_id, customer, n FROM STREAM(orders);", "NOT_SUPPORTED", "temporary view"},
	} {
		p := fanOutProject(t)
		for k, v := range c.conf {
			p.conf[k] = v
		}
		if c.sql != "" {
			p.write("sql/more.sql", c.sql)
		}
		err := p.plans(t)
		if !fault.Is(err, c.code) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A table of another pipeline is its own.
func TestASinkDoesNotWriteIntoAnotherPipelinesTable(t *testing.T) {
	p := fanOutProject(t)
	p.completed(RunOptions{})
	q := fanOutProject(t)
	q.write("weir.yaml", "name: second\ncatalog: dev\nschema: elsewhere\nstorage: "+filepath.Join(p.dir, "lake")+"\nlibraries:\n  - glob: {include: sql/**}\n"+
		"plugins:\n  - path: "+buildModule(t, "plugins/fixtures/fanout")+"\n    grants: {conf: [fanout.*]}\n")
	q.conf["fanout.source"], q.conf["fanout.audit"] = "orders", "dev.bronze.orders"
	if err := q.plans(t); !fault.Is(err, "TABLE_OWNED_BY_ANOTHER_PIPELINE") {
		t.Fatal(err)
	}
}

// A plan knows what a handler needs, without writing.
func TestAPlanChecksAHandler(t *testing.T) {
	p := fanOutProject(t)
	p.conf["fanout.source"] = "ids"
	p.write("sql/ids.sql", "CREATE TEMPORARY VIEW ids AS SELECT order_id FROM STREAM(orders);")
	if err := p.plans(t); fault.CodeOf(err) == "" || !strings.Contains(err.Error(), "customer") {
		t.Fatal(err)
	}
	p.write("sql/ids.sql", "CREATE TEMPORARY VIEW ids AS SELECT order_id, customer, n FROM STREAM(orders) WHERE n < 3;")
	if err := p.plans(t); err != nil {
		t.Fatal(err)
	}
	p.completed(RunOptions{})
	p.wantRows("SELECT count(*) AS n FROM gold.audit", `{"n":2}`)
	pl := p.open()
	defer func() { _ = pl.Close(context.Background()) }()
	plan, err := pl.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range plan.Flows {
		if f.Target == "fanout" && f.Kind != "foreach_batch" {
			t.Errorf("%+v", f)
		}
	}
}
