// Package testscripts holds the end-to-end tests: the real binary, real
// plugins, real tables.
//
//   - script_test.go runs testdata/script/*.txtar, one file per behaviour that
//     a user can see. Beside testscript's own commands they have:
//     weir ARGS…          the command line, as its own process
//     landing DIR N [FROM] writes N small order documents, numbered from FROM
//     await FILE          waits until a file is there
//     rows SQL WANT       compares the CSV of a query with a golden file
//     bucket start        starts an S3 in which s3://lake/ is empty
//     bucket put KEY FILE writes an object into it
//     jsonl FILE EXPR     checks a field of JSON lines
//   - crash_test.go kills the process at every failpoint and at random
//     instants, and compares what is left with an undisturbed run.
//   - arrows_test.go holds the import arrows.
//   - docs_test.go runs what README.md and docs/cli.md show.
//   - real_test.go runs pipelines over the real data below WEIR_SHARED.
//   - bench and interop are programs of their own: `make bench`, `make interop`.
//
// The package exports nothing, and nothing imports it.
package testscripts
