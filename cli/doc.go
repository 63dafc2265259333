// Package cli is the weir command: one file per verb.
//
// Invariants:
//
//   - Standard output carries the answer and nothing else; progress, warnings
//     and errors go to standard error. With --output json the answer is one
//     JSON object per line, and docs/cli.md says what stands in it.
//   - Flags may stand anywhere. An unknown flag or command is an error, never ignored.
//   - The exit code is 0 when all went well, 1 when an update (or the work
//     asked for) failed, 2 when the command line or the project is wrong.
//   - Errors are printed as one line that begins with [CODE].
//
// The package holds no rule about data: it reads arguments, calls
// host/pipeline, host/delta and runtime/plugin, and prints what they say.
package cli
