package sql

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// intervalFunctions are the table functions over a table whose rows are versions with
// an interval, by how many arguments follow the table's name.
//
//	current(t)                       the versions that hold now: no end is set
//	as_of(t, instant)                the versions that held at an instant
//	changes_between(t, from, to)     the versions that began within from and to, both
//	                                 included, without the first one of each key;
//	                                 key columns may follow
//
// Each becomes a subquery over the table before anything else looks at the tree, so all
// that holds for a query holds for them.
var intervalFunctions = map[string]int{"current": 0, "as_of": 1, "changes_between": 2}

const intervalsHint = "Write current(t), as_of(t, instant) or changes_between(t, from, to), t being the name of a table with history"

// intervals says what is known of the tables that such a function may be called with.
type intervals struct {
	// columns gives the columns of a relation; nil for one that is not known. Without the
	// function, none is known yet, and nothing is checked.
	columns func(name string) *arrow.Schema
	// keys are the key columns of relations.
	keys map[string][]string
}

// expandIntervals puts subqueries in the place of the interval functions in a tree.
func expandIntervals(tree node, o *origin, known intervals) error {
	var failed error
	visitAll(map[string]any(tree), func(n node) {
		switch {
		case failed != nil:
		case n.str("type") == "JOIN":
			failed = joinAsOf(n, o, known)
		case versionsFunction(n) != "":
			failed = expandInterval(n, o, known)
		}
	})
	return failed
}

// versionsFunction gives the name of the function that a FROM item calls, "" for
// another or none.
func versionsFunction(n node) string {
	f := n.child("function")
	called := strings.ToLower(f.str("function_name"))
	if _, ok := intervalFunctions[called]; !ok || n.str("type") != "TABLE_FUNCTION" || f.str("schema") != "" {
		return ""
	}
	return called
}

// joinAsOf makes the join with as_of(t, column) one with t itself, on what is asked of
// its interval as well. As a subquery it would be computed for every instant before
// the keys are compared.
func joinAsOf(join node, o *origin, known intervals) error {
	right := join.child("right")
	switch {
	case versionsFunction(right) != "as_of" || len(right.list("column_name_alias")) > 0 || right.child("sample") != nil:
		return nil
	case join.str("ref_type") != "REGULAR" && join.str("ref_type") != "CROSS", len(join.list("using_columns")) > 0:
		return nil
	}
	switch join.str("join_type") {
	case "INNER", "LEFT", "SEMI", "ANTI":
	default:
		return nil
	}
	instants := right.child("function").nodes("children")
	if len(instants) != 2 || !namesColumn(instants[1]) {
		return nil
	}
	if err := expandInterval(right, o, known); err != nil {
		return err
	}
	versions, alias := right.child("subquery").child("node"), right.str("alias")
	holds := versions.child("where_clause")
	visitAll(map[string]any(holds), func(n node) {
		if names := n.list("column_names"); len(names) == 1 && n.location() < 0 { // the interval's own
			n["column_names"] = []any{alias, names[0]}
		}
	})
	table := versions.child("from_table")
	table["alias"] = alias
	join["right"] = map[string]any(table)
	if on := join.child("condition"); on != nil {
		holds = node{"class": "CONJUNCTION", "type": "CONJUNCTION_AND", "alias": "", "query_location": nowhere,
			"children": []any{map[string]any(on), map[string]any(holds)}}
	}
	join["condition"], join["ref_type"] = map[string]any(holds), "REGULAR"
	return nil
}

func namesColumn(n node) bool {
	found := false
	visitAll(map[string]any(n), func(n node) { found = found || n.str("class") == "COLUMN_REF" })
	return found
}

func expandInterval(n node, o *origin, known intervals) error {
	f, called := n.child("function"), versionsFunction(n)
	extra := intervalFunctions[called]
	at := o.where(max(n.location(), 0))
	args := f.nodes("children")
	if len(args) == 0 || args[0].str("class") != "COLUMN_REF" || len(args[0].strings("column_names")) > 3 {
		return fault.New("INVALID_INTERVAL_FUNCTION", "%s takes the name of a table first", called).WithHint(intervalsHint).At(at)
	}
	table, keys := args[0].strings("column_names"), args[min(len(args), 1+extra):]
	if len(args) < 1+extra || len(keys) > 0 && called != "changes_between" {
		return fault.New("WRONG_NUM_ARGS", "%s takes %d arguments, not %d", called, 1+extra, len(args)).WithHint(intervalsHint).At(at)
	}
	in := relation.Intervals[0]
	name := strings.Join(table, ".")
	if known.columns != nil {
		s := known.columns(name)
		if s == nil {
			return fault.New("TABLE_OR_VIEW_NOT_FOUND", "%s: the relation %s is not known here", called, name).
				WithHint("It takes the name of a table, not of a CTE or an alias").At(at)
		}
		var ok bool
		if in, ok = relation.IntervalOf(s); !ok {
			return fault.New("NO_INTERVAL_COLUMNS", "%s: %s has no history: it lacks __START_AT and __END_AT", called, name).
				WithHint("Only tables stored as SCD TYPE 2 have versions to choose from").At(at)
		}
	}
	query, err := intervalQuery(called, in, args[1:1+extra])
	if err != nil {
		return err
	}
	if called == "changes_between" {
		if err := partition(query, name, keys, at, known); err != nil {
			return err
		}
	}
	putTable(query, table, args[0])
	alias := n.str("alias")
	if alias == "" {
		alias = table[len(table)-1]
	}
	columns, sample, location := n["column_name_alias"], n["sample"], n["query_location"]
	clear(n)
	n["type"], n["alias"], n["sample"], n["query_location"], n["column_name_alias"] = "SUBQUERY", alias, sample, location, columns
	n["subquery"] = map[string]any(query)
	return nil
}

