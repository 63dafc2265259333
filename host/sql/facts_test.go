package sql

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// fact is what Spark gives for an expression or query: testdata/spark/facts.py.
type fact struct {
	SQL     string
	Columns *fact // when constants that become columns give something else
	Type    string
	Rows    []string
	Error   string
}

const refusedFile = "testdata/spark/refused.txt"

var updateRefused = flag.Bool("update", false, "write "+refusedFile+" anew")

var (
	factConstant = regexp.MustCompile(`«(.*?)»`)
	factQuery    = regexp.MustCompile(`(?i)^(SELECT|WITH|VALUES)\b`)
)

// newerSpark are the texts that later versions of Spark read as SQL's standard has
// it, and so do we: 4.0 took 'it”s' for two texts side by side.
var newerSpark = map[string]bool{"'it''s'": true}

func readFacts(t *testing.T) []fact {
	t.Helper()
	f, err := os.Open("testdata/spark/facts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var out []fact
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one fact
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		out = append(out, one)
	}
	return out
}

// texts gives the query of a fact over constants, and the one over columns with the
// query that makes these.
func (f fact) texts() (constants, columns, source string) {
	plain := factConstant.ReplaceAllString(f.SQL, "$1")
	if factQuery.MatchString(plain) {
		return plain, "", ""
	}
	as := " AS v"
	if strings.Contains(plain, " FROM VALUES") {
		as = ""
	}
	constants = "SELECT " + plain + as
	var items []string
	columns = "SELECT " + factConstant.ReplaceAllStringFunc(f.SQL, func(s string) string {
		items = append(items, fmt.Sprintf("%s AS p%d", factConstant.FindStringSubmatch(s)[1], len(items)))
		return fmt.Sprintf("p%d", len(items)-1)
	}) + " AS v FROM c"
	if len(items) == 0 {
		return constants, "", ""
	}
	return constants, columns, "SELECT " + strings.Join(items, ", ")
}

