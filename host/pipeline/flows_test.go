package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

// shops is a table that two flows of landing files and one of a table fill.
const shops = `
CREATE OR REFRESH STREAMING TABLE orders (
  id BIGINT, shop STRING, gift STRING,
  CONSTRAINT has_id EXPECT (id IS NOT NULL) ON VIOLATION QUARANTINE
) PARTITIONED BY (shop) COMMENT 'of all shops';
CREATE FLOW north AS INSERT INTO orders BY NAME
  SELECT 'north' AS shop, * EXCEPT (_rescued_data) FROM STREAM read_files('landing/north', format => 'json', schemaHints => 'id BIGINT, gift STRING');
CREATE FLOW south AS INSERT INTO orders BY NAME
  SELECT id, 'south' AS shop FROM STREAM read_files('landing/south', format => 'json', schemaHints => 'id BIGINT');
CREATE OR REFRESH STREAMING TABLE old AS SELECT id FROM STREAM read_files('landing/old', format => 'json', schemaHints => 'id BIGINT');
CREATE FLOW backfill AS INSERT INTO ONCE orders BY NAME SELECT id, 'old' AS shop FROM old;
`

// Each flow has its own checkpoint and is reported by itself; columns that a
// query lacks are NULL, the rules and the table are one.
// covers A113 A114 A115 A116
func TestSeveralFlowsFillOneTable(t *testing.T) {
	p := newProject(t)
	p.write("sql/a.sql", shops)
	p.write("landing/north/1.json", `{"id": 1, "gift": "card"}`+"\n"+`{"gift": "lost"}`)
	p.write("landing/south/1.json", `{"id": 2}`+"\n"+`{"other": 1}`)
	p.write("landing/old/1.json", `{"id": 9}`)
	r := p.completed(RunOptions{})
	for _, f := range []string{"north", "south", "backfill"} {
		if got := r.named(t, f); got.RowsWritten != 1 || got.Dataset != "dev.bronze.orders" {
			t.Errorf("%s: %+v", f, got)
		}
	}
	want := []string{`{"r":"1 north card"}`, `{"r":"2 south -"}`, `{"r":"9 old -"}`}
	all := "SELECT concat_ws(' ', id, shop, coalesce(gift, '-')) AS r FROM orders ORDER BY id"
	p.wantRows(all, want...)
	p.wantRows("SELECT count(*) AS n, count(DISTINCT _source) AS sources FROM orders_quarantine", `{"n":2,"sources":2}`)

	p.write("landing/south/2.json", `{"id": 3}`)
	p.write("landing/old/2.json", `{"id": 10}`)
	r = p.completed(RunOptions{})
	if n, s, b := r.named(t, "north"), r.named(t, "south"), r.named(t, "backfill"); n.RowsWritten != 0 || s.RowsWritten != 1 || b.RowsWritten != 0 {
		t.Errorf("north %d, south %d, backfill %d rows", n.RowsWritten, s.RowsWritten, b.RowsWritten)
	}
	p.wantRows(all, `{"r":"1 north card"}`, `{"r":"2 south -"}`, `{"r":"3 south -"}`, `{"r":"9 old -"}`)

	// A full refresh reads everything again, once, also what runs once.
	p.completed(RunOptions{FullRefresh: []string{"orders"}})
	full := []string{`{"r":"1 north card"}`, `{"r":"2 south -"}`, `{"r":"3 south -"}`, `{"r":"9 old -"}`, `{"r":"10 old -"}`}
	p.wantRows(all, full...)
	p.wantRows("SELECT count(*) AS n, count(DISTINCT _source) AS sources FROM orders_quarantine", `{"n":2,"sources":2}`)
	p.completed(RunOptions{})
	p.wantRows(all, full...)

	// A flow that is taken out leaves its rows; a full refresh takes them, and it
	// reads everything again should it come back.
	lines := strings.Split(shops, "CREATE FLOW south")
	_, rest, _ := strings.Cut(lines[1], ";")
	p.write("sql/a.sql", lines[0]+rest)
	r = p.completed(RunOptions{})
	if w := r.named(t, "north").Warnings; len(w) != 1 || !strings.Contains(w[0], "flow south is defined no longer") {
		t.Errorf("warnings %q", w)
	}
	p.wantRows(all, full...)
	p.completed(RunOptions{FullRefresh: []string{"orders"}})
	p.wantRows(all, `{"r":"1 north card"}`, `{"r":"9 old -"}`, `{"r":"10 old -"}`)
	if w := p.completed(RunOptions{}).named(t, "north").Warnings; len(w) != 0 {
		t.Errorf("warnings %q", w)
	}
	p.write("sql/a.sql", shops)
	p.completed(RunOptions{})
	p.wantRows(all, full...)
}

