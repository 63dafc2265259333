// Package faultstore is the twin of a store that fails on purpose: it fails,
// delays, tears, forgets to answer, or has no room left, where rules say so.
// Without rules it does what the store below does.
//
// It is for tests. It injects faults into single operations by name and count;
// it does not simulate crashes of the process or loss of unsynced data.
package faultstore
