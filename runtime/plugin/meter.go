package plugin

// Meter rewrites a module before it is compiled, so that its loops and bulk
// instructions count what they use and give the host a chance to stop them.
// It sees a module that passed the checks of Load and whose size is bounded.
type Meter interface {
	// Rewrite gives the module to compile, or refuses it.
	Rewrite(wasm []byte) ([]byte, error)
	// Version changes whenever Rewrite gives other bytes; it is part of the
	// cache key of compiled code.
	Version() string
}
