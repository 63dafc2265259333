package sql

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// Kind is what a statement declares.
type Kind int

const (
	// StreamingTable is CREATE [OR REFRESH] [PRIVATE] STREAMING TABLE … AS SELECT.
	StreamingTable Kind = iota + 1
	// TemporaryView is CREATE TEMPORARY VIEW … AS SELECT.
	TemporaryView
)

// String gives the manifest's word.
func (k Kind) String() string {
	switch k {
	case StreamingTable:
		return "streaming_table"
	case TemporaryView:
		return "temporary_view"
	}
	return "unknown"
}

// Statement is one CREATE … statement of a pipeline file.
type Statement struct {
	Kind        Kind
	Name        string // dotted, as written, without quotes
	Private     bool
	Query       string // the SELECT, its relations named as in Sources
	Sources     []SourceRef
	Columns     []Column
	Constraints []Constraint
	Comment     string
	Properties  map[string]string
	PartitionBy []string
	ClusterBy   []string // "AUTO" alone for CLUSTER BY AUTO
	File        string
	Line        int // of CREATE
	QueryLine   int // of the SELECT

	origin *origin // of Query
}

// SourceRef is one relation the SELECT reads.
type SourceRef struct {
	Alias  string    // its name in Query: the key of Engine.Run's inputs
	Stream bool      // read with STREAM
	Table  string    // dotted name as written; empty when Files is set
	Files  *FilesRef // read_files(…)
	Line   int
}

// FilesRef is a read_files(path, option => value, …).
type FilesRef struct {
	Path    string
	Options map[string]string
}

// Column is an entry of the column list.
type Column struct {
	Name    string
	Type    arrow.DataType // nil: whatever the query gives
	NotNull bool
	Comment string
	Line    int
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
