package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

// The columns and expressions of an AUTO CDC flow are checked against its
// source, and the plan says what it would do and which columns the table has.
// covers A56 A57 A58 A59 A64 A65 A66 A67 A69
func TestAutoCDCIsPlannedAgainstItsSource(t *testing.T) {
	p := newProject(t)
	for name, c := range map[string]struct {
		changes, code string
		says          string // of the error, or the columns of the table
	}{
		"type 1":                {"KEYS (id) APPLY AS DELETE WHEN op = 'D' APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY STRUCT(ts, seq) COLUMNS * EXCEPT (op, seq, ts)", "", "id:bigint name:string addr:struct<city:string>"},
		"type 2":                {"KEYS (id) SEQUENCE BY seq COLUMNS (id, name) STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (name)", "", "id:bigint name:string __START_AT:bigint __END_AT:bigint"},
		"another case":          {"KEYS (ID) SEQUENCE BY seq COLUMNS * EXCEPT (op, seq, ts, addr)", "", "id:bigint name:string"},
		"nulls of a field":      {"KEYS (id) IGNORE NULL UPDATES ON (addr.city) SEQUENCE BY seq COLUMNS (id, name)", "", "id:bigint name:string"},
		"no key":                {"KEYS (idd) SEQUENCE BY seq", "UNRESOLVED_COLUMN", `KEYS names "idd"`},
		"a key twice":           {"KEYS (id, ID) SEQUENCE BY seq", "PARSE_SYNTAX_ERROR", "twice"},
		"no column":             {"KEYS (id) SEQUENCE BY seq COLUMNS (id, nam)", "UNRESOLVED_COLUMN", `Did you mean "name"`},
		"nothing to leave out":  {"KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (opp)", "UNRESOLVED_COLUMN", "COLUMNS * EXCEPT"},
		"no history":            {"KEYS (id) SEQUENCE BY seq STORED AS SCD TYPE 2 TRACK HISTORY ON (nam)", "UNRESOLVED_COLUMN", "TRACK HISTORY ON"},
		"no nulls":              {"KEYS (id) IGNORE NULL UPDATES ON (nam) SEQUENCE BY seq", "UNRESOLVED_COLUMN", "IGNORE NULL UPDATES ON"},
		"no sequence":           {"KEYS (id) SEQUENCE BY seqq", "UNRESOLVED_COLUMN", "SEQUENCE BY"},
		"a delete that is none": {"KEYS (id) APPLY AS DELETE WHEN seq + 1 SEQUENCE BY seq", "DATATYPE_MISMATCH", "APPLY AS DELETE WHEN"},
		"a delete of nothing":   {"KEYS (id) APPLY AS DELETE WHEN opp = 'D' SEQUENCE BY seq", "UNRESOLVED_COLUMN", "opp"},
		"truncate and history":  {"KEYS (id) APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY seq STORED AS SCD TYPE 2", "PARSE_SYNTAX_ERROR", "SCD TYPE 1"},
		"a key left out":        {"KEYS (id) SEQUENCE BY seq COLUMNS (name)", "AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA", "Keep the keys"},
		"history of type 1":     {"KEYS (id) SEQUENCE BY seq STORED AS SCD TYPE 1 TRACK HISTORY ON (name)", "PARSE_SYNTAX_ERROR", "SCD"},
	} {
		p.write("sql/a.sql", `
CREATE TEMPORARY VIEW changes AS SELECT id, name, op, seq, ts, addr FROM STREAM read_files('landing', format => 'json', schema => 'id BIGINT, name STRING, op STRING, seq BIGINT, ts TIMESTAMP, addr STRUCT<city: STRING>');
CREATE STREAMING TABLE t;
CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(changes) `+c.changes+";")
		p.write("landing/1.json", `{"id": 1}`)
		pl, err := p.tryOpen()
		var plan *Plan
		if err == nil {
			plan, err = pl.Plan(t.Context())
			if closing := pl.Close(t.Context()); closing != nil {
				t.Error(closing)
			}
		}
		if c.code != "" {
			if !fault.Is(err, c.code) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want [%s] that says %s", name, err, c.code, c.says)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var columns []string
		for _, d := range plan.Datasets {
			if d.Name == "dev.bronze.t" {
				for _, col := range d.Columns {
					columns = append(columns, col.Name+":"+col.Type)
				}
			}
		}
		if got := strings.Join(columns, " "); got != c.says {
			t.Errorf("%s: the table has %s, want %s", name, got, c.says)
		}
		if f := plan.Flows[len(plan.Flows)-1]; f.Kind != "auto_cdc" || f.Changes == nil || f.Changes.Source != "changes" || !strings.EqualFold(f.Changes.Keys[0], "id") || f.Changes.SequenceBy == "" || f.Changes.SCDType < 1 {
			t.Errorf("%s: %+v %+v", name, f, f.Changes)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "lake")); !os.IsNotExist(err) {
		t.Errorf("planning made the storage: %v", err)
	}
}
