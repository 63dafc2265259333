// Package cdctest applies changes to a target in a temporary folder, as the batch
// loop of host/stream does, and reads its rows back. It is for tests of host/cdc
// and of what feeds it, and needs no pipeline and no SQL.
package cdctest
