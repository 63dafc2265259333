package sql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// plan is a query rewritten and bound, ready to run over any readers with the
// same schemas. It is not changed once made.
type plan struct {
	inputs []plannedInput
	text   string // with placeName(k) for input k and clockText for the clock
	schema *arrow.Schema
	where  fault.Where // the query's place, for errors while it runs
	guest  bool
	around *detour // nil: all columns come out of the text
}

// plannedInput is an input that the text reads.
type plannedInput struct {
	key   string
	place string // stands in the text for the number of the scan
}

// placeName stands in a plan for the number of the k-th input's scan; the text
// of a user cannot contain it.
func placeName(k int) string { return fmt.Sprintf("%s%d_", numberPrefix, k) }

const numberPrefix = reservedPrefix + "number_"

// named puts the number of the scan into a text.
func (s *scan) named(text, place string) string {
	return strings.ReplaceAll(text, quoteText(place), fmt.Sprint(s.number))
}

// planner makes plans on one connection.
type planner struct {
	ctx  context.Context
	conn *connection
	q    Query
	// detours lets columns go around the engine.
	detours bool
}

// make rewrites the query over inputs of these schemas and binds it.
func (p *planner) make(schemas map[string]*arrow.Schema) (*plan, error) {
	if len(p.q.Expectations) > relation.MaskBits {
		return nil, fault.New("TOO_MANY_EXPECTATIONS", "%d expectations on one dataset", len(p.q.Expectations)).
			WithHint("At most %d fit; join conditions with AND", relation.MaskBits).At(p.q.places().where(0))
	}
	r, err := p.rewriter(schemas)
	if err != nil {
		return nil, err
	}
	if p.q.Guest != nil {
		if err := checkGuestText(p.q.Text, r.origin.where(0)); err != nil {
			return nil, err
		}
	}
	tree, o, err := parseSelect(p.q.Text, r.origin)
	if err != nil {
		return nil, err
	}
	r.origin = o
	if err := refuseBetween(tree, o); err != nil {
		return nil, err
	}
	if err := expandIntervals(tree, o, p.q.intervals(schemas)); err != nil {
		return nil, err
	}
	if p.q.Guest != nil {
		if err := p.q.checkGuest(tree, r); err != nil {
			return nil, err
		}
	}
	if err := r.statement(tree); err != nil {
		return nil, err
	}
	text, bound, err := p.bound(tree, r, schemas)
	if err != nil {
		return nil, err
	}
	defer bound.close()
	masks, err := p.masks(r, text, bound.names, schemas)
	if err != nil {
		return nil, err
	}
	out, err := p.compose(r, text, bound, masks)
	if err != nil || !p.detours {
		return out, err
	}
	if in := r.only(); in != nil && (r.stream != nil || masks == nil) {
		if from := r.around(tree.child("node"), bound.names, bound.types, in, schemas[in.key]); from != nil {
			out.around = p.detour(out, in.key, from, text, bound, masks)
		}
	}
	return out, nil
}

// bound gives a rewritten query as the text that runs, and its columns. Its
// operations get their meanings first, which are then held to what they may make.
func (p *planner) bound(tree node, r *rewriter, schemas map[string]*arrow.Schema) (string, *prepared, error) {
	top := tree.child("node")
	ctes := top.child("cte_map")
	own := ctes.list("map")
	bind := func() (string, *prepared, error) {
		r.defineInputs(top)
		defer func() { ctes["map"] = own }()
		text, err := printSelect(tree)
		if err != nil {
			return "", nil, err
		}
		bound, err := p.bind(text, schemas, r)
		return text, bound, err
	}
	written := r.scans(tree)
	err := r.resolve([]any{map[string]any(tree)}, func() error {
		r.defineInputs(top)
		defer func() { ctes["map"] = own }()
		return p.learn(r, clone(map[string]any(tree)).(map[string]any), schemas, "")
	})
	if err != nil {
		return "", nil, r.bindError(err)
	}
	// A meaning may write a subquery several times, which then scans as often.
	for i, n := range r.scans(tree) {
		r.inputs[i].uses += n - written[i]
	}
	if err := r.hold(top); err != nil {
		return "", nil, err
	}
	if err := r.nameUnnamed(); err != nil {
		return "", nil, err
	}
	if err := p.checkSetOperations(tree, r, schemas); err != nil {
		return "", nil, err
	}
	text, bound, err := bind()
	if err != nil {
		return "", nil, r.bindError(err)
	}
	return text, bound, nil
}

