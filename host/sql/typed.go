package sql

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// meaning gives the tree of an operation whose arguments have these types.
type meaning func(types []sqlType, args []map[string]any) (node, error)

// untyped is an operation that waits for the types of its arguments.
type untyped struct {
	number int64
	mean   meaning
	query  int // the SELECT it stands in
	item   int // of the select list; beyond it: another clause
	at     fault.Where
}

// wait puts a probe in the place of n. The same operation in the same SELECT gets
// the same number, so that GROUP BY finds it again.
func (r *rewriter) wait(n node, name string, args []any, ctx place, mean meaning) error {
	types := make([]sqlType, len(args))
	known := true
	for i, a := range args {
		types[i], known = writtenSQLType(a.(map[string]any))
		if !known {
			break
		}
	}
	if known {
		return r.settleOne(n, mean, types, args, r.at(n))
	}
	if err := r.subqueryTypes(args); err != nil {
		return err
	}
	key := fmt.Sprintf("%d %s %s %s", ctx.query, ctx.lambda, name, fingerprint(args))
	w := r.waiting[key]
	if w == nil {
		w = &untyped{number: probeNumber.Add(1), mean: mean, query: ctx.query, item: ctx.item, at: r.at(n)}
		if r.waiting == nil {
			r.waiting, r.byNumber = map[string]*untyped{}, map[string]*untyped{}
		}
		r.waiting[key] = w
		r.byNumber[fmt.Sprint(w.number)] = w
	}
	at := n["query_location"]
	n.become(callNode(probeFunction, append([]any{textConstant(fmt.Sprint(w.number))}, args...)...))
	n["query_location"] = at
	return nil
}

// fingerprint tells arguments apart, wherever they stand.
func fingerprint(args []any) string {
	bare := clone(args)
	visitAll(bare, func(n node) { delete(n, "query_location") })
	text, err := json.Marshal(bare)
	if err != nil {
		return fmt.Sprint(bare)
	}
	return string(text)
}

// visitAll calls f for every node, those of subqueries too.
func visitAll(v any, f func(node)) {
	switch v := v.(type) {
	case node:
		visitAll(map[string]any(v), f)
	case map[string]any:
		f(v)
		for _, e := range v {
			visitAll(e, f)
		}
	case []any:
		for _, e := range v {
			visitAll(e, f)
		}
	}
}

// callNode is the call of a function.
func callNode(name string, args ...any) map[string]any {
	return map[string]any{
		"class": "FUNCTION", "type": "FUNCTION", "alias": "", "query_location": nowhere, "function_name": name,
		"schema": "", "catalog": "", "children": args, "filter": nil,
		"order_bys": map[string]any{"type": "ORDER_MODIFIER", "orders": []any{}}, "distinct": false, "is_operator": false, "export_state": false,
	}
}

// probeOf gives the operation that waits in a node, or nil.
func (r *rewriter) probeOf(n node) *untyped {
	if n.str("class") != "FUNCTION" || n.str("function_name") != probeFunction {
		return nil
	}
	number, _ := constantText(n.nodes("children")[0])
	return r.byNumber[number]
}

// hasProbe reports an operation that waits, in a subquery too.
func (r *rewriter) hasProbe(v any) bool {
	if len(r.byNumber) == 0 {
		return false
	}
	found := false
	visitAll(v, func(n node) { found = found || r.probeOf(n) != nil })
	return found
}

// maxRepeated bounds what an operation becomes: some write their arguments several
// times, and nesting them must not make a text without end.
const maxRepeated = 10_000

// maxRounds bounds how often a query is bound to learn types.
const maxRounds = 200

// resolve binds the trees again and again, each time giving those operations their
// meaning whose arguments have a type by then. bind binds them, and its error is
// the query's own only when nothing else helps.
func (r *rewriter) resolve(trees []any, bind func() error) error {
	defer func() {
		for _, w := range r.byNumber {
			probed.Delete(w.number)
		}
	}()
	for range maxRounds {
		if !r.hasProbe(trees) {
			unmark(trees)
			return nil
		}
		for _, w := range r.byNumber {
			probed.Store(w.number, probe{})
		}
		bindErr := bind()
		var own *fault.Error
		if errors.As(bindErr, &own) {
			return bindErr
		}
		done, err := r.round(trees)
		if err != nil {
			return err
		}
		if !done {
			if bindErr == nil {
				bindErr = fault.New("NOT_SUPPORTED", "the types of the query cannot be told").At(r.origin.where(0))
			}
			return bindErr
		}
	}
	return fault.New("NOT_SUPPORTED", "operations are nested too deeply").
		WithHint("Compute the inner ones in a subquery or CTE and give them names").At(r.origin.where(0))
}

