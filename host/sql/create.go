package sql

import (
	"strconv"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// statement reads what is neither USE nor SET. A table with a FLOW of its own
// gives two.
func (p *parser) statement() ([]Statement, error) {
	start := p.here()
	st := &Statement{File: p.origin.file, Line: int(start.Line)}
	if p.is("APPLY", "CHANGES", "INTO") {
		p.deprecated(start, "APPLY CHANGES INTO", "Write CREATE FLOW … AS AUTO CDC INTO …")
		p.pos += 2
		return p.finish(p.autoCDCInto(st), st)
	}
	if !p.accept("CREATE") {
		return nil, p.otherStatement(start)
	}
	refresh, replace := p.accept("OR", "REFRESH"), p.accept("OR", "REPLACE")
	st.Private = p.accept("PRIVATE")
	temporary := p.accept("TEMPORARY") || p.accept("TEMP")
	streaming := p.is("STREAMING", "LIVE") || p.is("STREAMING", "TABLE") || p.is("STREAMING", "VIEW")
	if streaming {
		p.pos++
	}
	live := p.is("LIVE", "TABLE") || p.is("LIVE", "VIEW")
	if live {
		p.pos++
	}
	switch {
	case (live || streaming) && p.accept("TABLE"):
		if replace {
			return nil, p.orReplace(start, "a streaming table")
		}
		st.Kind = MaterializedView
		if streaming {
			st.Kind = StreamingTable
		}
		if live {
			p.deprecated(start, "CREATE "+map[bool]string{true: "STREAMING "}[streaming]+"LIVE TABLE",
				"Write CREATE OR REFRESH "+map[bool]string{true: "STREAMING TABLE", false: "MATERIALIZED VIEW"}[streaming])
			st.Private = st.Private || temporary
		} else if temporary {
			return nil, syntaxError(start, "a streaming table is never temporary").WithHint("Write CREATE OR REFRESH PRIVATE STREAMING TABLE")
		}
		more, err := p.table(st)
		return p.finish(err, st, more...)
	case !live && !streaming && p.accept("MATERIALIZED", "VIEW"):
		if replace {
			return nil, p.orReplace(start, "a materialized view")
		}
		if temporary {
			return nil, syntaxError(start, "a materialized view is never temporary").WithHint("Write CREATE OR REFRESH PRIVATE MATERIALIZED VIEW")
		}
		st.Kind = MaterializedView
		more, err := p.table(st)
		return p.finish(err, st, more...)
	case (live || temporary) && p.accept("VIEW"):
		if st.Private {
			return nil, syntaxError(start, "a temporary view is never published: PRIVATE has no meaning for it")
		}
		st.Kind, st.Live = TemporaryView, live
		if live {
			p.deprecated(start, "CREATE LIVE VIEW", "Write CREATE TEMPORARY VIEW, and put its constraints on the table that reads it")
		}
		return p.finish(p.view(st), st)
	case !streaming && p.accept("VIEW"):
		if st.Private {
			return nil, syntaxError(start, "a view is published: PRIVATE has no meaning for it").WithHint("Write CREATE TEMPORARY VIEW")
		}
		st.Kind = View
		return p.finish(p.view(st), st)
	case !refresh && !replace && !temporary && !st.Private && p.accept("FLOW"):
		return p.finish(p.flow(st), st)
	}
	return nil, p.otherCreate(start)
}

// finish puts what the parser noted on the way into the first statement.
func (p *parser) finish(err error, st *Statement, more ...Statement) ([]Statement, error) {
	if err != nil {
		return nil, err
	}
	if !p.done() {
		return nil, p.unexpected("the end of the statement")
	}
	st.Deprecated = p.legacy
	return append([]Statement{*st}, more...), nil
}

func (p *parser) orReplace(at fault.Where, what string) error {
	return syntaxError(at, "%s is made with CREATE OR REFRESH, not CREATE OR REPLACE", what).
		WithHint("Its rows and its progress stay; weir run --full-refresh makes it anew")
}

// table reads a streaming table or materialized view after those words.
func (p *parser) table(st *Statement) ([]Statement, error) {
	if err := p.ifNotExists(); err != nil {
		return nil, err
	}
	var err error
	if st.Name, err = p.tableName(); err != nil {
		return nil, err
	}
	if p.accept("(") {
		if err := p.columnList(st); err != nil {
			return nil, err
		}
	}
	if err := p.clauses(st); err != nil {
		return nil, err
	}
	streaming := st.Kind == StreamingTable
	switch {
	case streaming && p.done():
		return nil, nil // flows fill it
	case streaming && p.is("FLOW"):
		return p.tableFlow(st)
	}
	if err := p.expect("AS"); err != nil {
		return nil, err
	}
	return nil, p.query(st)
}

func (p *parser) ifNotExists() error {
	if p.is("IF") {
		return p.expect("IF", "NOT", "EXISTS")
	}
	return nil
}

// view reads a view of any kind after that word.
func (p *parser) view(st *Statement) error {
	if err := p.ifNotExists(); err != nil {
		return err
	}
	var err error
	if st.Name, err = p.name(); err != nil {
		return err
	}
	if st.Kind == View {
		st.Name = p.file.complete(st.Name)
	}
	if p.is("(") {
		if err := p.viewColumns(st); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for !p.done() && !p.is("AS") {
		if err := p.once(seen, p.peek(0)); err != nil {
			return err
		}
		switch {
		case p.accept("COMMENT"):
			st.Comment, err = p.stringValue("the comment")
		case p.accept("TBLPROPERTIES"):
			st.Properties, err = p.properties()
		case p.is("DEFAULT", "COLLATION"):
			err = p.collation()
		case p.is("SCHEMA"):
			err = p.notSupported(p.here(), "a schema mode of a view", "Leave the clause out: the view has what its query gives")
		default:
			err = p.unexpected("AS SELECT")
		}
		if err != nil {
			return err
		}
	}
	if err := p.expect("AS"); err != nil {
		return err
	}
	return p.query(st)
}

// viewColumns reads the parentheses after a view's name: CREATE LIVE VIEW is
// the one whose rows can be checked.
func (p *parser) viewColumns(st *Statement) error {
	at := p.here()
	if !st.Live && p.mentions("EXPECT") {
		return fault.New("NOT_SUPPORTED", "an expectation on a view that is not stored").
			WithHint("Put the CONSTRAINT on the table that reads the view, or write CREATE LIVE VIEW").At(at)
	}
	p.pos++
	if err := p.columnList(st); err != nil {
		return err
	}
	if len(st.Columns) > 0 {
		return p.notSupported(at, "a column list on a view", "Name the columns in the SELECT")
	}
	if len(st.Keys) > 0 {
		return p.notSupported(at, "a key on a view", "Declare it on a table or materialized view")
	}
	return nil
}

// query reads the SELECT, which is the rest of the statement.
func (p *parser) query(st *Statement) error {
	if p.done() {
		return p.unexpected("a SELECT")
	}
	if err := p.sources(st); err != nil {
		return err
	}
	p.pos = len(p.toks)
	streams := false
	for _, s := range st.Sources {
		streams = streams || s.Stream
	}
	once := st.Flow != nil && st.Flow.Once
	switch {
	case st.Kind == StreamingTable && !streams:
		return batchQuery(st, fault.New("STREAMING_TABLE_QUERY_INVALID", "Cannot create streaming table from batch query: nothing in the query of %s is read with STREAM", st.Name), "")
	case st.Kind == Flow && !once && !streams:
		return batchQuery(st, fault.New("INVALID_FLOW_QUERY_TYPE", "nothing in the query of flow %s is read with STREAM", st.Name),
			", or INSERT INTO ONCE to load it one time")
	case st.Kind == Flow && once && streams:
		return streamQuery(st, "a flow that runs once", "Leave STREAM out, or leave out ONCE")
	case st.Kind == MaterializedView && streams:
		return streamQuery(st, "a materialized view", "Leave STREAM out: a view is computed from all rows; or make a streaming table")
	case st.Kind == View && streams:
		return streamQuery(st, "a view", "Leave STREAM out, or write CREATE TEMPORARY VIEW")
	}
	return nil
}

// streamQuery refuses STREAM where a batch query is due.
func streamQuery(st *Statement, what, hint string) error {
	for _, s := range st.Sources {
		if s.Stream {
			return fault.New("INVALID_FLOW_QUERY_TYPE", "%s reads with STREAM, but %s takes a batch query", st.Name, what).WithHint("%s", hint).
				At(fault.Where{File: st.File, Line: int64(s.Line), Column: int64(s.Column)})
		}
	}
	return nil
}

// batchQuery says where STREAM is missing.
func batchQuery(st *Statement, err *fault.Error, or string) error {
	at := func(s SourceRef) fault.Where {
		return fault.Where{File: st.File, Line: int64(s.Line), Column: int64(s.Column)}
	}
	for _, s := range st.Sources {
		if s.Files != nil {
			return err.WithHint("Write FROM STREAM read_files(…)%s", or).At(at(s))
		}
	}
	for _, s := range st.Sources {
		if s.Table != "" {
			return err.WithHint("Write FROM STREAM(%s)%s", s.Written, or).At(at(s))
		}
	}
	return err.WithHint("Read a table with STREAM(name) or files with STREAM read_files(…)%s", or).At(fault.Where{File: st.File, Line: int64(st.QueryLine)})
}

// The beginnings of the names that relations without one have in
// Statement.Query.
const (
	filesPrefix    = "__weir_files_"
	functionPrefix = "__weir_function_"
	logPrefix      = "__weir_log_"
	changesPrefix  = "__weir_changes_"
)

func numbered(prefix string, n int) string { return prefix + strconv.Itoa(n) }

// isNumbered reports whether a relation of Query is one of those.
func isNumbered(name string) bool {
	for _, prefix := range []string{filesPrefix, functionPrefix, logPrefix, changesPrefix} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
