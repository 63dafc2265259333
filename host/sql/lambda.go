package sql

import (
	"fmt"
	"strings"
)

// lambdaFunctions apply a lambda to each element of a list.
var lambdaFunctions = map[string]bool{
	"list_transform": true, "list_apply": true, "array_transform": true, "array_apply": true, "apply": true,
	"list_reduce": true, "array_reduce": true, "reduce": true,
}

// lambda is a lambda around a part of a tree.
type lambda struct {
	outer  *lambda
	params []string
}

func newLambda(n node, outer *lambda) *lambda {
	l := &lambda{outer: outer}
	visit(n["lhs"], func(n node) {
		if names := n.strings("column_names"); len(names) == 1 {
			l.params = append(l.params, names[0])
		}
	})
	return l
}

// boundLambda guards a function whose lambda puts something from outside next to each
// element: the list is cut, which fails, when that would be too much.
func (r *rewriter) boundLambda(n node, args []any) error {
	body := node(args[1].(map[string]any))
	if body.str("class") != "LAMBDA" {
		return nil
	}
	outside := outerRefs(body.child("expr"), newLambda(body, nil).params)
	if len(outside) == 0 {
		return nil
	}
	if err := r.repeatable(args[0].(map[string]any)); err != nil {
		return err
	}
	sizes := make([]string, len(outside))
	fillers := []any{args[0]}
	for i, o := range outside {
		fillers = append(fillers, o)
		sizes[i] = fmt.Sprintf("coalesce(strlen(CAST(__%d AS VARCHAR)), 0)", i+2)
	}
	guarded, err := fill("list_slice(__1, 1, __weir_room(len(__1), CAST(len(__1) AS DOUBLE) * (8 + "+strings.Join(sizes, " + ")+")))", fillers...)
	if err != nil {
		return err
	}
	args[0] = guarded
	return nil
}

// outerRefs gives the columns and long texts in a lambda's body that are not made of its
// parameters, each once.
func outerRefs(v any, params []string) (out []any) {
	seen := map[string]bool{}
	var walk func(v any, params []string)
	walk = func(v any, params []string) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e, params)
			}
		case node:
			walk(map[string]any(v), params)
		case map[string]any:
			n := node(v)
			key := ""
			switch n.str("class") {
			case "LAMBDA":
				walk(v["expr"], append(params[:len(params):len(params)], newLambda(n, nil).params...))
				return
			case "SUBQUERY":
				return // a list of its rows is a column there
			case "COLUMN_REF":
				names := n.strings("column_names")
				if len(names) > 0 && !containsFold(params, names[0]) {
					key = "column " + strings.ToLower(strings.Join(names, "\x00"))
				}
			case "CONSTANT":
				if text, ok := constantText(n); ok && len(text) > smallText {
					key = "text " + text
				}
			}
			if key != "" && !seen[key] {
				seen[key] = true
				plain := clone(v).(map[string]any)
				plain["alias"] = ""
				out = append(out, plain)
			}
			if key == "" {
				for _, e := range v {
					walk(e, params)
				}
			}
		}
	}
	walk(map[string]any(v.(node)), params)
	return out
}

func containsFold(list []string, name string) bool {
	for _, e := range list {
		if strings.EqualFold(e, name) {
			return true
		}
	}
	return false
}
