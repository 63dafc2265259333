package sql

import (
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// autoCDCInto reads [ONCE] INTO [ONCE] target and what follows.
func (p *parser) autoCDCInto(st *Statement) error {
	if st.Flow == nil {
		st.Flow = &FlowDef{}
	}
	if err := p.into(st.Flow); err != nil {
		return err
	}
	if st.Name == "" {
		st.Name = st.Flow.Target
	}
	return p.autoCDC(st)
}

// cdcClauses are the clauses after FROM, in the order Lakeflow's parser wants.
var cdcClauses = []string{
	"KEYS", "IGNORE NULL UPDATES", "APPLY AS DELETE WHEN", "APPLY AS TRUNCATE WHEN", "SEQUENCE BY",
	"SYSTEM SEQUENCE BY", "COLUMNS TO UPDATE", "COLUMNS", "STORED AS", "TRACK HISTORY ON",
}

// clause gives the number of the clause that the next words begin, or -1.
func (p *parser) clause() int {
	for i, c := range cdcClauses {
		if p.is(strings.Fields(c)...) {
			return i
		}
	}
	return -1
}

// autoCDC reads FROM STREAM(source) KEYS (…) … to the end of the statement.
func (p *parser) autoCDC(st *Statement) error {
	st.Kind = AutoCDCFlow
	st.CDC = &AutoCDC{SCDType: 1}
	if err := p.expect("FROM"); err != nil {
		return err
	}
	if err := p.cdcSource(st); err != nil {
		return err
	}
	last := -1
	for !p.done() {
		at := p.here()
		n := p.clause()
		switch {
		case n < 0:
			return p.unexpected("one of " + strings.Join(cdcClauses, ", "))
		case n == last:
			return syntaxError(at, "%s is given twice", cdcClauses[n])
		case n < last:
			return syntaxError(at, "%s stands after %s", cdcClauses[n], cdcClauses[last]).
				WithHint("The order is KEYS, IGNORE NULL UPDATES, APPLY AS DELETE WHEN, APPLY AS TRUNCATE WHEN, SEQUENCE BY, COLUMNS, STORED AS, TRACK HISTORY ON")
		}
		last = n
		p.pos += len(strings.Fields(cdcClauses[n]))
		if err := p.cdcClause(st.CDC, cdcClauses[n], at); err != nil {
			return err
		}
	}
	return p.checkCDC(st)
}

func (p *parser) cdcClause(c *AutoCDC, clause string, at fault.Where) error {
	var err error
	switch clause {
	case "KEYS":
		c.Keys, err = p.columnNames()
	case "IGNORE NULL UPDATES":
		c.IgnoreNullUpdates = true
		if p.accept("ON") {
			c.IgnoreNullOn, c.IgnoreNullExcept, err = p.columnChoice()
		}
	case "APPLY AS DELETE WHEN":
		c.DeleteWhen, err = p.cdcExpression("the condition of APPLY AS DELETE WHEN")
	case "APPLY AS TRUNCATE WHEN":
		c.TruncateWhen, err = p.cdcExpression("the condition of APPLY AS TRUNCATE WHEN")
	case "SEQUENCE BY":
		c.SequenceBy, err = p.cdcExpression("a column, or STRUCT(column, …)")
	case "COLUMNS":
		c.Columns, c.Except, err = p.columnChoice()
	case "STORED AS":
		c.SCDType, err = p.scdType()
	case "TRACK HISTORY ON":
		c.TrackHistory, c.TrackExcept, err = p.columnChoice()
	default: // SYSTEM SEQUENCE BY, COLUMNS TO UPDATE
		err = p.notSupported(at, clause, "Leave the clause out")
	}
	return err
}

// cdcSource reads STREAM(name) or STREAM name; a flow that runs once reads a
// name alone.
func (p *parser) cdcSource(st *Statement) error {
	at := p.here()
	hint := "Put the query into a temporary view and read that: FROM STREAM(view)"
	stream := p.accept("STREAM")
	open := p.accept("(")
	switch {
	case p.is("SELECT"), p.is("WITH"), open && p.is("("):
		return syntaxError(at, "AUTO CDC reads from the name of a table or view, not from a query").WithHint("%s", hint)
	case p.pos+1 < len(p.toks) && p.peek(1) == "(":
		return syntaxError(at, "AUTO CDC reads from the name of a table or view, not from the function %s", p.peek(0)).WithHint("%s", hint)
	}
	written, err := p.name()
	if err != nil {
		return err
	}
	if open {
		if err := p.expect(")"); err != nil {
			return err
		}
	}
	src := SourceRef{Alias: written, Stream: stream, Written: written, Table: p.file.complete(written), Line: int(at.Line), Column: int(at.Column)}
	if stream && p.is("WITH", "(") {
		if src.Options, err = p.streamOptions(); err != nil {
			return err
		}
	}
	switch once := st.Flow.Once; {
	case !stream && !once:
		return fault.New("INVALID_FLOW_QUERY_TYPE", "AUTO CDC reads its changes as a stream").WithHint("Write FROM STREAM(%s)", written).At(at)
	case stream && once:
		return fault.New("INVALID_FLOW_QUERY_TYPE", "a flow that runs once takes a batch source").WithHint("Write FROM %s, or leave out ONCE", written).At(at)
	}
	st.CDC.Source = src
	st.Sources = []SourceRef{src}
	return nil
}

// cdcExpression reads an expression up to the next clause.
func (p *parser) cdcExpression(what string) (Expression, error) {
	first, depth := p.pos, 0
	for !p.done() && (depth > 0 || p.clause() < 0) {
		switch p.peek(0) {
		case "(":
			depth++
		case ")":
			depth--
		}
		p.pos++
	}
	if first == p.pos {
		return Expression{}, p.unexpected(what)
	}
	return p.expressionText(token{start: p.toks[first].start, end: p.toks[p.pos-1].end}, what)
}

// columnChoice reads a list of columns, in parentheses or not, or * EXCEPT (…).
func (p *parser) columnChoice() (columns, except []string, err error) {
	if p.accept("*") {
		if err := p.expect("EXCEPT"); err != nil {
			return nil, nil, err
		}
		except, err = p.columnNames()
		return nil, except, err
	}
	if p.is("(") {
		columns, err = p.columnNames()
		return columns, nil, err
	}
	for {
		name, err := p.columnPath()
		if err != nil {
			return nil, nil, err
		}
		columns = append(columns, name)
		if !p.accept(",") {
			return columns, nil, nil
		}
	}
}

func (p *parser) scdType() (int, error) {
	if p.is("BITEMPORAL") {
		return 0, p.notSupported(p.here(), "STORED AS BITEMPORAL", "Use SCD TYPE 2")
	}
	if err := p.expect("SCD", "TYPE"); err != nil {
		return 0, err
	}
	switch s := strings.Trim(p.peek(0), `'"`); s {
	case "1", "2":
		p.pos++
		return int(s[0] - '0'), nil
	}
	return 0, p.unexpected("1 or 2")
}

// checkCDC holds the rules between the clauses.
func (p *parser) checkCDC(st *Statement) error {
	c := st.CDC
	at := fault.Where{File: st.File, Line: int64(st.Line)}
	switch {
	case len(c.Keys) == 0:
		return syntaxError(at, "AUTO CDC INTO %s has no KEYS", st.Flow.Target).WithHint("Write KEYS (column, …): what makes a row the same row")
	case c.SCDType == 2 && c.TruncateWhen.Text != "":
		return syntaxError(c.TruncateWhen.where(st.File), "APPLY AS TRUNCATE WHEN goes with SCD TYPE 1 only").
			WithHint("Leave it out, or store as SCD TYPE 1")
	case c.SCDType == 1 && (c.TrackHistory != nil || c.TrackExcept != nil):
		return syntaxError(at, "TRACK HISTORY ON goes with SCD TYPE 2 only").WithHint("Write STORED AS SCD TYPE 2")
	}
	for _, list := range [][]string{c.Keys, c.Columns, c.Except, c.TrackHistory, c.TrackExcept, c.IgnoreNullOn, c.IgnoreNullExcept} {
		seen := map[string]bool{}
		for _, name := range list {
			if seen[strings.ToLower(name)] {
				return syntaxError(at, "AUTO CDC INTO %s names column %s twice in one list", st.Flow.Target, name)
			}
			seen[strings.ToLower(name)] = true
		}
	}
	return p.keysStay(st, at)
}

// keysStay holds that the columns that are kept include the keys.
func (p *parser) keysStay(st *Statement, at fault.Where) error {
	c := st.CDC
	kept := func(key string) bool {
		for _, name := range c.Except {
			if strings.EqualFold(name, key) {
				return false
			}
		}
		for _, name := range c.Columns {
			if strings.EqualFold(name, key) {
				return true
			}
		}
		return c.Columns == nil
	}
	for _, key := range c.Keys {
		if !kept(key) {
			return fault.New("AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA", "COLUMNS leaves out the key %s", key).WithHint("Keep the keys").At(at)
		}
	}
	return nil
}

func (e Expression) where(file string) fault.Where {
	return fault.Where{File: file, Line: int64(e.Line), Column: int64(e.Column)}
}
