// Package expect applies expectations to batches whose violations are already
// marked, and writes down the rows that are set aside.
package expect
