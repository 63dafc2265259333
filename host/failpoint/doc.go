// Package failpoint lets a test kill the process at a named instant, the way
// a power cut would: no deferred call runs, no file is closed.
//
// A failpoint is declared where it is hit, costs one atomic load when none is
// armed, and can be armed only by a program that calls ArmFromEnv: the test
// builds do, the released binary does not. Nothing else of a run changes.
package failpoint
