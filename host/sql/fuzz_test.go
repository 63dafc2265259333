package sql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
)

// sentences writes SELECTs at random: what is allowed and what is not side by side, so that
// some pass the checker and most come close.
type sentences struct {
	rng   *rand.Rand
	file  string
	ctes  []string
	depth int
}

func (g *sentences) one(list ...string) string { return list[g.rng.IntN(len(list))] }

func (g *sentences) query() string {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > 4 {
		return "SELECT n, s FROM t"
	}
	switch g.rng.IntN(12) {
	case 0:
		name := fmt.Sprintf("c%d", len(g.ctes))
		body := g.query()
		g.ctes = append(g.ctes, name)
		defer func() { g.ctes = g.ctes[:len(g.ctes)-1] }()
		return g.one("WITH ", "WITH RECURSIVE ") + name + g.one("", "", "(n, s)") + " AS " + g.one("", "MATERIALIZED ") + "(" + body + ") " + g.query()
	case 1:
		return "(" + g.query() + ")" + g.one(" UNION ALL ", " UNION ", " EXCEPT ", " INTERSECT ", " UNION ALL BY NAME ") + "(" + g.query() + ")"
	case 2:
		return "VALUES (" + g.expr() + ", " + g.expr() + ")"
	}
	text := "SELECT " + g.one("", "", "DISTINCT ") + g.expr() + " AS n, " + g.expr() + g.one(" AS s", "", ", *") + " FROM " + g.from()
	for _, clause := range []string{" WHERE ", " HAVING ", " QUALIFY ", " ORDER BY ", " LIMIT "} {
		if g.rng.IntN(6) == 0 {
			if clause == " HAVING " {
				text += " GROUP BY ALL"
			}
			text += clause + g.expr()
		}
	}
	return text
}

func (g *sentences) from() string {
	if len(g.ctes) > 0 && g.rng.IntN(3) == 0 {
		return g.one(g.ctes...)
	}
	switch g.rng.IntN(14) {
	case 0:
		return "(" + g.query() + ") AS q(n, s)"
	case 1, 2:
		return g.from() + g.one(" JOIN ", " LEFT JOIN ", ", LATERAL ", " SEMI JOIN ", " ASOF JOIN ", " NATURAL JOIN ", " POSITIONAL JOIN ") + g.from() + g.one(" ON true", " USING (n)", "")
	case 3:
		return g.one("secrets", "main.secrets", "memory.main.secrets", "\"secrets\"", "sqlite_master", "information_schema.tables", "duckdb_tables()", "pg_tables", "__weir_in_0", "'"+g.file+"'")
	case 4:
		return g.one("read_text", "read_csv", "read_blob", "glob", "query_table", "query", "range", "unnest", "pragma_table_info", "repeat_row", "json_each", "__weir_scan", "seq_scan") + "(" +
			g.one("'"+g.file+"'", "'secrets'", "['secrets']", "'SELECT * FROM secrets'", g.expr()) + ")"
	case 5:
		return "(" + g.one("DESCRIBE ", "SUMMARIZE ", "SHOW ", "FROM ", "TABLE ", "PIVOT ", "VALUES ") + g.one("t", "secrets", "(1, 2)", "t ON n USING count(*)") + ")"
	}
	return g.one("t", "t AS a", "t", "T", "t t1", "t TABLESAMPLE 1 ROWS", "t AT (VERSION => 1)")
}

func (g *sentences) expr() string {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > 6 {
		return g.one("n", "s", "1", "'x'", "NULL")
	}
	switch g.rng.IntN(16) {
	case 0:
		return "(" + g.query() + ")"
	case 1:
		return "CASE WHEN " + g.expr() + " THEN " + g.expr() + " ELSE " + g.expr() + " END"
	case 2:
		return g.one("CAST(", "TRY_CAST(") + g.expr() + " AS " + g.one("INT", "VARCHAR", "DOUBLE", "DATE", "INT[]", "STRUCT(a INT)", "DECIMAL(10,2)", "JSON", "BIT", "BLOB", "MAP(INT, INT)") + ")"
	case 3:
		return "(" + g.expr() + g.one(" + ", " || ", " = ", " LIKE ", " ILIKE ", " IN ", " AND ", " ~ ", " -> ", " // ", " IS DISTINCT FROM ", " COLLATE ") + g.expr() + ")"
	case 4:
		return "[" + g.expr() + ", " + g.expr() + "]"
	case 5:
		return "{'a': " + g.expr() + "}"
	case 6:
		return g.one("list_transform", "list_filter", "list_apply", "list_reduce", "transform") + "([" + g.expr() + "], lambda x: " + g.expr() + ")"
	case 7:
		return g.one("sum", "max", "string_agg", "row_number", "count", "list", "first", "histogram") + "(" + g.expr() + ")" + g.one("", " OVER (PARTITION BY n ORDER BY s)", " FILTER (WHERE n > 0)")
	case 8, 9, 10:
		names := g.names()
		args := make([]string, g.rng.IntN(4))
		for i := range args {
			args[i] = g.expr()
		}
		return g.one(names...) + "(" + strings.Join(args, ", ") + ")"
	case 11:
		return g.one("getenv('HOME')", "current_user", "current_setting('threads')", "now()", "current_date", "version()", "user", "?", "$1", "COLUMNS('.*')", "#1", "*", "t.*", "secrets.secret", "t", "rowid")
	case 12:
		return g.one("1000000000", "'%a%b%_c'", "repeat('x', 1000000000)", "INTERVAL 1 day", "DATE '2020-01-01'", "'$..*'", "-1", "1e300", "'\\0'")
	}
	return g.one("n", "s", "l", "1", "'x'", "NULL", "true", "t.n", "x")
}

