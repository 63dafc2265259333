// Package meter rewrites WebAssembly modules so that what they do can be
// counted, bounded and interrupted.
//
// An engine that compiles to machine code cannot stop what it runs: a guest's
// loop holds its thread, and with it the garbage collector of the whole
// process. Rewrite puts the counting into the guest itself. It takes any module
// that wazero takes with its default features (1.0 with SIMD, bulk memory,
// multiple values, reference types, sign extension, saturating conversions),
// and refuses everything else, and everything over a Limits, with an *Error
// before anything is compiled.
//
// # What is put in
//
//   - A global (mut i64), the fuel, exported as ExportFuel. A guest cannot name
//     it: every index of the original is checked against what the original has.
//   - An import ImportModule.ImportRefuel (i64) -> i64, the last of the imports,
//     and behind the guest's own functions one that calls it. The indices of
//     the guest's functions move up by one, wherever they are written.
//   - Charges: places that subtract from the fuel and, where it is then below
//     zero, call refuel with its value and keep what comes back.
//   - A maximum for each memory and table, no higher than the limits.
//
// Custom sections are left out, but for the names of functions.
//
// # What is charged
//
// Each instruction costs 1; block, loop, else, end and unreachable cost
// nothing; those that leave compiled code (memory.grow, table.*, ref.func) cost
// 64. memory.fill, copy and init cost 1 more for each 64 bytes, table.fill, copy
// and init 1 for each 8 entries, memory.grow 1,024 for each page and table.grow 1
// for each 8 entries (nothing where the size asked for is over the maximum: it
// fails at once). Lengths are charged before the instruction runs, unsigned and
// in 64 bits.
//
// Code pays late and for the longest way: every branch back to a loop, a
// return, and every 256 instructions on a way without either settle what was
// done since the last time, at the most expensive of the ways that lead there.
// What is unpaid where a function is left is charged when it is entered. So
//
//   - whoever leaves a function has paid for every instruction on the way, or
//     more (TestNoPathIsUnderpaid);
//   - one charge is bounded, lengths apart, by about 1,000 units, and no
//     function is more than that behind;
//   - every loop and every call costs at least 1: nothing runs on for free;
//   - the fuel that a call takes depends on the module, its arguments and what
//     its imports return, not on the engine, the time, or how refuel divides it
//     (TestFuelDependsOnTheInputAlone).
//
// Each branch back to a loop pays for its own way; a br_if back becomes an if
// around a charge and a br. The header pays for all where a branch back is one of a
// br_table, or takes values along. A loop without calls keeps the fuel in a
// local and writes it to the global at each charge.
//
// # Where the guest waits
//
// Calling the host is rare; what it does to the code around it is not. wazero
// gives a value that is alive at a call a place in memory, and where the value
// differs by the way that led to it (all that a loop changes does), writes it
// there each time that it is set, also when nobody calls. So a loop's charges do not
// call where they stand: the loop lies in three blocks (appendWrapping), and a
// charge that finds the fuel below zero branches out of the innermost. What is
// alive there are copies, made on the way. Labels that lead out of the loop grow
// by three. Other charges, and those of loops that take values or lie more than
// eight deep, call on the spot, in an else: wazero gives the code after an if the
// registers of its then.
//
// BenchmarkMetering measures this, to 1.05 × in the mean and 1.3 × at worst:
// that is a loop of four cycles in Go, where a charge shows whole. The same machine
// code is 0.2 × faster or slower by where it happens to lie.
//
// # What the host must do
//
//   - Instantiate a module named ImportModule that exports ImportRefuel with
//     WithGoFunction (not the reflective WithFunc). It receives the fuel, below
//     zero, in stack[0], and leaves there what the guest may use until it asks
//     again; Quantum is a good amount. It must not return less than 0; it takes
//     the debt into account: with q = Quantum, owed = −fuel and
//     n = owed/q + 1, return n·q − owed and count n·q as given. A single
//     charge can owe as much as the limits on memory allow.
//   - There it looks at deadline, budget and cancellation. To stop the guest it
//     panics with an error: wazero unwinds, Call returns an error for which
//     errors.Is holds, and the instance must be closed, not used again.
//   - What an instance has used is given + InitialFuel − the value of
//     ExportFuel. The global may be read and set (api.MutableGlobal) whenever no
//     guest code runs, or from within a host function that the guest called,
//     and never from another goroutine.
//   - The host's own functions cost the guest nothing but the call. What the
//     host does for a guest it measures, and bounds, itself.
//   - Not register any other module under ImportModule, nor let one guest
//     import from another without thinking of ExportFuel.
//   - Put Version and the limits into the key of whatever it caches.
//   - Bound the depth of calls: that is the engine's stack limit.
//
// A start function is metered like any other and runs during instantiation.
//
// # What it does not do
//
// It validates what it needs to rewrite safely (structure, every index, every
// immediate), not types: wazero does that with the result, and refuses whatever
// it would have refused in the original. It does not count memory or time, and
// does not decide what happens when fuel runs out.
package meter
