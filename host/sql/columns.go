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
			if err := p.constraint(st, rules); err != nil {
				return err
			}
		case p.is("PRIMARY", "KEY"), p.is("FOREIGN", "KEY"):
			if err := p.keyConstraint(st, "", ""); err != nil {
				return err
			}
		case p.is("CHECK", "("), p.is("UNIQUE", "("), p.is("LIKE"):
			return p.noConstraint(at, "")
		default:
			c, err := p.column(st, rules)
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
			return p.checkKeys(st)
		}
		if !p.accept(",") {
			return p.unexpected(", or )")
		}
	}
}

func (p *parser) column(st *Statement, rules map[string]bool) (*Column, error) {
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
	seen := map[string]bool{}
	for {
		if property := p.columnProperty(); property == "" {
			return c, nil
		} else if err := p.once(seen, property); err != nil {
			return nil, err
		}
		place := p.here()
		switch {
		case p.accept("NOT", "NULL"):
			c.NotNull = true
		case p.accept("COMMENT"):
			c.Comment, err = p.stringValue("the comment")
		case p.is("GENERATED"):
			err = p.generated(c)
		case p.is("DEFAULT"):
			err = fault.New("NOT_SUPPORTED", "DEFAULT: the query gives every column of a pipeline's table").
				WithHint("Write coalesce(…, …) AS %s in the query", name).At(place)
		case p.is("MASK"):
			err = p.notSupported(place, "MASK on column "+name, "Leave it out and leave the column out of the views that others read")
		case p.is("COLLATE"):
			err = p.notSupported(place, "COLLATE on column "+name, "Leave it out, and compare lower(…) where case is to be ignored")
		default:
			err = p.columnKey(st, rules, name)
		}
		if err != nil {
			return nil, err
		}
	}
}

// columnProperty names what is next said of a column, or gives "".
func (p *parser) columnProperty() string {
	if p.is("NOT", "NULL") {
		return "NOT NULL"
	}
	if p.is("REFERENCES") || p.is("FOREIGN", "KEY") {
		return "FOREIGN KEY"
	}
	for _, w := range []string{"COMMENT", "GENERATED", "DEFAULT", "MASK", "COLLATE", "PRIMARY", "CONSTRAINT"} {
		if p.is(w) {
			return w
		}
	}
	return ""
}

// columnKey reads a key that stands on its column.
func (p *parser) columnKey(st *Statement, rules map[string]bool, column string) error {
	name := ""
	if at := p.here(); p.accept("CONSTRAINT") {
		var err error
		if name, err = p.constraintName(st, rules, at); err != nil {
			return err
		}
		if !p.is("PRIMARY") && !p.is("FOREIGN") && !p.is("REFERENCES") {
			return p.noConstraint(at, name)
		}
	}
	return p.keyConstraint(st, name, column)
}

// generated reads GENERATED ALWAYS AS (expression).
func (p *parser) generated(c *Column) error {
	at := p.here()
	p.pos++
	if p.is("BY", "DEFAULT") || p.is("ALWAYS", "AS", "IDENTITY") {
		return fault.New("NOT_SUPPORTED", "an identity column").
			WithHint("Make a key out of the row's own columns, such as sha2(concat_ws('|', …), 256)").At(at)
	}
	if err := p.expect("ALWAYS", "AS"); err != nil {
		return err
	}
	inside, err := p.parentheses()
	if err != nil {
		return err
	}
	if c.Type == nil {
		return syntaxError(at, "the generated column %s has no type", c.Name).WithHint("Write %s TYPE GENERATED ALWAYS AS (…)", c.Name)
	}
	e, err := p.expressionText(inside, "an expression")
	c.Generated = e.Text
	return err
}

// skipType moves past a type such as MAP<STRING, DECIMAL(18,2)>.
func (p *parser) skipType() bool {
	if p.done() || p.toks[p.pos].kind != word || p.columnProperty() != "" {
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

// constraint reads CONSTRAINT name EXPECT (…) … or a key with a name.
func (p *parser) constraint(st *Statement, rules map[string]bool) error {
	at := p.here()
	p.pos++
	name, err := p.constraintName(st, rules, at)
	switch {
	case err != nil:
		return err
	case p.is("PRIMARY"), p.is("FOREIGN"):
		return p.keyConstraint(st, name, "")
	case !p.is("EXPECT"):
		return p.noConstraint(at, name)
	}
	p.pos++
	c := Constraint{Name: name, Line: int(at.Line), OnViolation: "warn"}
	start := p.here()
	inside, err := p.parentheses()
	if err != nil {
		return err
	}
	if inside.start == inside.end {
		return syntaxError(start, "expectation %s has no condition", c.Name)
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
			return p.unexpected("DROP ROW, FAIL UPDATE or QUARANTINE")
		}
	}
	if p.accept("NULL", "PASS") {
		c.NullPass = true
	} else if p.is("NULL") {
		if err := p.expect("NULL", "VIOLATE"); err != nil {
			return err
		}
	}
	st.Constraints = append(st.Constraints, c)
	return nil
}

// constraintName reads a name that no other constraint of the dataset has.
func (p *parser) constraintName(st *Statement, rules map[string]bool, at fault.Where) (string, error) {
	name, err := p.identifier("the name of the constraint")
	if err != nil {
		return "", err
	}
	if rules[strings.ToLower(name)] {
		return "", fault.New("DUPLICATE_EXPECTATION", "constraint %s is declared twice", name).
			WithHint("Names of constraints are unique within a dataset").At(at)
	}
	rules[strings.ToLower(name)] = true
	return name, nil
}

// noConstraint refuses what other databases put into a column list.
func (p *parser) noConstraint(at fault.Where, name string) error {
	if p.is("CHECK") || p.is("UNIQUE") || p.is("LIKE") {
		what := strings.ToUpper(p.peek(0))
		if name != "" {
			what += " constraint " + name
		}
		return p.notSupported(at, what, "Write CONSTRAINT … EXPECT (condition) ON VIOLATION FAIL UPDATE")
	}
	return p.unexpected("EXPECT, PRIMARY KEY or FOREIGN KEY")
}
