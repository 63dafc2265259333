// Package keyindex finds where the rows of a CDC target lie, by the hash of
// their identity, without reading the target.
//
// Of every data file there is one index file in a local cache: the hashes of
// its rows in order, each with the row's position. A data file never changes,
// so neither does its index; a lookup asks the files that a snapshot has and
// passes over rows in their deletion vectors. What is missing is built by
// reading the file's identity columns: after OPTIMIZE, after another engine
// wrote, or when the cache was lost. There is nothing to keep in step: the index
// is complete when every live file has one.
//
// Invariants:
//
//   - The cache is never the truth and may vanish or be damaged at any time.
//     Every block that is read has a checksum, and what does not hold it is built
//     anew. Files are read, not mapped: one that another process cuts short is an
//     error to recover from, not a signal.
//   - An index file appears whole, by a rename, and says for which data file and
//     which identity it was made. Processes may share the folder.
//   - A hash that two live rows have is the error CDC_TARGET_DUPLICATE_KEY.
//   - Memory is bounded by the changes that are looked up and by Options.Rows,
//     whatever the size of a data file.
package keyindex
