// Command tables writes Delta tables that use what host/delta can write, and
// reads them back as JSON, so that tables.py can let other engines read them,
// change them and look after them.
//
//	tables write DIR      writes one table per protocol feature and DIR/tables.json, which lists them
//	tables dump PATH      prints the rows of a table, one JSON object a line, then the type of each column
//	tables changes PATH   prints its change data feed from the first version that has one
//	tables vacuum PATH    runs OPTIMIZE and then VACUUM without a retention
//	tables check PATH     fails when the log and the files do not fit each other
//
// It proves nothing by itself and holds no expected values: what must be equal
// is compared by tables.py.
package main
