package sql

import (
	"slices"
	"strings"
)

// maxGrowth bounds how often a value of a table may come together into one value by
// the text of a query alone: x || x over and over is two to the power of its levels.
const maxGrowth = 4096

// growing counts how large the values of a query can become, in values of its
// tables. What would be too much in a text gets a guard, anything else is refused.
type growing struct {
	r *rewriter
	// again are columns whose value comes back in the next round: of a recursive
	// CTE, or the first parameter of a reducing lambda.
	again map[string]bool
}

// sizes are the sizes of the CTEs in sight.
type sizes struct {
	outer *sizes
	name  string
	size  float64
}

func (s *sizes) find(name string) (float64, bool) {
	for ; s != nil; s = s.outer {
		if strings.EqualFold(s.name, name) {
			return s.size, true
		}
	}
	return 0, false
}

// query gives the size of a query's largest column.
func (g *growing) query(n node, in *sizes) (float64, error) {
	for _, entry := range n.child("cte_map").nodes("map") {
		size, err := g.query(entry.child("value").child("query").child("node"), in)
		if err != nil {
			return 0, err
		}
		in = &sizes{in, entry.str("key"), size}
	}
	switch n.str("type") {
	case "SELECT_NODE":
		return g.selectNode(n, in)
	case "RECURSIVE_CTE_NODE":
		return g.recursive(n, in)
	}
	size := 1.0
	sides := n.nodes("children")
	if len(sides) == 0 {
		sides = []node{n.child("left"), n.child("right")}
	}
	for _, side := range sides {
		one, err := g.query(side, in)
		if err != nil {
			return 0, err
		}
		size = max(size, one)
	}
	return size, nil
}

func (g *growing) selectNode(n node, in *sizes) (float64, error) {
	from, err := g.from(n.child("from_table"), in)
	if err != nil {
		return 0, err
	}
	largest := 1.0
	for _, item := range n.nodes("select_list") {
		size, err := g.expr(item, from, in)
		if err != nil {
			return 0, err
		}
		largest = max(largest, size)
	}
	for _, key := range []string{"where_clause", "having", "qualify", "group_expressions", "modifiers"} {
		if err := g.each(n[key], from, in); err != nil {
			return 0, err
		}
	}
	return largest, nil
}

// recursive counts the rounds of a recursive CTE as one, whose columns come again.
func (g *growing) recursive(n node, in *sizes) (float64, error) {
	left, err := g.query(n.child("left"), in)
	if err != nil {
		return 0, err
	}
	inner := *g
	inner.again = map[string]bool{}
	names := n.strings("aliases")
	for _, item := range n.child("left").nodes("select_list") {
		names = append(names, item.str("alias"), lastName(item))
	}
	for _, name := range names {
		if name != "" {
			inner.again[strings.ToLower(name)] = true
		}
	}
	right, err := inner.query(n.child("right"), &sizes{in, n.str("cte_name"), left})
	return max(left, right), err
}

func lastName(n node) string {
	if names := n.strings("column_names"); len(names) > 0 {
		return names[len(names)-1]
	}
	return ""
}

// from gives the size of the largest column of a FROM item.
func (g *growing) from(n node, in *sizes) (float64, error) {
	switch n.str("type") {
	case "BASE_TABLE":
		if size, ok := in.find(n.str("table_name")); ok {
			return size, nil
		}
		return 1, nil
	case "SUBQUERY":
		return g.query(n.child("subquery").child("node"), in)
	case "JOIN":
		left, err := g.from(n.child("left"), in)
		if err != nil {
			return 0, err
		}
		right, err := g.from(n.child("right"), in)
		if err != nil {
			return 0, err
		}
		_, err = g.all(n["condition"], max(left, right), in)
		return max(left, right), err
	case "PIVOT":
		return g.from(n.child("source"), in)
	case "TABLE_FUNCTION":
		return g.all(n.child("function").list("children"), 1, in)
	case "EXPRESSION_LIST":
		return g.all(n["values"], 1, in)
	}
	return 1, nil
}

