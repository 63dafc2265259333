//go:build wasip1

package weir

//go:wasmexport weir_describe
func exportDescribe() int32 { return describe() }

//go:wasmexport weir_call
func exportCall(function int32) int32 { return call(function) }
