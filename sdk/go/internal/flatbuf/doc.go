// Package flatbuf reads and writes the few flatbuffers that Arrow IPC metadata consists of.
//
// A Table reads fields in place. Malformed offsets end in Go's own bounds check, never in a read
// outside the buffer: the caller recovers at the module's boundary. A Builder writes back to front,
// as flatbuffers want it, into a buffer that is kept between messages. It knows no schema of its own.
package flatbuf
