package sql

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// The size of a value in a template below: of a text exactly, of anything else about.
const sizeOf1, sizeOf2, sizeOf3 = "strlen(CAST(__1 AS VARCHAR))", "strlen(CAST(__2 AS VARCHAR))", "strlen(CAST(__3 AS VARCHAR))"

// boundedForms says the functions that can make much of little so that they
// do it within bounds. What they return is what they returned.
var boundedForms = map[string]string{
	"repeat/2":          "repeat(__1, __weir_room(__2, CAST(__2 AS DOUBLE) * 4 * " + sizeOf1 + "))",
	"lpad/3":            "lpad(__1, CAST(__weir_room(__2, CAST(__2 AS DOUBLE) * 4) AS INTEGER), __3)",
	"rpad/3":            "rpad(__1, CAST(__weir_room(__2, CAST(__2 AS DOUBLE) * 4) AS INTEGER), __3)",
	"bitstring/2":       "bitstring(__1, CAST(__weir_room(__2, CAST(__2 AS DOUBLE) / 8) AS INTEGER))",
	"list_resize/2":     "list_resize(__1, __weir_room(__2, CAST(__2 AS DOUBLE) * 16))",
	"list_resize/3":     "list_resize(__1, __weir_room(__2, CAST(__2 AS DOUBLE) * (16 + " + sizeOf3 + ")), __3)",
	"array_resize/2":    "array_resize(__1, __weir_room(__2, CAST(__2 AS DOUBLE) * 16))",
	"array_resize/3":    "array_resize(__1, __weir_room(__2, CAST(__2 AS DOUBLE) * (16 + " + sizeOf3 + ")), __3)",
	"range/1":           "range(__weir_room(__1, CAST(__1 AS DOUBLE) * 8))",
	"range/2":           "range(__1, __weir_room(__2, (CAST(__2 AS DOUBLE) - CAST(__1 AS DOUBLE)) * 8))",
	"range/3":           "range(__weir_room(__1, __weir_steps(__1, __2, __3) * 8), __2, __3)",
	"generate_series/1": "generate_series(__weir_room(__1, CAST(__1 AS DOUBLE) * 8))",
	"generate_series/2": "generate_series(__1, __weir_room(__2, (CAST(__2 AS DOUBLE) - CAST(__1 AS DOUBLE)) * 8))",
	"generate_series/3": "generate_series(__weir_room(__1, __weir_steps(__1, __2, __3) * 8), __2, __3)",

	"levenshtein/2":             "levenshtein(__weir_work(__1, CAST(" + sizeOf1 + " AS DOUBLE) * " + sizeOf2 + "), __2)",
	"damerau_levenshtein/2":     "damerau_levenshtein(__weir_work(__1, CAST(" + sizeOf1 + " AS DOUBLE) * " + sizeOf2 + " * 8), __2)",
	"editdist3/2":               "editdist3(__weir_work(__1, CAST(" + sizeOf1 + " AS DOUBLE) * " + sizeOf2 + "), __2)",
	"jaro_similarity/2":         "jaro_similarity(__weir_work(__1, CAST(" + sizeOf1 + " AS DOUBLE) * " + sizeOf2 + "), __2)",
	"jaro_winkler_similarity/2": "jaro_winkler_similarity(__weir_work(__1, CAST(" + sizeOf1 + " AS DOUBLE) * " + sizeOf2 + "), __2)",
	"jaro_similarity/3":         "jaro_similarity(__weir_work(__1, CAST(" + sizeOf1 + " AS DOUBLE) * " + sizeOf2 + "), __2, __3)",
	"jaro_winkler_similarity/3": "jaro_winkler_similarity(__weir_work(__1, CAST(" + sizeOf1 + " AS DOUBLE) * " + sizeOf2 + "), __2, __3)",
}

// boundedReplacements put a text in for another: the guard stands at the third argument.
var boundedReplacements = map[string]string{
	"replace/3":        "replace(__1, __2, __weir_room(__3, CAST(" + sizeOf1 + " AS DOUBLE) * (1 + " + sizeOf3 + " / greatest(" + sizeOf2 + ", 1))))",
	"regexp_replace/3": "regexp_replace(__1, __2, __weir_room(__3, CAST(" + sizeOf1 + " AS DOUBLE) * (1 + " + sizeOf3 + ")))",
	"regexp_replace/4": "regexp_replace(__1, __2, __weir_room(__3, CAST(" + sizeOf1 + " AS DOUBLE) * (1 + " + sizeOf3 + ")), __4)",
}

