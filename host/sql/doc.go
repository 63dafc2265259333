// Package sql runs SELECTs over Arrow streams with DuckDB and reads the
// CREATE … statements of a pipeline. It and the packages above it are the only
// ones that link DuckDB.
//
// # What happens to a query
//
//  1. spelling.go: what DuckDB's parser does not take as Spark writes it is spelled
//     in its way.
//  2. tree.go: DuckDB's json_serialize_sql gives the syntax tree of exactly one
//     SELECT; anything else is refused. intervals.go puts subqueries and joins where
//     current(t), as_of(t, …) and changes_between(t, …) stand, and refuses BETWEEN
//     with the ends of an interval.
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
// # What happens to a pipeline file
//
// substitute.go and parameters.go put in the configuration's values; pipeline.go
// takes the text apart (lex.go) and reads statement by statement: create.go and
// clauses.go, columns.go, keys.go what is declared, flow.go and autocdc.go flows,
// refused.go what a file cannot hold. A query is not parsed here: sources.go finds
// the relations in its FROM that are no tables (relation.go, sourcefunctions.go,
// eventlogs.go), puts a name in the place of each, and leaves everything else as it
// was written; origins (position.go) lead an error back to line and column.
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
// It is Spark's SQL in ANSI mode, computed by DuckDB: what is not refused gives the
// value and the type that Spark gives. docs/sql.md is the user's page, facts_test.go
// holds the engine to some 1,250 lines with the values of Spark itself. Where Spark
// has no word for something, DuckDB's is there: [1, 2], {'a': 1}, ASOF JOIN.
//
//   - spelling.go, spellclauses.go: texts, names, numbers, operators and clauses that
//     DuckDB's parser does not take as Spark writes them;
//   - spark.go: functions as templates; signature.go casts their arguments as Spark
//     does by itself; special.go, times.go, texts.go, lists.go, jsontext.go,
//     javaregex.go, aggregates.go, generators.go have those that no template says;
//   - typed.go: an operation whose meaning depends on types (/, x[i], CAST, round …)
//     waits as a call of probe.go's function, until binding has told the types of
//     its arguments; a query is bound once for each level of such operations;
//   - number.go, calendar.go, cast.go: arithmetic, dates and casts by type.
//
// What stays different: HUGEINT and the unsigned integers are types of their own, a
// sum of floating numbers depends on the order of its rows, as it does in Spark, and
// sine and its kin may differ in the last digit.
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
// expectations: one row's columns and nothing else.
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
