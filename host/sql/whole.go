package sql

import (
	"fmt"
	"slices"

	"github.com/weir-data/weir/host/fault"
)

// A CAST to a type without fraction means in Spark what it does not in DuckDB:
// Spark cuts a fraction off, DuckDB rounds it; DuckDB takes the texts '1.9' and
// '1e3' for integers, Spark does not. The value is therefore made whole before
// the cast, in the way of its type. Often only binding tells the type: then all
// ways stand in a CASE over typeof, a constant once it is known, so that one
// of them is left in the plan.
const (
	cutFloating = "trunc(CAST(__1 AS DOUBLE))"
	cutDecimal  = "split_part(CAST(__1 AS VARCHAR), '.', 1)"
	// The empty text of no match is no integer either: an error, or NULL for TRY_CAST.
	wholeText = `regexp_extract(CAST(__1 AS VARCHAR), '^\s*[+-]?[0-9]+\s*$')`
	byType    = `CASE WHEN typeof(__1) IN ('DOUBLE', 'FLOAT') THEN __2 WHEN typeof(__1) LIKE 'DECIMAL%' THEN __3
	WHEN typeof(__1) IN ('VARCHAR', 'JSON') THEN __4 ELSE __5 END`
)

// guardedNested is a value, or an error while planning when it holds what a
// CAST of the parts would round.
const guardedNested = `CASE WHEN struct_extract({'ok': 1}, CASE
	WHEN regexp_matches(typeof(__1), 'DOUBLE|FLOAT|DECIMAL|VARCHAR|JSON') THEN '` + nestedCast + `' ELSE 'ok' END) = 1 THEN __1 END`

const nestedCast = "NESTED_CAST"

// guardedWhole is a value, or an error while planning when it is a fraction.
const guardedWhole = `CASE WHEN struct_extract({'ok': 1}, CASE
	WHEN regexp_matches(typeof(__1), '^(DOUBLE|FLOAT|DECIMAL)') THEN '` + fraction + `' ELSE 'ok' END) = 1 THEN __1 END`

const fraction = "FRACTION"

// wholeArguments are the functions of Spark that take whole numbers only, and
// which argument that is. DuckDB would round it.
var wholeArguments = map[string]int{
	"date_add/2": 1, "dateadd/2": 1, "date_sub/2": 1, "add_months/2": 1,
	"from_unixtime/1": 0, "from_unixtime/2": 0, "timestamp_millis/1": 0, "timestamp_micros/1": 0,
}

// wholeArgument guards the argument of such a function.
func (r *rewriter) wholeArgument(n node, name string, args []any) error {
	i, ok := wholeArguments[fmt.Sprintf("%s/%d", name, len(args))]
	if !ok || slices.Contains(wholeTypes, writtenType(args[i].(map[string]any))) {
		return nil
	}
	r.note("whole argument", "", n)
	if err := r.repeatable(args[i].(map[string]any)); err != nil {
		return err
	}
	guarded, err := fill(guardedWhole, args[i])
	if err == nil {
		args[i] = map[string]any(guarded)
	}
	return err
}

var wholeTypes = []string{
	"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
}

// wholeNumber rewrites a CAST whose child is rewritten; from is the child's
// type where the text says it, else "".
func (r *rewriter) wholeNumber(n node, from string) error {
	value := n.child("child")
	if !slices.Contains(wholeTypes, n.child("cast_type").str("id")) {
		if !holdsWhole(n.child("cast_type")) {
			return nil
		}
		r.note("nested cast", "", n)
		if err := r.repeatable(value); err != nil {
			return err
		}
		guarded, err := fill(guardedNested, value)
		if err != nil {
			return err
		}
		n["child"] = map[string]any(guarded)
		return nil
	}
	cast := func(template string) (map[string]any, error) {
		whole, err := fill(template, value)
		if err != nil {
			return nil, err
		}
		out := clone(n).(map[string]any)
		out["alias"], out["child"] = "", map[string]any(whole)
		return out, nil
	}
	floating, err := cast(cutFloating)
	if err != nil {
		return err
	}
	decimal, err := cast(cutDecimal)
	if err != nil {
		return err
	}
	text, err := cast(wholeText)
	if err != nil {
		return err
	}
	switch {
	case from == "DOUBLE", from == "FLOAT":
		n.become(floating)
	case from == "DECIMAL":
		n.become(decimal)
	case from == "VARCHAR":
		n.become(text)
	case from == "BOOLEAN", slices.Contains(wholeTypes, from):
	default:
		if err := r.repeatable(value); err != nil {
			return err
		}
		plain := clone(n).(map[string]any)
		plain["alias"] = ""
		chosen, err := fill(byType, value, floating, decimal, text, plain)
		if err != nil {
			return err
		}
		n.become(chosen)
	}
	return nil
}

// writtenType is the type an expression has by its text alone, else "".
func writtenType(n node) string {
	switch n.str("class") {
	case "CAST":
		return n.child("cast_type").str("id")
	case "CONSTANT":
		return n.child("value").child("type").str("id")
	}
	return ""
}

// holdsWhole reports a list, struct or map with integers inside.
func holdsWhole(t node) bool {
	info := t.child("type_info")
	inside := info.nodes("child_types")
	for i, field := range inside {
		inside[i] = field.child("second")
	}
	if child := info.child("child_type"); child != nil {
		inside = append(inside, child)
	}
	return slices.ContainsFunc(inside, func(t node) bool {
		return slices.Contains(wholeTypes, t.str("id")) || holdsWhole(t)
	})
}

// maxRepeated bounds the expressions that are written several times, so that
// nesting them does not make a text without end.
const maxRepeated = 10_000

// repeatable refuses an expression too large to be written several times.
func (r *rewriter) repeatable(n node) error {
	parts := 0
	visit(n, func(node) { parts++ })
	if parts <= maxRepeated {
		return nil
	}
	return fault.New("NOT_SUPPORTED", "casts and divisions are nested too deeply").
		WithHint("Compute the inner ones in a subquery or CTE and give them names").At(r.at(n))
}
