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

	"github.com/weir-data/weir/host/relation"
)

const simpleColumns = "op STRING, `odd name` STRING, seq BIGINT, n INT, s SMALLINT, y TINYINT, gone BOOLEAN, d DOUBLE, f FLOAT, day DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, dec DECIMAL(10,2), raw BINARY, st STRUCT<a: STRING>, l ARRAY<INT>"

// simpleRows holds every combination that matters: values, others, NULL.
func simpleRows(t testing.TB) arrow.RecordBatch {
	t.Helper()
	var rows []string
	texts := []string{`"D"`, `"d"`, `""`, `"U"`, `"D "`, `"ä"`, `null`}
	numbers := []string{"1", "0", "-1", "127", "null"}
	for i, text := range texts {
		for j, n := range numbers {
			gone := []string{"true", "false", "null"}[(i+j)%3]
			rows = append(rows, fmt.Sprintf(`{"op":%s,"odd name":%s,"seq":%s,"n":%s,"s":%s,"y":%s,"gone":%s,"d":1.5,"f":2.5,"day":"2024-01-01","ts":"2024-01-01T00:00:00Z","ntz":"2024-01-01T00:00:00","dec":"1.25","st":{"a":%s},"l":[1]}`,
				text, texts[(i+j)%len(texts)], n, n, n, n, gone, text))
		}
	}
	return table(t, simpleColumns, "["+strings.Join(rows, ",")+"]")
}

// simpleText makes a condition of the grammar, with things beside it now and then.
func simpleText(rng *rand.Rand, depth int) string {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	if depth > 0 {
		switch rng.IntN(6) {
		case 0:
			return simpleText(rng, depth-1) + pick(" AND ", " and ", " OR ") + simpleText(rng, depth-1)
		case 1:
			return pick("NOT ", "not ") + simpleText(rng, depth-1)
		case 2:
			return "(" + simpleText(rng, depth-1) + ")"
		}
	}
	text := func() string { return pick("'D'", "'d'", "''", "'U'", "'ä'", "'D '") }
	number := func() string { return pick("0", "1", "127", "300", "2147483647") }
	switch rng.IntN(8) {
	case 0, 1:
		return pick("op", "OP", "`op`", "`odd name`") + pick(" = ", " == ", "<>", " != ") + text()
	case 2:
		return pick("seq", "n", "s", "y") + pick(" = ", "<>") + number()
	case 3:
		return pick("op", "`odd name`") + pick(" IN (", " NOT IN (", " in(") + text() + ", " + text() + ")"
	case 4:
		return pick("seq", "n", "s", "y") + pick(" IN (", " NOT IN (") + number() + "," + number() + ")"
	case 5:
		return pick("op", "seq", "gone", "day", "ts", "dec", "raw", "d") + pick(" IS NULL", " IS NOT NULL", " is null")
	case 6:
		return "gone"
	}
	return pick(`op = "D"`, `op = 'it''s'`, `op = '\D'`, "seq > 0", "n = -1", "op = 1", "seq = '1'", "d = 1.5", "op LIKE 'D'", "op <=> 'D'", "op IN (NULL)", "lower(op) = 'd'")
}

