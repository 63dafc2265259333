package pipeline

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

// askingProject has a module whose function runs the queries of the configuration over the column
// id of bronze.orders and over bronze.cities, and a table that it did not declare.
func askingProject(t *testing.T, queries ...string) *project {
	p := newProject(t, "plugins:", "  - path: "+buildModule(t, "plugins/fixtures/asking"), "    grants: {conf: [asking.*]}")
	p.write("sql/tables.sql", `
CREATE OR REFRESH STREAMING TABLE orders AS SELECT * FROM STREAM read_files('landing/orders', format => 'json', schemaHints => 'id BIGINT, city STRING');
CREATE OR REFRESH STREAMING TABLE cities AS SELECT * FROM STREAM read_files('landing/cities', format => 'json', schemaHints => 'city STRING, people BIGINT');
CREATE OR REFRESH STREAMING TABLE secrets AS SELECT * FROM STREAM read_files('landing/secrets', format => 'json', schemaHints => 'secret STRING, n BIGINT');
`)
	p.write("landing/orders/a.json", `{"id":1,"city":"CANARY-7f3a"}`+"\n"+`{"id":2,"city":"CANARY-7f3a"}`+"\n")
	p.write("landing/cities/a.json", `{"city":"Bern","people":10}`+"\n"+`{"city":"Basel","people":20}`+"\n")
	p.write("landing/secrets/a.json", `{"secret":"CANARY-7f3a","n":1}`+"\n")
	p.conf = map[string]string{"asking.queries": strings.Join(queries, "\n")}
	return p
}

func TestAFunctionQueriesWhatItDeclared(t *testing.T) {
	p := askingProject(t,
		"SELECT count(*) AS n, max(id) AS m FROM bronze.orders",
		"SELECT o.id, c.city FROM BRONZE.orders AS o JOIN bronze.cities AS c ON o.id * 10 = c.people ORDER BY o.id",
		"SELECT city FROM bronze.cities WHERE people > ? ORDER BY city",
		"SELECT city FROM bronze.orders",
		"SELECT max(city) FROM bronze.cities",
		"SELECT _metadata FROM bronze.orders",
		"SELECT secret FROM bronze.secrets",
		"SELECT id FROM dev.bronze.orders",
	)
	r := p.completed(RunOptions{})
	if f := r.flow(t, "silver.answers"); f.RowsWritten != 8 {
		t.Errorf("answers: %+v", f.Metrics)
	}
	p.wantRows("SELECT number, answer, regexp_extract(error, '^.([A-Z_]+)', 1) AS code FROM silver.answers ORDER BY number",
		`{"number":0,"answer":"2 2","code":null}`, `{"number":1,"answer":"1 Bern; 2 Basel","code":null}`,
		`{"number":2,"answer":"","code":"INVALID_QUERY_PARAMETER"}`, `{"number":3,"answer":"","code":"UNRESOLVED_COLUMN"}`,
		`{"number":4,"answer":"Bern","code":null}`, `{"number":5,"answer":"","code":"UNRESOLVED_COLUMN"}`,
		`{"number":6,"answer":"","code":"TABLE_OR_VIEW_NOT_FOUND"}`, `{"number":7,"answer":"","code":"TABLE_OR_VIEW_NOT_FOUND"}`)
	p.conf["asking.param"] = "15"
	p.conf["asking.queries"] = "SELECT city FROM bronze.cities WHERE people > CAST(? AS BIGINT) ORDER BY city"
	p.completed(RunOptions{FullRefreshAll: true})
	p.wantRows("SELECT answer FROM silver.answers", `{"answer":"Basel"}`)
}

// attacks gives the texts of host/sql's attacks.txt over a canary file of its own.
func attacks(t *testing.T, table string) (list []string, intact func()) {
	t.Helper()
	text, err := os.ReadFile("../sql/testdata/attacks.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := dir + "/canary.csv"
	if err := os.WriteFile(file, []byte("CANARY-7f3a"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			list = append(list, strings.NewReplacer("@file", file, "@out", dir+"/out", "@table", table).Replace(line))
		}
	}
	return list, func() {
		entries, err := os.ReadDir(dir)
		content, err2 := os.ReadFile(file)
		if err != nil || err2 != nil || len(entries) != 1 || string(content) != "CANARY-7f3a" {
			t.Errorf("the folder was written to: %v %q %v %v", entries, content, err, err2)
		}
	}
}

func TestNoPluginReachesWhatItWasNotGranted(t *testing.T) {
	list, intact := attacks(t, "bronze.secrets")
	defer intact()
	p := askingProject(t, list...)
	r := p.completed(RunOptions{})
	if f := r.flow(t, "silver.answers"); f.RowsWritten != int64(len(list)) {
		t.Errorf("%d answers to %d attacks", f.RowsWritten, len(list))
	}
	p.wantRows("SELECT number, answer, error FROM silver.answers WHERE error IS NULL OR answer <> '' OR error NOT LIKE '[%' OR error LIKE '%CANARY%' OR error LIKE '%INTERNAL%' ORDER BY number")
}

func TestNoAdHocQueryReachesWhatThePipelineDoesNotHave(t *testing.T) {
	list, intact := attacks(t, "elsewhere.secrets")
	defer intact()
	p := askingProject(t)
	p.completed(RunOptions{})
	pl := p.open()
	for _, attack := range list {
		attack = strings.ReplaceAll(attack, " t ", " bronze.cities ")
		rows, err := queryRows(context.Background(), pl, attack)
		if code := fault.CodeOf(err); code == "" || code == "INTERNAL_ERROR" || strings.Contains(err.Error()+strings.Join(rows, ""), "CANARY") {
			t.Errorf("%s: %v %v", attack, rows, err)
		}
	}
}

// covers A105
func TestConditionsOfAManifestAreAGuests(t *testing.T) {
	for rule, code := range map[string]string{
		"repeat(answer, 1000000000) <> ''": "NOT_ALLOWED_FOR_GUESTS", "getenv('HOME') <> ''": "NOT_ALLOWED_FOR_GUESTS", "number IN (SELECT n FROM bronze.secrets)": "INVALID_EXPECTATION",
		"answer RLIKE answer": "NOT_ALLOWED_FOR_GUESTS", "list_reduce([1], lambda a, b: a + b) > 0": "NOT_ALLOWED_FOR_GUESTS", "secret = 1": "UNRESOLVED_COLUMN", "number > 0 AND upper(answer) <> 'x'": "",
	} {
		p := askingProject(t)
		p.conf["asking.rule"] = rule
		pl, err := p.tryOpen()
		if err != nil {
			t.Fatal(err)
		}
		_, err = pl.Plan(t.Context())
		if fault.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", rule, err, code)
		}
		if err := pl.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
