package sql

import (
	"fmt"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// generators are the functions that make several rows, or columns, of one. They
// stand alone in a select list, or behind FROM.
var generators = map[string]bool{
	"explode": true, "explode_outer": true, "posexplode": true, "posexplode_outer": true, "inline": true, "inline_outer": true, "stack": true, "json_tuple": true,
}

// itemsFunction stands for the columns that a generator becomes, until they are in
// the select list.
const itemsFunction = reservedPrefix + "items"

// generator rewrites one entry of a select list that is a generator; false: it is none.
func (r *rewriter) generator(item node, ctx place) (bool, error) {
	name := strings.ToLower(item.str("function_name"))
	if item.str("class") != "FUNCTION" || !generators[name] {
		return false, nil
	}
	if err := r.children(item, ctx, "children"); err != nil {
		return true, err
	}
	aliases := aliasesOf(item)
	item["alias"] = ""
	args := item.list("children")
	outer := strings.HasSuffix(name, "_outer")
	var mean meaning
	switch base := strings.TrimSuffix(name, "_outer"); base {
	case "stack", "json_tuple":
		items, err := fixedItems(name, args)
		if err == nil {
			var out node
			if out, err = columnsOf(items, aliases); err == nil {
				item.become(out)
			}
		}
		return true, fault.Place(err, "NOT_SUPPORTED", r.at(item))
	default:
		if len(args) != 1 {
			return true, fault.Place(arity(name, len(args)), "NOT_SUPPORTED", r.at(item))
		}
		mean = func(types []sqlType, args []map[string]any) (node, error) {
			items, err := explode(base, types[0], outer, args[0])
			if err != nil {
				return nil, err
			}
			return columnsOf(items, aliases)
		}
	}
	return true, r.wait(item, name, args, ctx, mean)
}

// aliasesOf gives the names that AS, or AS (a, b), gives.
func aliasesOf(item node) []string {
	alias := item.str("alias")
	if rest, ok := strings.CutPrefix(alias, columnsAlias); ok {
		return strings.Split(rest, "\x01")
	}
	if alias == "" {
		return nil
	}
	return []string{alias}
}

// generated is a column of a generator and the name it has by itself.
type generated struct {
	name  string
	value map[string]any
}

// explode gives the columns of explode, posexplode and inline.
func explode(name string, t sqlType, outer bool, value map[string]any) ([]generated, error) {
	var columns [][2]string
	count := "len(__1)"
	switch {
	case name == "inline" && t.id == "LIST" && t.elem().id == "STRUCT":
		for i, f := range t.elem().fields {
			columns = append(columns, [2]string{f.name, fmt.Sprintf("list_transform(__1, lambda e: struct_extract_at(e, %d))", i+1)})
		}
	case name == "inline":
		return nil, mismatch(name, t)
	case t.id == "LIST":
		columns = append(columns, [2]string{"col", "__1"})
	case t.id == "MAP":
		count = "len(map_keys(__1))"
		columns = append(columns, [2]string{"key", "map_keys(__1)"}, [2]string{"value", "map_values(__1)"})
	default:
		return nil, mismatch(name, t)
	}
	if name == "posexplode" {
		columns = append([][2]string{{"pos", "CAST(range(" + count + ") AS INTEGER[])"}}, columns...)
	}
	var out []generated
	for _, c := range columns {
		list := c[1]
		if outer {
			list = fmt.Sprintf("CASE WHEN %s > 0 THEN %s ELSE [NULL] END", count, list)
		}
		v, err := fill("unnest("+list+")", value)
		if err != nil {
			return nil, err
		}
		out = append(out, generated{c[0], v})
	}
	return out, nil
}

// fixedItems gives the columns of stack and json_tuple.
func fixedItems(name string, args []any) ([]generated, error) {
	if len(args) < 2 {
		return nil, arity(name, len(args))
	}
	var out []generated
	if name == "json_tuple" {
		for i, a := range args[1:] {
			key, err := constantArgument(name, a)
			if err != nil {
				return nil, err
			}
			if key == "" || strings.ContainsAny(key, `"\*`) {
				return nil, fault.New("INVALID_JSON_PATH", "json_tuple does not take the name %q", key)
			}
			v, err := fill("CASE WHEN json_valid(__1) AND json_type(__1) = 'OBJECT' THEN json_extract_string(__1, "+quoteText(`$."`+key+`"`)+") END", args[0])
			if err != nil {
				return nil, err
			}
			out = append(out, generated{fmt.Sprintf("c%d", i), v})
		}
		return out, nil
	}
	rows, ok := constantWhole(args[0].(map[string]any))
	if !ok || rows < 1 {
		return nil, fault.New("NON_FOLDABLE_ARGUMENT", "stack takes a constant number of rows")
	}
	columns := (len(args) - 1 + rows - 1) / rows
	for c := range columns {
		var values []any
		for row := range rows {
			if at := 1 + row*columns + c; at < len(args) {
				values = append(values, args[at])
				continue
			}
			null, err := fill[any]("NULL")
			if err != nil {
				return nil, err
			}
			values = append(values, null)
		}
		out = append(out, generated{fmt.Sprintf("col%d", c), callNode("unnest", callNode("list_value", values...))})
	}
	return out, nil
}

// columnsOf puts the names to the columns, into one node.
func columnsOf(items []generated, aliases []string) (node, error) {
	if len(aliases) > 0 && len(aliases) != len(items) {
		return nil, fault.New("UDTF_ALIAS_NUMBER_MISMATCH", "%d names are given to %d columns", len(aliases), len(items))
	}
	var out []any
	for i, item := range items {
		v := clone(item.value).(map[string]any)
		v["alias"] = item.name
		if len(aliases) > 0 {
			v["alias"] = aliases[i]
		}
		out = append(out, v)
	}
	return callNode(itemsFunction, out...), nil
}

// spread puts the columns of generators into the select lists.
func spread(v any) {
	visitAll(v, func(n node) {
		list, ok := n["select_list"].([]any)
		if !ok {
			return
		}
		var out []any
		for _, item := range list {
			m, _ := item.(map[string]any)
			if node(m).str("function_name") == itemsFunction {
				out = append(out, node(m).list("children")...)
				continue
			}
			out = append(out, item)
		}
		n["select_list"] = out
	})
}

// generatorTable makes FROM explode(x) AS e(c) a subquery that selects it.
func (r *rewriter) generatorTable(n node) {
	call := clone(n["function"]).(map[string]any)
	alias := n.str("alias")
	if alias == "" {
		alias = strings.ToLower(node(call).str("function_name"))
	}
	out := map[string]any{
		"type": "SUBQUERY", "alias": alias, "sample": nil, "query_location": n["query_location"],
		"subquery": map[string]any(selectOf(call)), "column_name_alias": n.list("column_name_alias"),
	}
	clear(n)
	for k, v := range out {
		n[k] = v
	}
}
