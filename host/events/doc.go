// Package events is the pipeline's event log: a Delta table with the columns
// of Lakeflow's, one row for each thing worth telling.
//
// Emit never waits and never fails: it keeps the event in memory until Flush
// writes what was kept as one commit. A process that dies loses the events
// since the last Flush and nothing else; no other part of the product reads
// the log to decide anything.
//
// The package knows the table's columns, the words for types and levels and
// the shapes of the details; what happened is told by host/pipeline.
package events
