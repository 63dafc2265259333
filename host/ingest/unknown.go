package ingest

import (
	"fmt"
	"strings"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/fault"
)

// UnknownFieldError says that files have columns the schema lacks, under
// addNewColumns. The whole micro-batch was looked at: Evolved has all of them,
// and is what the batch loop records before it tries again.
type UnknownFieldError struct {
	// Fields are the new columns; nested ones have a dotted name.
	Fields []Field
	// File and Line are where the first of them was seen.
	File string
	Line int64
	// Evolved is the next version of the schema.
	Evolved *Schema
}

// unknownField is the code of the error, Spark's UNKNOWN_FIELD_EXCEPTION in short.
const unknownField = "UNKNOWN_FIELD"

// CodeName gives UNKNOWN_FIELD.
func (e *UnknownFieldError) CodeName() string { return unknownField }

func (e *UnknownFieldError) names() string {
	var out []string
	for _, f := range e.Fields {
		out = append(out, fmt.Sprintf("%q (%s)", f.Name, strings.ToUpper(coltype.String(f.Type))))
	}
	if len(out) == 1 {
		return "column " + out[0] + " is"
	}
	return "columns " + strings.Join(out, ", ") + " are"
}

// Error names the columns, the first file that has one, and what happens next.
func (e *UnknownFieldError) Error() string {
	return fmt.Sprintf("[%s] %s new (%s). The schema is recorded with version %d; run again to read with it",
		unknownField, e.names(), fault.Where{File: e.File, Line: e.Line}, e.Evolved.Version)
}

// final is the error under failOnNewColumns, which no retry cures.
func (e *UnknownFieldError) final() error {
	return fault.New(unknownField, "%s not in the schema, and schemaEvolutionMode is failOnNewColumns", e.names()).
		WithHint("Name them in schemaHints or schema, or take another mode").
		At(fault.Where{File: e.File, Line: e.Line})
}
