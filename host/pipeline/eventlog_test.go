package pipeline

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/fault"
)

func (p *project) events(f events.Filter) []events.Event {
	p.t.Helper()
	pl := p.open()
	got, err := pl.Events(p.t.Context(), f)
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

// states gives the states of the update or, with a dataset, of its flow.
func (p *project) states(update, dataset string) (out []string) {
	p.t.Helper()
	f := events.Filter{UpdateID: update, Types: []string{events.UpdateProgress}}
	if dataset != "" {
		f.Dataset, f.Types = dataset, []string{events.FlowProgress}
	}
	for _, e := range p.events(f) {
		if d, ok := events.DetailsOf[events.StateDetails](&e); ok && dataset == "" {
			out = append(out, d.State)
		} else if d, ok := events.DetailsOf[events.FlowProgressDetails](&e); ok && (e.Level != events.Warn || d.Status != "RUNNING") {
			// A warning of a flow that runs is no change of state.
			out = append(out, d.Status)
		}
	}
	return out
}

func wantStates(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

// covers A106 A155 A157 A158 A162 B5
func TestTheEventLogTellsTheLifeOfAnUpdate(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("sql/silver.sql", `CREATE OR REFRESH STREAMING TABLE silver.kept
		(CONSTRAINT positive EXPECT (qty > 0) ON VIOLATION DROP ROW, CONSTRAINT small EXPECT (qty < 3))
		AS SELECT order_id, qty FROM STREAM(orders);
		CREATE OR REFRESH STREAMING TABLE silver.strict (CONSTRAINT none EXPECT (qty > 100) ON VIOLATION FAIL UPDATE) AS SELECT * FROM STREAM(orders);
		CREATE OR REFRESH STREAMING TABLE silver.behind AS SELECT * FROM STREAM(silver.strict);`)
	p.write("landing/a.json", ordersLine(1, 2, "")+ordersLine(2, -2, "")+ordersLine(3, 5, ""))
	first := p.run(RunOptions{})
	if first.State != Failed {
		t.Fatal(first.State)
	}
	wantStates(t, p.states(first.UpdateID, ""), "CREATED", "INITIALIZING", "SETTING_UP_TABLES", "RUNNING", "FAILED")
	wantStates(t, p.states(first.UpdateID, "dev.silver.kept"), "QUEUED", "STARTING", "RUNNING", "COMPLETED")
	wantStates(t, p.states(first.UpdateID, "dev.silver.strict"), "QUEUED", "STARTING", "RUNNING", "FAILED")

	seen := map[string]int{}
	ids := map[string]string{}
	for _, e := range p.events(events.Filter{UpdateID: first.UpdateID}) {
		seen[e.Type]++
		if e.Origin.PipelineID != first.PipelineID || e.Origin.PipelineName != "test" {
			t.Errorf("%+v", e.Origin)
		}
		switch d, _ := events.DetailsOf[events.FlowProgressDetails](&e); {
		case e.Type == events.FlowProgress && e.Origin.DatasetName == "dev.silver.kept" && d.Status == "COMPLETED":
			ids["kept"] = e.Origin.FlowID
			if d.Metrics == nil || d.Metrics.OutputRows == nil || *d.Metrics.OutputRows != 2 || d.DataQuality == nil || d.DataQuality.DroppedRecords != 1 ||
				!slices.Equal(d.DataQuality.Expectations, []events.Expectation{
					{Name: "positive", Dataset: "dev.silver.kept", Passed: 2, Failed: 1}, {Name: "small", Dataset: "dev.silver.kept", Passed: 2, Failed: 1},
				}) {
				t.Errorf("%+v %+v", d.Metrics, d.DataQuality)
			}
		case e.Type == events.FlowProgress && d.Status == "FAILED":
			// No counts of what was not committed; the cause is the first exception.
			if d.Metrics != nil || d.DataQuality != nil || e.Level != events.Error || !strings.Contains(e.Error.Exceptions[0].Message, "EXPECTATION_VIOLATED") {
				t.Errorf("%+v", e)
			}
		case e.Type == events.UpdateProgress && e.Level == events.Error:
			if e.Error == nil || !strings.Contains(e.Error.Exceptions[0].Message, "EXPECTATION_VIOLATED") {
				t.Errorf("the update does not say why: %+v", e)
			}
		case e.Type == events.StreamProgress && e.Origin.DatasetName == "dev.bronze.orders":
			if d, _ := events.DetailsOf[events.StreamDetails](&e); d.InputRows != 3 || d.InputFiles != 1 || d.FilesLeft != 0 {
				t.Errorf("%+v", d)
			}
		}
	}
	for _, typ := range []string{events.CreateUpdate, events.UserAction, events.RuntimeDetails, events.FlowDefinition, events.DatasetDefinition, events.OperationProgress, events.StreamProgress} {
		if seen[typ] == 0 {
			t.Errorf("no %s", typ)
		}
	}
	for i, e := range p.events(events.Filter{}) {
		if e.Sequence.Control != int64(i)+1 || e.Sequence.Number != int64(i)+1 {
			t.Fatalf("event %d is %+v", i, e.Sequence)
		}
	}

	// The flow keeps its id until a full refresh.
	p.write("landing/b.json", ordersLine(4, 1, ""))
	second := p.run(RunOptions{Refresh: []string{"orders", "silver.kept"}})
	third := p.run(RunOptions{FullRefresh: []string{"silver.kept"}})
	wantStates(t, p.states(third.UpdateID, ""), "CREATED", "INITIALIZING", "RESETTING", "SETTING_UP_TABLES", "RUNNING", "COMPLETED")
	wantStates(t, p.states(third.UpdateID, "dev.bronze.orders"), "EXCLUDED")
	idOf := func(update string) string {
		all := p.events(events.Filter{UpdateID: update, Dataset: "dev.silver.kept", Types: []string{events.FlowProgress}})
		return all[len(all)-1].Origin.FlowID
	}
	if ids["kept"] == "" || idOf(second.UpdateID) != ids["kept"] || idOf(third.UpdateID) == ids["kept"] {
		t.Errorf("flow ids %s, %s, %s", ids["kept"], idOf(second.UpdateID), idOf(third.UpdateID))
	}
}

// covers B5
func TestACanceledUpdateStops(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	ctx, cancel := context.WithCancel(t.Context())
	pl := p.open()
	r, err := pl.Run(ctx, RunOptions{Observer: func(pr Progress) {
		if pr.Flow == "" && pr.State == Running {
			cancel()
		}
	}})
	if err != nil || r.State != Canceled {
		t.Fatal(r, err)
	}
	wantStates(t, p.states(r.UpdateID, ""), "CREATED", "INITIALIZING", "SETTING_UP_TABLES", "RUNNING", "STOPPING", "CANCELED")
	got := p.states(r.UpdateID, "dev.bronze.orders")
	if got[0] != "QUEUED" || got[len(got)-1] != "STOPPED" {
		t.Error(got)
	}
}

// covers B5
func TestTheNextUpdateTellsOfOneThatWasKilled(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	// What a killed process leaves: a story without an end.
	pl := p.open()
	if err := pl.makeStorage(); err != nil {
		t.Fatal(err)
	}
	id, err := pl.catalog().Identify(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	log := events.Open(pl.eventTable(), events.Origin{PipelineID: id.PipelineID, PipelineName: "test", UpdateID: "dead"}, nil)
	log.Emit(events.Event{Type: events.CreateUpdate})
	log.Emit(events.Event{Type: events.FlowProgress, Origin: events.Origin{DatasetName: "dev.bronze.orders", FlowName: "orders", FlowID: "f"}, Details: events.FlowProgressDetails{Status: "RUNNING"}})
	if err := log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := p.completed(RunOptions{})
	wantStates(t, p.states("dead", ""), "FAILED")
	wantStates(t, p.states("dead", "dev.bronze.orders"), "RUNNING", "FAILED")
	closing := p.events(events.Filter{UpdateID: "dead", Levels: []events.Level{events.Error}})
	if len(closing) != 2 || closing[1].Error.Exceptions[0].ClassName != "UPDATE_KILLED" || !strings.Contains(closing[1].Error.Exceptions[0].Message, next.UpdateID) {
		t.Errorf("%+v", closing)
	}
	p.completed(RunOptions{})
	if again := p.events(events.Filter{UpdateID: "dead", Levels: []events.Level{events.Error}}); len(again) != 2 {
		t.Errorf("told %d times", len(again)/2)
	}
	if got := p.events(events.Filter{UpdateID: LastUpdate}); got[0].Type != events.CreateUpdate || got[0].Origin.UpdateID == next.UpdateID {
		t.Errorf("%+v", got[0])
	}
}

// covers A160
func TestTheEventLogIsPublishedWhereTheSpecSays(t *testing.T) {
	p := newProject(t, landingConf, "event_log: {schema: ops, name: story}")
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	r := p.completed(RunOptions{})
	p.wantRows("SELECT DISTINCT origin.update_id AS id FROM ops.story", fmt.Sprintf(`{"id":%q}`, r.UpdateID))
	p.write("sql/taken.sql", "CREATE OR REFRESH STREAMING TABLE ops.story AS SELECT * FROM STREAM(orders);")
	if _, err := p.tryOpen(); !fault.Is(err, "PIPELINE_DUPLICATE_IDENTIFIERS") {
		t.Error(err)
	}
}

// The queries of docs/events.md give the rows that follow them.
//
// covers A158 A164
func TestThePageOfTheEventLogIsTrue(t *testing.T) {
	page := readPage(t, "events.md")
	p := newProject(t)
	p.write("weir.yaml", "name: shop\ncatalog: dev\nschema: bronze\nstorage: lake\nlibraries:\n  - glob: {include: sql/**}\n")
	p.write("sql/orders.sql", `CREATE OR REFRESH STREAMING TABLE orders AS SELECT * FROM STREAM read_files('landing', format => 'json');
		CREATE OR REFRESH STREAMING TABLE silver.orders (CONSTRAINT positive EXPECT (qty > 0) ON VIOLATION DROP ROW) AS SELECT order_id, qty FROM STREAM(orders);`)
	p.write("landing/a.json", ordersLine(1, 2, "")+ordersLine(2, -2, "")+ordersLine(3, 5, ""))
	p.completed(RunOptions{})
	examples := regexp.MustCompile("(?ms)^```sql query\n(.*?)^```\n+```json rows\n(.*?)^```").FindAllStringSubmatch(page, -1)
	if len(examples) < 4 {
		t.Fatalf("only %d examples", len(examples))
	}
	for _, e := range examples {
		p.wantRows(e[1], strings.Split(strings.TrimSpace(e[2]), "\n")...)
	}
	// Every type that is written is on the page, and no other one.
	listed := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(page, -1)
	var names []string
	for _, m := range listed {
		if m[1] != "event_type" {
			names = append(names, m[1])
		}
	}
	for _, typ := range events.Types {
		if !slices.Contains(names, typ) {
			t.Errorf("%s is not on the page", typ)
		}
	}
	if len(names) != len(events.Types) {
		t.Errorf("the page has %v", names)
	}
}

// covers A218
func TestThePrefixLiveIsToldToBeDeprecated(t *testing.T) {
	p := newProject(t)
	p.write("sql/a.sql", "CREATE OR REFRESH STREAMING TABLE orders AS SELECT * FROM STREAM read_files('landing', format => 'json');\n"+
		"CREATE OR REFRESH STREAMING TABLE silver.orders AS\nSELECT * FROM STREAM(LIVE.orders);")
	p.write("landing/a.json", ordersLine(1, 2, ""))
	p.completed(RunOptions{})
	got := p.events(events.Filter{Types: []string{events.Deprecation}})
	if len(got) != 1 || got[0].Origin.DatasetName != "dev.silver.orders" || got[0].Level != events.Warn {
		t.Fatalf("%+v", got)
	}
	if d, _ := events.DetailsOf[events.DeprecationDetails](&got[0]); d.Line != 3 || !strings.HasPrefix(d.Instead, "Leave it out") || !strings.HasSuffix(d.File, "a.sql") {
		t.Errorf("%+v", d)
	}
}
