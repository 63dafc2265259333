package sql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

const conditionColumns = "b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(12,2), t STRING, x BINARY, day DATE, ts TIMESTAMP, wall TIMESTAMP_NTZ, s STRUCT<i: BIGINT, t: STRING>"

// What a condition says of its columns: what is sure, and ? for the rest.
func TestConditionsBecomePredicates(t *testing.T) {
	v := newEvaluator(t)
	schema := schemaOf(t, conditionColumns)
	for text, want := range map[string]string{
		"i = 1": "i = ?", "1 < l": "l > ?", "5 >= S.I": "S.I <= ?", "i <> -1.5": "i <> ?", "l = 5L": "l = ?", "n > 12.50BD": "n > ?", "NOT i = 1": "i <> ?",
		"i BETWEEN 1 AND 3": "(i >= ? AND i <= ?)", "i NOT BETWEEN 1 AND 3": "NOT (i >= ? AND i <= ?)", "i BETWEEN 1 AND 2.5D": "?",
		"i IN (1, NULL)": "i IN (?)", "t NOT IN ('a')": "NOT t IN (?)", "i IN (1, 'x')": "?", "i IN (1, l)": "?",
		"b": "b = ?", "NOT b": "NOT b = ?", "b = FALSE": "b = ?", "b IS TRUE": "(NOT b IS NULL AND b = ?)", "b IS NOT TRUE": "NOT (NOT b IS NULL AND b = ?)",
		"s IS NULL": "s IS NULL", "s.i IS NOT NULL": "NOT s.i IS NULL", "i <=> 3": "(NOT i IS NULL AND i = ?)", "i <=> NULL": "i IS NULL", "i = NULL": "i = ?",
		"i = 1 AND upper(t) = 'A'": "(i = ? AND ?)", "i = 1 OR l + 1 = 2": "(i = ? OR ?)", "i = l": "?", "true": "true", "false": "false",
		"t = 'a'": "t = ?", "t = 1": "?", "i = '1'": "?", "i = 1D": "?", "f = 0.5": "f = ?", "f = 0.1": "?", "d = 0.1": "d = ?", "d = 1e3D": "d = ?",
		"t LIKE 'ab%'": "(t >= ? AND t < ?)", "t LIKE 'a_%'": "?", "t LIKE 'ab'": "t = ?", "t NOT LIKE 'ab%'": "NOT (t >= ? AND t < ?)", "startswith(t, 'x')": "(t >= ? AND t < ?)", "t LIKE '%'": "t >= ?",
		"day = DATE '2024-02-29'": "day = ?", "day > '2024-02-29'": "day > ?", "day = '2024-2-9'": "?", "day = TIMESTAMP '2024-02-29 00:00:00'": "?",
		"ts > TIMESTAMP '2024-02-29 12:00:00'": "ts > ?", "ts > '2024-02-29T12:00:00+02:00'": "ts > ?", "wall < TIMESTAMP_NTZ '2024-02-29 12:00:00'": "wall < ?", "wall < TIMESTAMP '2024-02-29 12:00:00'": "?",
		"x = CAST('a' AS BINARY)": "?",
	} {
		if p, err := v.Compile(context.Background(), schema, []string{text}); err != nil {
			t.Errorf("%s is no condition: %v", text, err)
		} else if err := p.Close(); err != nil {
			t.Error(err)
		}
		got, err := v.Predicate(context.Background(), schema, text)
		if err != nil || got.String() != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	if _, err := v.Predicate(context.Background(), schema, "i ="); fault.CodeOf(err) == "" {
		t.Errorf("half a condition: %v", err)
	}
}

// randomCondition writes a condition over conditionColumns, sometimes one that has no predicate.
func randomCondition(r *rand.Rand, depth int) string {
	pick := func(options ...string) string { return options[r.IntN(len(options))] }
	if depth > 0 && r.IntN(2) == 0 {
		a, b := randomCondition(r, depth-1), randomCondition(r, depth-1)
		return pick("("+a+" AND "+b+")", "("+a+" OR "+b+")", "NOT ("+a+")")
	}
	op := pick("=", "<>", "<", "<=", ">", ">=", "<=>")
	number := func() string { return pick("0", "1", "-3", "7", "2.5", "-0.5", "5L", "7.00BD", "NULL", "100") }
	switch r.IntN(12) {
	case 0:
		return pick("b", "NOT b", "b = TRUE", "b IS NOT TRUE", "b IS NULL")
	case 1:
		return fmt.Sprintf("%s %s %s", pick("i", "l", "n", "s.i"), op, number())
	case 2:
		return fmt.Sprintf("%s %s %s", number(), op, pick("i", "l", "n", "s.I", "d"))
	case 3:
		return fmt.Sprintf("%s %s %s", pick("f", "d"), op, pick("0", "0.1", "0.5", "1e3D", "CAST('NaN' AS DOUBLE)", "-2.5D"))
	case 4:
		return fmt.Sprintf("%s %sIN (%s, %s)", pick("i", "l", "n", "d"), pick("", "NOT "), number(), number())
	case 5:
		return fmt.Sprintf("%s %sBETWEEN %s AND %s", pick("i", "l", "d"), pick("", "NOT "), number(), number())
	case 6:
		return fmt.Sprintf("%s %s %s", pick("t", "s.t"), op, pick("''", "'a'", "'ab'", "'b'", "'ü'", "NULL"))
	case 7:
		return fmt.Sprintf("%s %sLIKE %s", pick("t", "s.t"), pick("", "NOT "), pick("'a%'", "'ab%'", "'%'", "'a_'", "'a'", "'ü%'", "''"))
	case 8:
		return fmt.Sprintf("day %s %s", op, pick("DATE '2024-02-29'", "'1969-12-31'", "DATE '0001-01-01'", "current_date()"))
	case 9:
		return fmt.Sprintf("ts %s %s", op, pick("TIMESTAMP '2024-02-29 12:00:00'", "'2024-02-29T12:00:00.000001Z'", "'1969-12-31 23:59:59.9999'"))
	case 10:
		return fmt.Sprintf("wall %s %s", op, pick("TIMESTAMP_NTZ '2024-02-29 12:00:00'", "'2024-02-29'"))
	}
	return pick("length(t) > 1", "i = l", "s IS NULL", "s.t IS NOT NULL", "x IS NULL", "startswith(t, 'a')", "i + 1 > 3", "true", "NULL")
}

// randomRows writes rows as JSON, few values each, so that conditions meet them.
func randomRows(r *rand.Rand, rows int) string {
	pick := func(options ...string) string { return options[r.IntN(len(options))] }
	var out []string
	for range rows {
		var cells []string
		for name, values := range map[string][]string{
			"b": {"true", "false"}, "i": {"0", "1", "-3", "7"}, "l": {"5", "7", "9007199254740993"}, "f": {"0.1", "0.5", "-2.5"}, "d": {"0.1", "0.5", "1000", "-0.0"},
			"n": {`"2.50"`, `"7.00"`, `"-0.50"`}, "t": {`""`, `"a"`, `"ab"`, `"b"`, `"ü"`, `"a%"`}, "x": {`"YQ=="`}, "day": {`"2024-02-29"`, `"1969-12-31"`, `"0001-01-01"`},
			"ts": {`"2024-02-29T12:00:00Z"`, `"2024-02-29T12:00:00.000001Z"`, `"1969-12-31T23:59:59.9999Z"`}, "wall": {`"2024-02-29T12:00:00"`, `"2024-02-29T00:00:00"`},
			"s": {`{"i":7,"t":"ab"}`, `{"i":null,"t":"a"}`},
		} {
			if r.IntN(4) > 0 {
				cells = append(cells, fmt.Sprintf("%q:%s", name, pick(values...)))
			}
		}
		out = append(out, "{"+strings.Join(cells, ",")+"}")
	}
	return "[" + strings.Join(out, ",") + "]"
}

// A scan that leaves out what a condition's predicate allows, filtered by the
// condition, gives what the whole scan gives when it is filtered.
func TestAPrunedScanFilteredIsTheWholeScanFiltered(t *testing.T) {
	ctx := context.Background()
	v := newEvaluator(t)
	r := rand.New(rand.NewPCG(7, 7))
	schema := schemaOf(t, conditionColumns)
	left, kept := 0, 0
	for range 5 {
		store, err := storage.OpenDir(t.TempDir(), storage.NoSync)
		if err != nil {
			t.Fatal(err)
		}
		partitionBy := [][]string{nil, {"t"}, {"day", "i"}, {"ts"}, {"n", "b"}, {"wall"}}[r.IntN(6)]
		table := delta.Open(store)
		var add []delta.AddFile
		for i := range 4 {
			w, err := table.Write(ctx, delta.WriteOptions{Schema: schema, PartitionBy: partitionBy, Name: fmt.Sprint("f", i)})
			if err != nil {
				t.Fatal(err)
			}
			rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(randomRows(r, 1+r.IntN(3))))
			if err != nil {
				t.Fatal(err)
			}
			err = w.Write(ctx, rec)
			rec.Release()
			if err != nil {
				t.Fatal(err)
			}
			files, err := w.Close(ctx)
			if err != nil {
				t.Fatal(err)
			}
			add = append(add, files...)
		}
		if _, err := table.Commit(ctx, delta.Commit{Schema: schema, PartitionBy: partitionBy, Add: add}); err != nil {
			t.Fatal(err)
		}
		s, err := table.Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			text := randomCondition(r, 2)
			p, err := v.Predicate(ctx, s.Schema(), text)
			if err != nil {
				t.Fatal(err)
			}
			found, err := s.FilesWhere(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			kept += len(found)
			left += s.NumFiles() - len(found)
			if len(found) == s.NumFiles() {
				continue
			}
			whole := filtered(t, v, s, delta.ScanOptions{}, text)
			pruned := filtered(t, v, s, delta.ScanOptions{Where: p}, text)
			if whole != pruned {
				t.Fatalf("%s (%s)\nwhole  %s\npruned %s", text, p, whole, pruned)
			}
		}
	}
	if left*8 < kept {
		t.Errorf("%d files were left out and %d were not: nothing is proven", left, kept)
	}
}

