// Package plugin loads WebAssembly modules and runs their dataset functions.
package plugin