// scans counts the places of a tree that name each input.
func (r *rewriter) scans(tree node) []int {
	out := make([]int, len(r.inputs))
	visitAll(map[string]any(tree), func(n node) {
		if n.str("type") != "BASE_TABLE" {
			return
		}
		for i, in := range r.inputs {
			if n.str("table_name") == inputName(in.index) {
				out[i]++
			}
		}
	})
	return out
}

// learn binds a tree whose operations wait for types, and no more: nothing of it is
// computed, as it would be when a plan is made of constants. What a tree may make is
// held to its bounds even so, since some functions are asked for a constant when they
// are bound. A tree that stands over a relation has its text.
func (p *planner) learn(r *rewriter, tree node, schemas map[string]*arrow.Schema, over string) error {
	if err := r.withoutSubqueries(tree); err != nil {
		return err
	}
	held := *r
	if err := held.hold(tree.child("node")); err != nil {
		return err
	}
	text, err := printSelect(tree)
	if err != nil {
		return err
	}
	bound, err := p.bind("DESCRIBE "+text+over, schemas, r)
	if err != nil {
		return err
	}
	bound.close()
	return nil
}

// rewriter sets up the inputs in a fixed order.
func (p *planner) rewriter(schemas map[string]*arrow.Schema) (*rewriter, error) {
	r := &rewriter{origin: p.q.places(), places: map[string]int{}, columns: map[string]bool{}}
	for i, k := range slices.Sorted(maps.Keys(schemas)) {
		in := &input{key: k, index: i, stream: k == p.q.Stream, metadata: schemas[k].HasField(relation.MetadataColumn), row: schemas[k].HasField(relation.RowColumn)}
		r.inputs = append(r.inputs, in)
		for _, f := range schemas[k].Fields() {
			r.columns[strings.ToLower(f.Name)] = true
		}
		if in.stream {
			r.stream = in
		}
	}
	if p.q.Stream == "" {
		return r, nil
	}
	if r.stream == nil {
		return nil, fault.New("INTERNAL_ERROR", "the stream %s is none of the inputs", p.q.Stream)
	}
	if !r.stream.row {
		return nil, fault.New("INTERNAL_ERROR", "the stream %s carries no %s", p.q.Stream, relation.RowColumn)
	}
	return r, nil
}

// nameUnnamed gives the select items that rewriting changed the names they had.
func (r *rewriter) nameUnnamed() error {
	originals := make([]node, len(r.unnamed))
	for i, u := range r.unnamed {
		originals[i] = u.original
	}
	names, err := printExpressions(originals)
	if err != nil {
		return err
	}
	for i, u := range r.unnamed {
		u.item["alias"] = names[i]
	}
	return nil
}

// defineInputs puts the inputs the query reads in front as CTEs. A reader can
// be read once, so an input that is scanned more often is materialized.
func (r *rewriter) defineInputs(top node) {
	defs := []any{}
	for _, in := range r.inputs {
		if in.uses == 0 {
			continue
		}
		star := map[string]any{
			"class": "STAR", "type": "STAR", "alias": "", "query_location": nowhere, "relation_name": "", "exclude_list": []any{},
			"replace_list": []any{}, "columns": false, "expr": nil, "qualified_exclude_list": []any{}, "rename_list": []any{},
		}
		if in.row && !in.stream {
			star["exclude_list"] = []any{relation.RowColumn}
		}
		body := selectOf(star)
		body.child("node")["from_table"] = map[string]any{
			"type": "TABLE_FUNCTION", "alias": "", "sample": nil, "query_location": nowhere,
			"function": map[string]any{
				"class": "FUNCTION", "type": "FUNCTION", "alias": "", "query_location": nowhere, "function_name": scanFunction,
				"schema": "", "catalog": "", "children": []any{textConstant(placeName(in.index))}, "filter": nil,
				"order_bys": map[string]any{"type": "ORDER_MODIFIER", "orders": []any{}}, "distinct": false, "is_operator": false, "export_state": false,
			},
			"column_name_alias": []any{}, "with_ordinality": "WITHOUT_ORDINALITY",
		}
		materialized := "CTE_MATERIALIZE_NEVER"
		if in.uses > 1 {
			materialized = "CTE_MATERIALIZE_ALWAYS"
		}
		defs = append(defs, map[string]any{"key": inputName(in.index), "value": map[string]any{
			"aliases": []any{}, "key_targets": []any{}, "materialized": materialized, "query": map[string]any(body),
		}})
	}
	ctes := top.child("cte_map")
	ctes["map"] = append(defs, ctes.list("map")...)
}

// bind prepares a text over empty inputs and gives its columns.
func (p *planner) bind(text string, schemas map[string]*arrow.Schema, r *rewriter) (*prepared, error) {
	for _, in := range r.inputs {
		if in.uses == 0 {
			continue
		}
		s := newScan(p.ctx, p.conn.db, emptyReader(schemas[in.key]))
		defer s.close()
		text = s.named(text, placeName(in.index))
	}
	return p.conn.prepare(withClock(text, p.q.Clock), p.q.Stream == "")
}

