package sql

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// clockText stands for the batch timestamp in a plan; Run puts the time there.
const clockText = "__weir_clock__"

// inputName is what the k-th input is called in rewritten SQL.
func inputName(k int) string { return fmt.Sprintf("__weir_in_%d", k) }

// input is a relation the query may read.
type input struct {
	key      string // the caller's name
	index    int
	stream   bool
	metadata bool // has _metadata
	row      bool // has __weir_row
	uses     int  // scans the rewritten query makes
}

// rewriter checks a tree against what a query may do and turns it into the
// tree that runs:
//
//   - relations are the inputs and nothing else,
//   - `*` leaves out the hidden columns,
//   - every SELECT over the stream carries __weir_row as its last column and
//     does only what can be done one batch at a time,
//   - clocks are the batch timestamp,
//   - Spark's types and functions are DuckDB's.
//
// Node kinds and functions it does not know are refused.
type rewriter struct {
	inputs []*input
	stream *input // nil for an ordinary query
	origin *origin
	sorted bool // the output must be sorted to keep the input's order

	// places remembers where names stand, for errors found when binding.
	places  map[string]int
	unnamed []unnamedItem // select items whose derived name the rewriting changes
}

// unnamedItem is a select item without alias and the tree it had.
type unnamedItem struct {
	item     node
	original node
}

// rel is what a FROM item or query gives.
type rel struct {
	stream   bool      // rows of the stream, with __weir_row
	metadata bool      // has a hidden _metadata
	names    []relName // the names columns can be qualified with
}

// relName is one name of a FROM clause and what is hidden behind it.
type relName struct {
	name             string
	stream, metadata bool
}

// scope holds the CTEs in sight.
type scope struct {
	parent *scope
	name   string
	rel    rel
	uses   map[*input]int // scans one reference costs
}

func (s *scope) find(name string) *scope {
	for ; s != nil; s = s.parent {
		if strings.EqualFold(s.name, name) {
			return s
		}
	}
	return nil
}

// place says where an expression stands.
type place struct {
	scope     *scope
	streaming bool // in a SELECT over the stream
	condition bool // in an expectation: no subquery, no aggregate
}

func (r *rewriter) at(n node) fault.Where {
	if at := n.location(); at >= 0 {
		return r.origin.where(at)
	}
	return r.origin.where(0)
}

// refuse is a part of SQL a query may not use.
func (r *rewriter) refuse(n node, format string, args ...any) *fault.Error {
	return fault.New("NOT_SUPPORTED", format, args...).At(r.at(n))
}

// unsupported is an operation that cannot run batch by batch.
func (r *rewriter) unsupported(n node, what, instead string) error {
	return fault.New("UNSUPPORTED_STREAMING_OPERATION", "%s cannot run over a stream batch by batch", what).
		WithHint("%s", instead).At(r.at(n))
}

// unknownKind is a node of the tree that this version does not know.
func (r *rewriter) unknownKind(n node) error {
	return r.refuse(n, "the SQL construct %s is not supported", strings.ToLower(strings.ReplaceAll(n.str("type"), "_", " ")))
}

// statement rewrites a whole SELECT.
func (r *rewriter) statement(statement node) error {
	got, err := r.query(statement.child("node"), nil)
	if err != nil {
		return err
	}
	if r.stream != nil && !got.stream {
		return fault.New("STREAMING_TABLE_QUERY_INVALID", "the rows of the query do not come from the stream %s", r.stream.key).
			WithHint("Let the outermost SELECT read it").At(r.origin.where(0))
	}
	return nil
}

// query rewrites a SELECT, set operation or recursive CTE.
func (r *rewriter) query(n node, in *scope) (rel, error) {
	in, err := r.withClause(n, in)
	if err != nil {
		return rel{}, err
	}
	switch n.str("type") {
	case "SELECT_NODE":
		return r.selectNode(n, in)
	case "SET_OPERATION_NODE":
		return r.setOperation(n, in)
	case "RECURSIVE_CTE_NODE":
		return r.recursive(n, in)
	}
	return rel{}, r.unknownKind(n)
}