// likeOperators match by trying again from every place for every wildcard, unless
// the pattern is a constant of the plain form.
var likeOperators = map[string]bool{
	"~~": true, "!~~": true, "~~*": true, "!~~*": true, "~~~": true,
	"like_escape": true, "ilike_escape": true, "not_like_escape": true, "not_ilike_escape": true,
}

// smallText is the constant text that a function may put in any number of times
// without a guard: growth counts it.
const smallText = 16

// smallCount is the constant size that a function within a lambda may ask for.
const smallCount = 1024

// hold bounds what a rewritten query can make of its inputs.
func (r *rewriter) hold(query node) error {
	if err := r.noSession(query); err != nil {
		return err
	}
	if err := r.bound(query, nil); err != nil {
		return err
	}
	_, err := (&growing{r: r}).query(query, nil)
	return err
}

// bound puts guards at the functions that can make much of little, in a tree
// that is rewritten. It knows the functions of DuckDB only: what other names
// mean has been written out by then.
func (r *rewriter) bound(v any, lambda *lambda) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := r.bound(e, lambda); err != nil {
				return err
			}
		}
	case node:
		return r.bound(map[string]any(v), lambda)
	case map[string]any:
		n := node(v)
		if n.str("type") == "SELECT_NODE" {
			return r.boundSelect(n, lambda)
		}
		if err := r.boundParts(n, lambda); err != nil {
			return err
		}
		if n.str("class") == "FUNCTION" {
			return r.boundFunction(n, lambda)
		}
	}
	return nil
}

// boundParts bounds what a node holds.
func (r *rewriter) boundParts(n node, outer *lambda) error {
	for key, e := range n {
		if key == "query_location" || key == "cast_type" {
			continue
		}
		within := outer
		if n.str("class") == "LAMBDA" && key == "expr" {
			within = newLambda(n, outer)
		}
		if key == "subquery" {
			within = nil // its rows are not made within the lambda's vector
		}
		if err := r.bound(e, within); err != nil {
			return err
		}
	}
	return nil
}

// boundSelect also keeps the names that select items without an alias have.
func (r *rewriter) boundSelect(n node, outer *lambda) error {
	items := n.nodes("select_list")
	before := make([]map[string]any, len(items))
	for i, item := range items {
		if item.str("alias") == "" && !containsStar(item) && item.str("class") != "COLUMN_REF" {
			before[i] = clone(item).(map[string]any)
		}
	}
	if err := r.boundParts(n, outer); err != nil {
		return err
	}
	for i, item := range items {
		if before[i] != nil && !reflect.DeepEqual(before[i], map[string]any(item)) {
			r.unnamed = append(r.unnamed, unnamedItem{item, before[i]})
		}
	}
	return nil
}

func (r *rewriter) boundFunction(n node, in *lambda) error {
	name, args := strings.ToLower(n.str("function_name")), n.list("children")
	key := fmt.Sprintf("%s/%d", name, len(args))
	switch form, known := boundedForms[key]; {
	case known && in != nil && !smallArguments(args):
		return r.tooLarge(n, "%s stands in a lambda: what it makes there has no bound", name).
			WithHint("Compute it outside of the lambda, or give it a constant size up to %d", smallCount)
	case known:
		return r.guard(n, form, args)
	}
	if form, known := boundedReplacements[key]; known {
		with, constant := constantText(args[2].(map[string]any))
		if constant && len(with) <= smallText {
			return nil
		}
		return r.guard(n, form, args)
	}
	switch {
	case likeOperators[name]:
		return r.boundLike(n, name, args)
	case name == "format" || name == "printf":
		return r.boundFormat(n, name, args)
	case strings.HasPrefix(name, "json_") && len(args) > 1:
		return r.boundPath(n, name, args[1])
	case lambdaFunctions[name] && len(args) > 1:
		return r.boundLambda(n, args)
	}
	return nil
}

func (r *rewriter) tooLarge(n node, format string, args ...any) *fault.Error {
	return fault.New(limitCode, format, args...).At(r.at(n))
}

// guard makes n its guarded form. The order and filter of aggregates is no matter: n is none.
func (r *rewriter) guard(n node, form string, args []any) error {
	for _, a := range args {
		if err := r.repeatable(a.(map[string]any)); err != nil {
			return err
		}
	}
	guarded, err := fill(form, args...)
	if err != nil {
		return err
	}
	n.become(guarded)
	return nil
}

