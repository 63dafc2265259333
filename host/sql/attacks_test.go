package sql

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/fault"
)

const canary = "CANARY-7f3a"

// readAttacks gives the texts of testdata/attacks.txt over a canary file of its own, and
// checks at the end that the file is as it was and that none was made.
func readAttacks(t testing.TB) []string {
	t.Helper()
	dir := t.TempDir()
	file, out := filepath.Join(dir, "canary.csv"), filepath.Join(dir, "out")
	content := "secret\n" + canary + "\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		got, err := os.ReadFile(file)
		if err != nil || string(got) != content {
			t.Errorf("the file was changed: %q %v", got, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("files were made: %v %v", entries, err)
		}
	})
	text, err := os.ReadFile("testdata/attacks.txt")
	if err != nil {
		t.Fatal(err)
	}
	var attacks []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			attacks = append(attacks, strings.NewReplacer("@file", file, "@out", out, "@table", "secrets").Replace(line))
		}
	}
	return attacks
}

// plantCanary puts a table with a canary into the engine's own instance, where no query may find it.
func plantCanary(t testing.TB, e *Engine) {
	t.Helper()
	c, err := e.db.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.release()
	if err := c.exec("CREATE TABLE secrets AS SELECT '" + canary + "' AS secret, 1 AS n"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c, err := e.db.connect()
		if err != nil {
			t.Fatal(err)
		}
		defer c.release()
		if rows, err := c.texts("SELECT secret FROM secrets WHERE ?::VARCHAR = ''", ""); err != nil || len(rows) != 1 || rows[0] != canary {
			t.Errorf("the table was changed: %v %v", rows, err)
		}
	})
}

// Each attack is an error with a name, from the operator's own SQL and from a guest's, as a query and as a
// part of one; and what is read and written stays what was granted.
func TestNoQueryReachesWhatItWasNotGranted(t *testing.T) {
	e := openEngine(t)
	plantCanary(t, e)
	rows := table(t, "n INT, s STRING", `[{"n":1,"s":"granted"}]`)
	defer rows.Release()
	check := func(t *testing.T, q Query) {
		t.Helper()
		got, err := run(t, e, q, map[string]arrow.RecordBatch{"t": rows})
		if err == nil || fault.CodeOf(err) == "" || fault.CodeOf(err) == "INTERNAL_ERROR" || fault.CodeOf(err) == "SQL_FAILED" {
			t.Errorf("guest %v: %s: %v %v", q.Guest != nil, q.Text+strings.Join(q.Expectations, ""), got, err)
		}
		if s := strings.Join(got, " "); strings.Contains(s, canary) || err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %s %v", q.Text, s, err)
		}
	}
	for _, attack := range readAttacks(t) {
		check(t, Query{Text: attack})
		check(t, Query{Text: attack, Guest: &Guest{}})
		// As a part of a query, where it is one; else it is no syntax.
		check(t, Query{Text: "SELECT * FROM t WHERE n IN (" + attack + "\n)", Guest: &Guest{}})
		check(t, Query{Text: "WITH x AS (" + attack + "\n) SELECT * FROM t", Guest: &Guest{}})
		check(t, Query{Text: "SELECT n FROM t", Expectations: []string{attack}, GuestRules: true})
		check(t, Query{Text: "SELECT n FROM t", Expectations: []string{"n > 0 OR n IN (" + attack + "\n)"}})
		if expression, ok := strings.CutPrefix(attack, "SELECT "); ok && !strings.Contains(expression, "FROM") && !strings.Contains(expression, ";") {
			check(t, Query{Text: "SELECT n FROM t", Expectations: []string{"n > 0 OR (" + expression + "\n) IS NULL"}})
			check(t, Query{Text: "SELECT n FROM t", Expectations: []string{"n > 0 OR (" + expression + "\n) IS NULL"}, GuestRules: true})
		}
		if _, err := NewEvaluator(func(context.Context) (*Engine, error) { return e, nil }, nil).Compile(t.Context(), rows.Schema(), []string{attack}); fault.CodeOf(err) == "" {
			t.Errorf("condition %s: %v", attack, err)
		}
	}
}

