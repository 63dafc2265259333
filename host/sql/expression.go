package sql

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// clockColumns are the words that read the clock without parentheses, and the
// type they have.
var clockColumns = map[string]string{
	"current_timestamp": "TIMESTAMP WITH TIME ZONE",
	"current_date":      "DATE",
	"current_time":      "TIME",
	"localtimestamp":    "TIMESTAMP",
	"localtime":         "TIME",
}

// clockFunctions are the same with parentheses.
var clockFunctions = map[string]string{
	"now":                    "TIMESTAMP WITH TIME ZONE",
	"current_timestamp":      "TIMESTAMP WITH TIME ZONE",
	"get_current_timestamp":  "TIMESTAMP WITH TIME ZONE",
	"transaction_timestamp":  "TIMESTAMP WITH TIME ZONE",
	"current_date":           "DATE",
	"curdate":                "DATE",
	"today":                  "DATE",
	"localtimestamp":         "TIMESTAMP",
	"current_localtimestamp": "TIMESTAMP",
	"get_current_time":       "TIME",
	"current_time":           "TIME",
	"localtime":              "TIME",
	"current_localtime":      "TIME",
	"unix_timestamp":         "BIGINT",
}

// clock gives the tree of the batch timestamp as a type.
func clock(typeID string) (node, error) {
	instant := castNode(textConstant(clockText), "TIMESTAMP WITH TIME ZONE")
	switch typeID {
	case "TIMESTAMP WITH TIME ZONE":
		return instant, nil
	case "BIGINT":
		return fill("CAST(floor(epoch(__1)) AS BIGINT)", instant)
	case "TIME":
		return castNode(castNode(instant, "TIMESTAMP"), "TIME"), nil
	}
	return castNode(instant, typeID), nil
}

// expr rewrites an expression in place.
func (r *rewriter) expr(n node, ctx place) error {
	switch n.str("class") {
	case "COLUMN_REF":
		return r.columnRef(n)
	case "CONSTANT":
		if s, ok := constantText(n); ok && (strings.Contains(s, clockText) || strings.Contains(s, numberPrefix)) {
			return r.reserved(n, s)
		}
		keepDouble(n)
		return nil
	case "FUNCTION":
		return r.function(n, ctx)
	case "WINDOW":
		return r.window(n, ctx)
	case "SUBQUERY":
		return r.subquery(n, ctx)
	case "CAST":
		if err := sparkType(n.child("cast_type")); err != nil {
			return err
		}
		if err := r.children(n, ctx, "child"); err != nil {
			return err
		}
		return r.castExpression(n, ctx)
	case "OPERATOR":
		if err := r.children(n, ctx, "children"); err != nil {
			return err
		}
		return r.operator(n, ctx)
	case "CASE":
		return r.children(n, ctx, "case_checks", "else_expr")
	case "COMPARISON":
		return r.children(n, ctx, "left", "right")
	case "CONJUNCTION":
		return r.children(n, ctx, "children")
	case "BETWEEN":
		return r.children(n, ctx, "input", "lower", "upper")
	case "COLLATE":
		return r.children(n, ctx, "child")
	case "LAMBDA":
		return r.children(n, ctx, "lhs", "expr")
	case "STAR":
		return r.children(n, ctx, "expr", "replace_list")
	case "POSITIONAL_REFERENCE":
		return nil
	case "PARAMETER":
		return r.refuse(n, "a parameter has no value here").WithHint("Use ${key} for a value of the configuration")
	}
	return r.unknownKind(n)
}

// keepDouble writes 2e0 as a cast: printed as 2.0 it would come back a DECIMAL.
func keepDouble(n node) {
	value := n.child("value")
	if value.child("type").str("id") != "DOUBLE" || value.flag("is_null") {
		return
	}
	var text string
	switch v := value["value"].(type) {
	case json.Number:
		text = string(v)
	case string:
		text = v
	default:
		return
	}
	n.become(castNode(textConstant(text), "DOUBLE"))
}

