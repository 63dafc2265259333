package sql

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// versions is a table with history of either contract: K1 moves on the 3rd and is gone on the 5th, K2
// stays as it is, K3 is deleted and comes back.
func versions(t *testing.T, start, end string) arrow.RecordBatch {
	t.Helper()
	rows := `[{"id":"K1","segment":"A","START":"2026-07-01","END":"2026-07-03"},{"id":"K1","segment":"B","START":"2026-07-03","END":"2026-07-05"},
		{"id":"K2","segment":"A","START":"2026-07-01","END":null},
		{"id":"K3","segment":"C","START":"2026-07-02","END":"2026-07-04"},{"id":"K3","segment":"C","START":"2026-07-06","END":null}]`
	return table(t, "id STRING, segment STRING, "+start+" DATE, "+end+" DATE", strings.NewReplacer("START", start, "END", end).Replace(rows))
}

var contracts = [][2]string{{"__START_AT", "__END_AT"}, {"_tech_valid_from", "_tech_valid_to"}}

// covers A91, A171–A173, A209: at the instant of a change there is one version.
func TestVersionsAreChosenByTheirInterval(t *testing.T) {
	e := openEngine(t)
	for _, names := range contracts {
		start, end := names[0], names[1]
		orders := table(t, "number INT, id STRING, day DATE", `[{"number":1,"id":"K1","day":"2026-07-02"},{"number":2,"id":"K1","day":"2026-07-03"},
			{"number":3,"id":"K1","day":"2026-07-05"},{"number":4,"id":"K2","day":"2026-07-05"},{"number":5,"id":"K9","day":"2026-07-05"}]`)
		for text, want := range map[string]string{
			"SELECT id FROM current(silver.c) ORDER BY id":                                                                                                                        "K2|K3",
			"SELECT x.id FROM CURRENT(`silver`.`c`) AS x WHERE x.segment = 'A'":                                                                                                   "K2",
			"SELECT id, segment FROM as_of(silver.c, DATE '2026-07-02') ORDER BY id":                                                                                              "K1 A|K2 A|K3 C",
			"SELECT id, segment FROM as_of(silver.c, '2026-07-03') ORDER BY id":                                                                                                   "K1 B|K2 A|K3 C",
			"SELECT id, segment FROM as_of(silver.c, TIMESTAMP '2026-07-04 12:00:00') ORDER BY id":                                                                                "K1 B|K2 A",
			"SELECT id FROM as_of(silver.c, DATE '2026-06-30')":                                                                                                                   "",
			"SELECT id FROM as_of(silver.c, NULL)":                                                                                                                                "",
			"SELECT id, count(*) AS n FROM (SELECT * FROM as_of(silver.c, (SELECT max(day) FROM o))) GROUP BY id":                                                                 "K2 1",
			"SELECT id, segment FROM changes_between(silver.c, '2026-07-01', '2026-07-31') ORDER BY id":                                                                           "K1 B|K3 C",
			"SELECT id FROM changes_between(silver.c, '2026-07-03', '2026-07-03')":                                                                                                "K1",
			"SELECT id FROM changes_between(silver.c, '2026-07-04', '2026-07-05')":                                                                                                "",
			"SELECT id FROM changes_between(silver.c, '2026-07-01', '2026-07-31', segment) ORDER BY id":                                                                           "K3",
			"SELECT number, c.segment FROM o LEFT JOIN as_of(silver.c, o.day) AS c ON c.id = o.id ORDER BY number":                                                                "1 A|2 B|3 null|4 A|5 null",
			"SELECT number, c.segment FROM o, as_of(silver.c, o.day) AS c WHERE c.id = o.id ORDER BY number":                                                                      "1 A|2 B|4 A",
			"SELECT number, c.segment FROM o JOIN silver.c AS c ON c.id = o.id AND o.day >= c." + start + " AND (o.day < c." + end + " OR c." + end + " IS NULL) ORDER BY number": "1 A|2 B|4 A",
			// Seed 003 writes changes within a period so, and BETWEEN is right there.
			"SELECT id FROM silver.c AS c WHERE " + start + " BETWEEN '2026-07-01' AND '2026-07-31' AND " + start + " != (SELECT min(" + start + ") FROM silver.c c2 WHERE c2.id = c.id) ORDER BY id": "K1|K3",
		} {
			refs, err := e.Relations(context.Background(), text)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			inputs := map[string]arrow.RecordBatch{}
			for _, name := range refs {
				inputs[name] = orders
				if name == "silver.c" {
					inputs[name] = versions(t, start, end)
				}
			}
			rows, err := run(t, e, Query{Text: text, Keys: map[string][]string{"silver.c": {"id"}}}, inputs)
			if got := strings.ReplaceAll(strings.Join(rows, "|"), `"`, ""); err != nil || got != want {
				t.Errorf("%s: %s, %v, want %s", text, got, err, want)
			}
		}
	}
}

