package sql

import (
	"strconv"
	"strings"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/fault"
)

// ParsePipeline reads the statements of a pipeline file. conf fills ${key}.
//
// A statement is
//
//	CREATE [OR REFRESH] [PRIVATE] STREAMING TABLE [IF NOT EXISTS] name
//	  [( column type [NOT NULL] [COMMENT 'text'], …,
//	     CONSTRAINT name EXPECT (condition)
//	       [ON VIOLATION DROP ROW | FAIL UPDATE | QUARANTINE] [NULL PASS | NULL VIOLATE], … )]
//	  [COMMENT 'text'] [PARTITIONED BY (column, …)] [CLUSTER BY (column, …) | AUTO | NONE]
//	  [TBLPROPERTIES ('key' = 'value', …)] [USING DELTA]
//	  AS SELECT …
//
// or CREATE [OR REFRESH | OR REPLACE] TEMPORARY VIEW name AS SELECT …. The
// order of the clauses is free. Other statements of the language are refused
// with [NOT_SUPPORTED] and their line.
func ParsePipeline(file, text string, conf map[string]string) ([]Statement, error) {
	o := newOrigin(file, text, 1)
	text, o, err := substitute(text, conf, o)
	if err != nil {
		return nil, err
	}
	toks, err := lex(text)
	if err != nil {
		return nil, placed(err, o)
	}
	var out []Statement
	for len(toks) > 0 {
		n := 0
		for n < len(toks) && text[toks[n].start:toks[n].end] != ";" {
			n++
		}
		if n > 0 {
			p := &parser{src: text, toks: toks[:n], origin: o}
			st, err := p.statement()
			if err != nil {
				return nil, err
			}
			out = append(out, *st)
		}
		toks = toks[min(n+1, len(toks)):]
	}
	return out, nil
}

// parser reads one statement.
type parser struct {
	src    string
	toks   []token
	pos    int
	origin *origin
}

func (p *parser) text(t token) string { return p.src[t.start:t.end] }

func (p *parser) done() bool { return p.pos >= len(p.toks) }

// peek gives the text of the token n ahead, or "".
func (p *parser) peek(n int) string {
	if p.pos+n >= len(p.toks) {
		return ""
	}
	return p.text(p.toks[p.pos+n])
}

// is reports whether the next tokens are these keywords or symbols.
func (p *parser) is(words ...string) bool {
	for i, w := range words {
		if !strings.EqualFold(p.peek(i), w) {
			return false
		}
	}
	return true
}

// accept takes the next tokens when they are these keywords or symbols.
func (p *parser) accept(words ...string) bool {
	if !p.is(words...) {
		return false
	}
	p.pos += len(words)
	return true
}

func (p *parser) expect(words ...string) error {
	if p.accept(words...) {
		return nil
	}
	return p.unexpected(strings.Join(words, " "))
}

func (p *parser) unexpected(want string) error {
	if p.done() {
		return syntaxError(p.here(), "the statement ends where %s is due", want)
	}
	return syntaxError(p.here(), "%s stands where %s is due", p.peek(0), want)
}

// here is the place of the next token, or of the statement's end.
func (p *parser) here() fault.Where {
	if p.done() {
		return p.origin.where(p.toks[len(p.toks)-1].end)
	}
	return p.origin.where(p.toks[p.pos].start)
}

func (p *parser) notSupported(at fault.Where, what, hint string) error {
	return fault.New("NOT_SUPPORTED", "%s is not supported yet", what).WithHint("%s", hint).At(at)
}

const hintW1 = "A pipeline file can hold CREATE OR REFRESH STREAMING TABLE … AS SELECT and CREATE TEMPORARY VIEW … AS SELECT"

func (p *parser) statement() (*Statement, error) {
	start := p.here()
	if !p.accept("CREATE") {
		return nil, p.otherStatement(start)
	}
	refresh, replace := p.accept("OR", "REFRESH"), p.accept("OR", "REPLACE")
	private := p.accept("PRIVATE")
	st := &Statement{Private: private, File: p.origin.file, Line: int(start.Line)}
	switch {
	case p.accept("STREAMING", "TABLE"):
		if replace {
			return nil, syntaxError(start, "a streaming table is made with CREATE OR REFRESH, not CREATE OR REPLACE")
		}
		st.Kind = StreamingTable
		return st, p.streamingTable(st)
	case p.accept("TEMPORARY", "VIEW"), p.accept("TEMP", "VIEW"):
		if private {
			return nil, syntaxError(start, "a temporary view is never published: PRIVATE has no meaning for it")
		}
		st.Kind = TemporaryView
		return st, p.temporaryView(st)
	}
	return nil, p.otherCreate(start, refresh)
}

// otherCreate names what a CREATE makes that does not run yet.
func (p *parser) otherCreate(at fault.Where, refresh bool) error {
	for _, k := range [][]string{
		{"MATERIALIZED", "VIEW"}, {"STREAMING", "LIVE", "TABLE"}, {"STREAMING", "LIVE", "VIEW"},
		{"LIVE", "TABLE"}, {"LIVE", "VIEW"}, {"FLOW"}, {"SINK"}, {"VIEW"},
	} {
		if p.is(k...) {
			return p.notSupported(at, "CREATE "+strings.Join(k, " "), hintW1)
		}
	}
	if p.is("TABLE") || p.is("STREAMING") {
		return syntaxError(p.here(), "CREATE %s makes no dataset of a pipeline", strings.ToUpper(p.peek(0))).
			WithHint("Write CREATE OR REFRESH STREAMING TABLE … AS SELECT … FROM STREAM(…)")
	}
	want := "STREAMING TABLE or TEMPORARY VIEW"
	if refresh {
		want = "PRIVATE, " + want
	}
	return p.unexpected(want)
}

