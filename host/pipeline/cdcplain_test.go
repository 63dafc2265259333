package pipeline

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/stream"
)

const plainSource = "id BIGINT, name STRING, op STRING, seq BIGINT, ts TIMESTAMP, gone BOOLEAN, line INT, dec DECIMAL(12,3)"

// sourceRows makes rows of a stream that has those columns.
func sourceRows(t *testing.T, p *project, ddl, rows string) arrow.RecordBatch {
	t.Helper()
	fields, err := coltype.ParseDDL(ddl)
	if err != nil {
		t.Fatal(err)
	}
	var data []arrow.Field
	for _, f := range fields {
		data = append(data, f.Arrow())
	}
	rec, _, err := array.RecordFromJSON(p.mem, arrow.NewSchema(data, nil), strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	ordinals := array.NewInt64Builder(p.mem)
	defer ordinals.Release()
	for i := range rec.NumRows() {
		ordinals.Append(i)
	}
	row := ordinals.NewArray()
	defer row.Release()
	return array.NewRecordBatch(relation.SourceColumns(data, false), append(rec.Columns()[:len(data):len(data)], row), rec.NumRows())
}

// cellsByName gives the rows of a reader, column by column in the order of their names.
func cellsByName(t *testing.T, r array.RecordReader) (schema map[string]string, cells map[string]string) {
	t.Helper()
	schema, cells = map[string]string{}, map[string]string{}
	for _, f := range r.Schema().Fields() {
		schema[f.Name] = f.Type.String()
	}
	for r.Next() {
		rec := r.RecordBatch()
		for i, f := range rec.Schema().Fields() {
			for row := range int(rec.NumRows()) {
				cells[f.Name] += string(relation.AppendJSON(nil, rec.Column(i), row)) + " "
			}
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return schema, cells
}

func sameMap(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// A flow whose expressions are simple makes of each change what the engine
// would, without it; the engine is asked where one of them is not.
func TestChangesAreTheSameWithoutTheEngine(t *testing.T) {
	for name, c := range map[string]struct {
		clauses string
		more    string // of the source
		target  string
		plain   bool
	}{
		"a column":              {clauses: "KEYS (id) SEQUENCE BY seq", plain: true},
		"a time":                {clauses: "KEYS (id) SEQUENCE BY ts COLUMNS * EXCEPT (op, seq)", plain: true},
		"deletes":               {clauses: "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY `seq` COLUMNS (id, name)", plain: true},
		"deletes and truncates": {clauses: "KEYS (id) APPLY AS DELETE WHEN op IN ('D', 'X') OR NOT gone APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY seq COLUMNS * EXCEPT (op)", plain: true},
		"history":               {clauses: "KEYS (id) APPLY AS DELETE WHEN gone SEQUENCE BY seq COLUMNS * EXCEPT (gone) STORED AS SCD TYPE 2 TRACK HISTORY ON (name)", plain: true},
		"ties":                  {clauses: "KEYS (id) SEQUENCE BY ts COLUMNS (id, dec, ts)", target: "TBLPROPERTIES ('pipelines.cdc.ties' = 'last_by(line, seq)')", plain: true},
		"a struct":              {clauses: "KEYS (id) SEQUENCE BY STRUCT(ts, Seq) COLUMNS (id, name)", plain: true},
		"a computed sequence":   {clauses: "KEYS (id) SEQUENCE BY seq + 1 COLUMNS (id, name)"},
		"a computed delete":     {clauses: "KEYS (id) APPLY AS DELETE WHEN lower(op) = 'd' SEQUENCE BY seq COLUMNS (id, name)"},
		"a nested column":       {clauses: "KEYS (id) SEQUENCE BY seq", more: ", l ARRAY<INT>"},
		"a rule":                {clauses: "KEYS (id) SEQUENCE BY seq COLUMNS (id, name)", target: "(CONSTRAINT named EXPECT (name IS NOT NULL) ON VIOLATION DROP ROW)"},
		"a generated column":    {clauses: "KEYS (id) SEQUENCE BY seq COLUMNS (id, name)", target: "(id BIGINT, name STRING, loud STRING GENERATED ALWAYS AS (upper(name)))"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.write("landing/1.json", `{"id": 1}`)
			p.write("sql/a.sql", `
CREATE TEMPORARY VIEW changes AS SELECT * FROM STREAM read_files('landing', format => 'json', schema => '`+plainSource+c.more+`');
CREATE STREAMING TABLE t `+c.target+`;
CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(changes) `+c.clauses+";")
			pl := p.open()
			rec := sourceRows(t, p, plainSource+c.more, `[
{"id":1,"name":"a","op":"I","seq":1,"ts":"2024-01-01T00:00:00Z","gone":false,"line":1,"dec":"1.250"},
{"id":2,"name":null,"op":"D","seq":2,"ts":"2024-01-02T00:00:00Z","gone":true,"line":2,"dec":null},
{"id":null,"name":"c","op":null,"seq":null,"ts":null,"gone":null,"line":null,"dec":"-3.000"},
{"id":4,"name":"d","op":"T","seq":4,"ts":"2024-01-04T00:00:00Z","gone":true,"line":4,"dec":"4.000"}]`)
			defer rec.Release()
			f := pl.graph.flows["f"]
			step := &changeStep{flow: f, engine: pl.engine, stream: true, rules: f.target.rules, alloc: p.mem}
			m, err := f.over(relation.DataSchema(rec.Schema()))
			if err != nil {
				t.Fatal(err)
			}
			plain := step.plain(m, rec.Schema())
			if (plain != nil) != c.plain {
				t.Fatalf("it is done without the engine: %t", plain != nil)
			}
			if plain == nil {
				return
			}
			source := func() array.RecordReader {
				r, err := array.NewRecordReader(rec.Schema(), []arrow.RecordBatch{rec, rec})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			in := source()
			defer in.Release()
			task := &stream.Task{Timestamp: pl.now()}
			got, err := step.Run(t.Context(), task, in)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Release()
			said, err := step.Schema(t.Context(), rec.Schema())
			if err != nil || !said.Equal(got.Schema()) {
				t.Errorf("it gives %s, and said %s, %v", got.Schema(), said, err)
			}
			again := source()
			defer again.Release()
			want, err := step.computed(t.Context(), task, again, m)
			if err != nil {
				t.Fatal(err)
			}
			defer want.Release()
			gotSchema, gotCells := cellsByName(t, got)
			wantSchema, wantCells := cellsByName(t, want)
			if !sameMap(gotSchema, wantSchema) {
				t.Errorf("columns %v\nwant    %v", gotSchema, wantSchema)
			}
			if !sameMap(gotCells, wantCells) {
				t.Errorf("rows %v\nwant %v", gotCells, wantCells)
			}
		})
	}
}