// withClock puts the batch timestamp into a text.
func withClock(text string, clock time.Time) string {
	return strings.ReplaceAll(text, clockText, clock.UTC().Format("2006-01-02 15:04:05.999999")+"+00")
}

// masks gives, per expectation, the expression of its bit.
func (p *planner) masks(r *rewriter, text string, columns []string, schemas map[string]*arrow.Schema) ([]string, error) {
	if len(p.q.Expectations) == 0 {
		return nil, nil
	}
	rules := make([]*rewriter, len(p.q.Expectations))
	trees := make([]node, len(p.q.Expectations))
	for i := range p.q.Expectations {
		var err error
		if trees[i], rules[i], err = p.condition(i, columns); err != nil {
			return nil, p.inRule(i, err)
		}
	}
	for i, tree := range trees {
		top := selectOf(tree)
		err := rules[i].resolve([]any{map[string]any(top)}, func() error {
			rule := *rules[i]
			rule.inputs = r.inputs
			return p.learn(&rule, clone(map[string]any(top)).(map[string]any), schemas, " FROM ("+text+") AS result")
		})
		if err != nil {
			return nil, p.inRule(i, rules[i].bindError(err))
		}
		if err := rules[i].hold(top.child("node")); err != nil {
			return nil, p.inRule(i, err)
		}
		trees[i] = top.child("node").nodes("select_list")[0]
	}
	conditions, err := printExpressions(trees)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(conditions))
	for i, c := range conditions {
		if p.q.nullPass(i) {
			out[i] = fmt.Sprintf("CASE WHEN NOT (%s) THEN %d ELSE 0 END", c, int64(1)<<i)
		} else {
			out[i] = fmt.Sprintf("CASE WHEN (%s) THEN 0 ELSE %d END", c, int64(1)<<i)
		}
	}
	return out, p.checkConditions(r, rules, conditions, text, schemas)
}

// checkConditions binds the conditions over the query's columns: each must be
// BOOLEAN. They are bound together, and one by one only to find the culprit.
func (p *planner) checkConditions(r *rewriter, rules []*rewriter, conditions []string, text string, schemas map[string]*arrow.Schema) error {
	over := func(list ...string) (*prepared, error) {
		return p.bind("SELECT "+strings.Join(list, ", ")+" FROM ("+text+") AS result", schemas, r)
	}
	all, err := over(conditions...)
	if err == nil {
		defer all.close()
		for i := range conditions {
			if t := all.typeOf(i); t != "BOOLEAN" && t != "NULL" {
				return p.inRule(i, fault.New("INVALID_EXPECTATION", "the condition is %s, not BOOLEAN", t).At(rules[i].origin.where(0)))
			}
		}
		return nil
	}
	for i, c := range conditions {
		one, err := over(c)
		if err != nil {
			return p.inRule(i, rules[i].bindError(err))
		}
		one.close()
	}
	return fault.Wrap(err, "INVALID_EXPECTATION", "the conditions cannot be checked together")
}

// inRule names the expectation in an error of its condition.
func (p *planner) inRule(i int, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		f.Message = "expectation " + p.q.rule(i) + ": " + f.Message
	}
	return err
}

// condition parses and rewrites one condition over these columns.
func (p *planner) condition(i int, columns []string) (node, *rewriter, error) {
	text := p.q.Expectations[i]
	o := newOrigin(p.q.File, text, p.q.Line)
	if i < len(p.q.conditions) {
		o = p.q.conditions[i]
	}
	item, r, err := oneExpression(text, o, p.q.GuestRules)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range columns {
		r.columns[strings.ToLower(c)] = true
	}
	if err := r.expr(item, place{condition: true}); err != nil {
		return nil, nil, err
	}
	return item, r, nil
}

// oneExpression parses a text that stands for one value of a row, and holds it
// to the list of guests if it is one's.
func oneExpression(text string, o *origin, guest bool) (node, *rewriter, error) {
	if guest {
		if err := checkGuestText(text, o.where(0)); err != nil {
			return nil, nil, err
		}
	}
	// The line break ends a comment that the text may end with.
	e := newEdit(text)
	e.replace(0, 0, "SELECT (")
	e.replace(len(text), len(text), "\n)")
	text, o = e.finish(o)
	tree, o, err := parseSelect(text, o)
	if err != nil {
		return nil, nil, err
	}
	r := &rewriter{origin: o, places: map[string]int{}, columns: map[string]bool{}}
	top := tree.child("node")
	items := top.nodes("select_list")
	if top.str("type") != "SELECT_NODE" || len(items) != 1 || top.child("from_table").str("type") != "EMPTY" ||
		top.child("where_clause") != nil || len(top.list("modifiers")) > 0 || containsStar(items[0]) {
		return nil, nil, syntaxError(o.where(0), "the condition is more than one expression")
	}
	if guest {
		if err := checkGuestCondition(items[0], r); err != nil {
			return nil, nil, err
		}
	}
	return items[0], r, nil
}