// smallArguments reports that every number among the arguments is a small constant.
func smallArguments(args []any) bool {
	for _, a := range args {
		n := node(a.(map[string]any))
		if text, ok := constantText(n); ok {
			if len(text) > smallCount {
				return false
			}
			continue
		}
		if number, ok := constantNumber(n); !ok || number > smallCount {
			return false
		}
	}
	return true
}

// constantNumber gives the value of a whole constant.
func constantNumber(n node) (int64, bool) {
	number, ok := n.child("value")["value"].(json.Number)
	if n.str("class") != "CONSTANT" || !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(string(number), 10, 64)
	return v, err == nil
}

// boundLike guards a pattern that is matched by trying: the text's length to the power
// of the wildcards that something follows.
func (r *rewriter) boundLike(n node, name string, args []any) error {
	if len(args) < 2 {
		return nil
	}
	steps := "pow(CAST(" + sizeOf1 + " + 1 AS DOUBLE), least(" + sizeOf2 + " - strlen(replace(replace(CAST(__2 AS VARCHAR), '%', ''), '*', '')), 16))"
	if pattern, constant := constantText(args[1].(map[string]any)); constant {
		plain := (name == "~~" || name == "!~~") && !strings.ContainsAny(pattern, `_\`)
		wildcards := likeWildcards(pattern)
		if plain || wildcards < 2 {
			return nil
		}
		steps = fmt.Sprintf("pow(CAST("+sizeOf1+" + 1 AS DOUBLE), %d)", min(wildcards, 16))
	}
	if err := r.repeatable(args[0].(map[string]any)); err != nil {
		return err
	}
	guarded, err := fill("__weir_work(__1, "+steps+")", args[0], args[1])
	if err != nil {
		return err
	}
	args[0] = guarded
	return nil
}

// likeWildcards counts the runs of wildcards that something follows.
func likeWildcards(pattern string) int {
	count := 0
	for i := range len(pattern) {
		wild := pattern[i] == '%' || pattern[i] == '*'
		if wild && i+1 < len(pattern) && pattern[i+1] != '%' && pattern[i+1] != '*' {
			count++
		}
	}
	return count
}

// boundFormat refuses a format whose widths are not plain to see, or large.
func (r *rewriter) boundFormat(n node, name string, args []any) error {
	if len(args) == 0 {
		return nil
	}
	format, constant := constantText(args[0].(map[string]any))
	if !constant {
		return r.tooLarge(n, "the format of %s is not a constant text: it may ask for any width", name).
			WithHint("Write the format as a text, or put the value together with concat")
	}
	digits, depth := 0, 0
	for _, c := range []byte(format) {
		switch {
		case isDigit(c):
			digits++
		case c == '*' && name == "printf", c == '{' && depth > 0 && name == "format":
			return r.tooLarge(n, "%s takes a width from an argument, which has no bound", name).WithHint("Write the width as a number")
		default:
			digits = 0
		}
		if digits > 3 {
			return r.tooLarge(n, "%s has a width of more than three digits", name).WithHint("Widths up to 999 are taken")
		}
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		}
	}
	return nil
}

// boundPath refuses a path that gives a part again with each of its own parts.
func (r *rewriter) boundPath(n node, name string, path any) error {
	m, ok := path.(map[string]any)
	if !ok {
		return nil
	}
	if text, ok := constantText(m); ok && strings.Contains(text, "..") {
		return r.tooLarge(n, "the path of %s goes down with .., which gives nested values over and over", name).
			WithHint("Name the fields on the way")
	}
	return nil
}

// sessionWords are names that DuckDB takes for functions of the session where there
// is no such column.
var sessionWords = map[string]bool{
	"current_catalog": true, "current_database": true, "current_schema": true, "current_role": true, "current_user": true, "session_user": true, "user": true,
}

// noSession refuses a word that no column can be meant by.
func (r *rewriter) noSession(query node) error {
	var words []node
	named := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			n := node(v)
			for _, name := range append(append(n.strings("column_name_alias"), n.strings("aliases")...), n.str("alias")) {
				named[strings.ToLower(name)] = true
			}
			if names := n.strings("column_names"); n.str("class") == "COLUMN_REF" && len(names) == 1 && sessionWords[strings.ToLower(names[0])] {
				words = append(words, n)
			}
			if n.str("class") == "LAMBDA" {
				for _, p := range newLambda(n, nil).params {
					named[strings.ToLower(p)] = true
				}
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(map[string]any(query))
	for _, n := range words {
		if word := strings.ToLower(n.strings("column_names")[0]); !named[word] && !r.columns[word] {
			return r.refuse(n, "there is no column %s, and the function of that name is not allowed", word)
		}
	}
	return nil
}