// What is computed without the engine is what the engine computes.
func TestSimpleExpressionsSayWhatTheEngineSays(t *testing.T) {
	v := newEvaluator(t)
	rec := simpleRows(t)
	defer rec.Release()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	rng := rand.New(rand.NewPCG(1, 2))
	texts := []string{"op", "`Odd Name`", "seq", "n", "s", "y", "gone", "d", "f", "day", "ts", "ntz", "dec", "raw", "STRUCT(ts, seq)", "struct(SEQ, `odd name`, dec)", "STRUCT(op)"}
	for range 400 {
		texts = append(texts, simpleText(rng, 3))
	}
	simple := 0
	for _, text := range texts {
		s := SimpleExpression(text, rec.Schema())
		if s == nil {
			continue
		}
		simple++
		p, err := v.Compile(context.Background(), rec.Schema(), []string{text})
		if err != nil {
			t.Errorf("%s: the engine refuses it: %v", text, err)
			continue
		}
		if !arrow.TypeEqual(p.Types()[0], s.Type()) {
			t.Errorf("%s is of type %s, the engine says %s", text, s.Type(), p.Types()[0])
		}
		want, err := p.Eval(context.Background(), rec)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		// Rows that are a part of a longer batch are no different.
		for _, cut := range [][2]int64{{0, rec.NumRows()}, {3, rec.NumRows() - 2}} {
			part := rec.NewSlice(cut[0], cut[1])
			got := s.Eval(mem, part)
			for i := range got.Len() {
				a, b := string(relation.AppendJSON(nil, got, i)), string(relation.AppendJSON(nil, want.Column(0), i+int(cut[0])))
				if a != b {
					t.Errorf("%s of row %d is %s, the engine says %s", text, i+int(cut[0]), a, b)
				}
			}
			got.Release()
			part.Release()
		}
		want.Release()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if simple < 250 {
		t.Errorf("only %d of %d expressions were simple", simple, len(texts))
	}
}

// What could mean something else is the engine's.
func TestWhatIsNotSimpleIsLeftToTheEngine(t *testing.T) {
	schema := schemaOf(t, simpleColumns+", current_date DATE, user STRING")
	for _, text := range []string{
		"", "(", ")", "op =", "= 'D'", "op = 'D' AND", "op 'D'", "op = 'D' OR NOT", "nothing", "nothing = 'D'", "source.op = 'D'", "st.a = 'D'", "st", "l", "st IS NULL",
		"current_date", "user = 'x'", "true", "null", "'D'", "1", `op = "D"`, `op = '\n'`, "op = 'a''b'", "op = r'D'", "op = x'44'", "op = NULL", "op IN ()", "op IN ('D'", "op IN ('D',)",
		"seq = 1.0", "seq = 1L", "seq = 01", "seq = 3000000000", "seq = -1", "seq = '1'", "op = 1", "n = s", "op = op", "gone = true", "d = 1", "dec = 1", "day = '2024-01-01'",
		"op IS NULL IS NULL", "op = 'D' = true", "lower(op) = 'd'", "op || 'x'", "seq + 1", "CASE WHEN gone THEN 1 END", "(op)", "STRUCT()", "STRUCT(op", "STRUCT(op,)", "STRUCT(op, OP)", "STRUCT(op AS x, seq)", "STRUCT(seq + 1)", "STRUCT(l)", "STRUCT(op).op", "STRUCT(op) = 'D'", "STRUCT", "op = 'D'; DROP TABLE t", "op = 'D", "/* op", strings.Repeat("NOT ", 100) + "gone",
		strings.Repeat("(", 100000), "op AND gone", "NOT op",
	} {
		if s := SimpleExpression(text, schema); s != nil {
			t.Errorf("%.40q is simple", text)
		}
	}
	twice := arrow.NewSchema([]arrow.Field{{Name: "op", Type: arrow.BinaryTypes.String}, {Name: "OP", Type: arrow.BinaryTypes.String}}, nil)
	if SimpleExpression("op", twice) != nil {
		t.Error("a name of two columns is simple")
	}
	for _, text := range []string{"-- a comment\nop = 'D'", "op/**/='D'", "  gone  ", "NOT gone", strings.Repeat("NOT ", 40) + "gone"} {
		if SimpleExpression(text, schema) == nil {
			t.Errorf("%.40q is not simple", text)
		}
	}
}

// A type that is said to pass unchanged leaves the engine as it went in.
func TestTypesThatPassUnchanged(t *testing.T) {
	e := openEngine(t)
	schema := schemaOf(t, simpleColumns+", big DECIMAL(38,0), small DECIMAL(3,3)")
	out, err := e.Describe(context.Background(), Query{Text: "SELECT * FROM source", Stream: "source"}, map[string]*arrow.Schema{"source": relation.SourceColumns(schema.Fields(), false)})
	if err != nil {
		t.Fatal(err)
	}
	unchanged := 0
	for _, f := range schema.Fields() {
		if !PassesUnchanged(f.Type) {
			continue
		}
		unchanged++
		if got, ok := out.FieldsByName(f.Name); !ok || !arrow.TypeEqual(got[0].Type, f.Type) || !got[0].Nullable {
			t.Errorf("%s of type %s comes out as %v", f.Name, f.Type, got)
		}
	}
	if unchanged != schema.NumFields()-2 {
		t.Errorf("%d of %d columns pass", unchanged, schema.NumFields())
	}
}

func FuzzSimpleExpression(f *testing.F) {
	for _, seed := range []string{"op = 'D'", "NOT (gone OR seq IN (1, 2))", "`odd name` IS NOT NULL"} {
		f.Add(seed)
	}
	schema := schemaOf(f, simpleColumns)
	rec := array.NewRecordBuilder(memory.DefaultAllocator, schema).NewRecordBatch()
	f.Fuzz(func(_ *testing.T, text string) {
		if s := SimpleExpression(text, schema); s != nil {
			s.Eval(memory.DefaultAllocator, rec).Release()
		}
	})
}
