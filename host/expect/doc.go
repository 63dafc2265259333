// Package expect applies expectations to the rows of a micro-batch.
//
// What a condition means is the SQL engine's business: it evaluates all
// conditions of a dataset in one go and leaves a bitmask on every row
// (relation.MaskColumn, bit i set when rule i is violated; a NULL condition is
// a violation unless the rule says NullPass). This package counts the bits and
// sorts the rows:
//
//   - warn keeps the row,
//   - drop leaves it out,
//   - quarantine leaves it out and hands it over with its rules; it wins over
//     drop, because it loses nothing,
//   - fail ends the batch with [EXPECTATION_VIOLATED]; as nothing is committed
//     before Apply returns, nothing of the batch stays.
//
// So Rows = Kept + Dropped + Quarantined, and for every rule Passed + Failed =
// Rows. A row that several rules drop is dropped once.
//
// Apply is for the rows that reach a table, Filter for those of a view on their
// way to one.
//
// It also builds the rows of quarantine tables, whose schema is the same for
// every dataset. It evaluates no SQL, does not link DuckDB, and writes nothing.
package expect
