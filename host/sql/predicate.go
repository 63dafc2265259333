package sql

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/weir-data/weir/host/delta"
)

// Predicate implements delta.Pruner: it tells as much of a condition as is
// sure to mean the same there. The rest is delta.Unknown, which skips nothing.
func (v *Evaluator) Predicate(ctx context.Context, schema *arrow.Schema, condition string) (*delta.Predicate, error) {
	e, err := v.engine(ctx)
	if err != nil {
		return nil, err
	}
	tree, _, err := parseSelect("SELECT ("+condition+"\n)", newOrigin("", condition, 1))
	if err != nil {
		return nil, inExpression(err, []string{condition})
	}
	items := tree.child("node").nodes("select_list")
	if len(items) != 1 {
		return delta.Unknown(), nil
	}
	p := &predicates{schema: schema, zone: e.zone}
	return p.of(items[0]), nil
}

// Filters tells what the WHERE of a SELECT says about the relation it reads: a
// row for which the predicate is not true plays no part in the result. There is
// one only where the SELECT reads one relation, once; schema gives its columns.
func (e *Engine) Filters(ctx context.Context, q Query, schema func(name string) (*arrow.Schema, error)) (map[string]*delta.Predicate, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if q.Guest != nil {
		if err := checkGuestText(q.Text, q.places().where(0)); err != nil {
			return nil, err
		}
	}
	tree, o, err := parseSelect(q.Text, q.places())
	if err != nil {
		return nil, err
	}
	var failed error
	known := intervals{columns: func(name string) *arrow.Schema {
		s, err := schema(name)
		failed = errors.Join(failed, err)
		return s
	}}
	macro := tree.child("node").child("from_table").str("type") == "TABLE_FUNCTION"
	if err := expandIntervals(tree, o, known); err != nil {
		return nil, failed // the plan says what is wrong with the query
	}
	if q.Guest != nil { // which puts the parameters in
		if err := q.checkGuest(tree, &rewriter{origin: o}); err != nil {
			return nil, err
		}
	}
	top := tree.child("node")
	from, where := top.child("from_table"), top.child("where_clause")
	c := &collector{}
	c.walk(top, nil)
	if top.str("type") != "SELECT_NODE" || len(top.child("cte_map").list("map")) > 0 ||
		from.child("sample") != nil || top.child("sample") != nil || len(c.refs) != 1 || c.refs[0].uses != 1 {
		return nil, nil
	}
	called := from.str("alias")
	var versions node // what current() and as_of() ask for
	if inner := from.child("subquery").child("node"); macro && len(from.list("column_name_alias")) == 0 && inner.child("qualify") == nil {
		versions = inner.child("where_clause")
		from = inner.child("from_table")
	}
	if from.str("type") != "BASE_TABLE" || where == nil && versions == nil {
		return nil, nil
	}
	s, err := schema(c.refs[0].name)
	if err != nil || s == nil {
		return nil, err
	}
	if called == "" {
		called = from.str("table_name")
	}
	var all []*delta.Predicate
	for _, condition := range []node{versions, where} {
		if condition != nil {
			p := &predicates{schema: s, zone: e.zone, relation: called}
			all = append(all, p.of(condition))
		}
	}
	if len(all) == 1 {
		return map[string]*delta.Predicate{c.refs[0].name: all[0]}, nil
	}
	return map[string]*delta.Predicate{c.refs[0].name: delta.And(all...)}, nil
}

// predicates turns trees of conditions into predicates.
type predicates struct {
	schema   *arrow.Schema
	zone     string // of the session
	relation string // what columns may be qualified by
}

func (p *predicates) all(nodes []node) []*delta.Predicate {
	out := make([]*delta.Predicate, len(nodes))
	for i, n := range nodes {
		out[i] = p.of(n)
	}
	return out
}

func (p *predicates) of(n node) *delta.Predicate {
	if v, ok := p.constant(n); ok {
		if b, ok := v.(bool); ok && b {
			return delta.And()
		} else if ok {
			return delta.Or()
		}
		return delta.Unknown()
	}
	switch n.str("class") + " " + n.str("type") {
	case "CONJUNCTION CONJUNCTION_AND":
		return delta.And(p.all(n.nodes("children"))...)
	case "CONJUNCTION CONJUNCTION_OR":
		return delta.Or(p.all(n.nodes("children"))...)
	case "COLUMN_REF COLUMN_REF":
		return p.compare(n, delta.Equal, true)
	case "BETWEEN COMPARE_BETWEEN":
		return p.between(n)
	}
	switch n.str("class") {
	case "COMPARISON":
		return p.comparisonNode(n)
	case "OPERATOR":
		return p.operator(n)
	case "FUNCTION":
		return p.function(n)
	}
	return delta.Unknown()
}

