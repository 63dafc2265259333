package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/weir-data/weir/sdk/go/weirtest"
)

const (
	kna1Columns     = "KUNNR string, NAME1 string, STRAS string, PSTLZ string, ORT01 string, LAND1 string, KUKLA string, _tech_extract_date date, _tech_source_file string"
	customerRows    = "customer_id string, customer_name string, street string, postal_code string, city string, country string, customer_segment string"
	nextOfAll       = "SELECT min(_tech_extract_date) AS day FROM bronze.sap_kna1"
	nextAfterLatest = nextOfAll + " WHERE _tech_extract_date > ?"
)

var someRows = []weirtest.Row{
	{"0000000300", "Anchor", "Quay 1", "20457", "Hamburg", "DE", "A"},
	{"0000000301", "Buoy", nil, "", "Bremen", "DE", nil},
	{"0000000302", "Capstan", "Pier 2", "01067", "Dresden", "DE", "B"},
}

// asked gives the parameters of a run's queries, by their text.
func asked(t *testing.T, r *weirtest.Result) map[string]string {
	t.Helper()
	params := map[string]string{}
	for _, text := range r.Queries {
		var q struct {
			SQL    string          `json:"sql"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal([]byte(text), &q); err != nil {
			t.Fatal(err)
		}
		params[q.SQL] = string(q.Params)
	}
	return params
}

// provider is the module over a bronze table in which day is the next extract.
func provider(t *testing.T, latest *weirtest.Version, day any, rows ...weirtest.Row) *weirtest.Result {
	t.Helper()
	m := weirtest.Load(t, nil)
	m.Context.LatestVersion = latest
	next := weirtest.Table("day date", weirtest.Row{day})
	m.Answers = map[string]*weirtest.Input{
		nextOfAll: next, nextAfterLatest: next,
		extractQuery("bronze.sap_kna1"): weirtest.Table(customerRows, rows...).Batches(2),
	}
	return m.Run("next_kna1_snapshot", weirtest.Table(kna1Columns))
}

// covers A78 A80
func TestTheFirstExtractIsTheOldest(t *testing.T) {
	r := provider(t, nil, "2026-07-27", someRows...)
	r.Equal(t, someRows...)
	if want := `{"version":{"type":"date","value":"2026-07-27"}}`; r.Result != want {
		t.Errorf("the provider said %s, want %s", r.Result, want)
	}
	params := asked(t, r)
	if got := params[nextOfAll]; got != "[]" {
		t.Errorf("the first day was asked for with %s", got)
	}
	if got, want := params[extractQuery("bronze.sap_kna1")], `[{"type":"date","value":"2026-07-27"}]`; got != want {
		t.Errorf("the extract was asked for with %s, want %s", got, want)
	}
}

// covers A78 A80 A92
func TestTheNextExtractIsTheFirstAfterTheLatest(t *testing.T) {
	r := provider(t, &weirtest.Version{Type: "date", Value: "2026-07-27"}, "2026-07-30", someRows[1])
	r.Equal(t, someRows[1])
	if want := `{"version":{"type":"date","value":"2026-07-30"}}`; r.Result != want {
		t.Errorf("the provider said %s, want %s", r.Result, want)
	}
	params := asked(t, r)
	if got, want := params[nextAfterLatest], `[{"type":"date","value":"2026-07-27"}]`; got != want {
		t.Errorf("the next day was asked for with %s, want %s", got, want)
	}
	if _, all := params[nextOfAll]; all {
		t.Error("the provider began again with the first extract")
	}
}

// covers A78 A85
func TestNothingAfterTheLatestIsTheEnd(t *testing.T) {
	r := provider(t, &weirtest.Version{Type: "date", Value: "2026-07-30"}, nil)
	r.Equal(t)
	if want := `{"done":true}`; r.Result != want {
		t.Errorf("the provider said %s, want %s", r.Result, want)
	}
	if len(r.Queries) != 1 {
		t.Errorf("the provider asked %d questions, want 1: %v", len(r.Queries), r.Queries)
	}
}

func TestAnEmptyExtractIsAnExtract(t *testing.T) {
	r := provider(t, nil, "2026-07-27")
	r.Equal(t)
	if want := `{"version":{"type":"date","value":"2026-07-27"}}`; r.Result != want {
		t.Errorf("the provider said %s, want %s", r.Result, want)
	}
	var names []string
	for _, f := range r.Fields {
		names = append(names, f.Name)
	}
	if want := []string{"customer_id", "customer_name", "street", "postal_code", "city", "country", "customer_segment"}; !slices.Equal(names, want) {
		t.Errorf("the columns are %v, want %v", names, want)
	}
}

func TestAQueryThatFailsFailsTheProvider(t *testing.T) {
	m := weirtest.Load(t, nil)
	m.Answers = map[string]*weirtest.Input{nextOfAll: weirtest.Table("day date", weirtest.Row{"2026-07-27"})}
	if r := m.Run("next_kna1_snapshot", weirtest.Table(kna1Columns)); r.Err == nil {
		t.Error("an extract that could not be read passed as one without customers")
	}
}

// covers A77 A84 A93 A193
func TestOnlyTheSegmentOpensAVersion(t *testing.T) {
	var m struct {
		Datasets []struct {
			Name, Type string
			Properties map[string]string `json:"table_properties"`
		}
		Flows []struct {
			Name, Type, Target, Function string
			Keys                         []string
			SCDType                      int      `json:"stored_as_scd_type"`
			TrackHistory                 []string `json:"track_history_column_list"`
		}
		Functions []struct {
			Kind   string
			Inputs []struct{ Dataset, Mode string }
		}
	}
	text := weirtest.Load(t, map[string]string{"kna1.source": "raw.kna1", "kna1.target": "core.customer", "kna1.max_shrink": "0.1"}).Manifest()
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Flows) != 1 || len(m.Functions) != 1 || len(m.Datasets) != 1 {
		t.Fatalf("the manifest is %s", text)
	}
	f := m.Flows[0]
	if f.Type != "auto_cdc_from_snapshot" || f.Target != "core.customer" || m.Datasets[0].Name != "core.customer" || m.Datasets[0].Type != "streaming_table" ||
		f.SCDType != 2 || !slices.Equal(f.Keys, []string{"customer_id"}) || !slices.Equal(f.TrackHistory, []string{"customer_segment"}) {
		t.Errorf("the flow is %+v into %+v", f, m.Datasets)
	}
	if p := m.Datasets[0].Properties; len(p) != 1 || p["pipelines.cdc.maxShrink"] != "0.1" {
		t.Errorf("the table's properties are %v", p)
	}
	if fn := m.Functions[0]; fn.Kind != "snapshot" || fn.Inputs[0].Dataset != "raw.kna1" || fn.Inputs[0].Mode != "batch" {
		t.Errorf("the provider is %+v", fn)
	}
}
