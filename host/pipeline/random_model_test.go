package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// The model of the property test: a small language of queries over rows of one
// shape, each with what it means, computed the slow and plain way over all input.

// value is a BIGINT or a STRING, or NULL.
type value struct {
	null bool
	i    int64
	s    string
}

func number(i int64) value { return value{i: i} }
func word(s string) value  { return value{s: s} }

var null = value{null: true}

// row has the columns that every table has: id, k and n are BIGINT, g is STRING.
type row struct{ id, k, g, n value }

func (r row) String() string {
	show := func(v value, text bool) string {
		switch {
		case v.null:
			return "null"
		case text:
			return fmt.Sprintf("%q", v.s)
		}
		return fmt.Sprint(v.i)
	}
	return fmt.Sprintf(`{"id":%s,"k":%s,"g":%s,"n":%s}`, show(r.id, false), show(r.k, false), show(r.g, true), show(r.n, false))
}

// truth is SQL's: no, unknown, yes.
type truth int

const (
	no truth = iota
	unknown
	yes
)

// condition is a text over the columns of one row, and what it means.
type condition struct {
	sql  string
	eval func(row) truth
}

func compare(a, b value, holds func(int) bool) truth {
	if a.null || b.null {
		return unknown
	}
	c := strings.Compare(a.s, b.s)
	if c == 0 {
		switch {
		case a.i < b.i:
			c = -1
		case a.i > b.i:
			c = 1
		}
	}
	if holds(c) {
		return yes
	}
	return no
}

func randomCondition(r *rand.Rand, depth int) condition {
	c := int64(r.IntN(10) - 2)
	letter := string(rune('a' + r.IntN(4)))
	switch r.IntN(7 + 3*min(depth, 1)) {
	case 0:
		return condition{fmt.Sprintf("n > %d", c), func(x row) truth { return compare(x.n, number(c), func(c int) bool { return c > 0 }) }}
	case 1:
		return condition{fmt.Sprintf("k <> %d", c), func(x row) truth { return compare(x.k, number(c), func(c int) bool { return c != 0 }) }}
	case 2:
		return condition{fmt.Sprintf("g = '%s'", letter), func(x row) truth { return compare(x.g, word(letter), func(c int) bool { return c == 0 }) }}
	case 3:
		return condition{fmt.Sprintf("g < '%s'", letter), func(x row) truth { return compare(x.g, word(letter), func(c int) bool { return c < 0 }) }}
	case 4:
		return condition{"n IS NOT NULL", func(x row) truth { return map[bool]truth{true: no, false: yes}[x.n.null] }}
	case 5:
		return condition{"g IS NULL", func(x row) truth { return map[bool]truth{true: yes, false: no}[x.g.null] }}
	case 6:
		return condition{"k <= n", func(x row) truth { return compare(x.k, x.n, func(c int) bool { return c <= 0 }) }}
	case 7:
		a := randomCondition(r, depth-1)
		return condition{"NOT (" + a.sql + ")", func(x row) truth { return yes - a.eval(x) }}
	case 8:
		a, b := randomCondition(r, depth-1), randomCondition(r, depth-1)
		return condition{"(" + a.sql + " AND " + b.sql + ")", func(x row) truth { return min(a.eval(x), b.eval(x)) }}
	}
	a, b := randomCondition(r, depth-1), randomCondition(r, depth-1)
	return condition{"(" + a.sql + " OR " + b.sql + ")", func(x row) truth { return max(a.eval(x), b.eval(x)) }}
}

// projection is a select list that gives all columns.
type projection struct {
	sql  string
	eval func(row) row
}

func plus(a, b value) value {
	if a.null || b.null {
		return null
	}
	return number(a.i + b.i)
}

func coalesce(a, b value) value {
	if a.null {
		return b
	}
	return a
}

func randomProjection(r *rand.Rand) projection {
	c := int64(r.IntN(5))
	k := []projection{
		{"k", func(x row) row { return row{k: x.k} }},
		{"coalesce(k, n) AS k", func(x row) row { return row{k: coalesce(x.k, x.n)} }},
		{"k % 3 AS k", func(x row) row {
			if x.k.null {
				return row{k: null}
			}
			return row{k: number(x.k.i % 3)}
		}},
	}[r.IntN(3)]
	g := []projection{
		{"g", func(x row) row { return row{g: x.g} }},
		{"coalesce(g, 'z') AS g", func(x row) row { return row{g: coalesce(x.g, word("z"))} }},
		{"concat(g, 'b') AS g", func(x row) row {
			if x.g.null {
				return row{g: null}
			}
			return row{g: word(x.g.s + "b")}
		}},
	}[r.IntN(3)]
	when := randomCondition(r, 1)
	n := []projection{
		{"n", func(x row) row { return row{n: x.n} }},
		{fmt.Sprintf("n + %d AS n", c), func(x row) row { return row{n: plus(x.n, number(c))} }},
		{"CASE WHEN " + when.sql + " THEN n ELSE k END AS n", func(x row) row {
			if when.eval(x) == yes {
				return row{n: x.n}
			}
			return row{n: x.k}
		}},
	}[r.IntN(3)]
	return projection{"id, " + k.sql + ", " + g.sql + ", " + n.sql, func(x row) row {
		return row{x.id, k.eval(x).k, g.eval(x).g, n.eval(x).n}
	}}
}

// filtered gives the rows for which a condition is true, through a projection.
func filtered(in []row, where condition, p projection) []row {
	var out []row
	for _, x := range in {
		if where.eval(x) == yes {
			out = append(out, p.eval(x))
		}
	}
	return out
}

// joined is JOIN ON a.k = b.k.
func joined(a, b []row, left bool) []row {
	var out []row
	for _, x := range a {
		met := false
		for _, y := range b {
			if compare(x.k, y.k, func(c int) bool { return c == 0 }) == yes {
				met = true
				out = append(out, row{x.id, x.k, coalesce(y.g, x.g), plus(x.n, y.n)})
			}
		}
		if left && !met {
			out = append(out, row{x.id, x.k, x.g, null})
		}
	}
	return out
}

const joinedColumns = "a.id, a.k, coalesce(b.g, a.g) AS g, a.n + b.n AS n"

// grouped is GROUP BY k with an aggregate for each other column.
func grouped(in []row) []row {
	var order []value
	groups := map[value][]row{}
	for _, x := range in {
		if groups[x.k] == nil {
			order = append(order, x.k)
		}
		groups[x.k] = append(groups[x.k], x)
	}
	var out []row
	for _, k := range order {
		x := row{id: number(int64(len(groups[k]))), k: k, g: null, n: null}
		for _, y := range groups[k] {
			if !y.g.null && (x.g.null || y.g.s > x.g.s) {
				x.g = y.g
			}
			if !y.n.null {
				x.n = plus(coalesce(x.n, number(0)), y.n)
			}
		}
		out = append(out, x)
	}
	return out
}

const groupedColumns = "count(*) AS id, k, max(g) AS g, CAST(sum(n) AS BIGINT) AS n"

func distinct(in []row) []row {
	out := slices.Clone(in)
	slices.SortFunc(out, func(a, b row) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}
