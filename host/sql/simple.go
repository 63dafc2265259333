package sql

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Simple is an expression that says so little that it is computed without
// DuckDB, whose start takes longer than a small batch: a column, a STRUCT of
// columns, or a condition made of columns, texts, whole numbers, =, <>, IN,
// IS NULL, AND, OR and NOT. What it gives is what the engine gives.
type Simple struct {
	kind    arrow.DataType
	columns []int // of the batch: the one that the expression is, or those of the struct
	truth   truth // of a condition
}

// SimpleExpression gives the expression over columns like these, nil when it
// takes the engine to compute it, or to say what is wrong with it.
func SimpleExpression(text string, columns *arrow.Schema) *Simple {
	toks, err := lex(text)
	if err != nil {
		return nil
	}
	p := &simpleParser{src: text, toks: toks, columns: columns}
	if len(toks) == 1 {
		if c, ok := p.column(); ok {
			return &Simple{kind: columns.Field(c).Type, columns: []int{c}}
		}
		return nil
	}
	s := p.structOf()
	if s == nil {
		s = &Simple{kind: arrow.FixedWidthTypes.Boolean, truth: p.either()}
	}
	if s.truth == nil && s.columns == nil || p.at != len(toks) {
		return nil
	}
	return s
}

// Type gives the type of the result.
func (s *Simple) Type() arrow.DataType { return s.kind }

// Eval gives a value for each row of a batch with those columns. The caller
// releases it.
func (s *Simple) Eval(mem memory.Allocator, rec arrow.RecordBatch) arrow.Array {
	if s.truth == nil && s.kind.ID() != arrow.STRUCT {
		col := rec.Column(s.columns[0])
		col.Retain()
		return col
	}
	n := int(rec.NumRows())
	if s.truth == nil {
		var parts []arrow.ArrayData
		for _, c := range s.columns {
			parts = append(parts, rec.Column(c).Data())
		}
		data := array.NewData(s.kind, n, []*memory.Buffer{nil}, parts, 0, 0)
		defer data.Release()
		return array.NewStructData(data)
	}
	said := make([]said, n)
	s.truth(rec, said)
	size := int(bitutil.BytesForBits(int64(n)))
	valid, values := memory.NewResizableBuffer(mem), memory.NewResizableBuffer(mem)
	defer valid.Release()
	defer values.Release()
	valid.Resize(size)
	values.Resize(size)
	clear(valid.Bytes())
	clear(values.Bytes())
	nulls := 0
	for i, v := range said {
		switch v {
		case yes:
			bitutil.SetBit(values.Bytes(), i)
			bitutil.SetBit(valid.Bytes(), i)
		case no:
			bitutil.SetBit(valid.Bytes(), i)
		default:
			nulls++
		}
	}
	data := array.NewData(arrow.FixedWidthTypes.Boolean, n, []*memory.Buffer{valid, values}, nil, nulls, 0)
	defer data.Release()
	return array.NewBooleanData(data)
}

// PassesUnchanged tells whether values of a type leave the engine as they go in.
func PassesUnchanged(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.BooleanType, *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type, *arrow.Float32Type, *arrow.Float64Type,
		*arrow.StringType, *arrow.BinaryType, *arrow.Date32Type:
		return true
	case *arrow.TimestampType:
		return t.Unit == arrow.Microsecond && (t.TimeZone == "" || t.TimeZone == "UTC")
	case *arrow.Decimal128Type:
		return true
	}
	return false
}

// said is what a condition says of a row.
type said uint8

const (
	unknown said = iota
	no
	yes
)

func saying(b bool) said {
	if b {
		return yes
	}
	return no
}

// truth fills in what a condition says of each row.
type truth func(rec arrow.RecordBatch, out []said)

// simpleParser reads a condition; a nil truth is one that it does not know.
type simpleParser struct {
	src     string
	toks    []token
	at      int
	deep    int
	columns *arrow.Schema
}

// maxSimpleDepth bounds NOT and parentheses.
const maxSimpleDepth = 64