// compose makes the text that runs and the schema of its result.
func (p *planner) compose(r *rewriter, text string, bound *prepared, masks []string) (*plan, error) {
	out := &plan{where: r.origin.where(0), guest: p.q.Guest != nil}
	for _, in := range r.inputs {
		if in.uses > 0 {
			out.inputs = append(out.inputs, plannedInput{in.key, placeName(in.index)})
		}
	}
	streaming := r.stream != nil
	var fields []arrow.Field
	var items, aliases []string
	cast := false
	seen := map[string]bool{}
	for i, name := range bound.names {
		last := i == len(bound.names)-1
		t := bound.types[i]
		if t.refused != "" {
			return nil, fault.New("UNSUPPORTED_DATATYPE", "column %s: %s", name, t.refused).At(r.placeOf("column", name))
		}
		column := fmt.Sprintf("c%d", i)
		if streaming {
			column = name
			switch {
			case last && name == relation.RowColumn:
			case relation.Hidden(name):
				return nil, fault.New("RESERVED_COLUMN_NAME", "the column %s would be lost: it is not part of a table", name).
					WithHint("Give it another name: %s AS source_metadata", name).At(r.placeOf("column", name))
			case seen[strings.ToLower(name)]:
				return nil, fault.New("COLUMN_ALREADY_EXISTS", "the query gives two columns named %s", name).
					WithHint("Give one of them another name with AS").At(r.placeOf("column", name))
			}
			seen[strings.ToLower(name)] = true
		}
		aliases = append(aliases, quoteName(column))
		if t.cast {
			cast = true
			items = append(items, fmt.Sprintf("CAST(%s AS %s) AS %s", quoteName(column), t.sql, quoteName(name)))
		} else {
			items = append(items, quoteName(column)+" AS "+quoteName(name))
		}
		field := arrow.Field{Name: name, Type: t.arrow, Nullable: true}
		if streaming && last {
			field = relation.RowField()
		}
		fields = append(fields, field)
	}
	if masks != nil {
		items = append(items, "CAST("+strings.Join(masks, " + ")+" AS BIGINT) AS "+relation.MaskColumn)
		fields = append(fields, relation.MaskField())
	}
	out.text = text
	if cast || masks != nil || r.sorted {
		out.text = "SELECT " + strings.Join(items, ", ") + " FROM (" + text + ") AS result(" + strings.Join(aliases, ", ") + ")"
	}
	if r.sorted && streaming {
		out.text += " ORDER BY " + r.order(len(bound.names))
	}
	out.schema = arrow.NewSchema(fields, nil)
	return out, nil
}

// detour makes the plan of the columns that do not go around the engine.
func (p *planner) detour(whole *plan, input string, from []int, text string, bound *prepared, masks []string) *detour {
	d := &detour{input: input, from: from}
	var fields []arrow.Field
	var items, aliases []string
	for i, name := range bound.names {
		aliases = append(aliases, quoteName(name))
		if from[i] >= 0 {
			continue
		}
		item := quoteName(name)
		if t := bound.types[i]; t.cast {
			item = fmt.Sprintf("CAST(%s AS %s)", item, t.sql)
		}
		items = append(items, item+" AS "+quoteName(name))
		fields = append(fields, whole.schema.Field(i))
	}
	if masks != nil {
		items = append(items, "CAST("+strings.Join(masks, " + ")+" AS BIGINT) AS "+relation.MaskColumn)
		fields = append(fields, relation.MaskField())
		d.from = append(d.from, -1)
	}
	if len(items) == 0 {
		return d
	}
	d.rest = &plan{
		inputs: whole.inputs, where: whole.where, schema: arrow.NewSchema(fields, nil),
		text: "SELECT " + strings.Join(items, ", ") + " FROM (" + text + ") AS result(" + strings.Join(aliases, ", ") + ")",
	}
	return d
}

// order sorts by __weir_row, which is last, and then by everything else: rows
// of one source row have no other order that a rerun could repeat.
func (r *rewriter) order(columns int) string {
	by := []string{fmt.Sprint(columns)}
	for i := 1; i < columns; i++ {
		by = append(by, fmt.Sprint(i))
	}
	return strings.Join(by, ", ")
}
