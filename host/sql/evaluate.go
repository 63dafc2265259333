package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// Evaluator evaluates the expressions that Delta tables carry or are changed
// by: constraints, invariants, generated columns, defaults, conditions. They
// are in Spark's SQL, down to its texts: "x" is a text, and a backslash escapes.
// It implements delta.Engine.
type Evaluator struct {
	engine func(ctx context.Context) (*Engine, error)
	clock  func() time.Time
}

// NewEvaluator makes an evaluator of an engine that is asked for when there is
// something to evaluate. clock is what current_timestamp() and its kin read; nil
// is the system's.
func NewEvaluator(engine func(ctx context.Context) (*Engine, error), clock func() time.Time) *Evaluator {
	if clock == nil {
		clock = time.Now
	}
	return &Evaluator{engine, clock}
}

// rowsRelation is what the expressions' columns belong to.
const rowsRelation = "delta_rows"

// noColumn stands for the columns of expressions that read none: a scan has at least one.
var noColumn = arrow.Field{Name: "delta_no_column", Type: arrow.FixedWidthTypes.Boolean, Nullable: true}

// Compile implements delta.Engine. An expression reads columns of its row and
// nothing else: no relation, no aggregate, no chance.
func (v *Evaluator) Compile(ctx context.Context, schema *arrow.Schema, exprs []string) (delta.Program, error) {
	e, err := v.engine(ctx)
	if err != nil {
		return nil, err
	}
	p := &program{engine: e, clock: v.clock()}
	used := make([]bool, schema.NumFields())
	var text strings.Builder
	for i, expr := range exprs {
		spelled, err := expression(expr, schema, used)
		if err != nil {
			return nil, err
		}
		text.WriteString([]string{"SELECT ", ", "}[min(i, 1)])
		fmt.Fprintf(&text, "(%s\n) AS c%d", spelled, i)
	}
	text.WriteString(" FROM " + rowsRelation)
	for i, f := range schema.Fields() {
		if used[i] {
			p.fields = append(p.fields, f)
		}
	}
	scanned := p.fields
	if len(scanned) == 0 {
		scanned = []arrow.Field{noColumn}
	}
	p.scanned = arrow.NewSchema(scanned, nil)
	p.query = Query{Text: text.String(), Clock: p.clock}
	out, err := e.Describe(ctx, p.query, map[string]*arrow.Schema{rowsRelation: p.scanned})
	if err != nil {
		return nil, inExpression(err, exprs)
	}
	for _, f := range out.Fields() {
		p.types = append(p.types, f.Type)
	}
	return p, nil
}

// expression checks one expression, notes the columns it reads, and gives it in the dialect of the queries.
func expression(text string, schema *arrow.Schema, used []bool) (string, error) {
	if err := balanced(text); err != nil {
		return "", inExpression(placed(err, newOrigin("", text, 1)), []string{text})
	}
	// The line break ends a comment that the expression may end with.
	tree, o, err := parseSelect("SELECT ("+text+"\n)", newOrigin("", text, 1))
	if err != nil {
		return "", inExpression(err, []string{text})
	}
	top := tree.child("node")
	items := top.nodes("select_list")
	if top.str("type") != "SELECT_NODE" || len(items) != 1 || top.child("from_table").str("type") != "EMPTY" ||
		top.child("where_clause") != nil || len(top.list("modifiers")) > 0 || containsStar(items[0]) {
		return "", fault.New("INVALID_EXPRESSION", "%s is more than one expression", text)
	}
	noteColumns(items[0], schema, used)
	r := &rewriter{origin: o, places: map[string]int{}, columns: map[string]bool{}}
	for _, f := range schema.Fields() {
		r.columns[strings.ToLower(f.Name)] = true
	}
	if err := r.expr(items[0], place{condition: true}); err != nil {
		return "", inExpression(err, []string{text})
	}
	return text, nil
}

// balanced refuses a text that closes a parenthesis which it did not open.
func balanced(text string) error {
	toks, err := lex(text)
	if err != nil {
		return err
	}
	depth := 0
	for _, t := range toks {
		switch text[t.start:t.end] {
		case "(":
			depth++
		case ")":
			if depth--; depth < 0 {
				return &lexError{t.start, "a parenthesis closes that was not opened"}
			}
		}
	}
	if depth > 0 {
		return &lexError{len(text), "a parenthesis does not close"}
	}
	return nil
}

