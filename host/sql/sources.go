package sql

import (
	"maps"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// sources finds the relations the query reads and fills in st.Query: STREAM is
// taken out, what is no table becomes a name, everything else stays as written.
func (p *parser) sources(st *Statement) error {
	first := p.toks[p.pos].start
	p.src, p.origin = p.src[first:p.toks[len(p.toks)-1].end], p.origin.within(first)
	p.toks = p.toks[p.pos:]
	for i := range p.toks {
		p.toks[i].start -= first
		p.toks[i].end -= first
	}
	p.pos = 0
	st.QueryLine = int(p.origin.where(0).Line)

	e := newEdit(p.src)
	streams := map[string]int{} // times a table is read with STREAM
	var clause clauseStack
	for !p.done() {
		if err := p.laterClause(); err != nil {
			return err
		}
		if !clause.from() {
			clause.next(p)
			p.pos++
			continue
		}
		start := p.toks[p.pos].start
		ref, text, err := p.relation(len(st.Sources))
		if err != nil {
			return err
		}
		if ref == nil {
			if text == "" {
				clause.next(p)
				p.pos++
				continue
			}
		} else {
			if ref.Stream && ref.Table != "" {
				streams[ref.Alias]++
			}
			if err := addSource(st, *ref, p.origin.where(start)); err != nil {
				return err
			}
		}
		e.replace(start, p.toks[p.pos-1].end, text)
		clause.prev = "relation"
	}
	st.Query, st.origin = e.finish(p.origin)
	return p.batchSources(st, streams)
}

// batchSources adds the relations that are read without STREAM.
func (p *parser) batchSources(st *Statement, streams map[string]int) error {
	refs, err := relations(Query{Text: st.Query, origin: st.origin})
	if err != nil {
		return err
	}
	var streaming []string
	for _, s := range st.Sources {
		if s.Stream {
			streaming = append(streaming, s.Alias)
		}
	}
	if len(streaming) > 1 {
		return fault.New("NOT_SUPPORTED", "%s reads %d streams in one query", st.Name, len(streaming)).
			WithHint("Give each stream a flow of its own with CREATE FLOW … AS INSERT INTO; joins of two streams come later").
			At(fault.Where{File: st.File, Line: int64(st.QueryLine)})
	}
	for _, r := range refs {
		n, isStream := streams[r.name]
		if isStream && n != r.uses {
			return fault.New("NOT_SUPPORTED", "%s is read with STREAM and without it in one query", r.name).At(r.at)
		}
		if isStream || isNumbered(r.name) {
			continue
		}
		ref := SourceRef{Alias: r.name, Table: p.file.complete(r.name), Written: r.name, Line: int(r.at.Line), Column: int(r.at.Column)}
		if err := addSource(st, ref, r.at); err != nil {
			return err
		}
	}
	return nil
}

func addSource(st *Statement, ref SourceRef, at fault.Where) error {
	for _, s := range st.Sources {
		if s.Alias == ref.Alias {
			if !maps.Equal(s.Options, ref.Options) {
				return fault.New("NOT_SUPPORTED", "%s is read twice with different options", ref.Alias).WithHint("Give both the same").At(at)
			}
			return nil
		}
	}
	st.Sources = append(st.Sources, ref)
	return nil
}

// laterClause refuses what needs the time of events, and PIVOT, by name:
// DuckDB's parser would call them syntax errors, or no query.
func (p *parser) laterClause() error {
	if p.toks[p.pos].kind != word {
		return nil
	}
	switch {
	case p.is("WATERMARK") && p.watermark():
		return p.notSupported(p.here(), "WATERMARK", "Leave it out; what needs one, aggregates and joins of streams, belongs into a materialized view")
	case p.is("WINDOW", "("), p.is("SESSION_WINDOW", "("):
		return p.notSupported(p.here(), strings.ToLower(p.peek(0))+"(…)", "Group by date_trunc('hour', …) in a materialized view")
	case p.is("PIVOT", "("), p.is("PIVOT") && strings.EqualFold(p.peek(2), "ON"):
		return fault.New("NOT_SUPPORTED", "PIVOT: its columns depend on the data").
			WithHint("Write one column for each value, such as sum(x) FILTER (WHERE kind = 'a') AS a").At(p.here())
	}
	return nil
}

// watermark reports whether the word at hand begins WATERMARK … DELAY OF ….
func (p *parser) watermark() bool {
	for i := 1; i < 20; i++ {
		if strings.EqualFold(p.peek(i), "DELAY") && strings.EqualFold(p.peek(i+1), "OF") {
			return true
		}
	}
	return false
}

// clauseStack knows, per parenthesis, whether a FROM clause is being read.
type clauseStack struct {
	in   []bool // the last is the current parenthesis
	call []bool // likewise: the parenthesis is that of extract(… FROM …) or its like
	prev string
}

// from reports whether a relation may start at the next token.
func (c *clauseStack) from() bool {
	if len(c.in) == 0 || !c.in[len(c.in)-1] {
		return false
	}
	switch c.prev {
	case "from", "join", ",", "(", "lateral":
		return true
	}
	return false
}

// next takes note of the token that is about to be passed over.
func (c *clauseStack) next(p *parser) {
	if len(c.in) == 0 {
		c.in, c.call = []bool{false}, []bool{false}
	}
	top := len(c.in) - 1
	w := strings.ToLower(p.peek(0))
	switch {
	case w == "(":
		// A parenthesis right in a FROM may hold relations: FROM (a JOIN b).
		c.in = append(c.in, c.in[top] && c.from())
		c.call = append(c.call, fromInside(c.prev))
	case w == ")":
		if top > 0 {
			c.in, c.call = c.in[:top], c.call[:top]
		}
	case w == "from" && c.prev != "distinct" && !c.call[top]:
		c.in[top] = true
	case w == "select", endsFrom(w):
		c.in[top] = false
	}
	c.prev = w
}

// fromInside reports functions whose arguments are parted by FROM.
func fromInside(w string) bool {
	switch w {
	case "extract", "substring", "substr", "trim", "overlay":
		return true
	}
	return false
}

func endsFrom(w string) bool {
	switch w {
	case "where", "group", "having", "qualify", "window", "order", "limit", "union", "intersect", "except":
		return true
	}
	return false
}

// endsRelation reports words that cannot name the relation after STREAM: there
// stream itself is the name.
func endsRelation(w string) bool {
	w = strings.ToLower(w)
	switch w {
	case "as", "on", "using", "join", "inner", "left", "right", "full", "cross", "semi", "anti", "asof",
		"positional", "natural", "lateral", "unpivot", "pivot", "tablesample", "select":
		return true
	}
	return endsFrom(w)
}