var comparisons = map[string]delta.CompareOp{
	"COMPARE_EQUAL": delta.Equal, "COMPARE_NOTEQUAL": delta.NotEqual, "COMPARE_LESSTHAN": delta.Less, "COMPARE_GREATERTHAN": delta.Greater,
	"COMPARE_LESSTHANOREQUALTO": delta.LessOrEqual, "COMPARE_GREATERTHANOREQUALTO": delta.GreaterOrEqual,
}

func (p *predicates) comparisonNode(n node) *delta.Predicate {
	left, right := n.child("left"), n.child("right")
	if op, ok := comparisons[n.str("type")]; ok {
		return p.comparison(left, right, op)
	}
	if left.str("type") == "OPERATOR_CAST" && left.child("cast_type").str("id") == "BOOLEAN" {
		left = left.child("child") // b IS TRUE
	}
	value, ok := p.constant(right)
	path, _ := p.column(left)
	if !ok || path == nil {
		return delta.Unknown()
	}
	same := delta.IsNull(path)
	if value != nil {
		same = delta.And(delta.Not(delta.IsNull(path)), p.compare(left, delta.Equal, value))
	}
	switch n.str("type") {
	case "COMPARE_NOT_DISTINCT_FROM":
		return same
	case "COMPARE_DISTINCT_FROM":
		return delta.Not(same)
	}
	return delta.Unknown()
}

// comparison takes the column on either side.
func (p *predicates) comparison(left, right node, op delta.CompareOp) *delta.Predicate {
	if v, ok := p.constant(right); ok {
		return p.compare(left, op, v)
	}
	if v, ok := p.constant(left); ok {
		flipped := map[delta.CompareOp]delta.CompareOp{delta.Less: delta.Greater, delta.LessOrEqual: delta.GreaterOrEqual, delta.Greater: delta.Less, delta.GreaterOrEqual: delta.LessOrEqual}
		if f, ok := flipped[op]; ok {
			op = f
		}
		return p.compare(right, op, v)
	}
	return delta.Unknown()
}

func (p *predicates) compare(column node, op delta.CompareOp, value any) *delta.Predicate {
	path, t := p.column(column)
	if path == nil {
		return delta.Unknown()
	}
	v, ok := p.cast(value, t)
	if !ok {
		return delta.Unknown()
	}
	return delta.Compare(path, op, v)
}

// between knows both ends or nothing: one that is a double makes the other one, too.
func (p *predicates) between(n node) *delta.Predicate {
	path, t := p.column(n.child("input"))
	if path == nil {
		return delta.Unknown()
	}
	var ends []*delta.Predicate
	for _, end := range []struct {
		key string
		op  delta.CompareOp
	}{{"lower", delta.GreaterOrEqual}, {"upper", delta.LessOrEqual}} {
		v, ok := p.constant(n.child(end.key))
		if ok {
			v, ok = p.cast(v, t)
		}
		if !ok {
			return delta.Unknown()
		}
		ends = append(ends, delta.Compare(path, end.op, v))
	}
	return delta.And(ends...)
}

func (p *predicates) operator(n node) *delta.Predicate {
	children := n.nodes("children")
	if len(children) == 0 {
		return delta.Unknown()
	}
	switch n.str("type") {
	case "OPERATOR_NOT":
		return delta.Not(p.of(children[0]))
	case "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL":
		path, _ := p.column(children[0])
		if path == nil {
			return delta.Unknown()
		}
		if n.str("type") == "OPERATOR_IS_NOT_NULL" {
			return delta.Not(delta.IsNull(path))
		}
		return delta.IsNull(path)
	case "COMPARE_IN", "COMPARE_NOT_IN":
		path, t := p.column(children[0])
		if path == nil {
			return delta.Unknown()
		}
		var values []any
		for _, c := range children[1:] {
			v, ok := p.constant(c)
			if ok {
				v, ok = p.cast(v, t)
			}
			if !ok {
				return delta.Unknown()
			}
			values = append(values, v)
		}
		in := delta.In(path, values...)
		if n.str("type") == "COMPARE_NOT_IN" {
			return delta.Not(in)
		}
		return in
	}
	return delta.Unknown()
}

