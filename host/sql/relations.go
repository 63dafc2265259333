package sql

import (
	"context"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// relationRef is a relation a query reads.
type relationRef struct {
	name     string // dotted, as first written
	uses     int
	location int // of its first use
	at       fault.Where
}

// Relations lists the relations a SELECT reads, as dotted names without
// quotes, in order of appearance; its own CTEs are left out.
func (e *Engine) Relations(ctx context.Context, text string) ([]string, error) {
	refs, err := relations(Query{Text: text})
	if err != nil {
		return nil, err
	}
	out := make([]string, len(refs))
	for i, r := range refs {
		out[i] = r.name
	}
	return out, nil
}

func relations(q Query) ([]relationRef, error) {
	tree, o, err := parseSelect(q.Text, q.places())
	if err != nil {
		return nil, err
	}
	if err := expandIntervals(tree, o, intervals{}); err != nil {
		return nil, err
	}
	c := &collector{}
	c.walk(tree.child("node"), nil)
	slices.SortFunc(c.refs, func(a, b relationRef) int { return a.location - b.location })
	for i := range c.refs {
		c.refs[i].at = o.where(max(c.refs[i].location, 0))
	}
	return c.refs, nil
}

// collector finds the base tables of a tree that are no CTE in sight.
type collector struct {
	refs []relationRef
}

func (c *collector) walk(v any, ctes []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			c.walk(e, ctes)
		}
	case node:
		c.walk(map[string]any(v), ctes)
	case map[string]any:
		n := node(v)
		for _, entry := range n.child("cte_map").nodes("map") {
			body := entry.child("value").child("query").child("node")
			inside := ctes
			if body.str("type") == "RECURSIVE_CTE_NODE" {
				inside = append(ctes[:len(ctes):len(ctes)], entry.str("key"))
			}
			c.walk(body, inside)
			ctes = append(ctes[:len(ctes):len(ctes)], entry.str("key"))
		}
		if n.str("type") == "BASE_TABLE" {
			c.add(n, ctes)
			return
		}
		for key, e := range n {
			if key != "cte_map" {
				c.walk(e, ctes)
			}
		}
	}
}

func (c *collector) add(n node, ctes []string) {
	var parts []string
	for _, key := range []string{"catalog_name", "schema_name", "table_name"} {
		if s := n.str(key); s != "" {
			parts = append(parts, s)
		}
	}
	name := strings.Join(parts, ".")
	if len(parts) == 1 {
		for _, cte := range ctes {
			if strings.EqualFold(cte, name) {
				return
			}
		}
	}
	for i := range c.refs {
		if strings.EqualFold(c.refs[i].name, name) {
			c.refs[i].uses++
			if n.location() < c.refs[i].location {
				c.refs[i].name, c.refs[i].location = name, n.location()
			}
			return
		}
	}
	c.refs = append(c.refs, relationRef{name: name, uses: 1, location: n.location()})
}