// covers A91 A94
func TestMistakesWithIntervalsAreNamed(t *testing.T) {
	e := openEngine(t)
	schemas := map[string]*arrow.Schema{
		"silver.c": schemaOf(t, "id STRING, __START_AT DATE, __END_AT DATE"), "o": schemaOf(t, "id STRING, day DATE"),
	}
	for text, code := range map[string]string{
		"SELECT * FROM o JOIN silver.c AS c ON o.day BETWEEN c.__START_AT AND c.__END_AT":                    "INTERVAL_BETWEEN",
		"SELECT * FROM o, silver.c AS c WHERE o.day NOT BETWEEN c.`__start_at` AND DATE '2026-07-01'":        "INTERVAL_BETWEEN",
		"SELECT * FROM o, silver.c AS c WHERE o.day BETWEEN DATE '2026-07-01' AND coalesce(c.__END_AT, day)": "INTERVAL_BETWEEN",
		"SELECT CASE WHEN day BETWEEN _tech_valid_from AND _tech_valid_to THEN 1 END AS x FROM o":            "INTERVAL_BETWEEN",
		"SELECT * FROM current(o)":                                               "NO_INTERVAL_COLUMNS",
		"SELECT * FROM current(nowhere)":                                         "TABLE_OR_VIEW_NOT_FOUND",
		"WITH c AS (SELECT * FROM silver.c) SELECT * FROM current(c)":            "TABLE_OR_VIEW_NOT_FOUND",
		"SELECT * FROM current('silver.c')":                                      "INVALID_INTERVAL_FUNCTION",
		"SELECT * FROM current()":                                                "INVALID_INTERVAL_FUNCTION",
		"SELECT * FROM current(silver.c, 1)":                                     "WRONG_NUM_ARGS",
		"SELECT * FROM as_of(silver.c)":                                          "WRONG_NUM_ARGS",
		"SELECT * FROM changes_between(silver.c, '2026-07-01')":                  "WRONG_NUM_ARGS",
		"SELECT * FROM changes_between(silver.c, '2026-07-01', '2026-07-02')":    "INTERVAL_KEYS_UNKNOWN",
		"SELECT * FROM changes_between(silver.c, '2026-07-01', '2026-07-02', 1)": "INVALID_INTERVAL_FUNCTION",
	} {
		if _, err := e.Describe(context.Background(), Query{Text: text}, schemas); fault.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", text, err, code)
		}
	}
	_, err := e.Describe(context.Background(), Query{Text: "SELECT *\nFROM o JOIN silver.c AS c\n  ON o.day BETWEEN c.__START_AT AND c.__END_AT"}, schemas)
	const hint = "Write o.`day` >= c.__START_AT AND (o.`day` < c.__END_AT OR c.__END_AT IS NULL)"
	var f *fault.Error
	if !errors.As(err, &f) || !strings.HasPrefix(f.Hint, hint) || f.Where.Line != 3 {
		t.Errorf("the error is %+v", f)
	}
}

