// Package catalog turns the three-part names of tables into places in the
// storage, and keeps who owns what.
//
// Invariants:
//
//   - A name is lower case once parsed, as in Unity Catalog: Orders and orders
//     are one table and one directory.
//   - A table has exactly one owning pipeline. The claim is one object made by
//     put-if-absent, so of two pipelines that claim at once one loses.
//   - A persistent view is one object too, replaced as a whole by the pipeline
//     that owns its name.
//   - The tables of a catalog say in one way from when until when rows hold. The
//     first one that has to say it decides, by put-if-absent.
//   - A pipeline has one identity, a UUID made by put-if-absent at its first
//     run; it is part of every transaction id its flows write.
//
// The package does not open tables (host/delta) and knows nothing of flows.
// The objects it writes are described in docs/formats.md.
package catalog
