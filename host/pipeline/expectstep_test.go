package pipeline

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/events"
)

// ruledProject reads amounts through a view with rules into a table with rules.
func ruledProject(t *testing.T) *project {
	t.Helper()
	p := newProject(t)
	p.write("sql/amounts.sql", "CREATE OR REFRESH STREAMING TABLE amounts AS SELECT * FROM STREAM read_files('landing', format => 'json', schemaHints => 'id BIGINT, amount BIGINT');")
	p.write("sql/view.sql", `CREATE LIVE VIEW checked (
  CONSTRAINT has_id   EXPECT (id IS NOT NULL) ON VIOLATION QUARANTINE,
  CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION DROP ROW,
  CONSTRAINT small    EXPECT (amount < 100)
) AS SELECT id, amount FROM STREAM(amounts);`)
	p.write("sql/kept.sql", "CREATE OR REFRESH STREAMING TABLE silver.kept (CONSTRAINT even EXPECT (id % 2 = 0) ON VIOLATION DROP ROW) AS SELECT id, amount FROM STREAM(checked) WHERE id <> 8;")
	p.write("sql/passed.sql", "CREATE OR REFRESH STREAMING TABLE silver.passed AS SELECT * FROM STREAM(checked);")
	p.write("landing/a.json", `{"id":1,"amount":5}`+"\n"+`{"id":2,"amount":-5}`+"\n"+`{"id":4,"amount":500}`+"\n"+`{"amount":7}`+"\n"+`{"id":6,"amount":6}`+"\n"+`{"id":8,"amount":null}`+"\n")
	return p
}

func countsOf(f FlowResult) string {
	var out []string
	for _, e := range f.Expectations {
		out = append(out, fmt.Sprintf("%s.%s %d/%d", e.Dataset, e.Name, e.Passed, e.Failed))
	}
	return strings.Join(out, " ")
}

// covers A101 A103 A106 A107: expectations of a temporary view apply where it is
// read and count under its name; those of the table see what is left.
func TestExpectationsOfAViewApplyWhereItIsRead(t *testing.T) {
	p := ruledProject(t)
	r := p.completed(RunOptions{})
	kept, passed := r.flow(t, "silver.kept"), r.flow(t, "silver.passed")
	if got, want := countsOf(kept), "checked.has_id 5/1 checked.positive 4/2 checked.small 4/2 dev.silver.kept.even 2/1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := countsOf(passed), "checked.has_id 5/1 checked.positive 4/2 checked.small 4/2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if kept.Dropped != 3 || kept.Quarantined != 1 || kept.RowsWritten != 2 || passed.Dropped != 2 || passed.Quarantined != 1 || passed.RowsWritten != 3 {
		t.Errorf("%+v\n%+v", kept.Metrics, passed.Metrics)
	}
	p.wantRows("SELECT id FROM silver.kept ORDER BY id", `{"id":4}`, `{"id":6}`)
	p.wantRows("SELECT id FROM silver.passed ORDER BY id", `{"id":1}`, `{"id":4}`, `{"id":6}`)
	p.wantRows("SELECT _rule, _row->>'$.amount' AS amount FROM silver.kept_quarantine", `{"_rule":["has_id"],"amount":"7"}`)
	// The counts of a batch are in the logs; nothing counts twice.
	if again := p.completed(RunOptions{}); countsOf(again.flow(t, "silver.kept")) != "checked.has_id 0/0 checked.positive 0/0 checked.small 0/0 dev.silver.kept.even 0/0" {
		t.Error(countsOf(again.flow(t, "silver.kept")))
	}
}

// covers A101 A102 A105: a violated FAIL UPDATE of a view names view, rule, counts
// and rows; nothing of the batch is committed, and the event has no counts.
func TestAViewsFailUpdateIsAtomic(t *testing.T) {
	p := ruledProject(t)
	p.write("sql/view.sql", `CREATE LIVE VIEW checked (CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION FAIL UPDATE) AS SELECT id, amount FROM STREAM(amounts);`)
	r := p.run(RunOptions{})
	f := r.flow(t, "silver.kept")
	if f.State != Failed || f.Error.Code != "EXPECTATION_VIOLATED" || f.Error.Dataset != "checked" ||
		!strings.Contains(f.Error.Message, "positive (amount > 0) by 2 of 6 rows") || !strings.Contains(f.Error.Message, "amounts@v") {
		t.Fatalf("%s %+v", f.State, f.Error)
	}
	if f.RowsWritten != 0 || f.Batches != 0 {
		t.Errorf("%+v", f.Metrics)
	}
	failures := 0
	for _, e := range p.events(events.Filter{}) {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != events.FlowProgress || !strings.HasPrefix(e.Origin.DatasetName, "dev.silver.") {
			continue
		}
		if strings.Contains(string(text), "data_quality") {
			t.Errorf("metrics of a failed flow: %s", text)
		}
		if e.Error != nil {
			failures++
		}
	}
	if failures == 0 {
		t.Error("no event tells of the failure")
	}
}

