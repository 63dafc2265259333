package sql

import (
	"strings"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/fault"
)

// columnList reads what stands in the parentheses after a table's name.
func (p *parser) columnList(st *Statement) error {
	columns, rules := map[string]bool{}, map[string]bool{}
	for {
		at := p.here()
		switch {
		case p.is("CONSTRAINT"):
			c, err := p.constraint()
			if err != nil {
				return err
			}
			if rules[strings.ToLower(c.Name)] {
				return fault.New("DUPLICATE_EXPECTATION", "expectation %s is declared twice", c.Name).
					WithHint("Names of expectations are unique within a dataset").At(at)
			}
			rules[strings.ToLower(c.Name)] = true
			st.Constraints = append(st.Constraints, *c)
		case p.is("PRIMARY", "KEY"), p.is("FOREIGN", "KEY"), p.is("CHECK", "("):
			return p.notSupported(at, strings.ToUpper(p.peek(0)+" "+strings.Trim(p.peek(1), "("))+" in a column list", "Leave it out, or use CONSTRAINT … EXPECT")
		default:
			c, err := p.column()
			if err != nil {
				return err
			}
			if columns[strings.ToLower(c.Name)] {
				return fault.New("COLUMN_ALREADY_EXISTS", "column %s is declared twice", c.Name).At(at)
			}
			columns[strings.ToLower(c.Name)] = true
			st.Columns = append(st.Columns, *c)
		}
		if p.accept(")") {
			return nil
		}
		if !p.accept(",") {
			return p.unexpected(", or )")
		}
	}
}

func (p *parser) column() (*Column, error) {
	at := p.here()
	name, err := p.identifier("a column name")
	if err != nil {
		return nil, err
	}
	c := &Column{Name: name, Line: int(at.Line)}
	if start := p.pos; p.skipType() {
		text := p.src[p.toks[start].start:p.toks[p.pos-1].end]
		if c.Type, err = coltype.Parse(text); err != nil {
			return nil, fault.Wrap(err, "UNSUPPORTED_DATATYPE", "column %s has no type that is known", name).At(p.origin.where(p.toks[start].start))
		}
	}
	for {
		switch {
		case p.accept("NOT", "NULL"):
			c.NotNull = true
		case p.accept("COMMENT"):
			if c.Comment, err = p.stringValue("the comment"); err != nil {
				return nil, err
			}
		case p.is("GENERATED"), p.is("MASK"), p.is("DEFAULT"), p.is("PRIMARY"), p.is("REFERENCES"), p.is("CONSTRAINT"), p.is("COLLATE"):
			return nil, p.notSupported(p.here(), strings.ToUpper(p.peek(0))+" on a column", "Leave it out")
		default:
			return c, nil
		}
	}
}

// skipType moves past a type such as MAP<STRING, DECIMAL(18,2)>.
func (p *parser) skipType() bool {
	if p.done() || p.toks[p.pos].kind != word || p.is("NOT") || p.is("COMMENT") ||
		p.is("GENERATED") || p.is("MASK") || p.is("DEFAULT") || p.is("PRIMARY") {
		return false
	}
	p.pos++
	depth := 0
	for !p.done() {
		switch p.peek(0) {
		case "(", "<":
			depth++
		case ")", ">":
			if depth == 0 {
				return true
			}
			depth--
		default:
			if depth == 0 {
				return true
			}
		}
		p.pos++
	}
	return true
}

func (p *parser) constraint() (*Constraint, error) {
	c := &Constraint{Line: int(p.here().Line), OnViolation: "warn"}
	p.accept("CONSTRAINT")
	var err error
	if c.Name, err = p.identifier("the name of the constraint"); err != nil {
		return nil, err
	}
	if p.is("PRIMARY") || p.is("FOREIGN") || p.is("CHECK") || p.is("UNIQUE") {
		return nil, p.notSupported(p.here(), strings.ToUpper(p.peek(0))+" constraint "+c.Name, "Leave it out, or use CONSTRAINT … EXPECT")
	}
	if err := p.expect("EXPECT"); err != nil {
		return nil, err
	}
	start := p.here()
	inside, err := p.parentheses()
	if err != nil {
		return nil, err
	}
	if inside.start == inside.end {
		return nil, syntaxError(start, "expectation %s has no condition", c.Name)
	}
	c.Condition, c.origin = p.text(inside), p.origin.within(inside.start)
	if p.accept("ON", "VIOLATION") {
		switch {
		case p.accept("DROP", "ROW"):
			c.OnViolation = "drop"
		case p.accept("FAIL", "UPDATE"):
			c.OnViolation = "fail"
		case p.accept("QUARANTINE"):
			c.OnViolation = "quarantine"
		default:
			return nil, p.unexpected("DROP ROW, FAIL UPDATE or QUARANTINE")
		}
	}
	if p.accept("NULL", "PASS") {
		c.NullPass = true
	} else if p.is("NULL") {
		if err := p.expect("NULL", "VIOLATE"); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// parentheses moves past ( … ) and gives what is inside.
func (p *parser) parentheses() (token, error) {
	if err := p.expect("("); err != nil {
		return token{}, err
	}
	first, depth := p.pos, 1
	for !p.done() {
		switch p.peek(0) {
		case "(":
			depth++
		case ")":
			depth--
		}
		p.pos++
		if depth == 0 {
			last := p.pos - 2
			if last < first {
				return token{}, nil
			}
			return token{start: p.toks[first].start, end: p.toks[last].end}, nil
		}
	}
	return token{}, p.unexpected(")")
}
