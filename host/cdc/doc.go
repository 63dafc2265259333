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
// and those that show now are compared, and the difference is written
// (write.go) in one commit with the flow's progress and the state's version.
//
// Small batches look their keys up in the state and their rows in the key index;
// a batch that has more changes than the state has entries reads the state once
// from end to end and writes it anew. Both give equal tables.
//
// Other packages feed the same path with changes that come from elsewhere, such
// as the differences of two snapshots: see changes.go.
package cdc
