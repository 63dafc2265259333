package sql

import (
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// sources finds the relations the query reads and fills in st.Query: STREAM is
// taken out, read_files(…) becomes a name, everything else stays as written.
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
	files := 0
	var clause clauseStack
	for !p.done() {
		from := clause.from()
		start := p.toks[p.pos].start
		at := p.here()
		switch {
		case from && p.streamKeyword():
			p.pos++
			ref, text, err := p.streamed(at, filesAlias(files))
			if err != nil {
				return err
			}
			if ref.Files != nil {
				files++
			} else {
				streams[ref.Table]++
			}
			e.replace(start, p.toks[p.pos-1].end, text)
			addSource(st, *ref)
			clause.prev = "relation"
		case from && p.is("read_files", "("):
			ref, err := p.readFiles(filesAlias(files))
			if err != nil {
				return err
			}
			files++
			e.replace(start, p.toks[p.pos-1].end, ref.Alias)
			addSource(st, *ref)
			clause.prev = "relation"
		default:
			clause.next(p)
			p.pos++
		}
	}
	st.Query, st.origin = e.finish(p.origin)
	return batchSources(st, streams)
}

// batchSources adds the relations that are read without STREAM.
func batchSources(st *Statement, streams map[string]int) error {
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
			WithHint("Give each stream a table of its own; joins of two streams come later").
			At(fault.Where{File: st.File, Line: int64(st.QueryLine)})
	}
	for _, r := range refs {
		n, isStream := streams[r.name]
		if isStream && n != r.uses {
			return fault.New("NOT_SUPPORTED", "%s is read with STREAM and without it in one query", r.name).At(r.at)
		}
		if !isStream && !strings.HasPrefix(r.name, filesPrefix) {
			addSource(st, SourceRef{Alias: r.name, Table: r.name, Written: r.name, Line: int(r.at.Line), Column: int(r.at.Column)})
		}
	}
	return nil
}

func addSource(st *Statement, ref SourceRef) {
	for _, s := range st.Sources {
		if s.Alias == ref.Alias {
			return
		}
	}
	st.Sources = append(st.Sources, ref)
}

// streamKeyword reports whether the next word is STREAM before a relation.
func (p *parser) streamKeyword() bool {
	if !p.is("STREAM") || p.toks[p.pos].kind != word || p.pos+1 >= len(p.toks) {
		return false
	}
	next := p.toks[p.pos+1]
	return p.peek(1) == "(" || next.kind == quoted || next.kind == word && !endsRelation(p.peek(1))
}

// streamed reads what follows STREAM and gives the text that stands for it.
func (p *parser) streamed(at fault.Where, alias string) (*SourceRef, string, error) {
	if p.is("read_files", "(") {
		ref, err := p.readFiles(alias)
		if err != nil {
			return nil, "", err
		}
		ref.Stream = true
		return ref, ref.Alias, nil
	}
	open := p.accept("(")
	if open {
		switch {
		case p.is("read_files", "("):
			return nil, "", syntaxError(at, "read_files stands in parentheses after STREAM").WithHint("Write STREAM read_files(…), without them")
		case p.is("SELECT"), p.is("WITH"), p.is("("):
			return nil, "", syntaxError(at, "STREAM takes the name of a table, not a query").WithHint("Put the query into a temporary view and read that")
		}
	}
	if p.pos+1 < len(p.toks) && p.peek(1) == "(" {
		return nil, "", fault.New("NOT_SUPPORTED", "STREAM %s(…) is no source that is known", p.peek(0)).
			WithHint("Read files with STREAM read_files(…), a table with STREAM(name)").At(at)
	}
	start := p.pos
	name, err := p.name()
	if err != nil {
		return nil, "", err
	}
	text := p.src[p.toks[start].start:p.toks[p.pos-1].end]
	if open {
		if err := p.expect(")"); err != nil {
			return nil, "", err
		}
	}
	return &SourceRef{Alias: name, Stream: true, Table: name, Written: name, Line: int(at.Line), Column: int(at.Column)}, text, nil
}

// readFiles reads read_files('path', option => value, …).
func (p *parser) readFiles(alias string) (*SourceRef, error) {
	at := p.here()
	p.pos += 2
	files := &FilesRef{Options: map[string]string{}}
	var err error
	if files.Path, err = p.stringValue("the path as a text in quotes"); err != nil {
		return nil, err
	}
	for p.accept(",") {
		place := p.here()
		name, err := p.propertyKey()
		if err != nil {
			return nil, err
		}
		if err := p.expect("=>"); err != nil {
			return nil, err
		}
		value, err := p.scalar("the value of " + name + " (a text, number or boolean)")
		if err != nil {
			return nil, err
		}
		for known := range files.Options {
			if strings.EqualFold(known, name) {
				return nil, syntaxError(place, "the option %s of read_files is given twice", name)
			}
		}
		files.Options[name] = value
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	return &SourceRef{Alias: alias, Files: files, Line: int(at.Line), Column: int(at.Column)}, nil
}

// clauseStack knows, per parenthesis, whether a FROM clause is being read.
type clauseStack struct {
	in   []bool // the last is the current parenthesis
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
		c.in = []bool{false}
	}
	top := len(c.in) - 1
	w := strings.ToLower(p.peek(0))
	switch {
	case w == "(":
		// A parenthesis right in a FROM may hold relations: FROM (a JOIN b).
		c.in = append(c.in, c.in[top] && c.from())
	case w == ")":
		if top > 0 {
			c.in = c.in[:top]
		}
	case w == "from" && c.prev != "distinct":
		c.in[top] = true
	case w == "select", endsFrom(w):
		c.in[top] = false
	}
	c.prev = w
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
