package testscripts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// covers A57 A61 A62 A65 A71 A76
//
// TestRecipesEndInTheSourcesFinalState runs the SQL of docs/cdc-feeds.md over
// recorded events of each tool, file after file, and compares every target with
// what a replay in Go makes of the events so far. Nothing changes when the
// pipeline runs again, nor when all files come a second time.
func TestRecipesEndInTheSourcesFinalState(t *testing.T) {
	t.Parallel()
	shared := filepath.Join(sharedDir(t), "data/cdc")
	dir := t.TempDir()
	writePage(t, dir)
	feeds := recordedFeeds()
	rounds := 0
	for _, f := range feeds {
		rounds = max(rounds, len(f.files))
	}
	for _, f := range feeds {
		for _, file := range f.files {
			if err := os.MkdirAll(filepath.Join(dir, "landing", filepath.Dir(file.to)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Of persons no full load is recorded.
	if err := os.Mkdir(filepath.Join(dir, "landing/dms/person"), 0o755); err != nil {
		t.Fatal(err)
	}
	changes := map[string][]change{}
	for round := range rounds {
		var arrived []recordedFeed
		for _, f := range feeds {
			if round >= len(f.files) {
				continue
			}
			text := f.land(t, shared, dir, round, "")
			changes[f.target] = append(changes[f.target], f.read(t, text, filepath.Base(f.files[round].to))...)
			arrived = append(arrived, f)
		}
		mustRun(t, dir, "run")
		for _, f := range arrived {
			wantReplayed(t, dir, f.target, changes[f.target])
		}
	}
	mustRun(t, dir, "run")
	for _, f := range feeds {
		for round := range f.files {
			if !f.named {
				f.land(t, shared, dir, round, "again_")
			}
		}
	}
	mustRun(t, dir, "run")
	for _, f := range feeds {
		wantReplayed(t, dir, f.target, changes[f.target])
		if len(changes[f.target]) == 0 {
			t.Errorf("%s has no recorded events", f.target)
		}
	}
}

// covers A63
//
// TestEventsWithoutAPositionStopTheFlow takes the ties away from the recipes
// whose recorded events have only times: an insert and a delete, an insert and
// an update of one key have nothing that orders them.
func TestEventsWithoutAPositionStopTheFlow(t *testing.T) {
	t.Parallel()
	shared := filepath.Join(sharedDir(t), "data/cdc")
	dir := t.TempDir()
	writeFeedFile(t, dir, "weir.yaml", []byte(pageFile(t, "weir.yaml")))
	ties := regexp.MustCompile(`TBLPROPERTIES \('pipelines.cdc.ties' = '[^']*'\)`)
	for _, name := range []string{"transformations/debezium.sql", "transformations/dms_kafka.sql"} {
		writeFeedFile(t, dir, name, []byte(ties.ReplaceAllString(pageFile(t, name), "")))
	}
	targets := map[string]string{"silver.debezium_products": "id=101", "silver.dms_kafka_products": "id=10"}
	landed := 0
	for _, f := range recordedFeeds() {
		if targets[f.target] == "" {
			continue
		}
		for i := range f.files {
			f.land(t, shared, dir, i, "")
			landed++
		}
	}
	cmd, out := weirProcess(t, dir, nil, "run")
	if err := cmd.Run(); err == nil || landed != 6 {
		t.Fatalf("%d files, %v:\n%s", landed, err, out)
	}
	for target, key := range targets {
		if !regexp.MustCompile(`\[CDC_SEQUENCE_TIE\] dev\.` + regexp.QuoteMeta(target) + `: .*` + key).Match(out.Bytes()) {
			t.Errorf("no tie of %s in\n%s", target, out)
		}
	}
}

// TestEveryConnectorHasASequence takes the documented events of Debezium's
// connectors through the recipe with the fields that the page names for each:
// one after the other, and the last ones first.
func TestEveryConnectorHasASequence(t *testing.T) {
	t.Parallel()
	shared := filepath.Join(sharedDir(t), "data/cdc/debezium_docs")
	page, recipe := pageText(t), pageFile(t, "transformations/debezium_postgres.sql")
	rows := regexp.MustCompile("(?m)^\\| ([A-Z][^|]*) \\| `([^`]*)` \\| `(STRUCT\\([^`]*\\))` \\|$").FindAllStringSubmatch(page, -1)
	files := map[string]string{"MySQL, MariaDB": "mariadb-mysql", "PostgreSQL": "postgresql", "SQL Server": "sqlserver", "Db2": "db2", "Oracle": "oracle"}
	if len(rows) != len(files) {
		t.Fatalf("the page has a sequence for %d connectors, recorded are %d", len(rows), len(files))
	}
	dir := t.TempDir()
	writeFeedFile(t, dir, "weir.yaml", []byte(pageFile(t, "weir.yaml")))
	type target struct {
		table     string
		changes   []change
		backwards bool
	}
	var targets []target
	deepest := 0
	for _, m := range rows {
		text, err := os.ReadFile(filepath.Join(shared, files[m[1]]+".ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		var events []string
		var changes []change
		fields := regexp.MustCompile(`\w+ (?:STRING|BIGINT|INT)`).FindAllString(m[2], -1)
		for i, f := range fields {
			if name, _, _ := strings.Cut(f, " "); strings.Contains(m[3], "CAST("+name+" AS BIGINT)") {
				fields[i] = name + " BIGINT"
			}
		}
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			c, ok := connectorEvent(t, line, fields)
			if ok {
				events, changes = append(events, line), append(changes, c)
			}
		}
		if len(events) < 3 {
			t.Fatalf("%s: only %d events", m[1], len(events))
		}
		deepest = max(deepest, len(events))
		for _, order := range []string{"forwards", "backwards"} {
			name := strings.ToLower(regexp.MustCompile(`\W+`).ReplaceAllString(m[1], "_")) + "_" + order
			writeFeedFile(t, dir, "transformations/"+name+".sql", []byte(connectorRecipe(t, recipe, name, m[2], m[3], fields, strings.Contains(events[0], `"LAST_NAME"`))))
			mine := append([]change(nil), changes...)
			for i := range events {
				n := i
				if order == "backwards" {
					n = len(events) - 1 - i
				}
				mine[i] = changes[n]
				writeFeedFile(t, dir, fmt.Sprintf("later/%d/%s/%d.json", i, name, i), []byte(events[n]+"\n"))
			}
			targets = append(targets, target{"silver." + name, mine, order == "backwards"})
		}
	}
	for round := range deepest {
		if err := os.CopyFS(filepath.Join(dir, "landing"), os.DirFS(filepath.Join(dir, "later", fmt.Sprint(round)))); err != nil {
			t.Fatal(err)
		}
		mustRun(t, dir, "run")
		for _, g := range targets {
			if round == len(g.changes)-1 || round < len(g.changes) && !g.backwards {
				wantReplayed(t, dir, g.table, g.changes[:round+1])
			}
		}
	}
}

// connectorRecipe is the page's recipe for PostgreSQL with the fields and the
// sequence of another connector.
func connectorRecipe(t *testing.T, recipe, name, fields, sequence string, list []string, capitals bool) string {
	t.Helper()
	var read, names []string
	for _, f := range list {
		n, _, _ := strings.Cut(f, " ")
		read, names = append(read, "event.source."+n+" AS "+n), append(names, n)
	}
	recipe = replaceAll(t, recipe, [][2]string{
		{"lsn BIGINT, ts_us BIGINT", fields},
		{"event.source.lsn AS lsn, event.source.ts_us AS ts_us", strings.Join(read, ", ")},
		{"op, lsn, ts_us", "op, " + strings.Join(names, ", ")},
		{"STRUCT(lsn, ts_us)", sequence},
		{"source_table = 'customers'", "lower(coalesce(source_table, 'customers')) = 'customers'"},
		{"/debezium_postgres", "/" + name},
		{"debezium_customer_changes", name + "_changes"},
		{"bronze.debezium_customers", "bronze." + name},
		{"debezium_customers", name},
	})
	if capitals {
		columns := "id INT, first_name STRING, last_name STRING, email STRING, notes STRING"
		recipe = strings.Replace(recipe, columns, strings.ToUpper(columns), 1)
	}
	return recipe
}

// writePage writes the project of the page, without the page's own landing files.
func writePage(t *testing.T, dir string) {
	t.Helper()
	for _, m := range pageBlock.FindAllStringSubmatch(pageText(t), -1) {
		name, text := m[1], m[2]
		if name == "transformations/debezium.sql" {
			text = withTies(t, text)
		}
		if name == "weir.yaml" || strings.HasPrefix(name, "transformations/") {
			writeFeedFile(t, dir, name, []byte(text))
		}
		if name == "transformations/dms.sql" {
			writeFeedFile(t, dir, "transformations/dms_persons.sql", []byte(replaceAll(t, text, [][2]string{
				{"CustomerID STRING, Email STRING, LCLid STRING", "id INT, name STRING, city STRING, since DATE"},
				{"CustomerID, Email, LCLid", "id, name, city, since"}, {"KEYS (CustomerID)", "KEYS (id)"},
				{"dms_customer", "dms_person"}, {"/dms/customer", "/dms/person"},
			})))
		}
	}
}

// replaceAll changes a recipe to fit another table; each text must be there.
func replaceAll(t *testing.T, recipe string, changes [][2]string) string {
	t.Helper()
	for _, change := range changes {
		if !strings.Contains(recipe, change[0]) {
			t.Fatalf("the recipe has no %q", change[0])
		}
		recipe = strings.ReplaceAll(recipe, change[0], change[1])
	}
	return recipe
}

// withTies adds to the recipe what the page says of events with empty
// positions, which the recorded ones of MySQL are.
func withTies(t *testing.T, recipe string) string {
	t.Helper()
	ties := regexp.MustCompile("`(TBLPROPERTIES \\('pipelines.cdc.ties' = 'last_by\\(ts_ms, _tech_source_file\\)'\\))`").FindStringSubmatch(pageText(t))
	const table = "CREATE OR REFRESH STREAMING TABLE debezium_products"
	if ties == nil || !strings.Contains(recipe, table+";") {
		t.Fatal("the page has no ties, or the recipe no table, for them")
	}
	return strings.Replace(recipe, table, table+" "+ties[1], 1)
}

var pageBlock = regexp.MustCompile("(?ms)^```[a-z]+ (\\S+)\n(.*?)^```")

func pageText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repoRoot(t), "docs/cdc-feeds.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pageFile gives one file of the page's project.
func pageFile(t *testing.T, name string) string {
	t.Helper()
	for _, m := range pageBlock.FindAllStringSubmatch(pageText(t), -1) {
		if m[1] == name {
			return m[2]
		}
	}
	t.Fatalf("the page has no file %s", name)
	return ""
}

func writeFeedFile(t *testing.T, dir, name string, text []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
