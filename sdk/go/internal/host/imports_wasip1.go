//go:build wasip1

package host

import "unsafe"

//go:wasmimport weir_v1 input_next
func inputNext(input uint32) int64

//go:wasmimport weir_v1 input_read
func inputRead(input uint32, ptr unsafe.Pointer, size uint32) int32

//go:wasmimport weir_v1 input_close
func inputClose(input uint32) int32

//go:wasmimport weir_v1 output_write
func outputWrite(output uint32, ptr unsafe.Pointer, size uint32) int32

//go:wasmimport weir_v1 query
func query(ptr unsafe.Pointer, size uint32) int32

//go:wasmimport weir_v1 conf_get
func confGet(key string, ptr unsafe.Pointer, size uint32) int32

//go:wasmimport weir_v1 context_read
func contextRead(ptr unsafe.Pointer, size uint32) int32

//go:wasmimport weir_v1 result_write
func resultWrite(ptr unsafe.Pointer, size uint32) int32

//go:wasmimport weir_v1 metric_add
func metricAdd(name string, value float64)

//go:wasmimport weir_v1 row_error
func rowError(input uint32, row int64, ptr unsafe.Pointer, size uint32)

//go:wasmimport weir_v1 state_read
func stateRead(ptr unsafe.Pointer, size uint32) int32

//go:wasmimport weir_v1 state_write
func stateWrite(ptr unsafe.Pointer, size uint32) int32

//go:wasmimport weir_v1 last_error
func lastError(ptr unsafe.Pointer, size uint32) int32

//go:wasmimport weir_v1 log
func log(level int32, text string)

//go:wasmimport weir_v1 fail
func fail(text string)

func pointer(p []byte) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.SliceData(p)), uint32(len(p))
}

// InputNext moves to the next message of an input.
func InputNext(input int) int64 { return inputNext(uint32(input)) }

// InputRead copies the current message into p.
func InputRead(input int, p []byte) int32 {
	ptr, n := pointer(p)
	return inputRead(uint32(input), ptr, n)
}

// InputClose says that no more of an input is wanted.
func InputClose(input int) int32 { return inputClose(uint32(input)) }

// OutputWrite hands over whole messages.
func OutputWrite(output int, p []byte) int32 {
	ptr, n := pointer(p)
	return outputWrite(uint32(output), ptr, n)
}

// Query opens a query as a new input.
func Query(request []byte) int32 { return query(pointer(request)) }

// ConfGet reads a configuration value.
func ConfGet(key string, p []byte) int32 {
	ptr, n := pointer(p)
	return confGet(key, ptr, n)
}

// ContextRead reads the call context.
func ContextRead(p []byte) int32 { return contextRead(pointer(p)) }

// ResultWrite hands over the manifest or a snapshot's version.
func ResultWrite(p []byte) int32 { return resultWrite(pointer(p)) }

// MetricAdd adds to a user metric.
func MetricAdd(name string, value float64) { metricAdd(name, value) }

// RowError reports a row that could not be transformed.
func RowError(input int, row int64, p []byte) {
	ptr, n := pointer(p)
	rowError(uint32(input), row, ptr, n)
}

// StateRead reads the committed state.
func StateRead(p []byte) int32 { return stateRead(pointer(p)) }

// StateWrite hands over the new state.
func StateWrite(p []byte) int32 { return stateWrite(pointer(p)) }

// LastError reads the text of the last import that failed.
func LastError(p []byte) int32 { return lastError(pointer(p)) }

// Log writes to the event log.
func Log(level int32, text string) { log(level, text) }

// Fail sets the message that the user will read.
func Fail(text string) { fail(text) }
