package delta

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Predicate is a condition on the rows of a table, of which the package makes
// one use: to leave out files, and parts of files, that hold no row for which
// it is true. It never filters rows; who asks for rows does that, with the same
// condition in a language of his own. nil is the condition that always holds.
//
// It has SQL's three values: a comparison with NULL is unknown, and so is one
// that the package does not understand, which then costs a skip and nothing else.
//
// Numbers compare by their value, texts and bytes byte by byte, false sorts
// before true, NaN is equal to itself and greater than every number, and -0.0
// equals 0.0. Values of different families (a text and a number) are not understood.
type Predicate struct {
	kind   predicateKind
	parts  []*Predicate // of and, or, not
	column []string
	op     CompareOp
	values []any
}

type predicateKind int

const (
	kindAnd predicateKind = iota
	kindOr
	kindNot
	kindCompare
	kindIn
	kindNull
	kindUnknown
)

// CompareOp is a comparison of SQL.
type CompareOp int

// The comparisons.
const (
	Equal CompareOp = iota
	NotEqual
	Less
	LessOrEqual
	Greater
	GreaterOrEqual
)

func (o CompareOp) String() string {
	return [...]string{"=", "<>", "<", "<=", ">", ">="}[o]
}

// Decimal is a decimal number of a Predicate: Value / 10^Scale.
type Decimal struct {
	Value decimal128.Num
	Scale int32
}

// And holds where all parts hold; without parts always.
func And(parts ...*Predicate) *Predicate { return &Predicate{kind: kindAnd, parts: parts} }

// Or holds where one of the parts holds; without parts never.
func Or(parts ...*Predicate) *Predicate { return &Predicate{kind: kindOr, parts: parts} }

// Not holds where p is false, which is not where it is unknown.
func Not(p *Predicate) *Predicate { return &Predicate{kind: kindNot, parts: []*Predicate{p}} }

// Compare compares a column, given as a path into structs, with a value: nil
// for NULL, a bool, any integer, float32, float64, Decimal, string, []byte,
// arrow.Date32, arrow.Timestamp in microseconds, or time.Time. For columns
// without a zone the microseconds are those of the wall clock, as if in UTC.
func Compare(column []string, op CompareOp, value any) *Predicate {
	return &Predicate{kind: kindCompare, column: column, op: op, values: []any{value}}
}

// In holds where the column equals one of the values, see Compare.
func In(column []string, values ...any) *Predicate {
	return &Predicate{kind: kindIn, column: column, values: values}
}

// IsNull holds where the column is NULL; it is never unknown.
func IsNull(column []string) *Predicate { return &Predicate{kind: kindNull, column: column} }

// Unknown stands for a condition that cannot be told here: it may be anything in any row.
func Unknown() *Predicate { return &Predicate{kind: kindUnknown} }

// String writes the condition for messages, in SQL's manner. Values are left
// out: they may come from rows.
func (p *Predicate) String() string {
	if p == nil {
		return "true"
	}
	switch p.kind {
	case kindAnd, kindOr:
		if len(p.parts) == 0 {
			return strconv.FormatBool(p.kind == kindAnd)
		}
		words := make([]string, len(p.parts))
		for i, part := range p.parts {
			words[i] = part.String()
		}
		return "(" + strings.Join(words, map[predicateKind]string{kindAnd: " AND ", kindOr: " OR "}[p.kind]) + ")"
	case kindNot:
		return "NOT " + p.parts[0].String()
	case kindCompare:
		return fmt.Sprintf("%s %s ?", strings.Join(p.column, "."), p.op)
	case kindIn:
		return strings.Join(p.column, ".") + " IN (?)"
	case kindNull:
		return strings.Join(p.column, ".") + " IS NULL"
	}
	return "?"
}

// literal is a value of a predicate in the form that comparisons need.
func literal(v any) datum {
	switch v := v.(type) {
	case bool:
		return boolDatum(v)
	case int:
		return intDatum(int64(v))
	case int8:
		return intDatum(int64(v))
	case int16:
		return intDatum(int64(v))
	case int32:
		return intDatum(int64(v))
	case int64:
		return intDatum(v)
	case uint8:
		return intDatum(int64(v))
	case uint16:
		return intDatum(int64(v))
	case uint32:
		return intDatum(int64(v))
	case float32:
		return floatDatum(float64(v))
	case float64:
		return floatDatum(v)
	case Decimal:
		return decimalDatum(v.Value, v.Scale)
	case string:
		return textDatum(v)
	case []byte:
		return bytesDatum(string(v))
	case arrow.Date32:
		return datum{kind: dateKind, i: int64(v)}
	case arrow.Timestamp:
		return datum{kind: timeKind, i: int64(v)}
	case time.Time:
		return datum{kind: timeKind, i: v.UnixMicro()}
	}
	return datum{} // nil is NULL; what has no type of ours compares with nothing
}
