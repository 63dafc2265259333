package ingest

import "fmt"

// UnknownFieldError says that files have columns the schema lacks, under
// addNewColumns. The whole micro-batch was looked at: Evolved has all of them.
type UnknownFieldError struct {
	// Fields are the new columns; nested ones have a dotted name.
	Fields []Field
	// File and Line are where the first of them was seen.
	File    string
	Line    int64
	Evolved *Schema
}

// CodeName gives UNKNOWN_FIELD.
func (e *UnknownFieldError) CodeName() string { return "UNKNOWN_FIELD" }

func (e *UnknownFieldError) Error() string { return fmt.Sprintf("[UNKNOWN_FIELD] %v", e.Fields) }
