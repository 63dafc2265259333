package sql

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/fault"
)

// The wall behind the allow-list: even SQL that got past it reaches no file.
func TestTheEngineIsClosedOff(t *testing.T) {
	e := openEngine(t)
	c, err := e.db.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.release()
	for _, s := range []string{
		"SELECT * FROM read_text('/etc/hostname')", "COPY (SELECT 1) TO '/tmp/weir_escape.csv'", "ATTACH '/tmp/weir_escape.db'",
		"INSTALL httpfs", "LOAD httpfs", "SET enable_external_access = true", "SET threads = 1", "SET TimeZone = 'Asia/Tokyo'",
	} {
		if c.exec(s) == nil {
			t.Errorf("%s runs", s)
		}
	}
}

func TestEveryFunctionOfDuckDBIsClassified(t *testing.T) {
	e := openEngine(t)
	c, err := e.db.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.release()
	names, err := c.texts("SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type IN ('scalar', 'macro', 'aggregate') AND ?::VARCHAR = ''", "")
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{"unnest": true}
	for _, n := range names {
		exists[n] = true
		family := false
		for _, prefix := range []string{"__internal_", "__weir_", "icu_", "st_", "pg_", "has_", "inet_", "variant_"} {
			family = family || strings.HasPrefix(n, prefix)
		}
		if _, ok := functions()[n]; !ok && !family {
			t.Errorf("%s is new: put it into functions.txt", n)
		}
	}
	for n, kind := range functions() {
		if !exists[n] {
			t.Errorf("%s (%s) is gone", n, kind)
		}
	}
}

func TestDeepAndLongTextsAreErrorsNotCrashes(t *testing.T) {
	e := openEngine(t)
	for name, text := range map[string]string{
		"parentheses": "SELECT " + strings.Repeat("(", 20000) + "1" + strings.Repeat(")", 20000),
		"additions":   "SELECT 1" + strings.Repeat("+1", 20000),
		"lists":       "SELECT " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"subqueries":  strings.Repeat("SELECT * FROM (", 2000) + "SELECT 1" + strings.Repeat(")", 2000),
		"cases":       "SELECT " + strings.Repeat("CASE WHEN true THEN ", 3000) + "1" + strings.Repeat(" END", 3000),
		"not":         "SELECT " + strings.Repeat("NOT ", 10000) + "true",
		"types":       "SELECT CAST(NULL AS " + strings.Repeat("STRUCT(a ", 2000) + "INT" + strings.Repeat(")", 2000) + ")",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := e.Describe(t.Context(), Query{Text: text}, nil)
			if err != nil && (fault.CodeOf(err) == "" || len(err.Error()) > 2000) {
				t.Errorf("%.300v", err)
			}
			t.Logf("%.200v (%s)", err, time.Since(start))
		})
	}
}

func TestLargeSortsSpillOrFailByName(t *testing.T) {
	const text = "SELECT max(n) AS m FROM (SELECT row_number() OVER (ORDER BY s) AS n FROM (SELECT md5(id::VARCHAR) || md5((id + 1)::VARCHAR) AS s FROM range(1000000)))"
	for _, dir := range []string{t.TempDir(), ""} {
		e, err := Open(t.Context(), Options{MemoryLimit: "50MB", Threads: 1, TempDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := run(t, e, Query{Text: text}, nil)
		if dir != "" && (err != nil || strings.Join(rows, "") != "1000000") {
			t.Errorf("with room: %v %v", rows, err)
		}
		if dir == "" && fault.CodeOf(err) != "OUT_OF_MEMORY" {
			t.Errorf("without: %v %v", rows, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
