package sql

import (
	"fmt"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// sparkAggregates are aggregates that mean another thing in Spark, or that DuckDB
// does not know.
var sparkAggregates = map[string]bool{
	"sum": true, "avg": true, "mean": true, "try_sum": true, "try_avg": true, "count": true, "count_if": true, "collect_list": true, "collect_set": true, "array_agg": true,
	"every": true, "some": true, "any": true, "median": true, "percentile": true, "percentile_cont": true, "quantile_cont": true, "percentile_disc": true, "quantile_disc": true,
	"min": true, "max": true, "regr_count": true, "stddev": true, "stddev_samp": true, "variance": true,
	"var_samp": true, "std": true, "first": true, "last": true, "first_value": true, "last_value": true, "any_value": true, "corr": true, "covar_samp": true,
}

// aggregate gives an aggregate, or one over a window, Spark's meaning; n is rewritten inside.
func (r *rewriter) aggregate(n node, name string, ctx place) error {
	args := n.list("children")
	rename := func(to string) { n["function_name"] = to }
	wrap := func(template string) error {
		inner := clone(map[string]any(n)).(map[string]any)
		inner["alias"] = ""
		out, err := fill(template, inner)
		if err == nil {
			n.become(out)
		}
		return err
	}
	switch name {
	case "count_if":
		if len(args) == 1 {
			return wrap("CAST(__1 AS BIGINT)")
		}
	case "every":
		rename("bool_and")
	case "some", "any":
		rename("bool_or")
	case "std":
		rename("stddev_samp")
	case "mean":
		rename("avg")
		return r.typedAggregate(n, "avg", ctx)
	case "regr_count":
		return wrap("CAST(__1 AS BIGINT)")
	case "percentile_disc", "quantile_disc", "quantile_cont":
		return fault.New("NOT_SUPPORTED", "%s is not supported", name).WithHint("Write percentile(value, p)")
	case "sum", "avg", "min", "max", "try_sum", "try_avg", "median", "percentile", "percentile_cont":
		return r.typedAggregate(n, name, ctx)
	case "count":
		return r.countSeveral(n, args)
	case "collect_list", "array_agg", "collect_set":
		if len(args) != 1 {
			return arity(name, len(args))
		}
		rename("list")
		n["distinct"] = n.flag("distinct") || name == "collect_set"
		if err := notNull(n, args[0]); err != nil {
			return err
		}
		return wrap("coalesce(__1, [])")
	case "first", "last", "any_value", "first_value", "last_value":
		return r.firstOrLast(n, name, args)
	case "listagg", "string_agg":
		if len(args) == 1 {
			n["children"] = append(args, any(textConstant("")))
		}
	}
	return nil
}

// notNull leaves the rows out in which a value is NULL.
func notNull(n node, value any) error {
	key := "filter"
	if n.str("class") == "WINDOW" {
		key = "filter_expr"
	}
	condition, err := fill("__1 IS NOT NULL", value)
	if err != nil {
		return err
	}
	if was := n.child(key); was != nil {
		if condition, err = fill("__1 AND __2", map[string]any(was), condition); err != nil {
			return err
		}
	}
	n[key] = condition
	return nil
}

// countSeveral is count(a, b): the rows in which none of them is NULL.
func (r *rewriter) countSeveral(n node, args []any) error {
	if len(args) < 2 {
		return nil
	}
	if n.flag("distinct") {
		return fault.New("NOT_SUPPORTED", "count(DISTINCT a, b) is not supported").WithHint("Count the distinct structs: count(DISTINCT struct(a, b)), which counts rows with NULL, too")
	}
	for _, a := range args {
		if err := notNull(n, a); err != nil {
			return err
		}
	}
	n["function_name"], n["children"] = "count_star", []any{}
	if n.str("class") == "WINDOW" {
		n["type"] = "WINDOW_AGGREGATE"
	}
	return nil
}

// firstOrLast refuses what depends on an order that nobody gave.
func (r *rewriter) firstOrLast(n node, name string, args []any) error {
	ignore := len(args) == 2
	if ignore {
		flag, ok := constantFlag(args[1].(map[string]any))
		if !ok {
			return fault.New("NON_FOLDABLE_ARGUMENT", "%s takes a constant second argument", name)
		}
		n["children"] = args[:1]
		ignore = flag
	}
	if n.str("class") != "WINDOW" {
		if name == "any_value" && !ignore {
			n["function_name"] = "first"
		}
		if name != "any_value" {
			return fault.New("NOT_SUPPORTED", "%s depends on the order of rows, which a table does not have", name).
				WithHint("Use min_by(value, order), max_by(value, order), or any_value where all are alike")
		}
		return nil
	}
	if len(n.list("orders")) == 0 && name != "any_value" {
		return fault.New("NOT_SUPPORTED", "%s OVER a window without ORDER BY depends on the order of rows, which a table does not have", name).
			WithHint("Add ORDER BY to the window")
	}
	switch name {
	case "first", "any_value":
		n["function_name"], n["type"] = "first_value", "WINDOW_FIRST_VALUE"
	case "last":
		n["function_name"], n["type"] = "last_value", "WINDOW_LAST_VALUE"
	}
	if ignore {
		n["ignore_nulls"] = true
	}
	return nil
}

// typedAggregate waits for the type of an aggregate's argument.
func (r *rewriter) typedAggregate(n node, name string, ctx place) error {
	args := n.list("children")
	if len(args) == 0 || name != "percentile" && name != "percentile_cont" && len(args) != 1 {
		return arity(name, len(args))
	}
	inner := clone(map[string]any(n)).(map[string]any)
	inner["alias"] = ""
	as := func(function string) map[string]any {
		out := clone(inner).(map[string]any)
		out["function_name"] = function
		if node(out).str("class") == "WINDOW" {
			out["type"] = "WINDOW_AGGREGATE"
		}
		return out
	}
	switch name {
	case "percentile", "percentile_cont":
		if name == "percentile" && len(args) != 2 {
			return arity(name, len(args))
		}
		out := as("quantile_cont")
		value := node(out).list("children")[0].(map[string]any)
		if name == "percentile" {
			cast, err := fill("CAST(__1 AS DOUBLE)", value)
			if err != nil {
				return err
			}
			node(out).list("children")[0] = cast
			n.become(out)
			return nil
		}
		return fault.New("NOT_SUPPORTED", "%s is not supported", name).WithHint("Write percentile(value, p)")
	case "median":
		out := as("median")
		cast, err := fill("CAST(__1 AS DOUBLE)", args[0])
		if err != nil {
			return err
		}
		out["children"] = []any{cast}
		n.become(out)
		return nil
	}
	plain := as(strings.TrimPrefix(name, "try_"))
	sample := as("any_value")
	sample["distinct"] = false
	delete(sample, "order_bys")
	sample["order_bys"] = map[string]any{"type": "ORDER_MODIFIER", "orders": []any{}}
	if node(sample).str("class") == "WINDOW" {
		delete(sample, "order_bys")
	}
	probes := []any{sample, plain}
	if strings.HasSuffix(name, "avg") {
		probes = append(probes, as("sum"), as("count"))
	}
	return r.wait(n, name, probes, ctx, func(types []sqlType, args []map[string]any) (node, error) {
		t := types[0]
		mean := strings.HasSuffix(name, "avg")
		var out map[string]any
		var err error
		switch {
		case t.decimal() && mean:
			var n node
			n, err = averageDecimal(t, args[2], args[3])
			out = n
		case name == "min" || name == "max":
			if len(t.fields) > 0 {
				return nil, fault.New("NOT_SUPPORTED", "%s of a struct or list is not supported: NULLs inside count in another way", name).
					WithHint("Use max_by(value, key)")
			}
			return args[1], nil
		case t.decimal():
			to := fitted(min(t.width+10, maxDigits), t.scale)
			out, err = fill(fmt.Sprintf("CAST(__1 AS %s)", to), args[1])
			if err == nil && t.width+10 > maxDigits {
				nines := strings.Repeat("9", maxDigits-t.scale) + "." + strings.Repeat("9", t.scale)
				out, err = fill(fmt.Sprintf("CASE WHEN abs(__1) > CAST('%s' AS %s) THEN error('[ARITHMETIC_OVERFLOW] The sum does not fit') ELSE __1 END", nines, to), out)
			}
		case t.whole() && name == "try_sum":
			return fill("TRY_CAST(__1 AS BIGINT)", args[1])
		case t.whole() && !mean:
			out, err = fill("CAST(__1 AS BIGINT)", args[1])
		case t.id == "FLOAT" && !mean:
			out, err = fill("CAST(__1 AS DOUBLE)", args[1])
		case t.text():
			return nil, fault.New("DATATYPE_MISMATCH", "%s takes numbers, not STRING", name).WithHint("CAST(x AS DOUBLE)")
		default:
			out = args[1]
		}
		return out, err
	})
}

// window rewrites a function OVER a window.
func (r *rewriter) window(n node, ctx place) error {
	if ctx.condition {
		return r.inCondition(n, "a window function")
	}
	if ctx.streaming {
		return r.unsupported(n, "a window function", "Use it where the finished table is read")
	}
	name := strings.ToLower(n.str("function_name"))
	kind := functions()[name]
	if kind != aggregateFunction && kind != windowFunction && !sparkAggregates[name] {
		return r.unknownFunction(n, name)
	}
	if hint, ok := otherMeaning[name]; ok {
		return fault.New("NOT_SUPPORTED", "%s is not supported", name).WithHint("%s", hint).At(r.at(n))
	}
	r.note("function", name, n)
	if err := r.children(n, ctx, "children", "partitions", "filter_expr", "start_expr", "end_expr", "offset_expr", "default_expr", "orders", "arg_orders"); err != nil {
		return err
	}
	if kind == windowFunction && name != "first_value" && name != "last_value" {
		return fault.Place(r.rank(n, name), "NOT_SUPPORTED", r.at(n))
	}
	return fault.Place(r.aggregate(n, name, ctx), "NOT_SUPPORTED", r.at(n))
}

// rank gives the functions that number rows Spark's type.
func (r *rewriter) rank(n node, name string) error {
	switch name {
	case "row_number", "rank", "dense_rank", "ntile":
		inner := clone(map[string]any(n)).(map[string]any)
		inner["alias"] = ""
		out, err := fill("CAST(__1 AS INTEGER)", inner)
		if err == nil {
			n.become(out)
		}
		return err
	}
	return nil
}
