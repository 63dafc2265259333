package sql

import (
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// once refuses a clause that has been given before.
func (p *parser) once(seen map[string]bool, clause string) error {
	clause = strings.ToUpper(clause)
	if seen[clause] {
		return syntaxError(p.here(), "%s is given twice", clause)
	}
	seen[clause] = true
	return nil
}

// clauses reads what stands between the column list and the query, in any order.
func (p *parser) clauses(st *Statement) error {
	seen := map[string]bool{}
	for !p.done() && !p.is("AS") && (st.Kind != StreamingTable || !p.is("FLOW")) {
		if err := p.once(seen, p.peek(0)); err != nil {
			return err
		}
		if err := p.tableClause(st); err != nil {
			return err
		}
	}
	if len(st.PartitionBy) > 0 && len(st.ClusterBy) > 0 {
		return fault.New("SPECIFY_CLUSTER_BY_WITH_PARTITIONED_BY_IS_NOT_ALLOWED", "%s has both PARTITIONED BY and CLUSTER BY", st.Name).
			WithHint("Keep one of them").At(fault.Where{File: st.File, Line: int64(st.Line)})
	}
	return nil
}

func (p *parser) tableClause(st *Statement) error {
	at := p.here()
	var err error
	switch {
	case p.accept("COMMENT"):
		st.Comment, err = p.stringValue("the comment")
	case p.accept("PARTITIONED", "BY"):
		st.PartitionBy, err = p.columnNames()
	case p.accept("CLUSTER", "BY"):
		err = p.clusterBy(st)
	case p.accept("TBLPROPERTIES"):
		st.Properties, err = p.properties()
	case p.accept("USING", "DELTA"):
	case p.is("DEFAULT", "COLLATION"):
		err = p.collation()
	case p.is("REFRESH", "POLICY"):
		err = p.refreshPolicy(st)
	case p.is("USING"):
		err = fault.New("NOT_SUPPORTED", "USING %s: the tables of a pipeline are Delta tables", strings.ToUpper(p.peek(1))).
			WithHint("Write USING DELTA, or leave it out").At(at)
	case p.is("SCHEDULE"), p.is("REFRESH"), p.is("TRIGGER"):
		err = p.notSupported(at, strings.ToUpper(p.peek(0)+" "+p.peek(1)), "Leave it out and let a scheduler, such as cron, call weir run")
	case p.is("WITH", "ROW", "FILTER"), p.is("ROW", "FILTER"):
		err = p.notSupported(at, "ROW FILTER", "Leave it out and put the condition into the views that others read")
	case p.is("LOCATION"):
		err = fault.New("NOT_SUPPORTED", "LOCATION: a table lies where its name says, below the pipeline's storage").
			WithHint("Leave it out; the spec's storage says where").At(at)
	case p.is("OPTIONS"):
		err = fault.New("NOT_SUPPORTED", "OPTIONS: a table of a pipeline has TBLPROPERTIES").WithHint("Write TBLPROPERTIES ('key' = 'value')").At(at)
	case p.is("FLOW"):
		err = syntaxError(at, "a materialized view has a query and no flows").WithHint("Write AS SELECT …, or make a streaming table")
	default:
		err = p.unexpected("AS SELECT, or one of COMMENT, PARTITIONED BY, CLUSTER BY, TBLPROPERTIES,")
	}
	return err
}

// collation takes the one collation there is: bytes are compared.
func (p *parser) collation() error {
	at := p.here()
	p.pos += 2
	name, err := p.identifier("the name of a collation")
	if err != nil {
		return err
	}
	if !strings.EqualFold(name, "UTF8_BINARY") {
		return p.notSupported(at, "DEFAULT COLLATION "+name, "Leave it out, which means UTF8_BINARY, and compare lower(…) where case is to be ignored")
	}
	return nil
}

func (p *parser) refreshPolicy(st *Statement) error {
	at := p.here()
	p.pos += 2
	if st.Kind != MaterializedView {
		return syntaxError(at, "REFRESH POLICY goes with a materialized view only").WithHint("Leave it out: a streaming table reads what is new")
	}
	switch {
	case p.accept("AUTO"):
		st.RefreshPolicy = "AUTO"
	case p.accept("FULL"):
		st.RefreshPolicy = "FULL"
	case p.accept("INCREMENTAL", "STRICT"):
		return p.notSupported(at, "REFRESH POLICY INCREMENTAL STRICT", "Write AUTO: a view is computed anew when its sources have changed")
	case p.accept("INCREMENTAL"):
		st.RefreshPolicy = "INCREMENTAL"
	default:
		return p.unexpected("AUTO, INCREMENTAL or FULL")
	}
	return nil
}

func (p *parser) columnNames() ([]string, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var names []string
	for {
		name, err := p.columnPath()
		if err != nil {
			return nil, err
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

// columnPath reads a column or a field inside one.
func (p *parser) columnPath() (string, error) {
	name, err := p.identifier("a column name")
	for err == nil && p.accept(".") {
		var field string
		field, err = p.identifier("a field name")
		name += "." + field
	}
	return name, err
}

func (p *parser) clusterBy(st *Statement) error {
	if p.accept("NONE") {
		return nil
	}
	if p.accept("AUTO") || p.accept("(", "AUTO", ")") {
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
