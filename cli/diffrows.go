package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/sql"
)

// maxOfKey bounds the rows of one key that are held; of more, none are paired.
const maxOfKey = 1000

// diffRow is a row that one table has more often than the other.
type diffRow struct {
	values [][]byte // JSON, by column
	a, b   int64    // how often
}

func (d *differ) compare(ctx context.Context, engine *sql.Engine) (err error) {
	inputs := map[string]array.RecordReader{}
	for i, name := range []string{"a", "b"} {
		rows, err := d.sides[i].snapshot.Scan(ctx, delta.ScanOptions{Columns: d.sides[i].columns})
		if err != nil {
			return err
		}
		numbered := numberedColumns(rows)
		defer numbered.drop()
		inputs[name] = numbered
	}
	rows, err := engine.Run(ctx, sql.Query{Text: d.differences()}, inputs)
	if err != nil {
		return err
	}
	defer rows.Release()
	var group []diffRow
	flush := func() error {
		err := d.tell(group)
		group = group[:0]
		return err
	}
	for rows.Next() {
		rec := rows.RecordBatch()
		n := len(d.names)
		inA, inB := rec.Column(n), rec.Column(n+1)
		for i := range int(rec.NumRows()) {
			row := diffRow{values: make([][]byte, n)}
			for c := range n {
				row.values[c] = relation.AppendJSON(nil, rec.Column(c), i)
			}
			if row.a, err = wholeNumber(inA, i); err != nil {
				return err
			}
			if row.b, err = wholeNumber(inB, i); err != nil {
				return err
			}
			if len(group) > 0 && (len(group) >= maxOfKey || !d.sameKey(&group[0], &row)) {
				if err := flush(); err != nil {
					return err
				}
			}
			group = append(group, row)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if err := flush(); err != nil {
		return err
	}
	return d.out.end(d)
}

func wholeNumber(col arrow.Array, i int) (int64, error) {
	var n int64
	err := json.Unmarshal(relation.AppendJSON(nil, col, i), &n)
	return n, err
}

// sameKey tells whether two rows belong to one key; without keys none do.
func (d *differ) sameKey(x, y *diffRow) bool {
	for k := range d.keys {
		if !bytes.Equal(x.values[k], y.values[k]) {
			return false
		}
	}
	return len(d.keys) > 0
}

// tell prints the rows of one key: as a change when each side has exactly one.
func (d *differ) tell(group []diffRow) error {
	if len(group) == 2 && len(d.keys) > 0 {
		x, y := &group[0], &group[1]
		if x.b-x.a == 1 {
			x, y = y, x
		}
		if x.a-x.b == 1 && y.b-y.a == 1 {
			return d.out.change(d, x, y)
		}
	}
	for i := range group {
		if err := d.out.only(d, &group[i]); err != nil {
			return err
		}
	}
	return nil
}

// diffWriter prints differences, the first few of them, and counts all.
type diffWriter struct {
	w     io.Writer
	json  bool
	limit int

	schemas               []schemaDifference
	onlyA, onlyB, changed int64
	printed               int
}

type schemaDifference struct {
	Kind   string `json:"kind"` // schema
	What   string `json:"what"`
	Column string `json:"column"`
	TypeA  string `json:"type_a,omitempty"`
	TypeB  string `json:"type_b,omitempty"`
}

func (w *diffWriter) schema(what, column, a, b string) {
	w.schemas = append(w.schemas, schemaDifference{"schema", what, column, a, b})
}

// shows tells whether another difference is printed.
func (w *diffWriter) shows() bool {
	w.printed++
	return w.limit == 0 || w.printed <= w.limit
}

func (w *diffWriter) only(d *differ, r *diffRow) error {
	kind, mark, n := "only_a", "-", r.a-r.b
	if n < 0 {
		kind, mark, n = "only_b", "+", -n
		w.onlyB += n
	} else {
		w.onlyA += n
	}
	if !w.shows() {
		return nil
	}
	row := object(d.names, r.values)
	if w.json {
		return writeJSON(w.w, struct {
			Kind  string          `json:"kind"`
			Row   json.RawMessage `json:"row"`
			Count int64           `json:"count"`
		}{kind, row, n})
	}
	times := ""
	if n > 1 {
		times = fmt.Sprintf("  (%d times)", n)
	}
	_, err := fmt.Fprintf(w.w, "%s %s%s\n", mark, printable(string(row)), times)
	return err
}

func (w *diffWriter) change(d *differ, x, y *diffRow) error {
	w.changed++
	if !w.shows() {
		return nil
	}
	type pair struct {
		A json.RawMessage `json:"a"`
		B json.RawMessage `json:"b"`
	}
	columns, changes := map[string]pair{}, []string{}
	for i, name := range d.names {
		if !bytes.Equal(x.values[i], y.values[i]) {
			columns[name] = pair{x.values[i], y.values[i]}
			changes = append(changes, fmt.Sprintf("%s %s → %s", name, x.values[i], y.values[i]))
		}
	}
	key := object(d.names[:len(d.keys)], x.values)
	if w.json {
		return writeJSON(w.w, struct {
			Kind    string          `json:"kind"`
			Key     json.RawMessage `json:"key"`
			Columns map[string]pair `json:"columns"`
		}{"changed", key, columns})
	}
	_, err := fmt.Fprintf(w.w, "~ %s  %s\n", printable(string(key)), printable(strings.Join(changes, ", ")))
	return err
}

// object writes a row as a JSON object.
func object(names []string, values [][]byte) json.RawMessage {
	out := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		key, _ := json.Marshal(name) // a string can be
		out = append(append(append(out, key...), ':'), values[i]...)
	}
	return append(out, '}')
}

type diffSummary struct {
	Kind    string `json:"kind"` // summary
	A       string `json:"a"`
	B       string `json:"b"`
	VersA   int64  `json:"version_a"`
	VersB   int64  `json:"version_b"`
	RowsA   int64  `json:"rows_a"`
	RowsB   int64  `json:"rows_b"`
	OnlyA   int64  `json:"only_a"`
	OnlyB   int64  `json:"only_b"`
	Changed int64  `json:"changed"`
	Same    int64  `json:"same"`
	Schema  int    `json:"schema_differences"`
	Equal   bool   `json:"equal"`
}

// end prints the summary; tables that differ are a failure.
func (w *diffWriter) end(d *differ) error {
	a, b := &d.sides[0], &d.sides[1]
	s := diffSummary{
		Kind: "summary", A: a.name, B: b.name, VersA: a.snapshot.Version(), VersB: b.snapshot.Version(), RowsA: a.rows, RowsB: b.rows,
		OnlyA: w.onlyA, OnlyB: w.onlyB, Changed: w.changed, Same: a.rows - w.onlyA - w.changed, Schema: len(w.schemas),
	}
	s.Equal = s.OnlyA+s.OnlyB+s.Changed == 0 && s.Schema == 0
	var err error
	for _, x := range w.schemas {
		if w.json {
			err = writeJSON(w.w, x)
		} else {
			_, err = fmt.Fprintf(w.w, "column %s: %s %s\n", printable(x.Column), x.What, strings.TrimSpace(x.TypeA+" "+x.TypeB))
		}
		if err != nil {
			return err
		}
	}
	if w.json {
		err = writeJSON(w.w, s)
	} else {
		if hidden := w.printed - w.limit; w.limit > 0 && hidden > 0 {
			_, _ = fmt.Fprintf(w.w, "… %s more; --limit 0 prints all\n", counted(int64(hidden), "difference"))
		}
		_, err = fmt.Fprintf(w.w, "A %s version %d, %s\nB %s version %d, %s\nonly in A %d, only in B %d, changed %d, the same %d\n",
			printable(s.A), s.VersA, counted(s.RowsA, "row"), printable(s.B), s.VersB, counted(s.RowsB, "row"), s.OnlyA, s.OnlyB, s.Changed, s.Same)
	}
	if err != nil || s.Equal {
		return err
	}
	return toldFailure(fault.New("TABLES_DIFFER", "%s and %s differ", s.A, s.B))
}

// numberedColumns calls the columns of a reader, which it takes over, c0, c1, …
func numberedColumns(r array.RecordReader) *numberedReader {
	fields := make([]arrow.Field, r.Schema().NumFields())
	for i, f := range r.Schema().Fields() {
		fields[i] = arrow.Field{Name: fmt.Sprintf("c%d", i), Type: f.Type, Nullable: true}
	}
	return &numberedReader{RecordReader: r, schema: arrow.NewSchema(fields, nil)}
}

type numberedReader struct {
	array.RecordReader
	schema *arrow.Schema
	rec    arrow.RecordBatch
}

// drop gives back what was read last, and the reader.
func (r *numberedReader) drop() {
	if r.rec != nil {
		r.rec.Release()
		r.rec = nil
	}
	r.RecordReader.Release()
}

// Schema gives the schema with the new names.
func (r *numberedReader) Schema() *arrow.Schema { return r.schema }

// Next moves to the next batch.
func (r *numberedReader) Next() bool {
	if r.rec != nil {
		r.rec.Release()
		r.rec = nil
	}
	if !r.RecordReader.Next() {
		return false
	}
	from := r.RecordReader.RecordBatch()
	r.rec = array.NewRecordBatch(r.schema, from.Columns(), from.NumRows())
	return true
}

// RecordBatch gives the current batch.
func (r *numberedReader) RecordBatch() arrow.RecordBatch { return r.rec }

// Record is RecordBatch under its older name.
func (r *numberedReader) Record() arrow.RecordBatch { return r.rec }
