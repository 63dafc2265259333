package sql

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// Columns that a SELECT only passes on go around DuckDB: taking them in and out
// costs more than all the rest of such a query. Row i of the result is row i of
// the one relation when nothing in the query filters, joins, sorts or unnests;
// DuckDB then computes the other columns alone, and reads what they need.

// detour is a query whose columns go around the engine, or some of them do.
type detour struct {
	input string // that the query reads
	from  []int  // per column of the result: that of the input, or -1 for the engine's next one
	rest  *plan  // computes the other columns; nil when there are none
}

// only gives the input that the query reads, if it is one and read once.
func (r *rewriter) only() *input {
	var found *input
	for _, in := range r.inputs {
		switch {
		case in.uses == 0:
		case found != nil || in.uses > 1:
			return nil
		default:
			found = in
		}
	}
	return found
}

// around tells which columns of the result are columns of the input, by their
// place in it, -1 for the others; nil when the rows may not be the input's own.
func (r *rewriter) around(top node, names []string, types []outType, in *input, schema *arrow.Schema) []int {
	if r.stream != nil && r.stream != in || r.sorted || !plainSelect(top) {
		return nil
	}
	from := top.child("from_table")
	if from.str("type") != "BASE_TABLE" || from.str("table_name") != inputName(in.index) || from.child("sample") != nil || len(from.list("column_name_alias")) > 0 {
		return nil
	}
	var out []int
	for _, item := range top.nodes("select_list") {
		switch columns := passedOn(item, schema); {
		case columns != nil:
			out = append(out, columns...)
		case r.stream == nil || changesRows(item):
			return nil // what else an ordinary query computes may need all rows
		default:
			out = append(out, -1)
		}
	}
	if len(out) != len(names) {
		return nil
	}
	found := false
	for i, c := range out {
		if c < 0 {
			continue
		}
		if types[i].cast || types[i].refused != "" || !sameLayout(types[i].arrow, schema.Field(c).Type) {
			if r.stream == nil {
				return nil // its names need not tell columns apart, as those of a stream do
			}
			out[i] = -1
			continue
		}
		found = found || schema.Field(c).Name != relation.RowColumn
	}
	if !found {
		return nil
	}
	return out
}

// plainSelect says that a query is a SELECT list over one relation and no more.
func plainSelect(top node) bool {
	return top.str("type") == "SELECT_NODE" && top.str("aggregate_handling") == "STANDARD_HANDLING" && top.child("where_clause") == nil && top.child("having") == nil && top.child("qualify") == nil && top.child("sample") == nil &&
		len(top.list("group_expressions")) == 0 && len(top.list("group_sets")) == 0 && len(top.list("modifiers")) == 0 && len(top.child("cte_map").list("map")) == 0
}

// passedOn gives the columns of the input that an item of a SELECT list is; nil
// when it is something else.
func passedOn(item node, in *arrow.Schema) []int {
	switch item.str("class") {
	case "COLUMN_REF":
		if names := item.strings("column_names"); len(names) == 1 {
			return columnsNamed(in, names[0])
		}
	case "STAR":
		if item.child("expr") != nil || item["columns"] == true || len(item.list("replace_list")) > 0 || len(item.list("rename_list")) > 0 || len(item.list("qualified_exclude_list")) > 0 {
			return nil
		}
		out := []int{}
		for i, f := range in.Fields() {
			if !containsFold(item.strings("exclude_list"), f.Name) {
				out = append(out, i)
			}
		}
		return out
	}
	return nil
}

func columnsNamed(schema *arrow.Schema, name string) []int {
	var out []int
	for i, f := range schema.Fields() {
		if strings.EqualFold(f.Name, name) {
			out = append(out, i)
		}
	}
	if len(out) != 1 {
		return nil
	}
	return out
}

// changesRows says that an expression may make more or fewer rows than one, or
// that its columns are not known by looking at it.
func changesRows(item node) bool {
	found := false
	visitAll(map[string]any(item), func(n node) {
		switch n.str("class") {
		case "SUBQUERY", "WINDOW", "STAR":
			found = true
		case "FUNCTION":
			name := strings.ToLower(n.str("function_name"))
			found = found || strings.Contains(name, "unnest") || name == "unlist"
		}
	})
	return found
}