func (p *simpleParser) peek() string {
	if p.at >= len(p.toks) {
		return ""
	}
	t := p.toks[p.at]
	return p.src[t.start:t.end]
}

// take goes on behind a keyword or symbol.
func (p *simpleParser) take(what string) bool {
	if p.at >= len(p.toks) || p.toks[p.at].kind != word && p.toks[p.at].kind != symbol || !strings.EqualFold(p.peek(), what) {
		return false
	}
	p.at++
	return true
}

// structOf reads STRUCT(column, …), whose fields are named as they are written.
func (p *simpleParser) structOf() *Simple {
	start := p.at
	if !p.take("STRUCT") || !p.take("(") {
		p.at = start
		return nil
	}
	s := &Simple{}
	var fields []arrow.Field
	for {
		name := unquote(p.peek())
		c, ok := p.column()
		if !ok || slices.ContainsFunc(fields, func(f arrow.Field) bool { return strings.EqualFold(f.Name, name) }) {
			return &Simple{}
		}
		s.columns = append(s.columns, c)
		fields = append(fields, arrow.Field{Name: name, Type: p.columns.Field(c).Type, Nullable: true})
		if !p.take(",") {
			break
		}
	}
	if !p.take(")") {
		return &Simple{}
	}
	s.kind = arrow.StructOf(fields...)
	return s
}

func (p *simpleParser) either() truth {
	t := p.both()
	for t != nil && p.take("OR") {
		other := p.both()
		if other == nil {
			return nil
		}
		t = joinTruths(t, other, yes)
	}
	return t
}

func (p *simpleParser) both() truth {
	t := p.negated()
	for t != nil && p.take("AND") {
		other := p.negated()
		if other == nil {
			return nil
		}
		t = joinTruths(t, other, no)
	}
	return t
}

// joinTruths is OR when yes decides, AND when no does.
func joinTruths(a, b truth, decides said) truth {
	return func(rec arrow.RecordBatch, out []said) {
		a(rec, out)
		other := make([]said, len(out))
		b(rec, other)
		for i, v := range other {
			switch {
			case out[i] == decides || v == decides:
				out[i] = decides
			case v == unknown:
				out[i] = unknown
			}
		}
	}
}

func (p *simpleParser) negated() truth {
	p.deep++
	defer func() { p.deep-- }()
	if p.deep > maxSimpleDepth {
		return nil
	}
	if !p.take("NOT") {
		return p.condition()
	}
	t := p.negated()
	if t == nil {
		return nil
	}
	return not(t)
}

func not(t truth) truth {
	return func(rec arrow.RecordBatch, out []said) {
		t(rec, out)
		for i, v := range out {
			switch v {
			case yes:
				out[i] = no
			case no:
				out[i] = yes
			}
		}
	}
}

func (p *simpleParser) condition() truth {
	if p.take("(") {
		t := p.either()
		if t == nil || !p.take(")") {
			return nil
		}
		return t
	}
	c, ok := p.column()
	if !ok {
		return nil
	}
	switch {
	case p.take("IS"):
		negative := p.take("NOT")
		if !p.take("NULL") {
			return nil
		}
		return absent(c, negative)
	case p.take("="), p.take("=="):
		return p.among(c, false)
	case p.take("<>"), p.take("!="):
		return p.among(c, true)
	case p.take("IN"):
		return p.list(c, false)
	case p.take("NOT"):
		if !p.take("IN") {
			return nil
		}
		return p.list(c, true)
	}
	if p.columns.Field(c).Type.ID() == arrow.BOOL {
		return isTrue(c)
	}
	return nil
}

// among compares with one value.
func (p *simpleParser) among(c int, negative bool) truth {
	v, ok := p.value(c)
	if !ok {
		return nil
	}
	return oneOf(c, []any{v}, negative)
}

// list compares with several.
func (p *simpleParser) list(c int, negative bool) truth {
	if !p.take("(") {
		return nil
	}
	var values []any
	for {
		v, ok := p.value(c)
		if !ok {
			return nil
		}
		if values = append(values, v); !p.take(",") {
			break
		}
	}
	if !p.take(")") {
		return nil
	}
	return oneOf(c, values, negative)
}

