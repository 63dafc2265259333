package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/catalog"
	"github.com/weir-data/weir/host/fault"
)

const intervalSource = `CREATE STREAMING TABLE feed AS SELECT id, name, seq, _tech_is_current FROM STREAM read_files('./landing', format => 'json', schema => 'id BIGINT, name STRING, seq BIGINT, _tech_is_current BOOLEAN');
`

// history is a pipeline with one table kept by AUTO CDC.
func history(table, clauses string) string {
	return intervalSource + "CREATE STREAMING TABLE silver.t " + table + ";\nCREATE FLOW f AS AUTO CDC INTO silver.t FROM STREAM(feed) KEYS (id) SEQUENCE BY seq " + clauses + ";"
}

const withoutHandmade = "COLUMNS * EXCEPT (seq, _tech_is_current) "

// covers A55 A69 A88 A89: a contract's columns, and the view that shows one under the names of the other.
func TestTheContractOfIntervalsIsPlanned(t *testing.T) {
	const view = "TBLPROPERTIES ('weir.intervalView' = 'true')"
	for what, c := range map[string]struct{ spec, table, clauses, dataset, columns string }{
		"auto_cdc is the default": {"", "", withoutHandmade + "STORED AS SCD TYPE 2", "dev.silver.t", "id bigint, name string, __START_AT bigint, __END_AT bigint"},
		"auto_cdc":                {"interval_columns: auto_cdc", "", withoutHandmade + "STORED AS SCD TYPE 2", "dev.silver.t", "id bigint, name string, __START_AT bigint, __END_AT bigint"},
		"tech":                    {"interval_columns: tech", "", withoutHandmade + "STORED AS SCD TYPE 2", "dev.silver.t", "id bigint, name string, _tech_valid_from bigint, _tech_valid_to bigint, _tech_is_current boolean, _tech_hash string"},
		"no history":              {"interval_columns: tech", "", withoutHandmade, "dev.silver.t", "id bigint, name string"},
		"a view":                  {"", view, withoutHandmade + "STORED AS SCD TYPE 2", "dev.silver.t_intervals", "id bigint, name string, _tech_valid_from bigint, _tech_valid_to bigint, _tech_is_current boolean"},
	} {
		t.Run(what, func(t *testing.T) {
			p := newProject(t, c.spec)
			p.write("landing/1.json", `{"id": 1}`)
			p.write("sql/t.sql", history(c.table, c.clauses))
			plan, err := p.open().Plan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(plan.Datasets, func(d DatasetPlan) bool { return d.Name == c.dataset })
			if at < 0 {
				t.Fatalf("no %s in %+v", c.dataset, plan.Datasets)
			}
			var columns []string
			for _, f := range plan.Datasets[at].Columns {
				columns = append(columns, f.Name+" "+f.Type)
			}
			if got := strings.Join(columns, ", "); got != c.columns {
				t.Errorf("the columns are %s, want %s", got, c.columns)
			}
		})
	}
}

// covers A90 A94
func TestWhatWouldBreakTheContractIsRefused(t *testing.T) {
	const view = "TBLPROPERTIES ('weir.intervalView' = 'true')"
	for what, c := range map[string]struct {
		spec, sql, code string
		says            []string
	}{
		"a column by hand":          {"", history("", "COLUMNS * EXCEPT (seq) STORED AS SCD TYPE 2"), "INTERVAL_COLUMN_BY_HAND", []string{"_tech_is_current", "t_intervals", "COLUMNS * EXCEPT (_tech_is_current)"}},
		"by hand beside tech":       {"interval_columns: tech", history("", "COLUMNS * EXCEPT (seq) STORED AS SCD TYPE 2"), "INTERVAL_COLUMN_BY_HAND", []string{"_tech_is_current"}},
		"an unknown contract":       {"interval_columns: valid", history("", withoutHandmade), "INVALID_SPEC", []string{"auto_cdc", "tech"}},
		"a view of no history":      {"", history(view, withoutHandmade), "INVALID_OPTION", []string{"weir.intervalView", "SCD TYPE 2"}},
		"a view of a table's own":   {"interval_columns: tech", history(view, withoutHandmade+"STORED AS SCD TYPE 2"), "INVALID_OPTION", []string{"itself"}},
		"a view with a taken name":  {"", history(view, withoutHandmade+"STORED AS SCD TYPE 2") + "CREATE VIEW silver.t_intervals AS SELECT 1 AS a FROM silver.t;", "PIPELINE_DUPLICATE_IDENTIFIERS", []string{"t_intervals"}},
		"neither true nor false":    {"", history("TBLPROPERTIES ('weir.intervalView' = 'yes')", withoutHandmade+"STORED AS SCD TYPE 2"), "INVALID_OPTION", []string{"yes"}},
		"a between in the pipeline": {"", history("", withoutHandmade+"STORED AS SCD TYPE 2") + "CREATE MATERIALIZED VIEW g AS SELECT t.id FROM feed JOIN silver.t AS t ON feed.seq BETWEEN t.__START_AT AND t.__END_AT;", "INTERVAL_BETWEEN", []string{"feed.seq < t.__END_AT OR t.__END_AT IS NULL"}},
	} {
		t.Run(what, func(t *testing.T) {
			p := newProject(t, c.spec)
			p.write("landing/1.json", `{"id": 1}`)
			p.write("sql/t.sql", c.sql)
			pl, err := p.tryOpen()
			if err == nil {
				t.Cleanup(func() { _ = pl.Close(t.Context()) })
				_, err = pl.Plan(t.Context())
			}
			if fault.CodeOf(err) != c.code {
				t.Fatalf("%v, want %s", err, c.code)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v does not say %s", err, part)
				}
			}
		})
	}
}

// covers A90
func TestACatalogKeepsOneContract(t *testing.T) {
	p := newProject(t, "interval_columns: tech")
	p.write("sql/t.sql", history("", withoutHandmade+"STORED AS SCD TYPE 2"))
	p.write("landing/1.json", `{"id": 1}`)
	p.write("lake/_weir/_catalog/keep", "")
	pl := p.open()
	name := func(table string) catalog.Name { return catalog.Name{Catalog: "dev", Schema: "silver", Table: table} }
	if err := pl.catalog().Agree(t.Context(), name("customer"), "dwh", intervalsAutoCDC); err != nil {
		t.Fatal(err)
	}
	if err := pl.catalog().Agree(t.Context(), name("other"), "shop", intervalsAutoCDC); err != nil {
		t.Fatal(err)
	}
	_, err := pl.Plan(t.Context())
	if fault.CodeOf(err) != "INTERVAL_CONTRACT_CONFLICT" {
		t.Fatalf("another contract: %v", err)
	}
	for _, part := range []string{"dev.silver.t", "dev.silver.customer", "pipeline dwh", "interval_columns: auto_cdc"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %s", err, part)
		}
	}
	// Another catalog is another warehouse.
	p.write("weir.yaml", fmt.Sprintf("name: test\ncatalog: prod\nschema: bronze\nstorage: lake\nlibraries:\n  - glob: {include: sql/**}\ninterval_columns: %s\n", intervalsTech))
	if _, err := p.open().Plan(t.Context()); err != nil {
		t.Error(err)
	}
}
