// Package delta reads and writes Delta Lake tables: the log, snapshots,
// Parquet files with statistics, deletion vectors, checkpoints, and commits
// that happen once. It knows nothing of pipelines.
//
// A Table is a folder of a storage.Store. Snapshot gives its newest version
// and advances by what was committed since; Scan streams rows in the table's
// schema, whatever the files hold (partitions, column mapping, widened types,
// missing columns). Write makes data files whose bytes follow from their rows
// and their name alone; Commit puts them into the table.
//
// Invariants:
//
//   - A version is written by put-if-absent. A commit that lost a race is made
//     again on top of the winner, unless the winner changed what it depends on,
//     which is an error of the DELTA_CONCURRENT_… family. A put whose outcome
//     is unknown is settled by the transaction id that lies in the log.
//   - With Commit.Txn a table takes a batch once: a rerun gets *AlreadyCommitted.
//     What Commit.Also says of other applications stands or falls with it.
//   - A checkpoint is a cache of the log. A damaged one is passed over when the
//     commits before it are there; its loss costs time, never data.
//   - What cannot be read right is refused by name (DELTA_UNSUPPORTED_FEATURE
//     and others), and no bytes from outside make the package panic.
//
// Snapshot.Mutate changes rows at known places, Table.Delete, Update and
// Overwrite those that meet a condition; both write change files where the
// change data feed needs them and keep row ids. What a FileWriter takes meets
// the table's constraints, generated columns and defaults, which WithEngine's
// Engine evaluates.
//
// Commit.Delete takes single rows out by deletion vectors; commits that touch
// other rows of the same file follow each other. Row ids, in-commit timestamps
// and metadata domains follow from what the table has enabled.
//
// Commit.Change renames, drops and widens columns without touching data files;
// files, statistics and partition values of a table with column mapping go by
// physical names, and the schema that callers see by the others.
//
// A checkpoint is classic or V2, as the table's properties say; sidecars that
// still hold true are named again. CompactLog makes one file of a range of
// commits, and checkpoints clean the log up behind themselves. SnapshotAsOf
// travels to a time, EachFile and FileStats list very many files.
//
// Changes reads the change data feed of a range of versions or times, derived
// where a version has no change files. ScanOptions.Where leaves out files and row
// groups that hold no row for a Predicate; it filters nothing.
//
// Optimize packs, purges and clusters files, Vacuum deletes what no kept
// version needs, Restore brings a version back, and Check compares a table with
// its log. None of them changes what a version that is kept reads.
//
// It does not write tables with identity columns or Iceberg compatibility, nor
// those whose commits a catalog decides, and it neither filters rows (see
// ScanOptions.Where) nor evaluates SQL but through an Engine.
package delta