// Files are left out by what current() and as_of() ask for; changes_between needs all of them.
func TestVersionsThatCannotHoldAreSkipped(t *testing.T) {
	e := openEngine(t)
	schema := schemaOf(t, "id STRING, __START_AT DATE, __END_AT DATE")
	for text, want := range map[string]string{
		"SELECT * FROM current(c)":                                                         "__END_AT IS NULL",
		"SELECT * FROM current(c) AS x WHERE x.id = 'K1'":                                  "(__END_AT IS NULL AND id = ?)",
		"SELECT * FROM as_of(c, '2026-07-01')":                                             "(__START_AT <= ? AND (__END_AT > ? OR __END_AT IS NULL))",
		"SELECT * FROM current(c) AS x(a, b, d) WHERE b = DATE '2026-07-01'":               "",
		"SELECT * FROM changes_between(c, '2026-07-01', '2026-07-02', id) WHERE id = 'K1'": "",
		"SELECT * FROM c":                 "",
		"SELECT * FROM c WHERE id = 'K1'": "id = ?",
	} {
		got := ""
		p, err := e.Filters(context.Background(), Query{Text: text}, func(string) (*arrow.Schema, error) { return schema, nil })
		if p["c"] != nil {
			got = p["c"].String()
		}
		if err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
}

// A pipeline's query names the table that a function over versions reads.
func TestStatementsReadWhatIntervalFunctionsName(t *testing.T) {
	for text, want := range map[string][]string{
		"CREATE MATERIALIZED VIEW gold.now AS SELECT id FROM current(silver.c)":                                              {"silver.c"},
		"CREATE MATERIALIZED VIEW gold.past AS SELECT o.id FROM silver.o AS o LEFT JOIN as_of(c, o.day) AS v ON v.id = o.id": {"silver.o", "c"},
	} {
		var got []string
		for _, s := range parseOne(t, text, nil).Sources {
			got = append(got, s.Written)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s reads %v, want %v", text, got, want)
		}
	}
}

// A function's query skips files by its parameters, too.
func TestTheFiltersOfAGuestKnowItsParameters(t *testing.T) {
	e := openEngine(t)
	find := func(string) (*arrow.Schema, error) { return schemaOf(t, "n INT, day DATE"), nil }
	q := Query{Text: "SELECT min(day) AS day FROM bronze.t WHERE day > ?", Guest: &Guest{Params: []Param{{Type: "date", Value: "2026-07-27"}}}}
	p, err := e.Filters(context.Background(), q, find)
	if err != nil || p["bronze.t"] == nil || p["bronze.t"].String() != "day > ?" {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := e.Filters(context.Background(), Query{Text: "SELECT * FROM read_csv('/etc/passwd')", Guest: &Guest{}}, find); err == nil {
		t.Error("a guest's query that may not run has filters")
	}
}

// A join as of a column is a join on the key: it can run over a stream, too, and
// is not computed for each instant by itself.
func TestAJoinAsOfAColumnIsAJoin(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT number FROM o LEFT JOIN as_of(s.c, o.day) AS v ON v.id = o.id": `SELECT number FROM o LEFT JOIN s.c AS v ON (((v.id = o.id) AND ((v.__START_AT <= o."day") AND ((v.__END_AT > o."day") OR (v.__END_AT IS NULL)))))`,
		"SELECT number FROM o, as_of(c, o.day)":                                `SELECT number FROM o INNER JOIN c AS c ON (((c.__START_AT <= o."day") AND ((c.__END_AT > o."day") OR (c.__END_AT IS NULL))))`,
		"SELECT number FROM o JOIN as_of(c, '2026-07-01') AS v ON v.id = o.id": `SELECT number FROM o INNER JOIN (SELECT * FROM c WHERE ((__START_AT <= '2026-07-01') AND ((__END_AT > '2026-07-01') OR (__END_AT IS NULL)))) AS v ON ((v.id = o.id))`,
	} {
		tree, o, err := parseSelect(text, newOrigin("", text, 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := expandIntervals(tree, o, intervals{}); err != nil {
			t.Fatal(err)
		}
		got, err := printSelect(tree)
		if err != nil || strings.ReplaceAll(strings.Join(strings.Fields(got), " "), " )", ")") != want {
			t.Errorf("%s:\n%s\n%s\n%v", text, got, want, err)
		}
	}
	e := openEngine(t)
	orders := stream(t, table(t, "id STRING, day DATE", `[{"id":"K1","day":"2026-07-03"},{"id":"K9","day":"2026-07-03"}]`), "")
	rows, err := run(t, e, Query{Text: "SELECT o.id, v.segment FROM o LEFT JOIN as_of(c, o.day) AS v ON v.id = o.id", Stream: "o"},
		map[string]arrow.RecordBatch{"o": orders, "c": versions(t, "_tech_valid_from", "_tech_valid_to")})
	if got := strings.Join(rows, "|"); err != nil || got != `"K1" "B" 0|"K9" null 1` {
		t.Errorf("over a stream: %s, %v", got, err)
	}
}
