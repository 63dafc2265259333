package pipeline

import (
	"fmt"
	"strings"
	"testing"
)

const keeping = "runtime/plugin/testdata/go/keeping"

// keepingProject has a stream of numbers in small batches, a table of labels
// and functions that carry something from call to call.
func keepingProject(t *testing.T, tables string) *project {
	t.Helper()
	p := newProject(t, "plugins:", "  - path: "+buildModule(t, keeping))
	p.write("sql/a.sql", `
CREATE OR REFRESH STREAMING TABLE a AS SELECT v FROM STREAM read_files('landing/a', format => 'json', schemaHints => 'v BIGINT', maxFilesPerTrigger => 1);
CREATE OR REFRESH STREAMING TABLE b AS SELECT k, label FROM STREAM read_files('landing/b', format => 'json', schemaHints => 'k BIGINT, label STRING');
`+tables)
	for i := range 6 {
		p.write(fmt.Sprintf("landing/a/%d.json", i), fmt.Sprintf("{\"v\":%d}\n", i+1))
	}
	p.labels("l", 20_000)
	return p
}

// labels gives the numbers from 0 on a label each, which is a new version of the table.
func (p *project) labels(prefix string, n int) {
	var rows strings.Builder
	for i := range n {
		fmt.Fprintf(&rows, "{\"k\":%d,\"label\":\"%s%d\"}\n", i, prefix, i)
	}
	p.write("landing/b/"+prefix+".json", rows.String())
}

// A function that declared reuse reads a batch input again only when its table
// has another version; its rows are those of fresh instances. What the calls
// took is told: an instance reads the labels once.
func TestAnInstanceIsReusedWhileItsSideInputStays(t *testing.T) {
	p := keepingProject(t, `CREATE OR REFRESH STREAMING TABLE silver.labelled AS SELECT label FROM STREAM(lookup);`)
	p.taskBytes, p.threads = 1, 1
	r := p.completed(RunOptions{})
	p.wantRows("SELECT label FROM silver.labelled ORDER BY label",
		`{"label":"l1 read 1"}`, `{"label":"l2 read 1"}`, `{"label":"l3 read 1"}`, `{"label":"l4 read 1"}`, `{"label":"l5 read 1"}`, `{"label":"l6 read 1"}`)
	whole := r.flow(t, "silver.labelled")
	if whole.Fuel <= 0 || whole.GuestMicros <= 0 {
		t.Fatalf("nothing is told of what the functions took: %+v", whole.Metrics)
	}
	if f := r.flow(t, "b"); f.Fuel != 0 || f.GuestMicros != 0 {
		t.Errorf("a flow without functions took %+v", f.Metrics)
	}
	for _, event := range []string{"flow_progress", "stream_progress"} {
		if !strings.Contains(fmt.Sprint(eventsOf(t, p, event)), "fuel:") {
			t.Errorf("%s does not tell of fuel", event)
		}
	}

	// Two tasks run at once, so two instances read the labels; six tasks do not.
	p.write("landing/a/6.json", "{\"v\":7}\n")
	one := p.completed(RunOptions{}).flow(t, "silver.labelled")
	if whole.Fuel > 3*one.Fuel {
		t.Errorf("six tasks took %d, one took %d: the labels were read again", whole.Fuel, one.Fuel)
	}

	// Another version is read, in an instance that knows nothing of the old one.
	p.labels("m", 8)
	p.completed(RunOptions{Refresh: []string{"b"}})
	p.write("landing/a/7.json", "{\"v\":7}\n{\"v\":9}\n")
	p.completed(RunOptions{})
	p.wantRows("SELECT label FROM silver.labelled WHERE label LIKE '%7%' OR label LIKE '%9%' ORDER BY label",
		`{"label":"l7 read 1"}`, `{"label":"l9 read 1"}`, `{"label":"m7 read 1"}`)
}

// A stateful function goes on with what the last committed batch left, one task
// a batch, and starts from nothing with a full refresh. A later step that wants
// none of its rows does not keep it from seeing them.
func TestAStatefulFunctionGoesOnWithItsState(t *testing.T) {
	p := keepingProject(t, `
CREATE OR REFRESH STREAMING TABLE silver.totals AS SELECT total FROM STREAM(total);
CREATE OR REFRESH STREAMING TABLE silver.late AS SELECT total FROM STREAM(total) WHERE total > ${from};`)
	p.conf = map[string]string{"from": "1000"}
	p.taskBytes, p.threads = 1, 4
	p.completed(RunOptions{})
	totals := []string{`{"total":1}`, `{"total":3}`, `{"total":6}`, `{"total":10}`, `{"total":15}`, `{"total":21}`}
	p.wantRows("SELECT total FROM silver.totals ORDER BY total", totals...)
	p.write("landing/a/6.json", "{\"v\":7}\n")
	p.write("landing/a/7.json", "{\"v\":8}\n")
	p.conf["from"] = "30"
	p.completed(RunOptions{})
	totals = append(totals, `{"total":28}`, `{"total":36}`)
	p.wantRows("SELECT total FROM silver.totals ORDER BY total", totals...)
	p.wantRows("SELECT total FROM silver.late", `{"total":36}`)
	p.completed(RunOptions{FullRefresh: []string{"silver.totals"}, Refresh: []string{"silver.late"}})
	p.wantRows("SELECT total FROM silver.totals ORDER BY total", totals...)
	p.wantRows("SELECT total FROM silver.late", `{"total":36}`)
}
