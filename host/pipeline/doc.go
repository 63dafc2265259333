// Package pipeline is the driver: it reads the spec file, registers the
// datasets and flows of SQL files and plugin manifests into one graph, plans
// an update and runs it.
//
// Invariants:
//
//   - Everything that can be known to be wrong is an error before anything is
//     written: names, duplicates, cycles, a stream where a batch is needed, a
//     table that another pipeline owns, a construct this version cannot run.
//   - One update of a pipeline runs at a time; the lock dies with the process.
//   - A failed flow never stops another one that does not read from it; those
//     that do are SKIPPED. What may pass by itself is tried again within the
//     update, which has one end state.
//   - A dataset has flows (model.go): a streaming table or a sink any number, each
//     run, retried and reported by itself; a materialized view one, which computes
//     it whole. Temporary and persistent views are no tables: their queries are
//     part of those that read them.
//   - The spec, the SQL texts and the manifests are the only inputs of a plan;
//     planning the same project twice gives the same plan.
//
// It does not know how a micro-batch is made exactly once (host/stream), how
// files are read (host/ingest), how SQL is executed (host/sql) or how a module
// is sandboxed (runtime); it gives those the steps, sources and targets.
package pipeline
