package meter

import "fmt"

// What wazero's compiler takes, in nanoseconds, measured on modules made to be
// slow (TestCompileWorkBounds measures again). Its passes over a function are
// quadratic in the basic blocks; each loop carries every local that it touches
// as a parameter, each other merge some; a br_table's targets are blocks of
// their own, and values carried along are copied; after a call each mutable global is read anew.
const (
	workFunction   = 20_000
	workByte       = 400
	workBlockPair  = 4
	workLoopLocal  = 400
	workBlockLocal = 300
	workTarget     = 7000
	workCall       = 1500
	workReload     = 150
	workValue      = 500
)

// estimate adds what compiling a body will take, and refuses what is over the limit.
func (w *rewriter) estimate(b *body, function uint32, size int) *Error {
	charges := int64(1)
	for _, e := range b.edits {
		if e.kind == charge {
			charges++
		}
	}
	blocks := int64(b.blocks) + 3*charges
	work := workFunction + workByte*int64(size) + workBlockPair*blocks*blocks +
		(workLoopLocal*int64(b.loops)*int64(b.nested+3)+workBlockLocal*blocks)*int64(b.locals) +
		workTarget*int64(b.targets) + workValue*int64(b.values) + (int64(b.calls)+charges)*(workCall+workReload*int64(w.mutable))
	w.report.CompileWork += work
	if w.report.CompileWork > w.limits.CompileWork {
		return over(fmt.Sprintf("estimated nanoseconds to compile up to function %d", function), uint64(w.report.CompileWork), "CompileWork", w.limits.CompileWork)
	}
	return nil
}