// function knows what begins with a text.
func (p *predicates) function(n node) *delta.Predicate {
	name := strings.ToLower(n.str("function_name"))
	args := n.nodes("children")
	if len(args) != 2 {
		return delta.Unknown()
	}
	path, t := p.column(args[0])
	text, ok := constantText(args[1])
	if path == nil || !ok || t.ID() != arrow.STRING {
		return delta.Unknown()
	}
	switch name {
	case "~~", "!~~":
		prefix, any := strings.CutSuffix(text, "%")
		if strings.ContainsAny(prefix, `%_\`) {
			return delta.Unknown()
		}
		like := delta.Compare(path, delta.Equal, text)
		if any {
			like = beginsWith(path, prefix)
		}
		if name == "!~~" {
			return delta.Not(like)
		}
		return like
	case "startswith", "starts_with", "prefix", "^@":
		return beginsWith(path, text)
	}
	return delta.Unknown()
}

// beginsWith holds between a prefix and what comes after all that begin with it.
func beginsWith(path []string, prefix string) *delta.Predicate {
	from := delta.Compare(path, delta.GreaterOrEqual, prefix)
	last, size := utf8.DecodeLastRuneInString(prefix)
	switch {
	case prefix == "":
		return from // of every text, and unknown of NULL
	case last == utf8.RuneError || last == utf8.MaxRune || last == 0xD7FF:
		return delta.Unknown() // what comes after is no text
	}
	return delta.And(from, delta.Compare(path, delta.Less, prefix[:len(prefix)-size]+string(last+1)))
}

// column gives the path and type of a column, nil where the node is none.
func (p *predicates) column(n node) ([]string, arrow.DataType) {
	names := n.strings("column_names")
	if n.str("class") != "COLUMN_REF" || len(names) == 0 {
		return nil, nil
	}
	find := func(fields []arrow.Field, name string) *arrow.Field {
		for i := range fields {
			if strings.EqualFold(fields[i].Name, name) {
				return &fields[i]
			}
		}
		return nil
	}
	if qualified := len(names) > 1 && strings.EqualFold(names[0], p.relation); qualified {
		if find(p.schema.Fields(), names[0]) != nil {
			return nil, nil // a column of a relation, or a field of a column of its name
		}
		names = names[1:]
	}
	fields := p.schema.Fields()
	for i, name := range names {
		f := find(fields, name)
		if f == nil {
			return nil, nil
		}
		if i == len(names)-1 {
			return names, f.Type
		}
		s, ok := f.Type.(*arrow.StructType)
		if !ok {
			return nil, nil
		}
		fields = s.Fields()
	}
	return nil, nil
}

// instant and wallClock are texts that were cast to the two kinds of time.
type (
	instant   string
	wallClock string
)

// constant gives the value of a node that is one; NULL is nil.
func (p *predicates) constant(n node) (any, bool) {
	switch n.str("class") {
	case "CONSTANT":
		v := n.child("value")
		if v.flag("is_null") {
			return nil, true
		}
		return constantValue(v)
	case "CAST":
		if n.flag("try_cast") {
			return nil, false
		}
		v, ok := p.constant(n.child("child"))
		if !ok || v == nil {
			return nil, ok
		}
		return castConstant(v, n.child("cast_type"))
	}
	return nil, false
}

func constantValue(v node) (any, bool) {
	number, _ := v["value"].(json.Number)
	t := v.child("type")
	switch t.str("id") {
	case "BOOLEAN":
		b, ok := v["value"].(bool)
		return b, ok
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT":
		n, err := strconv.ParseInt(string(number), 10, 64)
		return n, err == nil
	case "DOUBLE":
		f, err := strconv.ParseFloat(string(number), 64)
		return f, err == nil
	case "DECIMAL":
		n, err := strconv.ParseInt(string(number), 10, 64)
		scale, ok := t.child("type_info")["scale"].(json.Number)
		s, err2 := strconv.ParseInt(string(scale), 10, 8)
		return delta.Decimal{Value: decimal128.FromI64(n), Scale: int32(s)}, ok && err == nil && err2 == nil
	case "VARCHAR":
		s, ok := v["value"].(string)
		return s, ok
	}
	return nil, false
}

func castConstant(v any, t node) (any, bool) {
	name := t.str("id")
	if name == "UNBOUND" {
		name = strings.ToUpper(t.child("type_info").str("name"))
	}
	bits := map[string]int{"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}[name]
	switch v := v.(type) {
	case string:
		switch name {
		case "BOOLEAN":
			return v == "t", v == "t" || v == "f" // true and false themselves
		case "DATE":
			return dateText(v)
		case "TIMESTAMP":
			return instant(v), true
		case "TIMESTAMP_NTZ":
			return wallClock(v), true
		case "VARCHAR":
			return v, true
		}
	case int64:
		if bits > 0 && v>>(bits-1) == v>>63 {
			return v, true
		}
		if name == "DOUBLE" {
			return exactDouble(v, 0)
		}
	case delta.Decimal:
		if name == "DOUBLE" {
			return exactDouble(v.Value.BigInt().Int64(), v.Scale)
		}
		// 0.1 is spelled as a cast that gives it its type.
		scale, ok := t.child("type_info")["scale"].(json.Number)
		return v, ok && name == "DECIMAL" && string(scale) == strconv.Itoa(int(v.Scale))
	case float64:
		return v, name == "DOUBLE"
	}
	return nil, false
}

// exactDouble gives n / 10^scale where all engines give the same double.
func exactDouble(n int64, scale int32) (float64, bool) {
	if n > 1<<53 || n < -1<<53 || scale > 22 {
		return 0, false
	}
	return float64(n) / math.Pow10(int(scale)), true
}

// cast gives a constant as it compares with a column of a type, if that is sure.
func (p *predicates) cast(v any, t arrow.DataType) (any, bool) {
	if v == nil {
		return nil, true
	}
	switch t.ID() {
	case arrow.BOOL:
		_, ok := v.(bool)
		return v, ok
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.DECIMAL128:
		switch v.(type) {
		case int64, delta.Decimal:
			return v, true
		}
	case arrow.FLOAT32, arrow.FLOAT64:
		return toDouble(v, t)
	case arrow.STRING:
		s, ok := v.(string)
		return s, ok
	case arrow.DATE32:
		switch v := v.(type) {
		case arrow.Date32:
			return v, true
		case string:
			return dateText(v)
		}
	case arrow.TIMESTAMP:
		return p.toTime(v, t.(*arrow.TimestampType).TimeZone != "")
	}
	return nil, false
}

// toDouble gives numbers that compare the same in either width.
func toDouble(v any, t arrow.DataType) (any, bool) {
	f, ok := v.(float64)
	switch v := v.(type) {
	case int64:
		f, ok = exactDouble(v, 0)
	case delta.Decimal:
		f, ok = exactDouble(v.Value.BigInt().Int64(), v.Scale)
	}
	if t.ID() == arrow.FLOAT32 && float64(float32(f)) != f {
		return nil, false
	}
	return f, ok
}

func dateText(s string) (any, bool) {
	at, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return nil, false
	}
	return arrow.Date32(at.Unix() / 86400), at.Unix()%86400 == 0
}

// toTime reads times whose zone is sure: an instant with a zone or in a session
// in UTC, a wall-clock time without one.
func (p *predicates) toTime(v any, zoned bool) (any, bool) {
	var text string
	switch v := v.(type) {
	case instant:
		text = string(v)
		if !zoned {
			return nil, false
		}
	case wallClock:
		text = string(v)
		if zoned {
			return nil, false
		}
	case string:
		text = v
	default:
		return nil, false
	}
	for _, layout := range []string{"2006-01-02 15:04:05.999999", "2006-01-02T15:04:05.999999", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return arrow.Timestamp(at.UnixMicro()), (!zoned || p.zone == "UTC") && at.Nanosecond()%1000 == 0
		}
		if at, err := time.Parse(layout+"Z07:00", text); err == nil && zoned && layout != time.DateOnly {
			return arrow.Timestamp(at.UnixMicro()), at.Nanosecond()%1000 == 0
		}
	}
	return nil, false
}
