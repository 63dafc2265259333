// Package abi is the contract between the host and a WebAssembly module that
// carries dataset functions: the manifest a module describes itself with, the
// context a call is given, the JSON of a row error. The normative text is
// README.md in this directory; manifest.schema.json is the same for tools,
// weir_v1.h the same for a guest in C, testdata the golden vectors and
// conformance the cases that any module of an SDK can be run against.
//
// [ParseManifest] refuses what it does not know, with the path of the field;
// a manifest that came out of it keeps every rule of README.md, so the host
// never checks one again. Bytes from a guest are hostile: size, nesting,
// UTF-8, duplicate keys and every name are checked here.
//
// The package runs nothing and reads no file. It is for hosts: a guest needs
// README.md and nothing of this package, whose parser uses encoding/json.
package abi
