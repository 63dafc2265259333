// Package cache keeps on disk what is dear to make of a WebAssembly module:
// its compiled code and its manifest.
//
// Everything in it is derived: deleting the directory costs time and nothing
// else. The entries of compiled code are executable, so the directory is its
// owner's alone (0700), and every file is compared with the SHA-256 that was
// written when the entry was sealed, each time before it is used; an entry that
// differs, or that was never sealed, is deleted and made again. That guards
// against damage and against another user, not against the owner, who could
// replace the hashes as well.
//
// Writes are atomic (temporary file or directory, rename), so processes may share
// a directory. The cache holds so many bytes, see [Cache.Bound]; beyond them what was
// used longest ago goes. The package knows nothing of wasm: keys and bytes come from the
// caller, see runtime/plugin.
package cache
