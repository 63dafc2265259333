package sql

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// Kind is what a statement declares.
type Kind int

const (
	// StreamingTable is CREATE [OR REFRESH] [PRIVATE] STREAMING TABLE … AS SELECT.
	StreamingTable Kind = iota + 1
	// TemporaryView is CREATE TEMPORARY VIEW … AS SELECT.
	TemporaryView
)

// Statement is one CREATE … statement of a pipeline file.
type Statement struct {
	Kind        Kind
	Name        string // dotted, as written, without quotes
	Private     bool
	Query       string // the SELECT, relation names as in Sources
	Sources     []SourceRef
	Columns     []Column
	Constraints []Constraint
	Comment     string
	Properties  map[string]string
	PartitionBy []string
	ClusterBy   []string
	File        string
	Line        int // of CREATE
	QueryLine   int // of the SELECT
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
}

// Select gives the statement's query ready to run, but for the clock.
func (s *Statement) Select() Query {
	q := Query{Text: s.Query, File: s.File, Line: s.QueryLine}
	for _, src := range s.Sources {
		if src.Stream {
			q.Stream = src.Alias
		}
	}
	for _, c := range s.Constraints {
		q.Expectations = append(q.Expectations, c.Condition)
		q.ExpectationNames = append(q.ExpectationNames, c.Name)
		q.NullPass = append(q.NullPass, c.NullPass)
	}
	return q
}

// ParsePipeline reads the statements of a pipeline file.
func ParsePipeline(file, text string, conf map[string]string) ([]Statement, error) {
	return nil, fault.New("NOT_SUPPORTED", "pipeline SQL is not there yet")
}