// all gives the sum of the expressions under a value.
func (g *growing) all(v any, base float64, in *sizes) (float64, error) {
	sum := 0.0
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			size, err := g.all(e, base, in)
			if err != nil {
				return 0, err
			}
			sum += size
		}
	case map[string]any:
		if _, isExpression := v["class"]; isExpression {
			return g.expr(v, base, in)
		}
		for _, e := range v {
			size, err := g.all(e, base, in)
			if err != nil {
				return 0, err
			}
			sum += size
		}
	}
	return sum, nil
}

// each looks at expressions whose values go nowhere.
func (g *growing) each(v any, base float64, in *sizes) error {
	_, err := g.all(v, base, in)
	return err
}

// expr gives the size of an expression's value over columns of a size.
func (g *growing) expr(n node, base float64, in *sizes) (float64, error) {
	switch n.str("class") {
	case "COLUMN_REF", "STAR", "POSITIONAL_REFERENCE":
		return base, nil
	case "CONSTANT":
		text, _ := constantText(n)
		return 1 + float64(len(text)/256), nil
	case "FUNCTION":
		return g.function(n, base, in)
	case "SUBQUERY":
		if err := g.each(n["child"], base, in); err != nil {
			return 0, err
		}
		size, err := g.query(n.child("subquery").child("node"), in)
		return max(1, size), err
	case "CASE":
		return g.largest(n, base, in)
	case "OPERATOR":
		switch n.str("type") {
		case "OPERATOR_COALESCE", "ARRAY_EXTRACT", "STRUCT_EXTRACT", "ARRAY_SLICE":
			return g.largest(n, base, in)
		case "ARRAY_CONSTRUCTOR":
			size, err := g.all(n["children"], base, in)
			return size, g.within(n, size, err)
		}
	case "CAST":
		return g.all(n["child"], base, in)
	case "COLLATE":
		return g.all(n["child"], base, in)
	case "LAMBDA":
		return g.all(n["expr"], base, in)
	case "WINDOW":
		err := g.each(map[string]any{"a": n["partitions"], "b": n["orders"]}, base, in)
		if err != nil {
			return 0, err
		}
		size, err := g.all(n["children"], base, in)
		return max(1, size), err
	}
	// Comparisons and their kin: a truth value.
	for key, e := range n {
		if key != "cast_type" {
			if err := g.each(e, base, in); err != nil {
				return 0, err
			}
		}
	}
	return 1, nil
}

// largest is the size of what gives one of its parts.
func (g *growing) largest(n node, base float64, in *sizes) (float64, error) {
	size := 1.0
	for _, key := range []string{"children", "case_checks", "else_expr"} {
		parts, _ := n[key].([]any)
		if part := n.child(key); part != nil {
			parts = []any{map[string]any(part)}
		}
		for _, p := range parts {
			m, ok := p.(map[string]any)
			if !ok {
				continue
			}
			if then := node(m).child("then_expr"); then != nil {
				if err := g.each(m["when_expr"], base, in); err != nil {
					return 0, err
				}
				m = then
			}
			one, err := g.expr(m, base, in)
			if err != nil {
				return 0, err
			}
			size = max(size, one)
		}
	}
	return size, nil
}

// growthOf says by how much a function makes its arguments larger. 0 is for what gives
// a small value whatever it is given, and 1, which is not listed, for the sum of all.
var growthOf = map[string]float64{
	"hex": 2, "to_hex": 2, "bin": 8, "to_binary": 8, "url_encode": 3, "to_base64": 2, "base64": 2,
	"to_json": 2, "json_quote": 2, "json_object": 2, "json_array": 2, "row_to_json": 2, "array_to_json": 2, "json_pretty": 4,
	"string_split": 4, "str_split": 4, "string_to_array": 4, "split": 4, "string_split_regex": 4, "str_split_regex": 4,
	"regexp_split_to_array": 4, "regexp_extract_all": 4, "strftime": 4,
}

var smallResults = func() map[string]bool {
	out := map[string]bool{}
	for _, name := range strings.Fields(`+ - * / % // ** ^ & << >> ~ ! ~~ !~~ ~~* !~~* ~~~ @> <@ && abs ascii bit_length ceil contains count count_star
		date_diff date_part date_trunc day dayofweek ends_with epoch floor instr isnan json_array_length json_type json_valid last_day
		len length list_contains list_position levenshtein make_date md5 month octet_length ord position regexp_full_match regexp_matches round
		sha1 sha256 sign starts_with strlen strpos strptime sum avg trunc try_strptime typeof unicode year make_timestamp make_timestamptz
		like_escape ilike_escape not_like_escape not_ilike_escape to_timestamp to_days to_months map_contains struct_contains hour minute second`) {
		out[name] = true
	}
	return out
}()

