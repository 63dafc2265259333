package sql

import (
	"strconv"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// Settings are what a pipeline file is read with.
type Settings struct {
	Configuration map[string]string // fills ${key} and :key
	Catalog       string            // where USE has not said otherwise
	Schema        string
}

// ParsePipeline reads the statements of a pipeline file.
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
func ParsePipeline(file, text string, in Settings) ([]Statement, error) {
	o := newOrigin(file, text, 1)
	text, o, err := substitute(text, in.Configuration, o)
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
