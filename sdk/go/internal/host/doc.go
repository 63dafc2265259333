// Package host is the other side of the ABI: one function for each import of weir_v1.
//
// In a module they are the imports themselves. In a native build they go to whatever Interface Use
// was given, which is how package weirtest plays the host through the very same bytes. It gives the
// imports no meaning beyond slices and strings for pointers and lengths.
package host
