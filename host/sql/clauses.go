package sql

import (
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// clauses reads what stands between the column list and AS, in any order.
func (p *parser) clauses(st *Statement) error {
	seen := map[string]bool{}
	once := func(clause string) error {
		if seen[clause] {
			return syntaxError(p.here(), "%s is given twice", clause)
		}
		seen[clause] = true
		return nil
	}
	for !p.done() && !p.is("AS") {
		at := p.here()
		var err error
		switch {
		case p.accept("COMMENT"):
			if err = once("COMMENT"); err == nil {
				st.Comment, err = p.stringValue("the comment")
			}
		case p.accept("PARTITIONED", "BY"):
			if err = once("PARTITIONED BY"); err == nil {
				st.PartitionBy, err = p.columnNames()
			}
		case p.accept("CLUSTER", "BY"):
			if err = once("CLUSTER BY"); err == nil {
				err = p.clusterBy(st)
			}
		case p.accept("TBLPROPERTIES"):
			if err = once("TBLPROPERTIES"); err == nil {
				st.Properties, err = p.properties()
			}
		case p.accept("USING", "DELTA"):
			err = once("USING")
		case p.is("FLOW"):
			err = p.notSupported(at, "FLOW "+strings.ToUpper(p.peek(1)), "Give the table a query with AS SELECT")
		case p.is("USING"):
			err = p.notSupported(at, "USING "+strings.ToUpper(p.peek(1)), "Streaming tables are Delta tables")
		case p.is("WITH", "ROW", "FILTER"), p.is("SCHEDULE"), p.is("TRIGGER"), p.is("REFRESH"), p.is("LOCATION"), p.is("DEFAULT", "COLLATION"), p.is("OPTIONS"):
			err = p.notSupported(at, strings.ToUpper(p.peek(0))+" on a streaming table", "Leave the clause out")
		default:
			err = p.unexpected("AS SELECT, or one of COMMENT, PARTITIONED BY, CLUSTER BY, TBLPROPERTIES,")
		}
		if err != nil {
			return err
		}
	}
	if len(st.PartitionBy) > 0 && len(st.ClusterBy) > 0 {
		return fault.New("SPECIFY_CLUSTER_BY_WITH_PARTITIONED_BY_IS_NOT_ALLOWED", "%s has both PARTITIONED BY and CLUSTER BY", st.Name).
			WithHint("Keep one of them").At(fault.Where{File: st.File, Line: int64(st.Line)})
	}
	return nil
}

func (p *parser) columnNames() ([]string, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var names []string
	for {
		name, err := p.identifier("a column name")
		if err != nil {
			return nil, err
		}
		for p.accept(".") {
			field, err := p.identifier("a field name")
			if err != nil {
				return nil, err
			}
			name += "." + field
		}
		names = append(names, name)
		if p.accept(")") {
			return names, nil
		}
		if !p.accept(",") {
			return nil, p.unexpected(", or )")
		}
	}
}

func (p *parser) clusterBy(st *Statement) error {
	if p.accept("NONE") {
		return nil
	}
	if p.accept("AUTO") {
		st.ClusterBy = []string{"AUTO"}
		return nil
	}
	names, err := p.columnNames()
	if err != nil {
		return err
	}
	if len(names) > 4 {
		return fault.New("DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS", "CLUSTER BY takes at most 4 columns, not %d", len(names)).At(p.here())
	}
	st.ClusterBy = names
	return nil
}

func (p *parser) properties() (map[string]string, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for {
		at := p.here()
		key, err := p.propertyKey()
		if err != nil {
			return nil, err
		}
		if !p.accept("=") {
			p.accept("==")
		}
		value, err := p.scalar("the value of " + key)
		if err != nil {
			return nil, err
		}
		if _, twice := out[key]; twice {
			return nil, syntaxError(at, "the property %s is given twice", key)
		}
		out[key] = value
		if p.accept(")") {
			return out, nil
		}
		if !p.accept(",") {
			return nil, p.unexpected(", or )")
		}
	}
}

func (p *parser) propertyKey() (string, error) {
	if s := p.peek(0); s != "" && (s[0] == '\'' || s[0] == '"') {
		return p.stringValue("the name of a property")
	}
	key, err := p.identifier("the name of a property")
	for err == nil && p.accept(".") {
		var part string
		part, err = p.identifier("the name of a property")
		key += "." + part
	}
	return key, err
}

// scalar reads a string, number or boolean as its text.
func (p *parser) scalar(what string) (string, error) {
	sign := ""
	if p.is("-") && p.pos+1 < len(p.toks) && p.toks[p.pos+1].kind == number {
		p.pos++
		sign = "-"
	}
	if !p.done() {
		t := p.toks[p.pos]
		switch s := p.text(t); {
		case t.kind == number:
			p.pos++
			return sign + s, nil
		case strings.EqualFold(s, "true"), strings.EqualFold(s, "false"):
			p.pos++
			return strings.ToLower(s), nil
		}
	}
	return p.stringValue(what)
}