// Conditions and sequences of a module's AUTO CDC flow stand in a SELECT of the
// pipeline's own: each is one expression over the columns, and what it reads
// beside them is found before.
func TestNoExpressionOfAGuestLeavesItsPlace(t *testing.T) {
	e := openEngine(t)
	plantCanary(t, e)
	rows := table(t, "n INT, s STRING", `[{"n":1,"s":"granted"}]`)
	defer rows.Release()
	try := func(text string) error {
		if err := e.CheckGuestExpression(t.Context(), text); err != nil {
			if fault.CodeOf(err) == "" {
				t.Errorf("%s: no code: %v", text, err)
			}
			return err
		}
		got, err := run(t, e, Query{Text: "SELECT *, (" + text + "\n) AS computed FROM t"}, map[string]arrow.RecordBatch{"t": rows})
		if s := strings.Join(got, " "); strings.Contains(s, canary) || err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %s %v", text, s, err)
		}
		return err
	}
	for _, attack := range readAttacks(t) {
		for _, text := range []string{attack, "n IN (" + attack + "\n)", "(" + attack + "\n)", "1) AS a, (" + attack} {
			if try(text) == nil && strings.Contains(attack, "FROM") {
				t.Errorf("%s passes", text)
			}
		}
	}
	for _, text := range []string{
		"1) AS a, (2", "1) AS a FROM t UNION ALL SELECT (2", "1) AS a FROM secrets --", "1); SELECT (1", "*", "t.*", "COLUMNS('.*')", "n, s", "max(n)",
		"(SELECT max(n) FROM t)", "row_number() OVER ()", "random() > 0.5", "uuid()", "repeat(s, 1000000000)", "", "getenv('HOME')", "current_setting('home_directory')",
	} {
		if try(text) == nil {
			t.Errorf("%q passes", text)
		}
	}
	for _, text := range []string{"n > 0", "s = 'D' OR n IS NULL", "struct(n, s)", "coalesce(s, 'x') IN ('D', 'X')", "CASE WHEN n > 1 THEN true ELSE false END -- why"} {
		if err := try(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What an operator may do with the functions of the engine and a guest may not.
func TestGuestsHaveAShorterList(t *testing.T) {
	e := openEngine(t)
	rows := table(t, "n INT, s STRING, l ARRAY<INT>", `[{"n":1,"s":"granted","l":[1]}]`)
	defer rows.Release()
	in := map[string]arrow.RecordBatch{"t": rows}
	for _, c := range []string{
		"SELECT repeat('x', 2)", "SELECT range(3)", "SELECT sequence(1, 3)", "SELECT * FROM range(3)", "SELECT * FROM generate_series(1, 3)",
		"SELECT lpad(s, 20, ' ') FROM t", "SELECT format('{}', n) FROM t", "SELECT levenshtein(s, 'x') FROM t", "SELECT s LIKE s FROM t",
		"SELECT regexp_matches(s, s) FROM t", "SELECT histogram(n) FROM t", "SELECT list_reduce(l, lambda a, b: a + b) FROM t", "SELECT COLUMNS('.*') FROM t",
		"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r", "SELECT random()", "SELECT * FROM t TABLESAMPLE 1 ROWS",
		"SELECT unnest(l) FROM t", "SELECT json_extract(s, s) FROM t", "SELECT uuid()", "SELECT bitstring_agg(n, 0, 1000000000) FROM t",
	} {
		if _, err := run(t, e, Query{Text: c, Guest: &Guest{}}, in); fault.CodeOf(err) != "NOT_ALLOWED_FOR_GUESTS" {
			t.Errorf("%s: %v", c, err)
		}
	}
	for _, c := range append(bombs, doubled("n", "struct_pack(a := x, b := x)", 16)) {
		if _, err := run(t, e, Query{Text: c, Guest: &Guest{}}, in); fault.CodeOf(err) != "NOT_ALLOWED_FOR_GUESTS" && fault.CodeOf(err) != limitCode {
			t.Errorf("%.200s: %v", c, err)
		}
	}
}

func TestGuestsListHoldsNothingThatBlowsUp(t *testing.T) {
	for name, kind := range guestFunctions() {
		switch known := functions()[name]; {
		case known == refusedFunction && otherMeaning[name] == "" || known == randomFunction:
			t.Errorf("%s is %s", name, known)
		case known != "" && known != kind && known != clockFunction && kind != scalarFunction:
			t.Errorf("%s is %s on one list and %s on the other", name, kind, known)
		}
		for form := range boundedForms {
			if strings.HasPrefix(form, name+"/") {
				t.Errorf("%s needs a guard", name)
			}
		}
		if name == "format" || name == "printf" || strings.HasSuffix(name, "_reduce") || tableFunctions[name] {
			t.Errorf("%s is on the list", name)
		}
	}
}

func TestGuestsMayDoWhatIsPlain(t *testing.T) {
	e := openEngine(t)
	rows := table(t, "n INT, s STRING, l ARRAY<INT>", `[{"n":1,"s":"a-1","l":[1,2]},{"n":2,"s":"b-2","l":[3]},{"n":3,"s":null,"l":null}]`)
	defer rows.Release()
	for _, c := range []struct{ text, want string }{
		{"SELECT count(*) AS c, max(upper(s)) AS m FROM t", `3 "B-2"`},
		{"WITH a AS (SELECT n, n % 2 AS odd FROM t) SELECT odd, sum(n) AS s FROM a GROUP BY ALL ORDER BY odd", "0 2|1 4"},
		{"SELECT a.n, b.n FROM t AS a JOIN t AS b ON a.n + 1 = b.n ORDER BY 1", "1 2|2 3"},
		{"SELECT n FROM t WHERE s LIKE 'a%' OR n IN (SELECT max(n) FROM t) ORDER BY n DESC LIMIT 5", "3|1"},
		{"SELECT n, row_number() OVER (PARTITION BY n % 2 ORDER BY n DESC) AS r FROM t QUALIFY r = 1 ORDER BY n", "2 1|3 1"},
		{"SELECT regexp_extract(s, '([a-z])-([0-9])', 2), split_part(s, '-', 1) FROM t WHERE n = 1", `"1" "a"`},
		{"SELECT list_transform(l, lambda x: x * n)[0], l[1], {'a': n}.a FROM t WHERE n = 1", "1 2 1"},
		{"SELECT CASE WHEN n > 1 THEN 'x' ELSE nvl(s, '-') END AS c, CAST(n AS STRING) FROM t ORDER BY n", `"a-1" "1"|"x" "2"|"x" "3"`},
		{"SELECT current_date, year(current_timestamp) FROM t LIMIT 1", `"2026-04-13" 2026`},
		{"SELECT n FROM t UNION ALL SELECT 9 ORDER BY 1", "1|2|3|9"},
		{"VALUES (1, 'x'), (2, NULL)", `1 "x"|2 null`},
		{"SELECT sum(n) FILTER (WHERE n > 1), count(DISTINCT n), string_agg(s, ',' ORDER BY s) FROM t", `5 3 "a-1,b-2"`},
	} {
		got, err := run(t, e, Query{Text: c.text, Guest: &Guest{}}, map[string]arrow.RecordBatch{"t": rows})
		if err != nil || strings.Join(got, "|") != c.want {
			t.Errorf("%s: %s %v", c.text, strings.Join(got, "|"), err)
		}
	}
}

func TestParametersAreTypedValues(t *testing.T) {
	e := openEngine(t)
	rows := table(t, "n INT, s STRING", `[{"n":1,"s":"x' OR 'a' = 'a"}]`)
	defer rows.Release()
	for _, c := range []struct{ text, params, want, code string }{
		{"SELECT n FROM t WHERE s = ?", `["x' OR 'a' = 'a"]`, "1", ""},
		{"SELECT n FROM t WHERE s = ?", `["' OR true --"]`, "", ""},
		{"SELECT ?, ?, ?, ?", `[1, 1.5, true, "t"]`, `1 1.5 true "t"`, ""},
		{"SELECT $2, $1, $2", `["a", "b"]`, `"b" "a" "b"`, ""},
		{"SELECT ?, ?, ?", `[{"type":"date","value":"2026-01-31"},{"type":"decimal(10,2)","value":"1.50"},{"type":"timestamp","value":"2026-01-31T10:00:00Z"}]`, `"2026-01-31" 1.50 "2026-01-31T10:00:00Z"`, ""},
		{"SELECT ? IS NULL, ? IS NULL", `[null, {"type":"int","value":null}]`, "true true", ""},
		{"SELECT length(?)", `[{"type":"binary","value":"AAEC"}]`, "3", ""},
		{"SELECT octet_length(?)", `[{"type":"binary","value":"AAEC"}]`, "3", ""},
		{"SELECT 'a1' LIKE ?", `["a_"]`, "true", ""},
		{"SELECT ?", `[]`, "", "INVALID_QUERY_PARAMETER"},
		{"SELECT 1", `[1]`, "", "INVALID_QUERY_PARAMETER"},
		{"SELECT ?", `[{"type":"int","value":"1); SELECT 1"}]`, "", "INVALID_QUERY_PARAMETER"},
		{"SELECT ?", `[{"type":"int","value":"99999999999"}]`, "", "INVALID_QUERY_PARAMETER"},
		{"SELECT ?", `[{"type":"nope","value":"1"}]`, "", "INVALID_QUERY_PARAMETER"},
		{"SELECT ?", `[[1]]`, "", "INVALID_QUERY_REQUEST"},
		{"SELECT 'x' LIKE ?", `["` + strings.Repeat("%a", 200) + `"]`, "", limitCode},
		{"SELECT regexp_matches('x', ?)", `["(x{1000}){1000}"]`, "", limitCode},
	} {
		params, err := paramsOf(c.params)
		var got []string
		if err == nil {
			got, err = run(t, e, Query{Text: c.text, Guest: &Guest{Params: params}}, map[string]arrow.RecordBatch{"t": rows})
		}
		if fault.CodeOf(err) != c.code || strings.Join(got, "|") != c.want {
			t.Errorf("%s %s: %v %v", c.text, c.params, got, err)
		}
	}
}

func TestBoundsOfGuestsHaveNames(t *testing.T) {
	e := openEngine(t)
	rows := bombTable(t)
	defer rows.Release()
	var deep strings.Builder
	for range 3000 {
		deep.WriteString("1 + ")
	}
	for _, c := range []struct {
		text, limit string
		guest       Guest
	}{
		{"SELECT n FROM t", "query_rows = 999", Guest{Rows: 999}},
		{"SELECT s || s FROM t", "query_bytes = 4000", Guest{Bytes: 4000}},
		{"SELECT count(*) FROM t a, t b, t c, t d WHERE a.n + b.n * c.n + d.n = 17", "query_time = 200ms", Guest{Time: 200 * time.Millisecond}},
		{"SELECT a.n FROM t a, t b, t c, t d", "query_rows = 100000", Guest{Rows: 100000}},
		{"SELECT '" + strings.Repeat("x", 1<<16) + "'", "query_text = 65536", Guest{}},
		{"SELECT " + strings.Repeat("(", 2000) + "1" + strings.Repeat(")", 2000), "query_depth = 100", Guest{}},
		{deep.String(), "", Guest{}},
		{"SELECT " + deep.String() + "1", "", Guest{}},
		{"SELECT 1 IN (" + strings.Repeat("1,", 20000) + "1)", "query_parts = 5000", Guest{}},
		{"SELECT " + strings.Repeat("n,", 1000) + "n FROM t", "query_columns = 500", Guest{}},
		{"SELECT s LIKE '" + strings.Repeat("%a", 1000) + "' FROM t", "query_pattern = 256", Guest{}},
		{"SELECT regexp_matches(s, '(x{100}){100}y{900}') FROM t", "query_pattern_repeats = 1000", Guest{}},
		{doubled("s", "x || x", 20) + " FROM t", "", Guest{}},
	} {
		start := time.Now()
		_, err := run(t, e, Query{Text: c.text, Guest: &c.guest}, map[string]arrow.RecordBatch{"t": rows})
		if c.limit == "" && fault.CodeOf(err) == "" || c.limit != "" && (fault.CodeOf(err) != limitCode || !strings.Contains(err.Error(), c.limit)) {
			t.Errorf("%.100s: %.300v, want %s", c.text, err, c.limit)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%.100s took %s", c.text, took)
		}
	}
}

func paramsOf(list string) ([]Param, error) {
	q, err := abi.ParseQuery([]byte(`{"sql": "-", "params": ` + list + `}`))
	out := make([]Param, len(q.Params))
	for i, p := range q.Params {
		out[i] = Param(p)
	}
	return out, err
}

// The same from a pipeline's files: as the query of a dataset, of a flow, and as a condition.
func TestNoPipelineFileReachesWhatItWasNotGranted(t *testing.T) {
	e := openEngine(t)
	plantCanary(t, e)
	rows := table(t, "n INT, s STRING", `[{"n":1,"s":"granted"}]`)
	defer rows.Release()
	for _, attack := range readAttacks(t) {
		for _, file := range []string{
			"CREATE OR REFRESH MATERIALIZED VIEW mv AS " + attack,
			"CREATE OR REFRESH MATERIALIZED VIEW mv AS SELECT * FROM t WHERE n IN (" + attack + "\n)",
			"CREATE FLOW f AS INSERT INTO ONCE mv BY NAME " + attack,
			attack,
		} {
			err := runPipelineFile(t, e, file, rows)
			if code := fault.CodeOf(err); code == "" || code == "INTERNAL_ERROR" || code == "SQL_FAILED" || strings.Contains(err.Error(), canary) {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// runPipelineFile runs the queries of a file over the table t; a relation that is neither that nor
// known to the file is a table that was not found.
func runPipelineFile(t *testing.T, e *Engine, text string, rows arrow.RecordBatch) error {
	t.Helper()
	statements, err := ParsePipeline("attack.sql", text, Settings{})
	if err != nil {
		return err
	}
	if len(statements) == 0 {
		// USE and SET say what names and keys of the file mean; nothing of them reaches the engine.
		return fault.New("NO_STATEMENT", "the file defines nothing")
	}
	for i := range statements {
		for _, s := range statements[i].Sources {
			if s.Table != "t" {
				return fault.New("TABLE_OR_VIEW_NOT_FOUND", "%s", s.Table)
			}
		}
		got, err := run(t, e, statements[i].Select(), map[string]arrow.RecordBatch{"t": rows})
		if err != nil {
			return err
		}
		if s := strings.Join(got, " "); strings.Contains(s, canary) {
			t.Errorf("%s: %s", text, s)
		}
	}
	return nil
}
