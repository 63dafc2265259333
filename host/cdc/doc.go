// Package cdc takes changes into a table: AUTO CDC of SCD type 1 and 2.
//
// A target is a pure function of the set of changes that its flows have seen.
// Any order of arrival, any cut into batches and any replay gives the same
// table. timeline.go has that function and knows neither Arrow nor files: the
// changes of one key, in the order of their sequence, become the rows that show.
//
// Per batch, Take codes the rows by column (coding.go): the bytes and the hash of
// the key, the order (the sequence, then what decides ties), what kind of change
// it is, a hash of the content and one of the tracked columns. Rows beyond a share
// of memory go to temporary files (collect.go), cut by the first bits of the key's
// hash. Commit works part by part (merge.go): the entries that the state has of
// the keys are brought together with the new ones, the rows that showed before
// and those that show now are compared (compare.go), and the difference is written
// (parts.go, output.go) in one commit with the flow's progress and the state's
// version (commit.go). Beside that the state's runs are merged (upkeep.go).
//
// Small batches look their keys up in the state and their rows in the key index;
// a batch that has more changes than the state has entries reads the state once
// from end to end and writes it anew. If such a batch replaces most rows of a
// table that keeps no track of single ones, the table is written anew as well.
// All ways give equal tables.
//
// Invariants:
//
//   - A change that was seen before changes nothing, however often it comes. Two
//     changes of one key and sequence that say different things end the batch
//     with CDC_SEQUENCE_TIE unless columns decide between them; columns whose names
//     begin with "_" do not count, and the first that was applied stays.
//   - A delete that is older than Definition.Tombstones and ends no row counts for
//     nothing, whether it is still in the state or not.
//   - The same batch on the same target gives the same files, whatever the number
//     of tasks and cores. What it holds in memory is bounded by Definition.Memory
//     and by a few parts, of which there are up to 256.
//   - After an error nothing has changed that readers see.
//
// Of full snapshots (snapshot.go) only what differs becomes changes, at the snapshot's
// version: the hashes that the state has of each key (snapshotknown.go) are held in
// memory and the rows probed as they come, or both are cut into parts when that is
// too much. A key of the state that no row has is deleted.
//
// What feeds a target from elsewhere, as snapshot.go does, makes an apply with begin, adds entries to its changes and ends
// with commit, which does the rest. Entries come from coder.code for rows that
// have a sequence column, and from coder.assemble where the codes are known.
package cdc
