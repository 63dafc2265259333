package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
)

const (
	constraintPrefix = "delta.constraints."
	invariantKey     = "delta.invariants"
	generationKey    = "delta.generationExpression"
	defaultKey       = "CURRENT_DEFAULT"
)

// rule is a condition that must be true for each row: neither false nor NULL.
//
// That NULL violates is the protocol's word for invariants and generated
// columns. For CHECK constraints it says "must return true", and Spark does so:
// delta-io/delta spark/src/main/scala/org/apache/spark/sql/delta/constraints/
// CheckDeltaInvariant.scala, assertRule: `if (result == null || result == false) throw`.
type rule struct {
	name string // for messages
	expr string
	code string // of the error
}

const violated = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"

// computed is a column whose value follows from an expression.
type computed struct {
	index int
	expr  string
}

// rowRules is what a table demands of the rows that are written to it, beside
// types and NOT NULL, and the programs that find out.
type rowRules struct {
	table     *Table
	tree      *structType
	schema    *arrow.Schema
	checks    []rule
	generated []computed
	defaults  []computed

	programs map[string]Program
}

// rulesOf collects the rules of a table; nil when it has none.
func rulesOf(t *Table, tree *structType, p *Protocol, properties map[string]string) (*rowRules, error) {
	r := newRowRules(t, tree)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if isConstraint(key) {
			r.constrain(key, properties[key])
		}
	}
	if err := r.invariants(tree, ""); err != nil {
		return nil, err
	}
	// Old writers carried generation expressions along without meaning them; the protocol tells.
	generates := p == nil || p.has("generatedColumns")
	for i, f := range tree.fields {
		if expr := f.metaString(generationKey); expr != "" && generates {
			r.generated = append(r.generated, computed{i, expr})
		} else if expr := f.metaString(defaultKey); expr != "" {
			r.defaults = append(r.defaults, computed{i, expr})
		}
	}
	if len(r.checks) == 0 && len(r.generated) == 0 && len(r.defaults) == 0 {
		return nil, nil
	}
	return r, nil
}

func newRowRules(t *Table, tree *structType) *rowRules {
	return &rowRules{table: t, tree: tree, schema: arrow.NewSchema(arrowFields(tree), nil), programs: map[string]Program{}}
}

// constrain adds the CHECK constraint of a property.
func (r *rowRules) constrain(property, expr string) {
	r.checks = append(r.checks, rule{"CHECK constraint " + property[len(constraintPrefix):], expr, violated})
}

func isConstraint(property string) bool {
	return len(property) > len(constraintPrefix) && strings.EqualFold(property[:len(constraintPrefix)], constraintPrefix)
}

