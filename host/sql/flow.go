package sql

import (
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// flow reads CREATE FLOW name [COMMENT 'text'] AS … after FLOW.
func (p *parser) flow(st *Statement) error {
	st.Flow = &FlowDef{}
	at := p.here()
	if err := p.ifNotExists(); err != nil {
		return err
	}
	name, err := p.name()
	if err != nil {
		return err
	}
	if strings.Contains(name, ".") {
		return syntaxError(at, "the name of a flow, %s, has more than one part", name).WithHint("Its target says where it writes")
	}
	st.Name, st.Flow.Name = name, name
	if p.accept("COMMENT") {
		if st.Flow.Comment, err = p.stringValue("the comment"); err != nil {
			return err
		}
		st.Comment = st.Flow.Comment
	}
	if err := p.expect("AS"); err != nil {
		return err
	}
	at = p.here()
	switch {
	case p.accept("INSERT"):
		return p.insertInto(st)
	case p.is("APPLY", "CHANGES"):
		p.deprecated(at, "APPLY CHANGES", "Write AUTO CDC")
		p.pos += 2
		return p.autoCDCInto(st)
	case p.accept("AUTO", "CDC"):
		return p.autoCDCInto(st)
	case p.is("SELECT"), p.is("WITH"):
		return p.unexpected("INSERT INTO or AUTO CDC INTO")
	case p.is("MERGE"):
		return foreignStatement("MERGE", "Write AUTO CDC INTO", at)
	}
	return p.unexpected("INSERT INTO or AUTO CDC INTO")
}

// insertInto reads [ONCE] INTO [ONCE] target BY NAME query after INSERT.
func (p *parser) insertInto(st *Statement) error {
	st.Kind = Flow
	if err := p.into(st.Flow); err != nil {
		return err
	}
	at := p.here()
	if p.is("SELECT") || p.is("WITH") || p.is("(") || p.is("REPLACE") {
		return fault.New("NOT_SUPPORTED", "a flow inserts by the names of its columns, not by their places").
			WithHint("Write INSERT INTO %s BY NAME SELECT …", st.Flow.Target).At(at)
	}
	if err := p.expect("BY", "NAME"); err != nil {
		return err
	}
	st.Flow.ByName = true
	return p.query(st)
}

// into reads [ONCE] INTO [ONCE] target.
func (p *parser) into(f *FlowDef) (err error) {
	f.Once = p.accept("ONCE")
	if err := p.expect("INTO"); err != nil {
		return err
	}
	if err := p.onceAgain(f); err != nil {
		return err
	}
	f.Target, err = p.tableName()
	return err
}

// onceAgain reads ONCE where it stands after INTO: both places are in use.
func (p *parser) onceAgain(f *FlowDef) error {
	if f.Once && p.is("ONCE") {
		return syntaxError(p.here(), "ONCE is given twice")
	}
	f.Once = f.Once || p.accept("ONCE")
	return nil
}

// tableFlow reads the FLOW of a streaming table, which is a statement of its own.
func (p *parser) tableFlow(table *Statement) ([]Statement, error) {
	at := p.here()
	p.pos++
	st := Statement{Flow: &FlowDef{Target: table.Name}, Name: table.Name, File: table.File, Line: int(at.Line)}
	switch {
	case p.accept("AUTO", "CDC"):
		if err := p.onceAgain(st.Flow); err != nil {
			return nil, err
		}
		err := p.autoCDC(&st)
		return []Statement{st}, err
	case p.accept("INSERT"):
		st.Kind = Flow
		st.Flow.Once = p.accept("ONCE")
		if err := p.expect("BY", "NAME"); err != nil {
			return nil, err
		}
		st.Flow.ByName = true
		err := p.query(&st)
		return []Statement{st}, err
	case p.is("REPLACE", "WHERE"):
		return nil, p.notSupported(p.here(), "FLOW REPLACE WHERE", "Compute the rows in a materialized view")
	}
	return nil, p.unexpected("AUTO CDC or INSERT BY NAME")
}
