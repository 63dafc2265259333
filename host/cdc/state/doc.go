// Package state keeps what an AUTO CDC target has seen: for every key its
// events or the last of them, in immutable sorted runs that a manifest names.
//
// The folder holds manifests ("<K>.json") and runs ("runs/<stamp>-<id>.arrow").
// A manifest is written before the commit of the target that makes it valid, so
// the valid one is the one that commit names and no other; what no valid
// manifest names is rubbish that Sweep removes. Nothing is ever changed in place.
//
// A run is an uncompressed Arrow IPC file (see Schema for its columns) of
// entries ascending by (hash, key, order). Where two runs hold the same entry,
// the newer run's counts; in a state with one entry a key (Manifest.PerKey) the
// newer run's entry of a key counts, whatever its order. Entries of kind
// Removed only hide.
//
// State.Find looks up keys and touches only the pages it needs; State.Scan
// streams everything of a range of hashes. What they give is a copy, and lives
// on without the state.
//
// Bytes that do not check out are [CDC_STATE_CORRUPT] with the name of the
// file: sizes and the sums of all headers are checked before they are read,
// offsets before they are used, and the sum of a block's rows whenever all of
// it is read (Scan, Compact).
//
// The package does not know what the entries mean for the target.
package state