// filtered gives the rows of a scan for which a condition holds.
func filtered(t *testing.T, v *Evaluator, s *delta.Snapshot, opt delta.ScanOptions, condition string) string {
	t.Helper()
	ctx := context.Background()
	program, err := v.Compile(ctx, s.Schema(), []string{condition})
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	rows, err := s.Scan(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Release()
	var out []string
	for rows.Next() {
		got, err := program.Eval(ctx, rows.RecordBatch())
		if err != nil {
			t.Fatalf("%s: %v", condition, err)
		}
		for i := range int(got.NumRows()) {
			if got.Column(0).ValueStr(i) == "true" {
				out = append(out, rowText(rows.RecordBatch(), i))
			}
		}
		got.Release()
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return strings.Join(out, "\n")
}

// The WHERE of a query prunes the relation it reads, if that is one, read once.
func TestTheWhereOfAQueryIsOfItsRelation(t *testing.T) {
	e := openEngine(t)
	find := func(string) (*arrow.Schema, error) {
		return schemaOf(t, "id BIGINT, t STRING, st STRUCT<id: INT>"), nil
	}
	for text, want := range map[string]string{
		"SELECT * FROM bronze.orders WHERE id = 1 AND t LIKE 'a%'":               "bronze.orders (id = ? AND (t >= ? AND t < ?))",
		"SELECT count(*) FROM orders o WHERE o.id > 5 GROUP BY t":                "orders id > ?",
		"SELECT * FROM orders WHERE orders.st.id = 1":                            "orders st.id = ?",
		"SELECT * FROM orders WHERE st.id = 1 ORDER BY id LIMIT 1":               "orders st.id = ?",
		"SELECT * FROM orders":                                                   "",
		"SELECT * FROM orders o, orders p WHERE o.id = 1":                        "",
		"SELECT * FROM orders WHERE id IN (SELECT id FROM orders)":               "",
		"WITH a AS (SELECT * FROM orders) SELECT * FROM a WHERE id = 1":          "",
		"SELECT * FROM orders WHERE id = 1 UNION ALL SELECT * FROM orders":       "",
		"SELECT * FROM orders WHERE id = (SELECT max(x) FROM (VALUES (1)) v(x))": "orders ?",
	} {
		got, err := e.Filters(context.Background(), Query{Text: text}, find)
		told := ""
		for name, p := range got {
			told += name + " " + p.String()
		}
		if err != nil || told != want {
			t.Errorf("%s: %s, %v, want %s", text, told, err, want)
		}
	}
}
