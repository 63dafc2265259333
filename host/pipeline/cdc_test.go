package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/sql"
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
		"a field as a key":      {"KEYS (addr.city) SEQUENCE BY seq", "AUTOCDC_MULTIPART_COLUMN_IDENTIFIER", "KEYS"},
		"no order":              {"KEYS (id) SEQUENCE BY map('a', seq)", "AUTOCDC_MICROBATCH_VALIDATION.NON_ORDERABLE_SEQUENCE", "map<string,bigint>"},
		"nulls of a key":        {"KEYS (id) IGNORE NULL UPDATES ON (id) SEQUENCE BY seq", "INVALID_FLOW", "never NULL"},
		"no order at all":       {"KEYS (id)", "PARSE_SYNTAX_ERROR", "no SEQUENCE BY"},
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

// What the target's own columns are called, the source may not call its own; and a
// list of declared columns has those of the interval.
// covers A69
func TestTheTargetsColumnsOfAutoCDC(t *testing.T) {
	for name, c := range map[string]struct{ source, columns, clauses, code, says string }{
		"a column of the interval":       {"id, seq, seq AS __END_AT", "", "", "AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT", "__END_AT"},
		"a column of the flow":           {"id, seq, seq AS __autocdc_sequence", "", "", "AUTOCDC_RESERVED_COLUMN_NAME_PREFIX_CONFLICT", "__autocdc_"},
		"declared with the interval":     {"id, seq", "(id BIGINT, seq BIGINT, __START_AT BIGINT, __END_AT BIGINT)", "STORED AS SCD TYPE 2", "", ""},
		"declared without it":            {"id, seq", "(id BIGINT, seq BIGINT)", "STORED AS SCD TYPE 2", "INCOMPATIBLE_SCHEMA", `"__START_AT"`},
		"declared with an other type":    {"id, seq", "(id BIGINT, seq BIGINT, __START_AT STRING, __END_AT STRING)", "STORED AS SCD TYPE 2", "INCOMPATIBLE_COLUMN_TYPE", "bigint"},
		"declared for what has none":     {"id, seq", "(id BIGINT, seq BIGINT, __START_AT BIGINT, __END_AT BIGINT)", "", "UNRESOLVED_COLUMN", "__START_AT"},
		"ties of a column there is not":  {"id, seq", "TBLPROPERTIES ('pipelines.cdc.ties' = 'last_by(line)')", "", "UNRESOLVED_COLUMN", "pipelines.cdc.ties"},
		"ties in other words":            {"id, seq", "TBLPROPERTIES ('pipelines.cdc.ties' = 'newest')", "", "INVALID_OPTION", "last_by(column"},
		"a setting there is not":         {"id, seq", "TBLPROPERTIES ('pipelines.cdc.tie' = 'error')", "", "UNKNOWN_OPTION", "pipelines.cdc.ties"},
		"tombstones of no length":        {"id, seq", "TBLPROPERTIES ('pipelines.cdc.tombstoneGCThresholdInSeconds' = 'a day')", "", "INVALID_OPTION", "number of seconds"},
		"a table that is only added to":  {"id, seq", "TBLPROPERTIES ('delta.appendOnly' = 'true')", "", "DELTA_CANNOT_MODIFY_APPEND_ONLY", "AUTO CDC"},
		"a table with all its settings":  {"id, seq", "TBLPROPERTIES ('pipelines.cdc.ties' = 'LAST_BY(seq)', 'pipelines.applyChanges.tombstoneGCThresholdInSeconds' = '86400')", "", "", ""},
		"columns by hand that it claims": {"id, seq, true AS _tech_is_current", "", "STORED AS SCD TYPE 2", "INTERVAL_COLUMN_BY_HAND", "_tech_is_current"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.write("landing/1.json", `{"id": 1}`)
			p.write("sql/a.sql", `
CREATE TEMPORARY VIEW changes AS SELECT `+c.source+` FROM STREAM read_files('landing', format => 'json', schema => 'id BIGINT, seq BIGINT');
CREATE STREAMING TABLE t `+c.columns+`;
CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(changes) KEYS (id) SEQUENCE BY seq `+c.clauses+";")
			pl, err := p.tryOpen()
			if err == nil {
				_, err = pl.Plan(t.Context())
				if closing := pl.Close(t.Context()); closing != nil {
					t.Error(closing)
				}
			}
			if c.code == "" && err != nil || c.code != "" && (!fault.Is(err, c.code) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want %q that says %s", err, c.code, c.says)
			}
		})
	}
}