// children rewrites the expressions under the keys: nodes, lists of nodes, and
// the pairs and wrappers that DuckDB puts around some of them.
func (r *rewriter) children(n node, ctx place, keys ...string) error {
	for _, key := range keys {
		if err := r.any(n[key], ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *rewriter) any(v any, ctx place) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := r.any(e, ctx); err != nil {
				return err
			}
		}
	case map[string]any:
		if _, isExpression := v["class"]; isExpression {
			return r.expr(v, ctx)
		}
		for _, key := range []string{"expression", "when_expr", "then_expr", "value", "orders"} {
			if err := r.any(v[key], ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *rewriter) columnRef(n node) error {
	names := n.strings("column_names")
	for _, name := range names {
		if err := r.reserved(n, name); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return r.unknownKind(n)
	}
	r.note("column", names[len(names)-1], n)
	// schema.table.column: the table is known by its last part alone.
	for k := len(names) - 1; k >= 2; k-- {
		if r.find(names[:k]) != nil {
			n["column_names"] = columnRef(names[k-1:]...)["column_names"]
			break
		}
	}
	if len(names) == 1 {
		if typeID, ok := clockColumns[strings.ToLower(names[0])]; ok {
			if r.columns[strings.ToLower(names[0])] {
				return fault.New("AMBIGUOUS_REFERENCE", "%s is both a column and the clock", names[0]).
					WithHint("Write table.%s for the column or %s() for the clock", names[0], names[0]).At(r.at(n))
			}
			value, err := clock(typeID)
			if err != nil {
				return err
			}
			n.become(value)
		}
	}
	return nil
}

// note remembers the first place of a name.
func (r *rewriter) note(kind, name string, n node) {
	key := kind + " " + strings.ToLower(name)
	if _, known := r.places[key]; !known && n.location() >= 0 {
		r.places[key] = n.location()
	}
}

func (r *rewriter) subquery(n node, ctx place) error {
	if ctx.condition {
		return r.inCondition(n, "a subquery")
	}
	if err := r.children(n, ctx, "child"); err != nil {
		return err
	}
	got, err := r.query(n.child("subquery").child("node"), ctx.scope)
	if err != nil {
		return err
	}
	if got.stream {
		return r.unsupported(n, "a subquery over the stream", "Read a table without STREAM in it")
	}
	return nil
}

func (r *rewriter) inCondition(n node, what string) error {
	return fault.New("INVALID_EXPECTATION", "%s stands in the condition", what).
		WithHint("A condition looks at the columns of one row").At(r.at(n))
}

// operator gives x[i] its meaning, which depends on what x is.
func (r *rewriter) operator(n node, ctx place) error {
	switch n.str("type") {
	case "ARRAY_EXTRACT":
		if args := n.list("children"); len(args) == 2 {
			return r.wait(n, "[]", args, ctx, indexed)
		}
	case "ARRAY_SLICE":
		return r.refuse(n, "x[from:to] is not supported").WithHint("Write slice(x, start, length)")
	}
	return nil
}

// arguments rewrites what a function is called with. Within a lambda, operations
// are told apart by what it runs over.
func (r *rewriter) arguments(n node, name string, ctx place) error {
	if higherOrder[name] {
		for i, a := range n.nodes("children") {
			if a.str("class") != "LAMBDA" {
				if err := r.expr(a, ctx); err != nil {
					return err
				}
				continue
			}
			inner := ctx
			inner.lambda = fmt.Sprintf("%s %s %d %s", ctx.lambda, name, i, fingerprint(n.list("children")[:1]))
			if err := r.expr(a, inner); err != nil {
				return err
			}
		}
		return nil
	}
	return r.children(n, ctx, "children", "filter", "order_bys")
}

func (r *rewriter) function(n node, ctx place) error {
	name := strings.ToLower(n.str("function_name"))
	if s := strings.ToLower(n.str("schema")); s != "" && s != "main" || n.str("catalog") != "" {
		return r.unknownFunction(n, n.str("schema")+"."+n.str("function_name"))
	}
	r.note("function", name, n)
	args := n.list("children")
	if typeID, ok := clockFunctions[name]; ok && len(args) == 0 {
		value, err := clock(typeID)
		if err != nil {
			return err
		}
		n.become(value)
		return nil
	}
	if name == intervalFunction {
		return r.intervalNode(n)
	}
	if err := r.arguments(n, name, ctx); err != nil {
		return err
	}
	if sparkAggregates[name] {
		if ctx.condition {
			return r.inCondition(n, "the aggregate "+name)
		}
		if ctx.streaming {
			return r.unsupported(n, "the aggregate "+name, "Aggregate where the finished table is read, or over the list of one row: aggregate(list, 0, (a, x) -> a + x)")
		}
		return fault.Place(r.aggregate(n, name, ctx), "NOT_SUPPORTED", r.at(n))
	}
	if hint, ok := otherMeaning[name]; ok {
		return fault.New("NOT_SUPPORTED", "%s is not supported", name).WithHint("%s", hint).At(r.at(n))
	}
	if name == "|&|" {
		name = "xor"
		n["function_name"], n["is_operator"] = "xor", false
	}
	if done, err := r.typedFunction(n, name, args, ctx); done || err != nil {
		return fault.Place(err, "NOT_SUPPORTED", r.at(n))
	}
	switch {
	case name == "input_file_name" && len(args) == 0:
		n.become(columnRef(MetadataColumn, "file_path"))
		return nil
	case name == "age" && len(args) == 1, name == "ago":
		return fault.New("NOT_SUPPORTED", "%s reads the clock in a way that is not supported", name).
			WithHint("Write age(current_date, x) or current_timestamp - INTERVAL …").At(r.at(n))
	}
	switch functions()[name] {
	case scalarFunction:
		return nil
	case aggregateFunction:
		if ctx.condition {
			return r.inCondition(n, "the aggregate "+name)
		}
		if ctx.streaming {
			return r.unsupported(n, "the aggregate "+name, "Aggregate where the finished table is read, or over the list of one row: list_sum(list)")
		}
		return nil
	case randomFunction:
		if ctx.condition || r.stream != nil {
			return fault.New("UNSUPPORTED_STREAMING_OPERATION", "%s gives another value each time, so a batch that runs again would differ", name).
				WithHint("Derive the value from the row, such as md5(key)").At(r.at(n))
		}
		return nil
	case windowFunction:
		return r.refuse(n, "%s needs OVER (…)", name)
	case refusedFunction:
		return r.refuse(n, "the function %s is not allowed", name)
	}
	return r.unknownFunction(n, n.str("function_name"))
}

func (r *rewriter) unknownFunction(n node, name string) error {
	return fault.New("UNRESOLVED_ROUTINE", "there is no function %s", name).At(r.at(n))
}

// sparkType gives a type in a CAST Spark's meaning: TIMESTAMP is an instant,
// TIMESTAMP_NTZ is a wall-clock time.
func sparkType(t node) error {
	switch t.str("id") {
	case "TIMESTAMP":
		t["id"] = "TIMESTAMP WITH TIME ZONE"
	case "UNBOUND":
		known := map[string]string{
			"timestamp_ntz": "TIMESTAMP", "timestamp_ltz": "TIMESTAMP WITH TIME ZONE", "byte": "TINYINT",
		}
		if id, ok := known[strings.ToLower(t.child("type_info").str("name"))]; ok {
			t["id"], t["type_info"] = id, nil
		}
		return nil
	}
	info := t.child("type_info")
	if child := info.child("child_type"); child != nil {
		if err := sparkType(child); err != nil {
			return err
		}
	}
	for _, field := range info.nodes("child_types") {
		if err := sparkType(field.child("second")); err != nil {
			return err
		}
	}
	return nil
}
