// Package sql runs SELECTs over Arrow streams with DuckDB and reads the
// CREATE … statements of a pipeline.
package sql
