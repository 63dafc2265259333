// Package fault is the error that reaches a user: an upper-case code, what
// happened, where, and what to do about it.
//
// Every failure a package of the host lets out carries a code, Spark's own
// where Spark has one. Errors are wrapped, never replaced, so errors.Is and
// errors.As keep working; a place (dataset, flow, file, line, row) is filled
// in by the layer that knows it and never overwrites what a deeper layer said.
//
// The package decides nothing: it neither logs nor retries, and it holds no
// row data beyond keys and positions.
package fault