// intervalQuery gives the SELECT over a table that is still to be named.
func intervalQuery(called string, in relation.Interval, args []node) (node, error) {
	start, end := quoteName(in.Start), quoteName(in.End)
	template := "(SELECT * FROM __weir_versions "
	switch called {
	case "current":
		template += "WHERE " + end + " IS NULL)"
	case "as_of":
		template += "WHERE " + start + " <= __1 AND (" + end + " > __1 OR " + end + " IS NULL))"
	default:
		template += "QUALIFY " + start + " >= __1 AND " + start + " <= __2 AND " + start + " > min(" + start + ") OVER ())"
	}
	expression, err := fill(template, args...)
	if err != nil {
		return nil, err
	}
	return node(expression).child("subquery"), nil
}

// partition tells the window that finds first versions what a key is.
func partition(query node, name string, given []node, at fault.Where, known intervals) error {
	var keys []any
	for _, k := range given {
		if k.str("class") != "COLUMN_REF" {
			return fault.New("INVALID_INTERVAL_FUNCTION", "changes_between takes names of key columns behind the period").
				WithHint("Write changes_between(t, from, to, key, …)").At(at)
		}
		keys = append(keys, map[string]any(k))
	}
	if keys == nil {
		for relation, names := range known.keys {
			if strings.EqualFold(relation, name) {
				for _, k := range names {
					keys = append(keys, columnRef(k))
				}
			}
		}
	}
	if keys == nil && known.columns != nil {
		return fault.New("INTERVAL_KEYS_UNKNOWN", "changes_between does not know the keys of %s", name).
			WithHint("Name them behind the period: changes_between(%s, from, to, key, …)", name).At(at)
	}
	visitAll(map[string]any(query), func(n node) {
		if n.str("class") == "WINDOW" && n.list("partitions") != nil && len(n.list("partitions")) == 0 {
			n["partitions"] = slices.Clone(keys)
		}
	})
	return nil
}

// putTable names the table that the query reads, at the place where the text names it.
func putTable(query node, table []string, at node) {
	from := query.child("node").child("from_table")
	for i, key := range []string{"table_name", "schema_name", "catalog_name"} {
		if i < len(table) {
			from[key] = table[len(table)-1-i]
		}
	}
	from["query_location"] = at["query_location"]
}

// refuseBetween refuses BETWEEN an interval's ends: BETWEEN includes both, an interval
// does not include its end, so the instant of a change would find two versions.
func refuseBetween(tree node, o *origin) error {
	var found node
	visitAll(map[string]any(tree), func(n node) {
		if n.str("class") == "BETWEEN" && (namesInterval(n.child("lower")) || namesInterval(n.child("upper"))) &&
			(found == nil || n.location() < found.location()) {
			found = n
		}
	})
	if found == nil {
		return nil
	}
	hint := "Write x >= start AND (x < end OR end IS NULL)"
	if parts, err := printExpressions([]node{found.child("input"), found.child("lower"), found.child("upper")}); err == nil {
		for i := range parts { // DuckDB's quotes are those of texts here
			parts[i] = strings.ReplaceAll(parts[i], `"`, "`")
		}
		x, from, to := parts[0], parts[1], parts[2]
		hint = "Write " + x + " >= " + from + " AND (" + x + " < " + to + " OR " + to + " IS NULL), or read as_of(table, " + x + ")"
	}
	return fault.New("INTERVAL_BETWEEN", "BETWEEN includes both ends, and an interval does not include its end: at the instant of a change two versions match").
		WithHint("%s", hint).At(o.where(max(found.location(), 0)))
}

// namesInterval tells whether an expression is made of an interval's start or end.
func namesInterval(n node) bool {
	found := false
	visitAll(map[string]any(n), func(n node) {
		if names := n.strings("column_names"); n.str("class") == "COLUMN_REF" && len(names) > 0 {
			found = found || relation.IsIntervalColumn(names[len(names)-1])
		}
	})
	return found
}
