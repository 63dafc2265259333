package delta

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
)

// miniEngine evaluates the few expressions that the tests of this package write:
// + - * %, comparisons, AND, OR, NOT, IS NULL, over BIGINT and STRING columns.
// The engine of the product is in host/sql, with tests of its own.
type miniEngine struct{ mem memory.Allocator }

type miniProgram struct {
	mem   memory.Allocator
	exprs []ast.Expr
	types []arrow.DataType
	names []string
	open  *int
}

var (
	miniCast     = regexp.MustCompile(`CAST\((\(.*\)) AS \w+\)`)
	miniQuoted   = regexp.MustCompile("`(\\w+)`")
	miniText     = regexp.MustCompile(`'([^']*)'`)
	miniIsNull   = regexp.MustCompile(`(\w+) IS NULL`)
	miniSame     = regexp.MustCompile(`(\w+) IS NOT DISTINCT FROM (.*)`)
	miniEqual    = regexp.MustCompile(`([^<>!=])=([^=])`)
	openPrograms int
)

func (e miniEngine) Compile(_ context.Context, schema *arrow.Schema, exprs []string) (Program, error) {
	p := &miniProgram{mem: e.mem, open: &openPrograms}
	for _, text := range exprs {
		go1 := miniQuoted.ReplaceAllString(text, "$1")
		go1 = miniCast.ReplaceAllString(go1, "$1")
		go1 = miniText.ReplaceAllString(go1, `"$1"`)
		go1 = miniIsNull.ReplaceAllString(go1, "null($1)")
		go1 = miniSame.ReplaceAllString(go1, "same($1, $2)")
		go1 = miniEqual.ReplaceAllString(go1, "$1==$2")
		go1 = strings.NewReplacer(" AND ", " && ", " OR ", " || ", "NOT ", "! ", "<>", "!=").Replace(go1)
		expr, err := parser.ParseExpr(go1)
		if err != nil {
			return nil, fault.Wrap(err, "PARSE_SYNTAX_ERROR", "%s", text)
		}
		t, err := p.typeOf(expr, schema)
		if err != nil {
			return nil, err
		}
		p.exprs, p.types = append(p.exprs, expr), append(p.types, t)
	}
	*p.open++
	return p, nil
}

func (p *miniProgram) Types() []arrow.DataType { return p.types }
func (p *miniProgram) Columns() []string       { return p.names }
func (p *miniProgram) Close() error            { *p.open--; return nil }

func (p *miniProgram) typeOf(e ast.Expr, schema *arrow.Schema) (arrow.DataType, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return p.typeOf(e.X, schema)
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return arrow.BinaryTypes.String, nil
		}
		return arrow.PrimitiveTypes.Int64, nil
	case *ast.Ident:
		switch e.Name {
		case "true", "false":
			return arrow.FixedWidthTypes.Boolean, nil
		case "NULL":
			return arrow.Null, nil
		}
		f, ok := schema.FieldsByName(e.Name)
		if !ok {
			return nil, fault.New("UNRESOLVED_COLUMN", "no column %s", e.Name)
		}
		if !slices.Contains(p.names, e.Name) {
			p.names = append(p.names, e.Name)
		}
		return f[0].Type, nil
	case *ast.UnaryExpr:
		return p.typeOf(e.X, schema)
	case *ast.CallExpr:
		for _, a := range e.Args {
			if _, err := p.typeOf(a, schema); err != nil {
				return nil, err
			}
		}
		return arrow.FixedWidthTypes.Boolean, nil
	case *ast.BinaryExpr:
		left, err := p.typeOf(e.X, schema)
		if err != nil {
			return nil, err
		}
		if _, err := p.typeOf(e.Y, schema); err != nil {
			return nil, err
		}
		switch e.Op {
		case token.ADD, token.SUB, token.MUL, token.REM:
			return left, nil
		}
		return arrow.FixedWidthTypes.Boolean, nil
	}
	return nil, fault.New("NOT_SUPPORTED", "%T", e)
}

func (p *miniProgram) Eval(_ context.Context, rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, len(p.exprs))
	defer releaseArrays(cols)
	fields := make([]arrow.Field, len(p.exprs))
	for i, e := range p.exprs {
		b := array.NewBuilder(p.mem, p.types[i])
		for row := range int(rec.NumRows()) {
			switch v := p.value(e, rec, row).(type) {
			case nil:
				b.AppendNull()
			case int64:
				b.(*array.Int64Builder).Append(v)
			case string:
				b.(*array.StringBuilder).Append(v)
			case bool:
				b.(*array.BooleanBuilder).Append(v)
			}
		}
		cols[i] = b.NewArray()
		b.Release()
		fields[i] = arrow.Field{Name: fmt.Sprint(i), Type: p.types[i], Nullable: true}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, rec.NumRows()), nil
}

func (p *miniProgram) value(e ast.Expr, rec arrow.RecordBatch, row int) any {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return p.value(e.X, rec, row)
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			s, _ := strconv.Unquote(e.Value)
			return s
		}
		n, _ := strconv.ParseInt(e.Value, 10, 64)
		return n
	case *ast.Ident:
		switch e.Name {
		case "true":
			return true
		case "false":
			return false
		case "NULL":
			return nil
		}
		arr := rec.Column(rec.Schema().FieldIndices(e.Name)[0])
		if arr.IsNull(row) {
			return nil
		}
		switch a := arr.(type) {
		case *array.Int32:
			return int64(a.Value(row))
		case *array.Int64:
			return a.Value(row)
		case *array.String:
			return a.Value(row)
		case *array.Boolean:
			return a.Value(row)
		}
		panic(arr.DataType())
	case *ast.UnaryExpr:
		switch v := p.value(e.X, rec, row).(type) {
		case bool:
			return !v
		case int64:
			return -v
		}
		return nil
	case *ast.CallExpr:
		if e.Fun.(*ast.Ident).Name == "null" {
			return p.value(e.Args[0], rec, row) == nil
		}
		return p.value(e.Args[0], rec, row) == p.value(e.Args[1], rec, row)
	case *ast.BinaryExpr:
		return binary3(e.Op, p.value(e.X, rec, row), p.value(e.Y, rec, row))
	}
	panic(fmt.Sprintf("%T", e))
}

// binary3 knows NULL.
func binary3(op token.Token, x, y any) any {
	switch op {
	case token.LAND:
		if x == false || y == false {
			return false
		}
		if x == nil || y == nil {
			return nil
		}
		return true
	case token.LOR:
		if x == true || y == true {
			return true
		}
		if x == nil || y == nil {
			return nil
		}
		return false
	}
	if x == nil || y == nil {
		return nil
	}
	if s, ok := x.(string); ok {
		if op == token.ADD {
			return s + y.(string)
		}
		return compare3(op, strings.Compare(s, y.(string)))
	}
	a, b := x.(int64), y.(int64)
	switch op {
	case token.ADD:
		return a + b
	case token.SUB:
		return a - b
	case token.MUL:
		return a * b
	case token.REM:
		return a % b
	}
	return compare3(op, int(min(max(a-b, -1), 1)))
}

func compare3(op token.Token, c int) bool {
	switch op {
	case token.EQL:
		return c == 0
	case token.NEQ:
		return c != 0
	case token.LSS:
		return c < 0
	case token.LEQ:
		return c <= 0
	case token.GTR:
		return c > 0
	}
	return c >= 0
}
