// Package sql runs SELECTs over Arrow streams with DuckDB and reads the
// CREATE … statements of a pipeline. It and the packages above it are the only
// ones that link DuckDB.
//
// # What happens to a query
//
//  1. spelling.go: Spark's `names`, bare DECIMAL and * EXCEPT become DuckDB's.
//  2. tree.go: DuckDB's json_serialize_sql gives the syntax tree of exactly one
//     SELECT; anything else is refused.
//  3. rewrite.go, expression.go: the tree is checked node by node against what
//     is known and rewritten: relations are the inputs and nothing else, `*`
//     leaves the hidden columns out, clocks read Query.Clock, Spark's types and
//     functions become DuckDB's. Node kinds and functions that are not known
//     are refused; functions.txt names every function of DuckDB.
//  4. plan.go: the tree is printed, bound over empty inputs, and wrapped so
//     that its columns have the types of abi/coltype and its last column is the
//     mask of violated expectations. Plans are kept: the next micro-batch only
//     puts in the clock and the numbers of its scans.
//  5. scan.go: DuckDB reads an input through a table function of ours, one
//     thread, each input once, only the columns the query needs; the reader
//     runs a batch ahead on a goroutine of its own. (The driver's RegisterView
//     is not used: DuckDB 1.5 pushes projections and filters into
//     its scan, which ignores them and gives wrong rows.)
//  6. reader.go: the result streams; chunks of 2,048 rows are put together to
//     batches of 65,536.
//
// # Streaming queries
//
// A query with Query.Stream runs batch by batch, so its result over all
// batches must be what it would be over all rows at once. Projections, filters,
// UNNEST, UNPIVOT, UNION ALL of the stream and joins with tables can; GROUP BY,
// aggregates, DISTINCT, ORDER BY, LIMIT, window functions, other set operations
// and joins that keep unmatched rows of a table are refused with
// [UNSUPPORTED_STREAMING_OPERATION]. Whatever reads only tables is free.
//
// Rows come in the order of __weir_row. DuckDB keeps the order of a scan by
// itself; after a join or UNION ALL the rows are sorted by __weir_row and then
// by all columns, so that a batch that runs again gives the same bytes.
//
// # The dialect
//
// It is DuckDB's SQL, with Spark's meaning wherever both know a word:
//
//   - TIMESTAMP is an instant (DuckDB: TIMESTAMPTZ), TIMESTAMP_NTZ a wall-clock
//     time; DECIMAL alone is DECIMAL(10,0);
//   - concat, split, regexp_replace, regexp_extract, log, dayofweek, date_add,
//     to_date, date_format and others are Spark's: see spark.go;
//   - hash and element_at, which differ and have no exact equal, are refused;
//   - x[0] is refused: lists count from 1 here, from 0 in Spark;
//   - a division in which one side is a decimal and the other a decimal or an
//     integer is refused with [UNSUPPORTED_DECIMAL_DIVISION]: Spark gives a
//     decimal, DuckDB an inexact DOUBLE;
//   - CAST to an integer cuts a fraction off and takes only whole numbers from
//     texts (DuckDB: rounds both); lists, structs and maps are cast part by part,
//     and date_add and its kin take no fractions;
//   - * EXCEPT (a, b) leaves columns out, as EXCLUDE does;
//   - HUGEINT is a plan error in a streaming query; in an ordinary one it comes
//     out as DECIMAL(38,0).
//
// What stays different, since DuckDB's parser or types decide it: "x" is a
// name, not a text; '\n' in a text is two characters; avg of a decimal is
// DOUBLE; 1/0 is infinity; array_position of a missing element is NULL.
//
// # Expectations
//
// A condition is one BOOLEAN expression over the columns of the query, without
// subqueries and aggregates. `NULL PASS` at the end of a CONSTRAINT … EXPECT
// lets a NULL condition pass; without it, or with NULL VIOLATE, it violates.
//
// # Expressions of tables
//
// Evaluator evaluates what Delta tables carry (constraints, generated columns,
// defaults) and the conditions of DELETE and UPDATE, by the same rules as
// expectations: one row's columns and nothing else. These texts come from Spark,
// so they are Spark's to the letter: "x" is a text, a backslash escapes, 5L is a
// BIGINT, and <=>, !, DIV and RLIKE are operators (sparktext.go). x[i] is refused:
// only its type tells whether i is a place or a key.
//
// # Isolation
//
// The allow-lists are the first wall. The second is the instance: in memory,
// no external access, no extensions, a locked configuration. Neither bounds a
// single call of a function, whose values DuckDB's memory limit does not count
// and which nothing interrupts (repeat('x', 4e9)). So functions that make much of
// little are given a guard (bounded.go, lambda.go, room.go): the size is known
// before the call, and beyond 16 MiB a value or 256 MiB a vector of 2,048 it ends
// with [SQL_LIMIT_EXCEEDED]. Values put together out of themselves, level by
// level or round by round, are counted in the tree (growth.go).
//
// A text that is not the operator's (Query.Guest, Query.GuestRules: what a
// plugin asks for, conditions in a manifest) first goes through a shorter list
// of constructs and functions (guest.go, guest.txt), its parameters become typed
// constants (param.go), and its result is bounded in rows, bytes and time
// (guestrun.go).
package sql
