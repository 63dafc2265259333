package delta

import (
	"context"
	"math/big"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// FilesWhere gives the live files that may hold a row for which p is true,
// sorted by path. What is left out certainly holds none.
func (s *Snapshot) FilesWhere(ctx context.Context, p *Predicate) ([]AddFile, error) {
	files, err := s.Files(ctx)
	if err != nil || p == nil {
		return files, err
	}
	pr, err := s.prune(p)
	if err != nil {
		return nil, err
	}
	kept := files[:0]
	for i := range files {
		if pr.mayHold(&files[i]) {
			kept = append(kept, files[i])
		}
	}
	return kept, nil
}

// filesToScan gives the files that a scan reads.
func (s *Snapshot) filesToScan(ctx context.Context, opt ScanOptions) ([]AddFile, error) {
	if opt.Files == nil {
		return s.FilesWhere(ctx, opt.Where)
	}
	if opt.Where == nil {
		return opt.Files, nil
	}
	pr, err := s.prune(opt.Where)
	if err != nil {
		return nil, err
	}
	var kept []AddFile
	for i := range opt.Files {
		if pr.mayHold(&opt.Files[i]) {
			kept = append(kept, opt.Files[i])
		}
	}
	return kept, nil
}

// pruner asks of files, and of parts of them, whether a predicate can be true there.
type pruner struct {
	root *test
	// columns are those that the predicate names. Each test knows its own by index.
	columns []prunedColumn
}

// prunedColumn is a column of a predicate, found in the table.
type prunedColumn struct {
	typ       *primitive // nil for nested types, which only have nulls
	fields    []*field   // the path in the table
	physical  []string   // the path in statistics
	partition string     // the key in partitionValues, "" when it is none
}

// span is what is known of the values of one column in one file or row group.
// The zero value knows nothing.
type span struct {
	low, high *datum // bounds of the values that are not NULL; nil is unknown
	exact     bool   // the column has the one value low, in every row
	noNulls   bool
	allNulls  bool
}

// test is a predicate whose columns are found and whose values are of their columns' kinds.
type test struct {
	kind   predicateKind
	parts  []*test
	column int
	op     CompareOp
	values []*datum // nil is NULL
}

// prune compiles a predicate. A column that the table has not is an error.
func (s *Snapshot) prune(p *Predicate) (*pruner, error) {
	pr := &pruner{}
	var err error
	if pr.root, err = pr.compile(s, p, 0); err != nil {
		return nil, err
	}
	return pr, nil
}

func (pr *pruner) compile(s *Snapshot, p *Predicate, depth int) (*test, error) {
	if p == nil {
		return &test{kind: kindAnd}, nil
	}
	if depth > 1000 {
		return &test{kind: kindUnknown}, nil
	}
	t := &test{kind: p.kind, op: p.op}
	switch p.kind {
	case kindAnd, kindOr, kindNot:
		for _, part := range p.parts {
			c, err := pr.compile(s, part, depth+1)
			if err != nil {
				return nil, err
			}
			t.parts = append(t.parts, c)
		}
		return t, nil
	case kindUnknown:
		return t, nil
	}
	i, err := pr.find(s, p.column)
	if err != nil {
		return nil, err
	}
	t.column = i
	if p.kind == kindNull {
		return t, nil
	}
	for _, v := range p.values {
		if v == nil {
			t.values = append(t.values, nil)
			continue
		}
		d, ok := comparableTo(literal(v), pr.columns[i].typ)
		if !ok {
			return &test{kind: kindUnknown}, nil
		}
		t.values = append(t.values, &d)
	}
	return t, nil
}

// find gives the index of a column.
func (pr *pruner) find(s *Snapshot, path []string) (int, error) {
	unknown := fault.New("DELTA_COLUMN_NOT_FOUND", "the table has no column %q", strings.Join(path, "."))
	if len(path) == 0 {
		return 0, unknown
	}
	c := prunedColumn{}
	at := s.schema
	for i, name := range path {
		f := at.findFold(name)
		if f == nil {
			return 0, unknown
		}
		physical := f.name
		if s.mapping != "none" {
			physical = f.physicalName()
		}
		c.fields, c.physical = append(c.fields, f), append(c.physical, physical)
		switch t := f.typ.(type) {
		case *structType:
			if i+1 < len(path) {
				at = t
				continue
			}
		case *primitive:
			c.typ = t
			if len(path) == 1 && slices.Contains(s.metadata.PartitionColumns, f.name) {
				c.partition = physical
			}
		}
		if i+1 < len(path) {
			return 0, unknown
		}
	}
	for i, have := range pr.columns {
		if slices.Equal(have.physical, c.physical) {
			return i, nil
		}
	}
	pr.columns = append(pr.columns, c)
	return len(pr.columns) - 1, nil
}

// comparable gives the value in a kind in which it compares with a column, if there is one.
func comparableTo(v datum, t *primitive) (datum, bool) {
	if t == nil {
		return v, false
	}
	k := kindOf(t)
	if k == intKind && v.kind == decimalKind {
		return v, true // the column's integers become decimals
	}
	return v.as(k)
}

func kindOf(t *primitive) datumKind {
	switch t.arrow.ID() {
	case arrow.BOOL:
		return boolKind
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64:
		return intKind
	case arrow.FLOAT32, arrow.FLOAT64:
		return floatKind
	case arrow.DECIMAL128:
		return decimalKind
	case arrow.STRING:
		return textKind
	case arrow.BINARY:
		return bytesKind
	case arrow.DATE32:
		return dateKind
	case arrow.TIMESTAMP:
		return timeKind
	}
	return noKind
}

// outcomes are the values that a condition can have in some row.
type outcomes uint8

const (
	maybeTrue outcomes = 1 << iota
	maybeFalse
	maybeNull
	maybeAny = maybeTrue | maybeFalse | maybeNull
)

// mayHold tells whether the predicate can be true in a live row of the file.
func (pr *pruner) mayHold(f *AddFile) bool {
	if len(pr.columns) == 0 {
		return pr.root.outcomes(nil)&maybeTrue != 0
	}
	return pr.root.outcomes(fileSpans(f, pr.columns))&maybeTrue != 0
}

// outcomes evaluates over everything that rows within the spans can be. Parts
// are taken as independent, so the set is never too small.
func (t *test) outcomes(spans []span) outcomes {
	switch t.kind {
	case kindAnd, kindOr:
		// Each part decides with one of its values: false for AND, true for OR.
		unit, zero := maybeTrue, maybeFalse
		if t.kind == kindOr {
			unit, zero = maybeFalse, maybeTrue
		}
		out := unit
		for _, p := range t.parts {
			out = combine(out, p.outcomes(spans), unit, zero)
		}
		return out
	case kindNot:
		o := t.parts[0].outcomes(spans)
		out := o & maybeNull
		if o&maybeTrue != 0 {
			out |= maybeFalse
		}
		if o&maybeFalse != 0 {
			out |= maybeTrue
		}
		return out
	case kindNull:
		s := &spans[t.column]
		switch {
		case s.allNulls && s.noNulls:
			return 0 // there is no row
		case s.allNulls:
			return maybeTrue
		case s.noNulls:
			return maybeFalse
		}
		return maybeTrue | maybeFalse
	case kindCompare:
		return compareOutcomes(&spans[t.column], t.op, t.values[0])
	case kindIn:
		out := maybeFalse
		for _, v := range t.values {
			out = combine(out, compareOutcomes(&spans[t.column], Equal, v), maybeFalse, maybeTrue)
		}
		return out
	}
	return maybeAny
}

// combine gives the outcomes of a AND b (unit true, zero false) or a OR b (the other way).
func combine(a, b, unit, zero outcomes) outcomes {
	if a == 0 || b == 0 {
		return 0
	}
	out := (a | b) & zero
	if a&unit != 0 && b&unit != 0 {
		out |= unit
	}
	if a&maybeNull != 0 && b&(maybeNull|unit) != 0 || b&maybeNull != 0 && a&(maybeNull|unit) != 0 {
		out |= maybeNull
	}
	return out
}

func compareOutcomes(s *span, op CompareOp, value *datum) outcomes {
	if value == nil {
		return maybeNull
	}
	out := outcomes(0)
	if !s.noNulls {
		out |= maybeNull
	}
	if s.allNulls {
		return out
	}
	less, equal, greater := s.against(value)
	for _, r := range []struct{ can, holds bool }{
		{less, op == Less || op == LessOrEqual || op == NotEqual},
		{equal, op == Equal || op == LessOrEqual || op == GreaterOrEqual},
		{greater, op == Greater || op == GreaterOrEqual || op == NotEqual},
	} {
		switch {
		case r.can && r.holds:
			out |= maybeTrue
		case r.can:
			out |= maybeFalse
		}
	}
	return out
}

// against tells how values of the span can compare with a value.
func (s *span) against(value *datum) (less, equal, greater bool) {
	low, high := s.low, s.high
	if low != nil && low.kind != value.kind {
		low = widened(low, value.kind)
	}
	if high != nil && high.kind != value.kind {
		high = widened(high, value.kind)
	}
	if low != nil && high != nil && low.compare(*high) > 0 {
		return true, true, true // nonsense bounds know nothing
	}
	if s.exact && low != nil {
		c := low.compare(*value)
		return c < 0, c == 0, c > 0
	}
	aboveLow, belowHigh := true, true // that the value itself lies within
	less, greater = true, true
	if low != nil {
		c := low.compare(*value)
		less, aboveLow = c < 0, c <= 0
	}
	if high != nil {
		c := high.compare(*value)
		greater, belowHigh = c > 0, c >= 0
		switch value.kind {
		case floatKind: // a NaN lies above every bound that is written for numbers
			greater, belowHigh = true, belowHigh || value.f != value.f
		case textKind: // the bound may be cut: it stands for all texts that begin with it
			if strings.HasPrefix(value.s, high.s) {
				greater, belowHigh = true, true
			}
		}
	}
	return less, aboveLow && belowHigh, greater
}

// widened gives a bound in the kind of the value, nil where there is none.
func widened(d *datum, k datumKind) *datum {
	if d.kind == intKind && k == decimalKind {
		return &datum{kind: decimalKind, r: new(big.Rat).SetInt64(d.i)}
	}
	return nil
}
