// Package oracle holds host/cdc to its rules: a slow model of what a target
// holds (model_test.go), made from a list of changes by sorting it, and tests
// that let the same changes reach a real target in every order, in any batches,
// over failing stores and lost caches, and among other writers of the table.
//
// It has tests only.
package oracle
