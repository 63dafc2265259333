// Package cloud keeps a storage.Store in an object store: S3 and what speaks
// its protocol, Azure Blob Storage, Google Cloud Storage.
//
// Open takes a URL (s3://bucket/prefix, azblob://container/prefix,
// gs://bucket/prefix); credentials come from the environment as each service's
// own tools find them. Requests go through gocloud.dev/blob and the services'
// own clients.
//
// Invariants:
//
//   - PutIfAbsent is one conditional request (If-None-Match: *, or what the
//     service calls it), never a look before a write. Every attempt carries a
//     mark; when the name is taken the mark tells whether by an attempt of our
//     own whose answer was lost. So it has exactly one winner, and the winner
//     knows.
//   - A store that does not honour the condition loses commits in silence. It is
//     tried before the first PutIfAbsent (Probe), and refused by the name
//     STORE_WITHOUT_CONDITIONAL_PUT.
//   - An open object never mixes two versions of its content: reads after the
//     first name the version they want.
//   - A listing that is not in the order of bytes is an error, not a wrong
//     answer.
//
// What a failing service answers is retried with growing pauses, a conflict
// with another writer (409) too. Locks are leases (TryLock): they outlive a
// dead process by at most a minute. Uploads that a killed process left are not
// visible and cost room until the bucket's own rule removes them.
//
// Names with control characters cannot be used, nor those that hold the escapes
// of gocloud.dev ("__0x2f__"); listings leave such objects out.
package cloud
