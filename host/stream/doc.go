// Package stream is the micro-batch loop: it makes the rows of a source arrive
// in a Delta table exactly once.
//
// One batch goes through these steps, each of them one object in the flow's
// checkpoint or one commit of a table, so that a crash between any two leaves
// a state that the next run understands:
//
//  1. offset entry N (put-if-absent): what batch N reads, the versions of its
//     side inputs, its timestamp. A rerun of N reads exactly the same.
//  2. tasks: decode, steps, expectations, Parquet files named after flow, batch
//     and task. Nothing refers to those files yet.
//  3. the quarantine table's commit with txn(appId, N), if a row was refused.
//  4. the new states of functions that have one; nothing names them yet.
//  5. the target's commit with txn(appId, N): the commit point.
//  6. commit entry N: figures, file states, states of functions.
//  7. now and then, the lists of files of many batches become one sorted run.
//
// A batch query (complete.go: a materialized view, or a flow that runs once) goes
// the same way with a refresh record instead of an offset entry, as one task; it
// replaces all rows in one commit, or is passed over when nothing that its rows
// follow from has changed. So does each of the full snapshots that a flow compares
// (snapshots.go, snapshotwork.go): its record is written when its version is known.
//
// The parts by file: flow.go what a flow is; run.go the loop; batch.go one
// batch; task.go and taskrun.go one task; output.go the columns it writes;
// generation.go, offsets.go, commits.go, schemas.go the records; records.go and
// checkpoint.go how they are kept; frontcoded.go, runs.go, known.go the lists of
// files, filestate.go what they tell; state.go the state of functions;
// filesource.go, deltasource.go (deltaoptions.go, changefeed.go, tablereader.go)
// the sources; handler.go, handlerbatch.go, merge.go a handler in place of a
// target (foreach_batch); apply.go rows that are merged in place of appended; guards.go what must hold before a run may go on, losses.go
// and snapshotlosses.go what a full refresh would lose; reset.go the full refresh of a table that several
// flows fill; complete*.go the refresh, stripes.go its data files. docs/formats.md
// describes every object byte by byte.
//
// Invariants:
//
//   - The truth is the offset log, the commit log and the target's txn. A batch
//     is committed when the target says so; commit entry N may lag by one.
//   - Only the driver commits; a task's only effect is the files it writes.
//   - The same offset entry and schema version give byte-equal data files.
//   - A batch of a flow with state is one task, and reads the state that the
//     commit entry before it names; no other object in state/ is ever read.
//   - What an application (apply.go) keeps beside the rows becomes valid by the
//     target's commit, as the rows do.
//   - A record of a snapshot is taken back only where its commit cannot have been
//     made. One that the count gate holds stays until somebody lets it pass, or its
//     source has changed.
//   - Files are taken in the order of their names, never of their times, so a
//     late file is found whatever its name or time says; a path is read once.
//   - Outputs of a handler are committed one after the other, each with
//     txn(appId, N). A rerun gives the handler the same rows and leaves out the
//     outputs that have batch N; the commit entry comes last.
//   - A full refresh is a new generation with its own logs; its first commit
//     replaces the rows of the one before; those of a sink or of a handler's
//     outputs stay, and rows are written to them again.
//
// The package links no SQL engine and no Wasm runtime: steps come in through
// the Step interface. It does not decide which flows run, nor does it hold the
// update lock; that is host/pipeline.
package stream