// covers A104: the rows that one flow drops are those that another keeps by the
// inverse condition, NULL included.
func TestTheInverseConditionKeepsWhatIsDropped(t *testing.T) {
	p := ruledProject(t)
	p.write("sql/view.sql", `CREATE TEMPORARY VIEW checked AS SELECT id, amount FROM STREAM(amounts);`)
	p.write("sql/kept.sql", `CREATE OR REFRESH STREAMING TABLE silver.kept (CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION DROP ROW) AS SELECT * FROM STREAM(checked);
CREATE OR REFRESH STREAMING TABLE silver.bad (CONSTRAINT not_positive EXPECT (NOT coalesce(amount > 0, false)) ON VIOLATION DROP ROW) AS SELECT * FROM STREAM(checked);`)
	r := p.completed(RunOptions{})
	kept, bad := r.flow(t, "silver.kept"), r.flow(t, "silver.bad")
	if kept.RowsWritten != 4 || kept.Dropped != 2 || bad.RowsWritten != 2 || bad.Dropped != 4 {
		t.Errorf("%+v\n%+v", kept.Metrics, bad.Metrics)
	}
	p.wantRows("SELECT id FROM silver.bad ORDER BY id", `{"id":2}`, `{"id":8}`)
}

// covers A103: a view that is computed whole applies its expectations in the
// materialized views that read it, each row counted once however often it is read.
func TestExpectationsOfABatchViewApplyInTheViewsThatReadIt(t *testing.T) {
	p := ruledProject(t)
	p.write("sql/view.sql", `CREATE LIVE VIEW checked (
  CONSTRAINT positive EXPECT (total > 0) ON VIOLATION DROP ROW,
  CONSTRAINT small    EXPECT (total < 100)
) AS SELECT id, SUM(amount) AS total FROM amounts GROUP BY id;
CREATE TEMPORARY VIEW between AS SELECT id, total FROM checked;`)
	p.write("sql/kept.sql", "CREATE OR REFRESH MATERIALIZED VIEW silver.kept AS SELECT a.id, b.total FROM checked AS a JOIN between AS b ON a.id = b.id;")
	p.write("sql/passed.sql", "CREATE STREAMING TABLE silver.passed; CREATE FLOW f AS INSERT INTO ONCE silver.passed BY NAME SELECT * FROM checked;")
	r := p.completed(RunOptions{})
	// Groups: 1 → 5, 2 → -5, 4 → 500, NULL → 7, 6 → 6, 8 → NULL.
	for _, f := range []FlowResult{r.flow(t, "silver.kept"), r.flow(t, "silver.passed")} {
		if got := countsOf(f); got != "checked.positive 4/2 checked.small 4/2" || f.Dropped != 2 {
			t.Errorf("%s: %s, %d dropped", f.Dataset, got, f.Dropped)
		}
	}
	p.wantRows("SELECT id, total FROM silver.kept ORDER BY id", `{"id":1,"total":5}`, `{"id":4,"total":500}`, `{"id":6,"total":6}`)
	p.wantRows("SELECT count(*) AS n FROM silver.passed", `{"n":4}`)

	p.write("sql/view.sql", `CREATE LIVE VIEW checked (CONSTRAINT positive EXPECT (total > 0) ON VIOLATION FAIL UPDATE) AS SELECT id, SUM(amount) AS total FROM amounts GROUP BY id;
CREATE TEMPORARY VIEW between AS SELECT id, total FROM checked;`)
	if f := p.run(RunOptions{}).flow(t, "silver.kept"); f.State != Failed || f.Error.Code != "EXPECTATION_VIOLATED" || f.Error.Dataset != "checked" ||
		!strings.Contains(f.Error.Message, "positive (total > 0) by 2 of 6 rows") {
		t.Errorf("%s %+v", f.State, f.Error)
	}
	p.wantRows("SELECT count(*) AS n FROM silver.kept", `{"n":3}`)

	for name, sql := range map[string]string{
		"set aside":       `CREATE LIVE VIEW v (CONSTRAINT c EXPECT (id > 0) ON VIOLATION QUARANTINE) AS SELECT id FROM amounts; CREATE MATERIALIZED VIEW m AS SELECT * FROM v;`,
		"beside a stream": `CREATE LIVE VIEW v (CONSTRAINT c EXPECT (id > 0)) AS SELECT id FROM amounts; CREATE STREAMING TABLE s AS SELECT a.id FROM STREAM(amounts) AS a JOIN v ON v.id = a.id;`,
	} {
		p.write("sql/refused.sql", sql)
		if err := p.plans(t); err == nil || !strings.Contains(err.Error(), "[NOT_SUPPORTED]") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
