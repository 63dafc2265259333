// Package plugin loads WebAssembly modules and runs their dataset functions.
//
// A module goes through [Engine.Load]: its imports and exports are checked by
// name before anything is compiled, the compiled code is kept in a cache on
// disk, and its manifest comes from weir_describe (or from the cache, in which
// case nothing is compiled until the first call). [Module.Map] runs one
// function over the inputs of one task in an instance that has run nothing
// but _initialize, and gives its output as a reader: the guest runs on the
// reader's own coroutine, inside Next, and each batch it writes is the next
// batch read, so there is no queue and back-pressure costs nothing. A handler of
// micro-batches has several outputs: [Module.ForeachBatch] hands over what it
// writes to each.
//
// Invariants:
//   - What a guest can do is the table of imports in imports.go and the table
//     in wasi.go; there is no other way out of the sandbox.
//   - The same inputs, context, configuration and seed give the same output.
//     The clocks and the random source are in determinism.go.
//   - An instance belongs to one call, and to later calls of the same function
//     only where the function declared reuse. After a failure it is always closed.
//   - Bytes of a guest become arrays through runtime/wire only. A fault the
//     host finds ends the call at once, by a panic that unwinds the guest; no
//     panic leaves the package, and no error becomes an end of stream.
//   - Rows of a row-aligned function that had a row error are not in the
//     output; the carried columns of the others are not copied.
//
// Bounds stand in limits.go; docs/sandbox.md says what they hold and what not. Modules
// are rewritten by runtime/meter to count what they run; allowance.go answers them.
// A guest's queries go to the host's [Querier], over what its function declared. A snapshot
// provider says which version it gives through Call.OnSnapshot, before any row of it is
// read. Command modules are refused by name.
package plugin
