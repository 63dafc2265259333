package sql

import (
	"fmt"
	"reflect"
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
	inputs  []*input
	columns map[string]bool // names of the inputs' columns, in lower case
	stream  *input          // nil for an ordinary query
	origin  *origin
	sorted  bool // the output must be sorted to keep the input's order

	// places remembers where names stand, for errors found when binding.
	places  map[string]int
	unnamed []unnamedItem // select items whose derived name the rewriting changes

	// waiting are the operations whose meaning depends on types, by what they are
	// and by the number of their probe; selects are the lists of the SELECTs in the
	// order in which they are evaluated.
	waiting, byNumber map[string]*untyped
	selects           map[int][]node
	subqueries        map[string]sqlType // the types of values of subqueries
	after             map[int][]span     // what must have its types before
	froms             []int              // where the FROM clauses begin that are being read
	within            []int              // the SELECTs whose expressions are being read
}

// span is a range of SELECTs, the last left out.
type span struct{ from, to int }

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
	span   span
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
	streaming bool   // in a SELECT over the stream
	condition bool   // in an expectation: no subquery, no aggregate
	query     int    // the SELECT, counted in the order of evaluation
	item      int    // of its list; beyond it, another clause
	lambda    string // what the lambda around it runs over
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
		begins := len(r.selects)
		body := cte.child("query").child("node")
		got, err := r.query(body, in)
		if err != nil {
			return nil, err
		}
		added := &scope{parent: in, name: name, rel: got, uses: map[*input]int{}, span: span{begins, len(r.selects)}}
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
	r.froms = append(r.froms, len(r.selects))
	from, err := r.from(n.child("from_table"), in)
	begins := r.froms[len(r.froms)-1]
	r.froms = r.froms[:len(r.froms)-1]
	if err != nil {
		return rel{}, err
	}
	if from.stream {
		if err := r.streamable(n); err != nil {
			return rel{}, err
		}
	}
	ctx := r.newPlace(in, from.stream)
	r.after[ctx.query] = append(r.after[ctx.query], span{begins, ctx.query})
	r.within = append(r.within, ctx.query)
	defer func() { r.within = r.within[:len(r.within)-1] }()
	items := n.nodes("select_list")
	r.selects[ctx.query] = items
	for i, item := range items {
		ctx.item = i
		if err := r.selectItem(item, ctx, from); err != nil {
			return rel{}, err
		}
	}
	ctx.item = len(items)
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
	spread(map[string]any(n))
	if from.stream {
		n["select_list"] = append(n.list("select_list"), any(columnRef(relation.RowColumn)))
	}
	return rel{stream: from.stream}, nil
}

// newPlace is a place in another SELECT, or in something else that is evaluated by itself.
func (r *rewriter) newPlace(in *scope, streaming bool) place {
	if r.selects == nil {
		r.selects, r.after = map[int][]node{}, map[int][]span{}
	}
	ctx := place{scope: in, streaming: streaming, query: len(r.selects)}
	r.selects[ctx.query] = nil
	var after []span
	for s := in; s != nil; s = s.parent {
		after = append(after, s.span)
	}
	if len(r.froms) > 0 {
		after = append(after, span{r.froms[0], ctx.query}) // LATERAL
	}
	if k := len(r.within); k > 0 {
		after = append(after, r.after[r.within[k-1]]...)
	}
	r.after[ctx.query] = after
	return ctx
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
	if err := r.reserved(item, strings.TrimPrefix(item.str("alias"), columnsAlias)); err != nil {
		return err
	}
	if done, err := r.generator(item, ctx); done || err != nil {
		return err
	}
	if strings.HasPrefix(item.str("alias"), columnsAlias) {
		return syntaxError(r.at(item), "several names are given to one column")
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
		return rel{}, r.modifiers(n, r.newPlace(in, false))
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
	return rel{}, r.modifiers(n, r.newPlace(in, false))
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
