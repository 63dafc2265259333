//go:build !wasip1

package weir

import "embed"

// The sources live in this package's directories, and go:embed reaches no parent: so they are embedded
// here for package embedsdk. A program that does not use them does not carry them.
//
//go:embed *.go go.mod README.md internal weirtest
var sources embed.FS

// Sources gives the SDK's own files, tests included; package embedsdk is how to use them.
func Sources() embed.FS { return sources }