// round gives their meaning to the operations that can have it: whose arguments
// wait for nothing, and neither does what their SELECT reads from.
func (r *rewriter) round(trees []any) (bool, error) {
	pending := map[int]bool{}
	var ready, held []*untyped
	blocked := r.pendingAliases()
	seen := map[int64]bool{}
	visitAll(trees, func(n node) {
		w := r.probeOf(n)
		if w == nil || seen[w.number] {
			return
		}
		pending[w.query] = true
		args := n.list("children")[1:]
		if got, ok := probed.Load(w.number); !ok || !got.(probe).bound || r.hasProbe(args) {
			return
		}
		seen[w.number] = true
		waits := false
		visit(args, func(a node) {
			if names := a.strings("column_names"); len(names) == 1 {
				if item, ok := blocked[w.query][strings.ToLower(names[0])]; ok && item < w.item {
					waits = true
				}
			}
		})
		if waits {
			held = append(held, w)
		} else {
			ready = append(ready, w)
		}
	})
	var chosen []*untyped
	for _, w := range ready {
		settled := true
		for _, s := range r.after[w.query] {
			for q := s.from; q < s.to; q++ {
				settled = settled && (q == w.query || !pending[q])
			}
		}
		if settled {
			chosen = append(chosen, w)
		}
	}
	if rest := append(ready, held...); len(chosen) == 0 && len(rest) > 0 {
		chosen = []*untyped{slices.MinFunc(rest, func(a, b *untyped) int { return int(a.number - b.number) })}
	}
	if len(chosen) == 0 {
		return false, nil
	}
	var err error
	visitAll(trees, func(n node) {
		w := r.probeOf(n)
		if w == nil || err != nil || !slices.Contains(chosen, w) {
			return
		}
		got, _ := probed.Load(w.number)
		p := got.(probe)
		if p.conflict {
			err = fault.New("NOT_SUPPORTED", "an operation has arguments of several types").At(w.at)
			return
		}
		err = r.settleOne(n, w.mean, p.types, n.list("children")[1:], w.at)
	})
	spread(trees)
	return true, err
}

// settleOne puts the meaning of an operation in its place.
func (r *rewriter) settleOne(n node, mean meaning, types []sqlType, args []any, at fault.Where) error {
	plain := make([]map[string]any, len(args))
	for i, a := range args {
		plain[i] = a.(map[string]any)
	}
	got, err := mean(types, plain)
	if err != nil {
		return fault.Place(err, "NOT_SUPPORTED", at)
	}
	parts := 0
	visit(got, func(node) { parts++ })
	if parts > maxRepeated {
		return fault.New("NOT_SUPPORTED", "casts, divisions and other operations are nested too deeply").
			WithHint("Compute the inner ones in a subquery or CTE and give them names").At(at)
	}
	n.become(got)
	return nil
}

// pendingAliases gives, by SELECT, the names in its list whose value waits, and their places.
func (r *rewriter) pendingAliases() map[int]map[string]int {
	out := map[int]map[string]int{}
	for q, items := range r.selects {
		for i, item := range items {
			if alias := item.str("alias"); alias != "" && r.hasProbe(map[string]any(item)) {
				if out[q] == nil {
					out[q] = map[string]int{}
				}
				out[q][strings.ToLower(alias)] = i
			}
		}
	}
	return out
}

// writtenSQLType is the type an expression has by its text alone.
func writtenSQLType(n node) (sqlType, bool) {
	switch n.str("class") {
	case "CONSTANT":
		t := n.child("value").child("type")
		if n.child("value").flag("is_null") {
			return sqlType{id: "NULL"}, true
		}
		return treeType(t)
	case "CAST":
		return treeType(n.child("cast_type"))
	}
	return sqlType{}, false
}

// treeType reads a type that is no nested one as the tree has it.
func treeType(t node) (sqlType, bool) {
	id := t.str("id")
	info := t.child("type_info")
	switch id {
	case "DECIMAL":
		w, s := info["width"], info["scale"]
		wn, ok1 := w.(json.Number)
		sn, ok2 := s.(json.Number)
		if !ok1 || !ok2 {
			return sqlType{}, false
		}
		width, err1 := wn.Int64()
		scale, err2 := sn.Int64()
		return sqlType{id: id, width: int(width), scale: int(scale)}, err1 == nil && err2 == nil
	case "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "VARCHAR", "BLOB", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE":
		return sqlType{id: id}, info == nil
	}
	return sqlType{}, false
}

func (t sqlType) equal(o sqlType) bool { return reflect.DeepEqual(t, o) }

// repeatable refuses an expression too large to be written several times.
func (r *rewriter) repeatable(n node) error {
	parts := 0
	visit(n, func(node) { parts++ })
	if parts <= maxRepeated {
		return nil
	}
	return fault.New("NOT_SUPPORTED", "casts, divisions and other operations are nested too deeply").
		WithHint("Compute the inner ones in a subquery or CTE and give them names").At(r.at(n))
}
