// Package cloudtest has object stores for tests: S3, Azure Blob Storage and
// Google Cloud Storage as far as package cloud and the clients of other engines
// use them, in memory, over HTTP, with conditional writes that are honest under
// races. A hook makes requests fail, late, or without an answer.
//
// It checks no signatures and knows one bucket. It is not a way to keep data.
package cloudtest
