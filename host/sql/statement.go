package sql

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// Kind is what a statement declares.
type Kind int

const (
	// StreamingTable is CREATE [OR REFRESH] [PRIVATE] STREAMING TABLE …, with a
	// query or without one: then flows of their own fill it.
	StreamingTable Kind = iota + 1
	// TemporaryView is CREATE TEMPORARY VIEW … AS SELECT.
	TemporaryView
	// MaterializedView is CREATE [OR REFRESH] [PRIVATE] MATERIALIZED VIEW … AS SELECT.
	MaterializedView
	// View is CREATE VIEW … AS SELECT, a view that others see.
	View
	// Flow is CREATE FLOW … AS INSERT INTO … BY NAME SELECT.
	Flow
	// AutoCDCFlow is CREATE FLOW … AS AUTO CDC INTO …. A streaming table with
	// FLOW AUTO CDC is two statements: the table and its flow.
	AutoCDCFlow
)

// String gives the manifest's word.
func (k Kind) String() string {
	switch k {
	case StreamingTable:
		return "streaming_table"
	case TemporaryView:
		return "temporary_view"
	case MaterializedView:
		return "materialized_view"
	case View:
		return "view"
	case Flow:
		return "flow"
	case AutoCDCFlow:
		return "auto_cdc_flow"
	}
	return "unknown"
}

// Statement is one CREATE … statement of a pipeline file.
type Statement struct {
	Kind          Kind
	Name          string // dotted, without quotes, completed by USE; of a flow: FlowDef.Name
	Private       bool
	Live          bool   // CREATE LIVE VIEW: a temporary view that may have constraints
	Query         string // the SELECT, its relations named as in Sources; "" when there is none
	Sources       []SourceRef
	Columns       []Column
	Constraints   []Constraint
	Keys          []KeyConstraint
	Comment       string
	Properties    map[string]string
	PartitionBy   []string
	ClusterBy     []string // "AUTO" alone for CLUSTER BY AUTO
	RefreshPolicy string   // AUTO, INCREMENTAL, INCREMENTAL STRICT or FULL; "" when not said
	Flow          *FlowDef // of Flow and AutoCDCFlow
	CDC           *AutoCDC // of AutoCDCFlow
	Deprecated    []Deprecated
	File          string
	Line          int // of CREATE
	QueryLine     int // of the SELECT

	origin *origin // of Query
}

// FlowDef is what a flow of its own says beside its query.
type FlowDef struct {
	Name    string // "" for the flow of a table with FLOW AUTO CDC: it has the table's
	Target  string // dotted, as a statement's name
	Once    bool
	ByName  bool
	Comment string
}

// AutoCDC is what AUTO CDC does with the changes of its source. Column names
// are dotted paths without quotes.
type AutoCDC struct {
	Source            SourceRef // always a stream
	Keys              []string
	IgnoreNullUpdates bool
	IgnoreNullOn      []string // IGNORE NULL UPDATES ON (…)
	IgnoreNullExcept  []string // IGNORE NULL UPDATES ON * EXCEPT (…)
	DeleteWhen        Expression
	TruncateWhen      Expression
	SequenceBy        Expression // without a text where the source has an order of its own
	Columns           []string   // COLUMNS (…); nil for all but Except
	Except            []string   // COLUMNS * EXCEPT (…)
	SCDType           int        // 1 or 2
	TrackHistory      []string   // TRACK HISTORY ON (…); nil for all but TrackExcept
	TrackExcept       []string
}

// Expression is the text of an expression in a statement; "" when not given.
type Expression struct {
	Text         string
	Line, Column int

	origin *origin
}

// Select gives the query of the expression over a relation, or over none. What
// it says of errors stands where the expression does.
func (e Expression) Select(relation string) Query {
	o := e.origin
	if o == nil {
		o = newOrigin("", e.Text, 1)
	}
	end := "\n) AS value"
	if relation != "" {
		end += " FROM " + quoteName(relation)
	}
	edited := newEdit(e.Text)
	edited.replace(0, 0, "SELECT (")
	edited.replace(len(e.Text), len(e.Text), end)
	text, o := edited.finish(o)
	return Query{Text: text, File: o.file, Line: e.Line, origin: o}
}

// KeyConstraint is a PRIMARY KEY or FOREIGN KEY: information for readers, which
// nothing enforces.
type KeyConstraint struct {
	Name       string // "" when it has none
	Primary    bool
	Columns    []string
	References string   // the table of a foreign key
	RefColumns []string // nil: its primary key
	Rely       bool
	TimeSeries []string // columns of the primary key marked TIMESERIES
	Line       int
}

// Deprecated is a spelling of older releases that was taken all the same.
type Deprecated struct {
	What, Instead string
	Line, Column  int
}

// SourceRef is one relation the SELECT reads.
type SourceRef struct {
	Alias    string // its name in Query: the key of Engine.Run's inputs
	Stream   bool   // read with STREAM
	Table    string // dotted, completed by USE; empty when another field says what is read
	Written  string // Table before USE completed it: a temporary view has no other name
	Files    *FilesRef
	Function *FunctionRef
	EventLog *EventLogRef
	Changes  *ChangesRef       // table_changes('t', from[, to])
	Options  map[string]string // STREAM t WITH (…); keys as the user spelt them
	Line     int
	Column   int
}

// FilesRef is a read_files(path, option => value, …).
type FilesRef struct {
	Path    string
	Options map[string]string
}

// FunctionRef is a function of a plugin used as a table: sap.vbap_typed(STREAM t).
type FunctionRef struct {
	Name string      // module.function
	Args []SourceRef // in order; Alias is the name of a named argument, or ""
}

// EventLogRef is event_log('pipeline') or event_log(TABLE(t)).
type EventLogRef struct {
	Pipeline string // name or id
	Table    string // dotted; the log of the pipeline that owns it
}

// ChangesRef is the range of a table_changes(…), whose table is SourceRef.Table.
type ChangesRef struct {
	From, To string // versions or timestamps; To is "" for the newest
	ByTime   bool   // From and To are timestamps
}

// Column is an entry of the column list.
type Column struct {
	Name      string
	Type      arrow.DataType // nil: whatever the query gives
	NotNull   bool
	Comment   string
	Generated string // GENERATED ALWAYS AS (…)
	Line      int
}

// Constraint is a CONSTRAINT … EXPECT.
type Constraint struct {
	Name        string
	Condition   string
	OnViolation string // warn, drop, fail or quarantine: the manifest's words
	NullPass    bool   // NULL PASS: a condition that is NULL holds
	Line        int

	origin *origin // of Condition
}

// Select gives the statement's query ready to run, but for the clock. It knows
// the places of the statement's text better than one made from Query and Line.
func (s *Statement) Select() Query {
	q := Query{Text: s.Query, File: s.File, Line: s.QueryLine, origin: s.origin}
	for _, src := range s.Sources {
		if src.Stream {
			q.Stream = src.Alias
		}
	}
	for _, c := range s.Constraints {
		q.Expectations = append(q.Expectations, c.Condition)
		q.ExpectationNames = append(q.ExpectationNames, c.Name)
		q.NullPass = append(q.NullPass, c.NullPass)
		q.conditions = append(q.conditions, c.origin)
	}
	return q
}
