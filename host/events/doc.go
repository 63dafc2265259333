// Package events is the pipeline's event log: a Delta table with the columns
// of Lakeflow's, one row for each thing worth telling.
//
// Emit never waits and never fails: it keeps the event in memory until Flush
// writes what was kept as one commit, with the numbers that follow those in the
// table. Keep flushes in the background while an update runs, so a process that
// dies loses the events of its last seconds and nothing else; the next update
// finds out with FindUnfinished and says so in the log. No other part of the
// product reads the log to decide anything about data.
//
// The package knows the table's columns, the words for types and levels and
// the shapes of the details; what happened is told by host/pipeline.
package events