// withClause rewrites the CTEs of a query and gives the scope with them.
func (r *rewriter) withClause(n node, in *scope) (*scope, error) {
	for _, entry := range n.child("cte_map").nodes("map") {
		name, cte := entry.str("key"), entry.child("value")
		if err := r.reserved(n, name); err != nil {
			return nil, err
		}
		if len(cte.list("key_targets")) > 0 {
			return nil, r.refuse(n, "USING KEY in the CTE %s is not supported", name)
		}
		before := r.uses()
		body := cte.child("query").child("node")
		got, err := r.query(body, in)
		if err != nil {
			return nil, err
		}
		added := &scope{parent: in, name: name, rel: got, uses: map[*input]int{}}
		// A definition scans nothing; each reference does.
		for i, was := range before {
			added.uses[r.inputs[i]] = r.inputs[i].uses - was
			r.inputs[i].uses = was
		}
		in = added
	}
	return in, nil
}

func (r *rewriter) uses() []int {
	out := make([]int, len(r.inputs))
	for i, in := range r.inputs {
		out[i] = in.uses
	}
	return out
}

func (r *rewriter) selectNode(n node, in *scope) (rel, error) {
	from, err := r.from(n.child("from_table"), in)
	if err != nil {
		return rel{}, err
	}
	if from.stream {
		if err := r.streamable(n); err != nil {
			return rel{}, err
		}
	}
	ctx := place{scope: in, streaming: from.stream}
	for _, item := range n.nodes("select_list") {
		if err := r.selectItem(item, ctx, from); err != nil {
			return rel{}, err
		}
	}
	for _, key := range []string{"where_clause", "having", "qualify"} {
		if e := n.child(key); e != nil {
			if err := r.expr(e, ctx); err != nil {
				return rel{}, err
			}
		}
	}
	for _, e := range n.nodes("group_expressions") {
		if err := r.expr(e, ctx); err != nil {
			return rel{}, err
		}
	}
	if err := r.modifiers(n, ctx); err != nil {
		return rel{}, err
	}
	if from.stream {
		n["select_list"] = append(n.list("select_list"), any(columnRef(relation.RowColumn)))
	}
	return rel{stream: from.stream}, nil
}

// streamable refuses the clauses of a SELECT that need more than one batch.
func (r *rewriter) streamable(n node) error {
	const view = "Do it in a query over the finished table, with weir query or a materialized view"
	switch {
	case len(n.list("group_expressions")) > 0 || len(n.list("group_sets")) > 0 || n.str("aggregate_handling") != "STANDARD_HANDLING":
		return r.unsupported(n.first("group_expressions"), "GROUP BY", view)
	case n.child("having") != nil:
		return r.unsupported(n.child("having"), "HAVING", view)
	case n.child("qualify") != nil:
		return r.unsupported(n.child("qualify"), "QUALIFY", view)
	case n.child("sample") != nil:
		return r.unsupported(n, "a sample", "Filter by a hash of the key, such as md5(key) < '4'")
	}
	return r.noModifiers(n)
}

// first gives the first node of a list, or n itself.
func (n node) first(key string) node {
	if l := n.nodes(key); len(l) > 0 {
		return l[0]
	}
	return n
}

func (r *rewriter) noModifiers(n node) error {
	for _, m := range n.nodes("modifiers") {
		switch m.str("type") {
		case "DISTINCT_MODIFIER":
			return r.unsupported(n, "DISTINCT", "Keep all rows here and remove duplicates where the table is read")
		case "ORDER_MODIFIER":
			return r.unsupported(m.first("orders").child("expression"), "ORDER BY", "A table has no order; sort where it is read")
		case "LIMIT_MODIFIER":
			return r.unsupported(m.child("limit"), "LIMIT", "Filter with WHERE, or limit where the table is read")
		default:
			return r.unsupported(n, strings.ToLower(m.str("type")), "Leave it out")
		}
	}
	return nil
}