// Whatever is not refused gives what Spark gives: value and type. Every fact is held
// twice, with its constants in the text and as columns of an input, since DuckDB
// computes constants in another place. testdata/spark/refused.txt says what is refused.
func TestSparkGivesTheSame(t *testing.T) {
	e := openEngine(t)
	relations := map[string]arrow.RecordBatch{}
	text, err := os.ReadFile("testdata/spark/relations.sql")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, query, _ := strings.Cut(line, ":")
		rec, err := collectQuery(t, e, query, nil)
		if err != nil {
			t.Fatal(err)
		}
		relations[name] = rec
	}
	var refused []string
	same, failed, more := 0, 0, 0
	hold := func(f fact, want *fact, query string, in map[string]arrow.RecordBatch) {
		rec, err := collectQuery(t, e, query, in)
		if fault.CodeOf(err) == "INTERNAL_ERROR" || err != nil && fault.CodeOf(err) == "" {
			t.Errorf("%s: %v", query, err)
			return
		}
		if err != nil {
			if want.Error == "" {
				refused = append(refused, fault.CodeOf(err)+"\t"+query)
				return
			}
			failed++
			return
		}
		got := factOf(rec, strings.Contains(strings.ToUpper(query), "ORDER BY"))
		switch {
		case want.Error == "UNRESOLVED_ROUTINE" || want.Error == "PARSE_SYNTAX_ERROR":
			more++ // QUALIFY and the like, which Databricks and DuckDB have
		case want.Error != "":
			t.Errorf("%s\n\tgives %v, Spark fails with %s", query, got.Rows, want.Error)
		case got.Type != want.Type && !strings.Contains(want.Type, "void"):
			t.Errorf("%s\n\tis %s, Spark's is %s", query, got.Type, want.Type)
		case !slices.EqualFunc(got.Rows, want.Rows, sameJSON):
			t.Errorf("%s\n\tgives %v\n\tSpark's %v", query, got.Rows, want.Rows)
		default:
			same++
		}
	}
	for _, f := range readFacts(t) {
		if newerSpark[f.SQL] {
			continue
		}
		constants, columns, source := f.texts()
		hold(f, &f, constants, relations)
		if columns == "" {
			continue
		}
		c, err := collectQuery(t, e, source, nil)
		if err != nil {
			refused = append(refused, fault.CodeOf(err)+"\t"+source)
			continue
		}
		want := &f
		if f.Columns != nil {
			want = f.Columns
		}
		hold(f, want, columns, map[string]arrow.RecordBatch{"c": c})
	}
	t.Logf("%d give the same, %d fail in both, %d are refused, %d are more than Spark has", same, failed, len(refused), more)
	slices.Sort(refused)
	list := strings.Join(refused, "\n") + "\n"
	if *updateRefused {
		if err := os.WriteFile(refusedFile, []byte(list), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(refusedFile)
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Split(string(want), "\n")
	for _, line := range refused {
		if !slices.Contains(known, line) {
			t.Errorf("refused, and %s does not say so: %s", refusedFile, line)
		}
	}
	for _, line := range known {
		if line != "" && !slices.Contains(refused, line) {
			t.Errorf("%s says it is refused: %s", refusedFile, line)
		}
	}
}

// collectQuery gives the result of a query as one batch.
func collectQuery(t *testing.T, e *Engine, text string, in map[string]arrow.RecordBatch) (arrow.RecordBatch, error) {
	t.Helper()
	readers := map[string]array.RecordReader{}
	for name, rec := range in {
		readers[name] = readerOf(t, rec)
		defer readers[name].Release()
	}
	r, err := e.Run(t.Context(), Query{Text: text, Clock: batchTime}, readers)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	rec, err := (&program{engine: e}).collect(r)
	if err != nil {
		return nil, err
	}
	defer rec.Release()
	return copied(rec), nil
}

// copied gives a batch whose buffers are not the engine's.
func copied(rec arrow.RecordBatch) arrow.RecordBatch {
	cols := make([]arrow.Array, rec.NumCols())
	for i, c := range rec.Columns() {
		cols[i], _ = array.Concatenate([]arrow.Array{c}, memory.DefaultAllocator)
	}
	return array.NewRecordBatch(rec.Schema(), cols, rec.NumRows())
}

// factOf writes a batch as facts.py writes a result.
func factOf(rec arrow.RecordBatch, ordered bool) fact {
	var out fact
	var types []string
	for _, f := range rec.Schema().Fields() {
		types = append(types, coltype.String(f.Type))
	}
	out.Type = strings.Join(types, ", ")
	out.Type = strings.ReplaceAll(out.Type, "`", "")
	for i := range int(rec.NumRows()) {
		var cells []string
		for _, c := range rec.Columns() {
			cells = append(cells, string(relation.AppendJSON(nil, c, i)))
		}
		if len(cells) == 1 {
			out.Rows = append(out.Rows, cells[0])
		} else {
			out.Rows = append(out.Rows, "["+strings.Join(cells, ",")+"]")
		}
	}
	if !ordered {
		slices.Sort(out.Rows)
	}
	return out
}

var jsonNumber = regexp.MustCompile(`-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?`)

// sameJSON compares texts whose floating numbers may be written in another way: the
// last digit of a sine is the C library's.
func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	x, y := jsonNumber.FindAllString(a, -1), jsonNumber.FindAllString(b, -1)
	if len(x) != len(y) || jsonNumber.ReplaceAllString(a, "#") != jsonNumber.ReplaceAllString(b, "#") || strings.HasPrefix(a, `"`) {
		return false
	}
	for i := range x {
		if x[i] == y[i] {
			continue
		}
		f, err1 := strconv.ParseFloat(x[i], 64)
		g, err2 := strconv.ParseFloat(y[i], 64)
		if err1 != nil || err2 != nil || math.Abs(f-g) > 1e-15*math.Abs(g) || f == math.Trunc(f) && math.Abs(f) < 1e15 && f != g {
			return false
		}
	}
	return true
}
