// Package faultstore is the twin of a store that fails on purpose: it fails,
// delays, tears, repeats, forgets to answer, lists out of order, or has no room
// left, where rules say so. Without rules it does what the store below does.
//
// It is for tests. It injects faults into calls by name and count; a process
// that dies at call n is FromCall(n, Fail(err)) for those who look on from the
// same process, and AtCall(n, Call(kill)) or AtCall(n, After(kill)) for those
// who start another. It does not simulate the loss of unsynced data.
package faultstore