// names are all functions there are a word for.
func (g *sentences) names() []string {
	if len(allNames) == 0 {
		for n := range guestFunctions() {
			allNames = append(allNames, n, n)
		}
		for n := range functions() {
			allNames = append(allNames, n)
		}
		for n := range sparkFunctions {
			name, _, _ := strings.Cut(n, "/")
			allNames = append(allNames, name)
		}
	}
	name := g.one(allNames...)
	if name[0] < 'a' || name[0] > 'z' {
		return []string{"upper"}
	}
	return []string{name}
}

var allNames []string

// mutate changes a text a little: cut, doubled, with a piece of another.
func (g *sentences) mutate(text string) string {
	for range g.rng.IntN(3) {
		if len(text) < 4 {
			break
		}
		i, j := g.rng.IntN(len(text)), g.rng.IntN(len(text))
		i, j = min(i, j), max(i, j)
		switch g.rng.IntN(6) {
		case 0:
			text = text[:i] + text[j:]
		case 1:
			text = text[:j] + text[i:]
		case 2:
			text = text[:i] + g.one("; ", "--", "/*", "*/", "'", "\"", "`", "(", ")", "\x00", "\u00a0", "$$", "E'", "U&'", "\\", "#") + text[i:]
		case 3:
			text = text[:i] + g.one("secrets", "'"+g.file+"'", "read_text", "getenv", "COPY", "ATTACH", "UNION ALL SELECT secret, secret FROM secrets") + text[i:]
		case 4:
			text = text[:i] + strings.ToUpper(text[i:j]) + text[j:]
		case 5:
			text = text[:i] + " " + g.expr() + " " + text[i:]
		}
	}
	return text
}

// What passes the checker of guests reads the granted relation and nothing else, keeps its
// bounds, and ends in time; what does not pass is an error with a name. The same text as a condition, and
// as the operator's own, reaches no further.
func FuzzGuestQueries(f *testing.F) {
	dir := f.TempDir()
	file := filepath.Join(dir, "canary.csv")
	if err := os.WriteFile(file, []byte("secret\n"+canary+"\n"), 0o600); err != nil {
		f.Fatal(err)
	}
	e, err := Open(context.Background(), Options{Threads: 1, MemoryLimit: "500MB"})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := e.Close(); err != nil {
			f.Error(err)
		}
	})
	plantCanary(f, e)
	rows := table(f, "n INT, s STRING, l ARRAY<INT>", `[{"n":1,"s":"a","l":[1,2]},{"n":2,"s":"b-2","l":[]},{"n":null,"s":null,"l":null}]`)
	defer rows.Release()
	for i := range uint64(60) {
		f.Add(i, "")
	}
	for _, attack := range append(readAttacks(f), bombs[:8]...) {
		f.Add(uint64(0), attack)
	}
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		g := &sentences{rng: rand.New(rand.NewPCG(seed, 7)), file: file}
		if text == "" {
			text = g.query()
			if g.rng.IntN(2) == 0 {
				text = g.mutate(text)
			}
		} else if seed != 0 {
			text = g.mutate(strings.ReplaceAll(text, "@file", file))
		}
		guest := &Guest{Rows: 1000, Bytes: 1 << 20, Time: 5 * time.Second}
		for _, q := range []Query{
			{Text: text, Guest: guest},
			{Text: "SELECT n FROM t", Expectations: []string{text}, GuestRules: true},
		} {
			fuzzOne(t, e, q, rows)
		}
		entries, err := os.ReadDir(dir)
		if content, err2 := os.ReadFile(file); err != nil || err2 != nil || len(entries) != 1 || string(content) != "secret\n"+canary+"\n" {
			t.Fatalf("files were touched by %q: %v %v %v", text, entries, err, err2)
		}
	})
}

func fuzzOne(t *testing.T, e *Engine, q Query, rows arrow.RecordBatch) {
	in := readerOf(t, rows)
	defer in.Release()
	q.Clock = batchTime
	start := time.Now()
	n, text, err := countRows(t, e, q, in)
	if took := time.Since(start); took > time.Minute {
		t.Fatalf("%q took %s", q.Text, took)
	}
	if err != nil && (fault.CodeOf(err) == "" || fault.CodeOf(err) == "INTERNAL_ERROR") {
		t.Fatalf("%q %q: %v", q.Text, q.Expectations, err)
	}
	if q.Guest != nil && err == nil && n > q.Guest.Rows {
		t.Fatalf("%q gives %d rows", q.Text, n)
	}
	if strings.Contains(text, canary) || err != nil && strings.Contains(err.Error(), canary) && !strings.Contains(q.Text+strings.Join(q.Expectations, ""), canary) {
		t.Fatalf("%q: %s %v", q.Text, text, err)
	}
}

// countRows runs a query and gives the number of rows and the first of them as text.
func countRows(t *testing.T, e *Engine, q Query, in array.RecordReader) (n int64, text string, err error) {
	r, err := e.Run(t.Context(), q, map[string]array.RecordReader{"t": in})
	if err != nil {
		return 0, "", err
	}
	defer r.Release()
	var b strings.Builder
	for r.Next() {
		rec := r.RecordBatch()
		n += rec.NumRows()
		for i := range int(min(rec.NumRows(), 1000)) {
			b.WriteString(rowText(rec, i))
		}
	}
	return n, b.String(), r.Err()
}
