// Package coltype is the one place where the names of column types live: the
// Spark name that manifests, hints and SQL use, the Arrow type that batches
// carry, and whether a Delta table can hold it. The table in abi/README.md is
// the same mapping for readers.
//
// [Parse] and [Name] are each other's inverse up to spelling: Name gives the
// canonical lower-case name, and Parse(Name(t)) is t for every type of the
// subset, with two losses that Spark's names have too: nullability of list
// elements and of map values is not part of a name.
//
// Names are case-insensitive, in SQL's or DataType's spelling (bigint and
// long). Nesting is bounded, so hostile text costs no stack. The package
// converts no values and knows nothing of Parquet or of JSON schemas.
package coltype
