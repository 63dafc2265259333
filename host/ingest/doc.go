// Package ingest reads file sources: what Lakeflow calls Auto Loader
// (`cloudFiles`) and `read_files`.
//
// A Source knows a folder and the options of its reader. List discovers the
// files, Infer makes a Schema from some of them, Read decodes chosen files to
// Arrow record batches. Which files are new, and what has been committed, is
// not known here: host/stream remembers that.
//
// Invariants:
//
//   - Nothing of a record is lost in silence. What does not fit the schema goes
//     to the rescued data column, a record that is no JSON or CSV goes there
//     whole, a file that cannot be read fails the read, and what no column can
//     take is counted.
//   - The output is a function of files, schema and options: rows come in the
//     order of the files and of the records in them, cut into the same batches,
//     however many goroutines work.
//   - Memory is bounded by the parallelism and the largest record, never by the
//     size of a file.
//   - Every option is implemented or refused by name.
//
// The way of the bytes: discover.go lists, chunk.go cuts a file into pieces of
// whole records, json_decode.go, json_value.go and csv_decode.go write them into
// the builders of column.go, rescue.go keeps what did not fit, work.go runs the
// workers, reader.go puts their batches in order. infer.go measures the shape of
// records (shape.go), from which schema.go makes columns. FORMAT.md has the
// decisions and the files' formats.
package ingest
