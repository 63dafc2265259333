// Package seam lets package weirtest drive package weir natively, as the exports let a host drive a
// module. Package weir fills it in native builds; in a module nothing is here.
package seam

var (
	// Describe is weir_describe.
	Describe func() int32
	// Call is weir_call.
	Call func(function int32) int32
	// Reset forgets what the definitions declared, so that they run again with other configuration.
	Reset func()
	// Run calls a func(*weir.Call) error that nobody declared, with the given number of inputs.
	Run func(fn any, inputs int) error
)
