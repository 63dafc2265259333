// Package wire moves Arrow record batches across the boundary to a guest, as
// the messages of an Arrow IPC stream.
//
// Towards the guest, [Encoder] lays a batch out (projection, slices with
// offsets, dictionaries decoded), says the size of the message, and then
// writes it straight into the memory it is given: one copy, none in between,
// and no allocation per row.
//
// From the guest, every byte is hostile. [Decoder] reads the framing and the
// flatbuffers with its own bounded reader, copies the body once, checks the
// copy (offsets, counts, UTF-8, precision, nesting, sizes; in 64 bits) and
// only then builds arrays, so a guest that changes its memory later changes
// nothing, and an array that leaves this package can be walked whole.
//
// What abi/README.md says under "Messages" and "What the host checks" is what
// this package does; it knows nothing of wasm. It does not compress, has no
// dictionary batches, and reads no file format. Neither an Encoder nor a
// Decoder may be used by two goroutines at once.
package wire
