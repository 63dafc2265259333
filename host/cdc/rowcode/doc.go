// Package rowcode turns rows into bytes that can be compared, hashed and kept:
// the keys, sequences and contents of AUTO CDC.
//
// A key code (Keys) is canonical: equal SQL values give equal bytes, so that
// its hash (Hashes) finds a key again. An order code (Order) compares as bytes
// the way Spark compares the values (NULL fields first, -0.0 equal to 0.0, NaN
// above everything), and the value can be had back (AppendOrder). A content
// hash (Rows) tells whether two rows hold the same values.
//
// All three are written to the state of a target and read by later releases:
// what a value's code is must not change. A value's code does not depend on the
// width of its type, so widening a column (int to bigint, float to double,
// more digits of a decimal) changes no code.
//
// AppendOrder takes bytes from anywhere and never panics. The other functions
// take arrays, which the caller vouches for.
package rowcode