// invariants collects those that lie in the schema, in structs too.
func (r *rowRules) invariants(t *structType, path string) error {
	for _, f := range t.fields {
		if raw := f.metaString(invariantKey); raw != "" {
			var v struct {
				Expression struct {
					Expression string `json:"expression"`
				} `json:"expression"`
			}
			if err := json.Unmarshal([]byte(raw), &v); err != nil || v.Expression.Expression == "" {
				return unsupported("the invariant of column %s%s is not readable", path, f.name)
			}
			r.checks = append(r.checks, rule{"invariant of column " + path + f.name, v.Expression.Expression, violated})
		}
		if s, ok := f.typ.(*structType); ok {
			if err := r.invariants(s, path+f.name+"."); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill gives values to columns that a batch lacks: defaults first, and then the
// generated columns, which may read them. cols has the table's columns.
func (r *rowRules) fill(ctx context.Context, cols []arrow.Array, absent []bool, rows int64, adapt *adapter) error {
	for _, of := range [][]computed{r.defaults, r.generated} {
		var missing []computed
		for _, c := range of {
			if absent[c.index] {
				missing = append(missing, c)
			}
		}
		if len(missing) == 0 {
			continue
		}
		exprs := make([]string, len(missing))
		for i, c := range missing {
			exprs[i] = castTo(c.expr, r.tree.fields[c.index].typ)
		}
		if err := r.compute(ctx, cols, missing, exprs, rows, adapt); err != nil {
			return err
		}
	}
	return nil
}

func (r *rowRules) compute(ctx context.Context, cols []arrow.Array, missing []computed, exprs []string, rows int64, adapt *adapter) error {
	out, err := r.eval(ctx, cols, exprs, rows)
	if err != nil {
		return err
	}
	defer out.Release()
	for i, c := range missing {
		f := r.tree.fields[c.index]
		value, err := adapt.adapt(out.Column(i), f.typ)
		if err != nil {
			return within(err, "column "+f.name)
		}
		cols[c.index].Release()
		cols[c.index] = value
	}
	return nil
}

// check holds the conditions, and that generated columns which a batch brings are what they should be.
func (r *rowRules) check(ctx context.Context, cols []arrow.Array, absent []bool, rows int64) error {
	checks := slices.Clone(r.checks)
	for _, g := range r.generated {
		if f := r.tree.fields[g.index]; absent == nil || !absent[g.index] {
			checks = append(checks, rule{"generated column " + f.name, quoteColumn(f.name) + " IS NOT DISTINCT FROM (" + castTo(g.expr, f.typ) + ")", violated})
		}
	}
	return r.hold(ctx, checks, cols, rows)
}

// hold fails when one of the conditions is not true in every row.
func (r *rowRules) hold(ctx context.Context, checks []rule, cols []arrow.Array, rows int64) error {
	if len(checks) == 0 || rows == 0 {
		return nil
	}
	exprs := make([]string, len(checks))
	for i, c := range checks {
		exprs[i] = c.expr
	}
	out, err := r.eval(ctx, cols, exprs, rows)
	if err != nil {
		return err
	}
	defer out.Release()
	for i, c := range checks {
		n, first, err := untrue(out.Column(i))
		if err != nil {
			return within(err, c.name)
		}
		if n > 0 {
			return fault.New(c.code, "%s (%s) is not true in %d of %d rows, first in row %d", c.name, c.expr, n, rows, first).
				WithHint("Correct the rows; where it is NULL it is not true")
		}
	}
	return nil
}

// untrue counts the rows of a condition that are false or NULL and gives the first.
func untrue(arr arrow.Array) (n, first int, err error) {
	first = -1
	b, ok := arr.(*array.Boolean)
	if !ok && arr.DataType().ID() != arrow.NULL {
		return 0, -1, fault.New("DATATYPE_MISMATCH", "the condition is %s, not BOOLEAN", arr.DataType())
	}
	for i := range arr.Len() {
		if !ok || b.IsNull(i) || !b.Value(i) {
			if n++; first < 0 {
				first = i
			}
		}
	}
	return n, first, nil
}

// eval evaluates expressions over the table's columns; a program is compiled once.
func (r *rowRules) eval(ctx context.Context, cols []arrow.Array, exprs []string, rows int64) (arrow.RecordBatch, error) {
	key := strings.Join(exprs, "\x00")
	p := r.programs[key]
	if p == nil {
		var err error
		if p, err = r.table.compile(ctx, r.schema, exprs); err != nil {
			return nil, err
		}
		r.programs[key] = p
	}
	rec := array.NewRecordBatch(r.schema, cols, rows)
	defer rec.Release()
	return evaluate(ctx, p, rec)
}

// evaluate runs a program and checks that it gives a row for each row.
func evaluate(ctx context.Context, p Program, rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	out, err := p.Eval(ctx, rec)
	if err != nil {
		return nil, err
	}
	if n := out.NumRows(); n != rec.NumRows() || int(out.NumCols()) != len(p.Types()) {
		defer out.Release()
		return nil, fault.New("INTERNAL_ERROR", "the SQL engine gives %d rows for %d", n, rec.NumRows())
	}
	return out, nil
}

func (r *rowRules) close() error {
	if r == nil {
		return nil
	}
	var errs []error
	for _, p := range r.programs {
		errs = append(errs, p.Close())
	}
	clear(r.programs)
	return errors.Join(errs...)
}

// compile prepares expressions, or says that the table has no engine for them.
func (t *Table) compile(ctx context.Context, schema *arrow.Schema, exprs []string) (Program, error) {
	if t.engine == nil {
		return nil, fault.New("DELTA_ENGINE_REQUIRED", "the expression %s cannot be evaluated: the table was opened without a SQL engine", exprs[0]).
			WithHint("Open it with delta.WithEngine")
	}
	return t.engine.Compile(ctx, schema, exprs)
}

// castTo gives the expression the type of a column. Nested types are left to
// the adapter: they have no cast that all engines spell alike.
func castTo(expr string, t dataType) string {
	if p, ok := t.(*primitive); ok && p.arrow.ID() != arrow.NULL && p.name != "variant" {
		return fmt.Sprintf("CAST((%s) AS %s)", expr, p.sparkName())
	}
	return "(" + expr + ")"
}

// quoteColumn writes a name as Spark quotes it.
func quoteColumn(name string) string {
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}