// modifiers rewrites ORDER BY, LIMIT and DISTINCT ON of an ordinary query.
func (r *rewriter) modifiers(n node, ctx place) error {
	for _, m := range n.nodes("modifiers") {
		for _, o := range m.nodes("orders") {
			if err := r.expr(o.child("expression"), ctx); err != nil {
				return err
			}
		}
		for _, e := range m.nodes("distinct_on_targets") {
			if err := r.expr(e, ctx); err != nil {
				return err
			}
		}
		for _, key := range []string{"limit", "offset"} {
			if e := m.child(key); e != nil {
				if err := r.expr(e, ctx); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// selectItem rewrites one entry of the select list. An entry without alias
// takes its name from its text: where rewriting changes that, the name it had
// becomes its alias.
func (r *rewriter) selectItem(item node, ctx place, from rel) error {
	if err := r.reserved(item, item.str("alias")); err != nil {
		return err
	}
	named := item.str("alias") != "" || containsStar(item) || len(item.strings("column_names")) > 1
	var original node
	if !named {
		original = clone(item).(map[string]any)
	}
	if err := r.expr(item, ctx); err != nil {
		return err
	}
	if !named && !reflect.DeepEqual(map[string]any(original), map[string]any(item)) {
		r.unnamed = append(r.unnamed, unnamedItem{item, original})
	}
	return hideFromStars(item, from)
}

func containsStar(n node) bool {
	found := false
	visit(n, func(n node) { found = found || n.str("class") == "STAR" })
	return found
}

// visit calls f for every node of an expression, subqueries left out.
func visit(v any, f func(node)) {
	switch v := v.(type) {
	case node:
		visit(map[string]any(v), f)
	case map[string]any:
		if node(v).str("class") == "SUBQUERY" {
			return
		}
		f(v)
		for _, e := range v {
			visit(e, f)
		}
	case []any:
		for _, e := range v {
			visit(e, f)
		}
	}
}

// hideFromStars leaves the hidden columns out of every star of an expression.
func hideFromStars(item node, from rel) error {
	if !from.stream && !from.metadata {
		return nil
	}
	var err error
	visit(item, func(n node) {
		if n.str("class") != "STAR" {
			return
		}
		if pattern, ok := constantText(n.child("expr")); ok {
			// COLUMNS('pattern') knows no EXCLUDE; COLUMNS(lambda) has a star inside.
			var filtered node
			if filtered, err = fill("COLUMNS(lambda name: regexp_matches(name, __1))", textConstant(pattern)); err == nil {
				n.become(filtered)
			}
		}
		if n.child("expr") != nil {
			return
		}
		hidden := from
		if q := n.str("relation_name"); q != "" {
			hidden = from.named(q)
		}
		excluded := n.list("exclude_list")
		if hidden.stream {
			excluded = append(excluded, relation.RowColumn)
		}
		if hidden.metadata && !slices.ContainsFunc(n.strings("exclude_list"), func(s string) bool { return strings.EqualFold(s, relation.MetadataColumn) }) {
			excluded = append(excluded, relation.MetadataColumn)
		}
		n["exclude_list"] = excluded
	})
	return err
}

// named gives the hidden columns behind one name of a FROM clause.
func (f rel) named(name string) rel {
	for _, a := range f.names {
		if strings.EqualFold(a.name, name) {
			return rel{stream: a.stream, metadata: a.metadata}
		}
	}
	return rel{}
}

// called gives the relation under the one name it has in a FROM clause.
func (f rel) called(name string) rel {
	f.names = []relName{{name, f.stream, f.metadata}}
	return f
}

func (r *rewriter) setOperation(n node, in *scope) (rel, error) {
	sides := n.nodes("children")
	if len(sides) == 0 {
		sides = []node{n.child("left"), n.child("right")}
	}
	streams := 0
	for _, side := range sides {
		got, err := r.query(side, in)
		if err != nil {
			return rel{}, err
		}
		if got.stream {
			streams++
		}
	}
	if streams == 0 {
		return rel{}, r.modifiers(n, place{scope: in})
	}
	kind := n.str("setop_type")
	switch {
	case kind != "UNION" && kind != "UNION_BY_NAME" || !n.flag("setop_all"):
		return rel{}, r.unsupported(n, strings.ReplaceAll(kind, "_", " ")+" of a stream", "Only UNION ALL can; remove duplicates where the table is read")
	case streams < len(sides):
		return rel{}, r.unsupported(n, "UNION ALL of a stream and a table", "The table's rows would come again with every batch; load them with a flow of their own")
	}
	r.sorted = true
	return rel{stream: true}, r.noModifiers(n)
}

func (r *rewriter) recursive(n node, in *scope) (rel, error) {
	left, err := r.query(n.child("left"), in)
	if err != nil {
		return rel{}, err
	}
	before := r.uses()
	right, err := r.query(n.child("right"), &scope{parent: in, name: n.str("cte_name"), uses: map[*input]int{}})
	if err != nil {
		return rel{}, err
	}
	if left.stream || right.stream {
		return rel{}, r.unsupported(n, "a recursive CTE", "Recurse over a table, not the stream")
	}
	// The right side runs again and again, but an input can be scanned once.
	for i, was := range before {
		if r.inputs[i].uses > was {
			r.inputs[i].uses++
		}
	}
	return rel{}, r.modifiers(n, place{scope: in})
}

// from rewrites a FROM item.
func (r *rewriter) from(n node, in *scope) (rel, error) {
	if alias := n.str("alias"); alias != "" {
		if err := r.reserved(n, alias); err != nil {
			return rel{}, err
		}
	}
	var got rel
	var err error
	switch n.str("type") {
	case "EMPTY":
		return rel{}, nil
	case "BASE_TABLE":
		got, err = r.table(n, in)
	case "SUBQUERY":
		got, err = r.query(n.child("subquery").child("node"), in)
		got = rel{stream: got.stream}.called(n.str("alias"))
	case "JOIN":
		got, err = r.join(n, in)
	case "TABLE_FUNCTION":
		err = r.tableFunction(n, in)
	case "EXPRESSION_LIST":
		err = r.values(n, in)
	case "PIVOT":
		got, err = r.unpivot(n, in)
	default:
		return rel{}, r.unknownKind(n)
	}
	if err == nil && got.stream && n.child("sample") != nil {
		err = r.unsupported(n, "TABLESAMPLE", "Filter by a hash of the key, such as md5(key) < '4'")
	}
	return got, err
}

func (r *rewriter) table(n node, in *scope) (rel, error) {
	name := n.str("table_name")
	var parts []string
	for _, part := range []string{n.str("catalog_name"), n.str("schema_name"), name} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if n.child("at_clause") != nil {
		return rel{}, r.refuse(n, "reading %s at a version is not supported", strings.Join(parts, "."))
	}
	if len(parts) == 1 {
		if cte := in.find(name); cte != nil {
			for i, uses := range cte.uses {
				i.uses += uses
			}
			if alias := n.str("alias"); alias != "" {
				name = alias
			}
			return rel{stream: cte.rel.stream}.called(name), nil
		}
	}
	i := r.find(parts)
	if i == nil {
		err := fault.New("TABLE_OR_VIEW_NOT_FOUND", "the relation %s is not known here", strings.Join(parts, ".")).At(r.at(n))
		if len(r.inputs) > 0 {
			known := make([]string, len(r.inputs))
			for k, i := range r.inputs {
				known[k] = i.key
			}
			slices.Sort(known)
			err = err.WithHint("Known are %s", strings.Join(known, ", "))
		}
		return rel{}, err
	}
	i.uses++
	if n.str("alias") == "" {
		n["alias"] = name
	}
	n["catalog_name"], n["schema_name"], n["table_name"] = "", "", inputName(i.index)
	return rel{stream: i.stream, metadata: i.metadata}.called(n.str("alias")), nil
}

// find gives the input of a dotted name; an exact match goes before one that
// differs in case.
func (r *rewriter) find(parts []string) *input {
	name := strings.Join(parts, ".")
	var fold *input
	for _, i := range r.inputs {
		if i.key == name {
			return i
		}
		if strings.EqualFold(i.key, name) && fold == nil {
			fold = i
		}
	}
	return fold
}

func (r *rewriter) join(n node, in *scope) (rel, error) {
	left, err := r.from(n.child("left"), in)
	if err != nil {
		return rel{}, err
	}
	right, err := r.from(n.child("right"), in)
	if err != nil {
		return rel{}, err
	}
	got := rel{stream: left.stream || right.stream, metadata: left.metadata || right.metadata, names: append(left.names, right.names...)}
	if got.stream {
		if err := r.streamJoin(n, left, right); err != nil {
			return rel{}, err
		}
		r.sorted = true
	} else if n.str("ref_type") == "NATURAL" && got.metadata {
		return rel{}, r.refuse(n, "NATURAL JOIN of files is not supported: they share hidden columns").WithHint("Name the columns with USING")
	}
	switch n.str("join_type") {
	case "SEMI", "ANTI":
		got.metadata, got.names = left.metadata, left.names
	}
	if e := n.child("condition"); e != nil {
		err = r.expr(e, place{scope: in, streaming: got.stream})
	}
	return got, err
}

// streamJoin refuses joins whose result depends on more than one batch: those
// that also give rows of the other side which no row of the stream matches.
func (r *rewriter) streamJoin(n node, left, right rel) error {
	kind := n.str("join_type")
	switch ref := n.str("ref_type"); {
	case left.stream && right.stream:
		return r.unsupported(n, "a join of the stream with itself or another stream", "Join it with a table read without STREAM")
	case ref == "NATURAL":
		return r.unsupported(n, "NATURAL JOIN", "Name the columns with USING")
	case ref == "POSITIONAL":
		return r.unsupported(n, "POSITIONAL JOIN", "Join on a key")
	case left.stream && (kind == "RIGHT" || kind == "FULL"),
		right.stream && kind != "INNER" && kind != "RIGHT":
		return r.unsupported(n, strings.ReplaceAll(kind, "FULL", "FULL OUTER")+" JOIN that keeps rows of the table without a match", "Keep the stream's rows: stream LEFT JOIN table")
	}
	return nil
}

func (r *rewriter) tableFunction(n node, in *scope) error {
	f := n.child("function")
	name := strings.ToLower(f.str("function_name"))
	if !tableFunctions[name] {
		return fault.New("UNRESOLVABLE_TABLE_VALUED_FUNCTION", "the table function %s is not allowed", f.str("function_name")).
			WithHint("Relations come from tables and, in a pipeline's SQL, from read_files; of functions there are unnest, range, generate_series, json_each and json_tree").
			At(r.at(n))
	}
	for _, a := range f.nodes("children") {
		if err := r.expr(a, place{scope: in}); err != nil {
			return err
		}
	}
	return nil
}

func (r *rewriter) values(n node, in *scope) error {
	for _, row := range n.list("values") {
		list, _ := row.([]any)
		for _, v := range list {
			m, ok := v.(map[string]any)
			if !ok {
				return r.unknownKind(n)
			}
			if err := r.expr(m, place{scope: in}); err != nil {
				return err
			}
		}
	}
	return nil
}

// unpivot rewrites UNPIVOT, which turns columns into rows; PIVOT is refused.
func (r *rewriter) unpivot(n node, in *scope) (rel, error) {
	if len(n.list("aggregates")) > 0 || len(n.list("unpivot_names")) == 0 {
		return rel{}, r.refuse(n, "PIVOT is not supported: its columns depend on the data")
	}
	source, err := r.from(n.child("source"), in)
	if err != nil {
		return rel{}, err
	}
	for _, p := range n.nodes("pivots") {
		if len(p.list("pivot_expressions")) > 0 || p.child("subquery") != nil || p.str("pivot_enum") != "" {
			return rel{}, r.refuse(n, "PIVOT is not supported: its columns depend on the data")
		}
		for _, e := range p.nodes("entries") {
			star := e.child("star_expr")
			if star == nil {
				continue
			}
			if err := r.expr(star, place{scope: in, streaming: source.stream}); err != nil {
				return rel{}, err
			}
			if err := hideFromStars(star, source); err != nil {
				return rel{}, err
			}
		}
	}
	name := n.str("alias")
	if name == "" {
		name = "unpivot"
	}
	return rel{stream: source.stream, metadata: source.metadata}.called(name), nil
}

// reserved refuses names that begin as the hidden columns do.
func (r *rewriter) reserved(n node, name string) error {
	if !strings.HasPrefix(strings.ToLower(name), reservedPrefix) || strings.HasPrefix(name, filesPrefix) {
		return nil
	}
	return fault.New("RESERVED_COLUMN_NAME", "the name %s is reserved", name).
		WithHint("Names that begin with %s belong to the engine", reservedPrefix).At(r.at(n))
}

const reservedPrefix = "__weir_"