func (g *growing) function(n node, base float64, in *sizes) (float64, error) {
	name, args := strings.ToLower(n.str("function_name")), n.list("children")
	if slices.Contains([]string{"list_reduce", "array_reduce", "reduce"}, name) && len(args) > 1 {
		return g.reduce(n, args, base, in)
	}
	if err := g.each(map[string]any{"a": n["filter"], "b": n["order_bys"]}, base, in); err != nil {
		return 0, err
	}
	size, err := g.all(args, base, in)
	if err != nil {
		return 0, err
	}
	switch {
	case smallResults[name]:
		return 1, nil
	case name == "||":
		return size, g.concatenation(n, args, size)
	case name == "replace" || name == "regexp_replace":
		size *= replacedGrowth(name, args)
	case name == "list_extract" || name == "array_extract" || name == "struct_extract" || name == "map_extract_value":
		size, err = g.all(args[:min(1, len(args))], base, in)
	case growthOf[name] > 0:
		size *= growthOf[name]
	}
	return max(1, size), g.within(n, size, err)
}

// within refuses what grows too large.
func (g *growing) within(n node, size float64, err error) error {
	if err != nil {
		return err
	}
	if size > maxGrowth || builders[strings.ToLower(n.str("function_name"))] && g.comesAgain(n) > 1 {
		return g.r.tooLarge(n, "a value put together out of itself is over the limit value_growth = %d", maxGrowth).
			WithHint("Let a dataset in between hold what the inner queries give")
	}
	return nil
}

// builders put their arguments together into one value, without a guard.
var builders = map[string]bool{
	"list_concat": true, "list_cat": true, "array_concat": true, "array_cat": true, "list_value": true, "list_pack": true, "array_value": true,
	"concat": true, "concat_ws": true, "format": true, "printf": true, "struct_pack": true, "row": true, "map": true, "map_concat": true, "list_zip": true,
	"json_object": true, "json_array": true, "json_merge_patch": true, "struct_insert": true, "struct_concat": true, "struct_update": true,
}

// comesAgain counts the columns of the round before in what becomes one value.
func (g *growing) comesAgain(n node) int {
	count := 0
	for _, a := range n.nodes("children") {
		visit(a, func(part node) {
			if name := lastName(part); part.str("class") == "COLUMN_REF" && g.again[strings.ToLower(name)] {
				count++
			}
		})
	}
	return count
}

// concatenation puts a guard at a || b where the value might grow too large.
func (g *growing) concatenation(n node, args []any, size float64) error {
	if len(args) != 2 || size <= maxGrowth && g.comesAgain(n) < 2 {
		return nil
	}
	for _, a := range args {
		if err := g.r.repeatable(a.(map[string]any)); err != nil {
			return err
		}
	}
	guarded, err := fill("__weir_room(__2, CAST("+sizeOf1+" AS DOUBLE) + "+sizeOf2+")", args...)
	if err == nil {
		args[1] = guarded
	}
	return err
}

// replacedGrowth is by how much a replacement without a guard makes a text longer.
func replacedGrowth(name string, args []any) float64 {
	if len(args) < 3 {
		return 1
	}
	with, constant := constantText(args[2].(map[string]any))
	if !constant {
		return 1 // has a guard
	}
	if from, ok := constantText(args[1].(map[string]any)); ok && name == "replace" {
		return max(1, float64(len(with))/float64(max(1, len(from))))
	}
	return 1 + float64(len(with))
}

// reduce takes the lambda's first parameter for what comes again.
func (g *growing) reduce(n node, args []any, base float64, in *sizes) (float64, error) {
	size, err := g.all(args[:1], base, in)
	if err != nil {
		return 0, err
	}
	body := node(args[1].(map[string]any))
	inner := *g
	inner.again = map[string]bool{}
	if params := newLambda(body, nil).params; len(params) > 0 {
		inner.again[strings.ToLower(params[0])] = true
	}
	made, err := inner.expr(body, base, in)
	return max(size, made), g.within(n, max(size, made), err)
}