// otherStatement names a statement that is not a CREATE.
func (p *parser) otherStatement(at fault.Where) error {
	for _, k := range []string{"APPLY CHANGES", "AUTO CDC", "USE", "SET", "INSERT INTO", "DECLARE", "ALTER", "DROP"} {
		if p.is(strings.Fields(k)...) {
			return p.notSupported(at, k, hintW1)
		}
	}
	return syntaxError(at, "a pipeline file holds CREATE … statements, not %s", strings.ToUpper(p.peek(0))).WithHint(hintW1)
}

func (p *parser) streamingTable(st *Statement) error {
	if p.is("IF") {
		if err := p.expect("IF", "NOT", "EXISTS"); err != nil {
			return err
		}
	}
	var err error
	if st.Name, err = p.name(); err != nil {
		return err
	}
	if p.accept("(") {
		if err := p.columnList(st); err != nil {
			return err
		}
	}
	if err := p.clauses(st); err != nil {
		return err
	}
	if p.done() {
		return p.notSupported(p.here(), "a streaming table without AS SELECT", "Give it a query: flows of their own (CREATE FLOW, AUTO CDC) come later")
	}
	if err := p.expect("AS"); err != nil {
		return err
	}
	return p.query(st)
}

func (p *parser) temporaryView(st *Statement) error {
	var err error
	if st.Name, err = p.name(); err != nil {
		return err
	}
	if p.is("(") {
		if p.mentions("EXPECT") {
			return p.notSupported(p.here(), "an expectation on a temporary view", "Put the CONSTRAINT on the table that reads the view")
		}
		return p.notSupported(p.here(), "a column list on a temporary view", "Name the columns in the SELECT")
	}
	if p.accept("COMMENT") {
		if st.Comment, err = p.stringValue("the comment"); err != nil {
			return err
		}
	}
	if err := p.expect("AS"); err != nil {
		return err
	}
	return p.query(st)
}

// mentions reports whether a keyword is among the tokens to come.
func (p *parser) mentions(w string) bool {
	for i := range p.toks[p.pos:] {
		if strings.EqualFold(p.peek(i), w) {
			return true
		}
	}
	return false
}

// name reads a name of one to three parts.
func (p *parser) name() (string, error) {
	var parts []string
	for {
		part, err := p.identifier("a name")
		if err != nil {
			return "", err
		}
		if strings.Contains(part, ".") {
			return "", syntaxError(p.origin.where(p.toks[p.pos-1].start), "the name %q has a dot in one of its parts", part)
		}
		parts = append(parts, part)
		if !p.accept(".") {
			break
		}
	}
	if len(parts) > 3 {
		return "", syntaxError(p.here(), "the name %s has more than the three parts catalog.schema.table", strings.Join(parts, "."))
	}
	return strings.Join(parts, "."), nil
}

func (p *parser) identifier(what string) (string, error) {
	if p.done() {
		return "", p.unexpected(what)
	}
	t := p.toks[p.pos]
	if t.kind != word && t.kind != quoted {
		return "", p.unexpected(what)
	}
	p.pos++
	name := unquote(p.text(t))
	if name == "" {
		return "", syntaxError(p.origin.where(t.start), "an empty name stands where %s is due", what)
	}
	return name, nil
}

// stringValue reads a text; "…" counts as one here, as in Spark.
func (p *parser) stringValue(what string) (string, error) {
	if !p.done() {
		t := p.toks[p.pos]
		if s := p.text(t); s[0] == '\'' || s[0] == '"' {
			p.pos++
			return unquote(s), nil
		}
	}
	return "", p.unexpected(what)
}

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

// query reads the SELECT, which is the rest of the statement.
func (p *parser) query(st *Statement) error {
	if p.done() {
		return p.unexpected("a SELECT")
	}
	if err := p.sources(st); err != nil {
		return err
	}
	if st.Kind != StreamingTable {
		return nil
	}
	for _, s := range st.Sources {
		if s.Stream {
			return nil
		}
	}
	err := fault.New("STREAMING_TABLE_QUERY_INVALID", "Cannot create streaming table from batch query: nothing in the query of %s is read with STREAM", st.Name)
	for _, s := range st.Sources {
		if s.Files != nil {
			return err.WithHint("Write FROM STREAM read_files(…)").At(fault.Where{File: st.File, Line: int64(s.Line)})
		}
	}
	if len(st.Sources) > 0 {
		return err.WithHint("Write FROM STREAM(%s)", st.Sources[0].Table).At(fault.Where{File: st.File, Line: int64(st.Sources[0].Line)})
	}
	return err.WithHint("Read a table with STREAM(name) or files with STREAM read_files(…)").At(fault.Where{File: st.File, Line: int64(st.QueryLine)})
}

// filesPrefix begins the name a read_files has in Statement.Query.
const filesPrefix = "__weir_files_"

func filesAlias(n int) string { return filesPrefix + strconv.Itoa(n) }
