// Package relation names the columns that travel with the rows of a flow
// without being the user's, and writes a row down as JSON.
//
// A relation between two steps has the user's columns first, then:
//
//   - _metadata, where a row came from (file sources only; not part of `*`),
//   - __weir_row, the ordinal of the source row within its task, from 0,
//   - __weir_mask, bit i set when the row violates expectation i (only on the
//     last relation before the sink).
//
// The sink drops all three. The package is a leaf: sources, the SQL engine,
// expectations and the batch loop agree through it without knowing each
// other. It holds no state and reads nothing.
package relation