// The expressions of a module's flow are held to the list of guests.
func TestExpressionsOfAGuestsChanges(t *testing.T) {
	p := newProject(t)
	p.write("sql/a.sql", "CREATE STREAMING TABLE t AS SELECT 1 AS id FROM STREAM read_files('landing', format => 'json', schema => 'id BIGINT');")
	pl := p.open()
	defer func() {
		if err := pl.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []changes{
		{sequenceBy: sql.Expression{Text: "uuid()"}},
		{sequenceBy: sql.Expression{Text: "seq"}, deleteWhen: sql.Expression{Text: "op = 'D') AS a, (SELECT 1"}},
		{sequenceBy: sql.Expression{Text: "seq"}, truncateWhen: sql.Expression{Text: "(SELECT count(*) > 0 FROM t)"}},
	} {
		c.guest = true
		if err := pl.engine.checkChanges(t.Context(), &c); fault.CodeOf(err) == "" || !strings.Contains(err.Error(), "may not be computed") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	good := changes{sequenceBy: sql.Expression{Text: "struct(ts, seq)"}, deleteWhen: sql.Expression{Text: "op = 'D'"}, guest: true}
	if err := pl.engine.checkChanges(t.Context(), &good); err != nil {
		t.Error(err)
	}
}

// A manifest says all that SQL does: the same flow in either has the same changes.
// covers A56 A66 A68
func TestAManifestsChangesAreThoseOfSQL(t *testing.T) {
	for text, decl := range map[string]abi.Flow{
		"KEYS (a, b) IGNORE NULL UPDATES APPLY AS DELETE WHEN op = 'D' APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY struct(ts, n) COLUMNS * EXCEPT (op)": {
			Keys: []string{"a", "b"}, IgnoreNullUpdates: true, ApplyAsDeletes: "op = 'D'", ApplyAsTruncates: "op = 'T'", SequenceBy: "struct(ts, n)",
			ExceptColumnList: []string{"op"}, StoredAsSCDType: 1,
		},
		"KEYS (a) IGNORE NULL UPDATES ON (b) SEQUENCE BY n COLUMNS (a, b) STORED AS SCD TYPE 2 TRACK HISTORY ON (b)": {
			Keys: []string{"a"}, IgnoreNullUpdatesColumnList: []string{"b"}, SequenceBy: "n", ColumnList: []string{"a", "b"}, StoredAsSCDType: 2, TrackHistoryColumnList: []string{"b"},
		},
		"KEYS (a) IGNORE NULL UPDATES ON * EXCEPT (b) SEQUENCE BY n STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (b)": {
			Keys: []string{"a"}, IgnoreNullUpdatesExceptList: []string{"b"}, SequenceBy: "n", StoredAsSCDType: 2, TrackHistoryExceptColumnList: []string{"b"},
		},
	} {
		statements, err := sql.ParsePipeline("a.sql", "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(s) "+text+";", sql.Settings{Catalog: "c", Schema: "s"})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := changesOfManifest(&decl).print(), changesOfStatement(statements[0].CDC).print(); got != want {
			t.Errorf("%s:\n%s\n%s", text, got, want)
		}
	}
	ties := changesOfManifest(&abi.Flow{TiesLastBy: []string{"line"}})
	f := &flow{cdc: ties, target: &dataset{properties: map[string]string{tiesProperty: "last_by(other)"}}}
	if by, err := f.lastBy(); err != nil || len(by) != 1 || by[0] != "line" || !ties.guest {
		t.Error(by, err)
	}
}