// sameLayout says that arrays of one type can be read as the other: all but the
// nullability and the metadata of fields is equal.
func sameLayout(a, b arrow.DataType) bool {
	if a.ID() != b.ID() {
		return false
	}
	switch x := a.(type) {
	case *arrow.ListType:
		return sameLayout(x.Elem(), b.(*arrow.ListType).Elem())
	case *arrow.MapType:
		y := b.(*arrow.MapType)
		return sameLayout(x.KeyType(), y.KeyType()) && sameLayout(x.ItemType(), y.ItemType())
	case *arrow.StructType:
		y := b.(*arrow.StructType)
		if x.NumFields() != y.NumFields() {
			return false
		}
		for i := range x.NumFields() {
			if x.Field(i).Name != y.Field(i).Name || !sameLayout(x.Field(i).Type, y.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return arrow.TypeEqual(a, b)
}

// tap hands the batches of a reader on and keeps them until they are asked for.
type tap struct {
	array.RecordReader
	mu   sync.Mutex
	kept []arrow.RecordBatch
}

func (t *tap) Next() bool {
	if !t.RecordReader.Next() {
		return false
	}
	rec := t.RecordBatch()
	if rec.NumRows() > 0 {
		rec.Retain()
		t.mu.Lock()
		t.kept = append(t.kept, rec)
		t.mu.Unlock()
	}
	return true
}

// first gives the oldest batch kept, nil for none.
func (t *tap) first() arrow.RecordBatch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) == 0 {
		return nil
	}
	return t.kept[0]
}

// pop takes the oldest batch out; it is the caller's.
func (t *tap) pop() arrow.RecordBatch {
	t.mu.Lock()
	defer t.mu.Unlock()
	rec := t.kept[0]
	t.kept[0] = nil
	t.kept = t.kept[1:]
	return rec
}

func (t *tap) drain() {
	for t.first() != nil {
		t.pop().Release()
	}
}

// detoured is the reader of a query with a detour. Its batches are those of the
// input, with the columns of the query.
type detoured struct {
	refs    atomic.Int64
	ctx     context.Context
	plan    *plan
	scan    *scan   // reads the input, when every column goes around
	tap     *tap    // else keeps its batches, while
	rest    *result // computes the other columns
	current arrow.RecordBatch
	err     error
}

func (d *detoured) Schema() *arrow.Schema          { return d.plan.schema }
func (d *detoured) RecordBatch() arrow.RecordBatch { return d.current }

// Record is RecordBatch under its old name, which the interface still has.
func (d *detoured) Record() arrow.RecordBatch { return d.current }

func (d *detoured) Err() error { return d.err }
func (d *detoured) Retain()    { d.refs.Add(1) }

func (d *detoured) Release() {
	if d.refs.Add(-1) != 0 {
		return
	}
	d.drop()
	if d.rest != nil {
		d.rest.Release()
	}
	if d.tap != nil {
		d.tap.drain() // after the engine has stopped to read
	}
	if d.scan != nil {
		d.scan.close()
	}
}

func (d *detoured) drop() {
	if d.current != nil {
		d.current.Release()
		d.current = nil
	}
}

func (d *detoured) Next() bool {
	d.drop()
	if d.err != nil {
		return false
	}
	if d.rest == nil {
		return d.pass()
	}
	return d.join()
}

// pass gives the next batch of a query that computes nothing.
func (d *detoured) pass() bool {
	for {
		var p pulled
		select {
		case p = <-d.scan.ahead: // closed: the end was seen before
		case <-d.ctx.Done():
			p.err = d.ctx.Err()
		}
		if p.rec == nil {
			d.err = p.err
			return false
		}
		if p.rec.NumRows() > 0 {
			d.current = d.batch(p.rec, nil)
		}
		p.rec.Release()
		if d.current != nil {
			return true
		}
	}
}

// join gives the next batch of the stream beside what the engine made of it.
func (d *detoured) join() bool {
	if !d.rest.Next() {
		if d.err = d.rest.Err(); d.err == nil && d.tap.first() != nil {
			d.err = fault.New("INTERNAL_ERROR", "the query gives fewer rows than its stream").At(d.plan.where)
		}
		return false
	}
	computed := d.rest.RecordBatch()
	first := d.tap.first()
	if first == nil || first.NumRows() != computed.NumRows() {
		d.err = fault.New("INTERNAL_ERROR", "the query gives other rows than its stream").At(d.plan.where)
		return false
	}
	rec := d.tap.pop()
	defer rec.Release()
	d.current = d.batch(rec, computed.Columns())
	return true
}

func (d *detoured) batch(rec arrow.RecordBatch, computed []arrow.Array) arrow.RecordBatch {
	cols := make([]arrow.Array, len(d.plan.around.from))
	k := 0
	for i, from := range d.plan.around.from {
		if from < 0 {
			cols[i] = computed[k]
			k++
			continue
		}
		data := retype(rec.Column(from).Data(), d.plan.schema.Field(i).Type)
		cols[i] = array.MakeFromData(data)
		data.Release()
		defer cols[i].Release()
	}
	return array.NewRecordBatch(d.plan.schema, cols, rec.NumRows())
}
