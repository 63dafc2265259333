package sql

import (
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/relation"
)

// The hidden columns, as host/relation names them.
const (
	RowColumn      = relation.RowColumn
	MaskColumn     = relation.MaskColumn
	MetadataColumn = relation.MetadataColumn
)

// Query is one SELECT and what it may see.
type Query struct {
	// Text is the SELECT. Relations are named as the inputs are.
	Text string
	// File and Line say where Text starts; errors are placed there.
	File string
	Line int
	// Clock is what now(), current_timestamp() and current_date() read.
	Clock time.Time
	// Keys are the key columns of relations with history, for changes_between.
	Keys map[string][]string
	// Stream names the streaming input: the query must be one that can run
	// batch by batch, and the input's __weir_row is carried to the output.
	// Empty means an ordinary query.
	Stream string
	// Expectations are conditions over the output columns; bit i of
	// __weir_mask is set where condition i does not hold.
	Expectations []string
	// ExpectationNames name the conditions in errors; may be nil.
	ExpectationNames []string
	// NullPass says per condition whether NULL passes; nil means it violates.
	NullPass []bool
	// GuestRules says that the conditions are not the operator's: they may call
	// what a guest may.
	GuestRules bool
	// Guest bounds a Text that is not the operator's; nil is one that is.
	Guest *Guest

	origin     *origin   // of Text, when it comes from a statement
	conditions []*origin // of Expectations, likewise
}

// places gives the origin of Text.
func (q *Query) places() *origin {
	if q.origin != nil {
		return q.origin
	}
	return newOrigin(q.File, q.Text, q.Line)
}

// rule names expectation i in an error.
func (q *Query) rule(i int) string {
	if i < len(q.ExpectationNames) {
		return q.ExpectationNames[i]
	}
	return q.Expectations[i]
}

func (q *Query) nullPass(i int) bool { return i < len(q.NullPass) && q.NullPass[i] }

// intervals is what is known of the relations that the query reads.
func (q *Query) intervals(schemas map[string]*arrow.Schema) intervals {
	return intervals{keys: q.Keys, columns: func(name string) *arrow.Schema {
		for key, s := range schemas {
			if strings.EqualFold(key, name) {
				return s
			}
		}
		return nil
	}}
}