// value reads a constant that compares with the column without a cast.
func (p *simpleParser) value(c int) (any, bool) {
	if p.at >= len(p.toks) {
		return nil, false
	}
	kind, text := p.toks[p.at].kind, p.peek()
	p.at++
	switch p.columns.Field(c).Type.ID() {
	case arrow.STRING:
		// Escapes and other quotes are the engine's.
		if kind != literal || text[0] != '\'' || strings.ContainsAny(text[1:len(text)-1], `'\`) {
			return nil, false
		}
		return text[1 : len(text)-1], true
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64:
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil && kind == number && n <= math.MaxInt32 && strconv.FormatInt(n, 10) == text
	}
	return nil, false
}

// column reads the name of a column of a type that is compared here.
func (p *simpleParser) column() (int, bool) {
	if p.at >= len(p.toks) {
		return 0, false
	}
	kind, name := p.toks[p.at].kind, p.peek()
	switch {
	case kind == quoted:
		name = unquote(name)
	case kind != word || slices.Contains(noColumns, strings.ToLower(name)):
		return 0, false
	}
	found := columnsNamed(p.columns, name)
	if len(found) != 1 || !PassesUnchanged(p.columns.Field(found[0]).Type) {
		return 0, false
	}
	p.at++
	return found[0], true
}

// noColumns are words that mean something else where a column could stand.
var noColumns = strings.Fields(`all analyse analyze and any array as asc asymmetric between bigint bit boolean both case cast char character check
	coalesce collate column constraint create current_catalog current_date current_role current_schema current_time current_timestamp current_user
	current_timezone date dec decimal default deferrable desc describe distinct do else end except exists extract false fetch float for foreign from
	glob grant group grouping having ifnull ilike in initially inout int integer intersect interval into is isnull lambda lateral leading like limit
	localtime localtimestamp map national nchar none not notnull now null nullif numeric offset on only or order out overlay pivot pivot_longer
	pivot_wider placing position precision primary qualify real references returning right row select session_user setof show similar smallint some
	struct substring summarize symmetric table then time timestamp to trailing treat trim true try_cast union unique unpivot user using values
	varchar variadic when where window with xmlattributes`)

func absent(c int, negative bool) truth {
	return func(rec arrow.RecordBatch, out []said) {
		col := rec.Column(c)
		for i := range out {
			out[i] = saying(col.IsNull(i) != negative)
		}
	}
}

func isTrue(c int) truth {
	return func(rec arrow.RecordBatch, out []said) {
		col := rec.Column(c).(*array.Boolean)
		for i := range out {
			if out[i] = unknown; col.IsValid(i) {
				out[i] = saying(col.Value(i))
			}
		}
	}
}

func oneOf(c int, values []any, negative bool) truth {
	return func(rec arrow.RecordBatch, out []said) {
		col := rec.Column(c)
		is := matcher(col, values)
		for i := range out {
			if out[i] = unknown; col.IsValid(i) {
				out[i] = saying(is(i) != negative)
			}
		}
	}
}

// matcher tells of a row whether its value is one of some of the column's type.
func matcher(col arrow.Array, values []any) func(i int) bool {
	switch col := col.(type) {
	case *array.String:
		return func(i int) bool {
			v := col.Value(i)
			for _, want := range values {
				if v == want.(string) {
					return true
				}
			}
			return false
		}
	case *array.Int8:
		return func(i int) bool { return hasInt(values, int64(col.Value(i))) }
	case *array.Int16:
		return func(i int) bool { return hasInt(values, int64(col.Value(i))) }
	case *array.Int32:
		return func(i int) bool { return hasInt(values, int64(col.Value(i))) }
	}
	longs := col.(*array.Int64)
	return func(i int) bool { return hasInt(values, longs.Value(i)) }
}

func hasInt(values []any, n int64) bool {
	for _, want := range values {
		if n == want.(int64) {
			return true
		}
	}
	return false
}