// noteColumns marks the columns that a tree may read. A name that is both a
// column and something else, such as the variable of a lambda, is marked.
func noteColumns(v any, schema *arrow.Schema, used []bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			noteColumns(e, schema, used)
		}
	case node:
		noteColumns(map[string]any(v), schema, used)
	case map[string]any:
		if names := node(v).strings("column_names"); len(names) > 0 {
			for i, f := range schema.Fields() {
				used[i] = used[i] || strings.EqualFold(f.Name, names[0])
			}
		}
		for _, e := range v {
			noteColumns(e, schema, used)
		}
	}
}

// inExpression names the expressions in an error: their place in a file is not known.
func inExpression(err error, exprs []string) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	if f.Code == "INVALID_EXPECTATION" {
		f.Code = "INVALID_EXPRESSION"
	}
	f.Where = fault.Where{}
	f.Message = fmt.Sprintf("%s, in %s", f.Message, strings.Join(exprs, ", "))
	return err
}

// program is a list of compiled expressions.
type program struct {
	engine  *Engine
	clock   time.Time
	query   Query
	fields  []arrow.Field // that the expressions read
	scanned *arrow.Schema // the same, or a column that stands for none
	types   []arrow.DataType
}

// Types implements delta.Program.
func (p *program) Types() []arrow.DataType { return p.types }

// Columns implements delta.ColumnUser.
func (p *program) Columns() []string {
	out := make([]string, len(p.fields))
	for i, f := range p.fields {
		out[i] = f.Name
	}
	return out
}

// Close implements delta.Program. Plans are kept by the engine.
func (p *program) Close() error { return nil }

// Eval implements delta.Program.
func (p *program) Eval(ctx context.Context, rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	in, err := p.project(rec)
	if err != nil {
		return nil, err
	}
	defer in.Release()
	rows, err := array.NewRecordReader(p.scanned, []arrow.RecordBatch{in})
	if err != nil {
		return nil, fault.Wrap(err, "INTERNAL_ERROR", "a batch does not fit its expressions")
	}
	defer rows.Release()
	out, err := p.engine.Run(ctx, p.query, map[string]array.RecordReader{rowsRelation: rows})
	if err != nil {
		return nil, err
	}
	defer out.Release()
	return p.collect(out)
}

// project gives the columns that the expressions read.
func (p *program) project(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	if len(p.fields) == 0 {
		none := array.MakeArrayOfNull(memory.DefaultAllocator, noColumn.Type, int(rec.NumRows()))
		defer none.Release()
		return array.NewRecordBatch(p.scanned, []arrow.Array{none}, rec.NumRows()), nil
	}
	cols := make([]arrow.Array, len(p.fields))
	for i, f := range p.fields {
		j := slices.IndexFunc(rec.Schema().Fields(), func(have arrow.Field) bool { return have.Name == f.Name })
		if j < 0 || !arrow.TypeEqual(rec.Column(j).DataType(), f.Type) {
			return nil, fault.New("INTERNAL_ERROR", "a batch has no column %s of the type that its expressions read", f.Name)
		}
		cols[i] = rec.Column(j)
	}
	return array.NewRecordBatch(p.scanned, cols, rec.NumRows()), nil
}

// collect makes one batch of a result.
func (p *program) collect(r array.RecordReader) (arrow.RecordBatch, error) {
	var parts []arrow.RecordBatch
	defer func() {
		for _, part := range parts {
			part.Release()
		}
	}()
	rows := int64(0)
	for r.Next() {
		part := r.RecordBatch()
		part.Retain()
		parts = append(parts, part)
		rows += part.NumRows()
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	if len(parts) == 1 {
		parts[0].Retain()
		return parts[0], nil
	}
	cols := make([]arrow.Array, r.Schema().NumFields())
	defer func() {
		for _, c := range cols {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i, f := range r.Schema().Fields() {
		pieces := make([]arrow.Array, len(parts))
		for k, part := range parts {
			pieces[k] = part.Column(i)
		}
		if len(parts) == 0 {
			cols[i] = array.MakeArrayOfNull(p.engine.alloc, f.Type, 0)
			continue
		}
		var err error
		if cols[i], err = array.Concatenate(pieces, p.engine.alloc); err != nil {
			return nil, fault.Wrap(err, "INTERNAL_ERROR", "column %s cannot be put together", f.Name)
		}
	}
	return array.NewRecordBatch(r.Schema(), cols, rows), nil
}
