// Package writers lets many processes write one Delta table at once: appends,
// deletions of rows that nobody else wants, deletions within one file that all
// share, and deletions that all want at the same time. It holds the outcome
// against a plain model: every version is somebody's, every row is deleted
// once, and the table at any version has the rows that the commits up to it say.
//
// It has tests only. WEIR_SOAK_COMMITS=200 runs the full number of commits.
package writers