// Flows that write at once, each with columns of its own, end in one table that
// has all of them, whichever commits first.
func TestFlowsAddColumnsToOneTableAtTheSameTime(t *testing.T) {
	p := newProject(t)
	const flows = 6
	text := "CREATE OR REFRESH STREAMING TABLE wide;\n"
	for i := range flows {
		text += fmt.Sprintf("CREATE FLOW f%d AS INSERT INTO wide BY NAME SELECT * EXCEPT (_rescued_data) FROM STREAM read_files('landing/%d', format => 'json', maxFilesPerTrigger => 1, inferColumnTypes => true);\n", i, i)
		p.write(fmt.Sprintf("landing/%d/1.json", i), fmt.Sprintf(`{"id": %d, "c%d": %d}`, i, i, i))
	}
	p.write("sql/a.sql", text)
	p.completed(RunOptions{})
	p.wantRows("SELECT * FROM wide WHERE id = 2", `{"c0":null,"id":2,"c1":null,"c2":2,"c3":null,"c4":null,"c5":null}`)
	// Every flow meets a new column in the same update.
	for i := range flows {
		p.write(fmt.Sprintf("landing/%d/2.json", i), fmt.Sprintf(`{"id": %d, "d%d": "x"}`, 10+i, i))
		p.write(fmt.Sprintf("landing/%d/3.json", i), fmt.Sprintf(`{"id": %d}`, 20+i))
	}
	p.completed(RunOptions{})
	p.wantRows("SELECT concat_ws(' ', count(*), count(DISTINCT id), count(c3), count(d0), count(d5)) AS r FROM wide", `{"r":"18 18 1 1 1"}`)
}

// covers A147
func TestATableCanBeKeptFromFullRefreshes(t *testing.T) {
	p := newProject(t)
	p.write("sql/a.sql", `
CREATE OR REFRESH STREAMING TABLE raw TBLPROPERTIES ('pipelines.reset.allowed' = 'false')
AS SELECT id FROM STREAM read_files('landing', format => 'json', schemaHints => 'id BIGINT');
CREATE OR REFRESH STREAMING TABLE typed AS SELECT id + 0 AS id FROM STREAM(raw);`)
	p.write("landing/1.json", `{"id": 1}`)
	p.completed(RunOptions{})
	if err := os.Remove(filepath.Join(p.dir, "landing/1.json")); err != nil {
		t.Fatal(err)
	}
	p.write("landing/2.json", `{"id": 2}`)
	pl := p.open()
	if _, err := pl.Run(t.Context(), RunOptions{FullRefresh: []string{"raw"}}); !fault.Is(err, "RESET_NOT_ALLOWED") {
		t.Fatal(err)
	}
	r := p.completed(RunOptions{FullRefreshAll: true})
	if raw, typed := r.named(t, "raw"), r.named(t, "typed"); raw.FullRefresh || !typed.FullRefresh || typed.RowsWritten != 2 {
		t.Errorf("raw %+v, typed %+v", raw, typed)
	}
	p.wantRows("SELECT id FROM raw ORDER BY id", `{"id":1}`, `{"id":2}`)
}

// named gives what became of a flow.
func (r *Result) named(t *testing.T, flow string) FlowResult {
	t.Helper()
	for _, f := range r.Flows {
		if f.Flow == flow {
			return f
		}
	}
	t.Fatalf("no flow %s in %+v", flow, r.Flows)
	return FlowResult{}
}
