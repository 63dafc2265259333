// Package storage is the one seam through which the host reads and writes
// durable data: a flat space of named objects with put-if-absent.
//
// Names are relative, separated by slashes, and never hold "." or ".."
// elements. An object becomes visible whole or not at all, and when a write
// call has returned without error the object survives the death of the process
// and of the machine. The driver here is local disk (OpenDir); Sub narrows a
// store to a folder of it; package faultstore is the twin that fails, delays,
// tears and forgets, for tests.
//
// Invariants: PutIfAbsent has exactly one winner among any number of processes;
// List is ascending by the bytes of the name and never shows a half-written
// object; a lock dies with the process that holds it.
//
// The package caches nothing, retries nothing, and knows nothing of what the
// objects mean.
package storage
