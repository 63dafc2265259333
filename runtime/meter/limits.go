package meter

// Limits bounds the shape of a module and what its instances may ever hold. A
// zero field means its default. Compiling is work that nothing can interrupt,
// so whatever makes it slow is refused before; the comments name the largest
// honest module known (CPython 3.11 for WASI, Go with arrow-go, Rust).
type Limits struct {
	// ModuleBytes is the size of the binary.
	ModuleBytes int64
	// CodeBytes is the sum of all function bodies.
	CodeBytes int64
	// BodyBytes is the size of one function body.
	BodyBytes int64
	// Types, Imports, Functions (imported ones included), Tables, Globals,
	// Exports, ElementSegments and DataSegments are counts.
	Types           int64
	Imports         int64
	Functions       int64
	Tables          int64
	Globals         int64
	Exports         int64
	ElementSegments int64
	DataSegments    int64
	// Elements is the number of entries of all element segments together.
	Elements int64
	// Values is the number of parameters, or of results, of one type.
	Values int64
	// Locals is the number of locals of one function, parameters included.
	Locals int64
	// Nesting is the depth of blocks within one function.
	Nesting int64
	// BranchTable is the number of targets of one br_table,
	// FunctionTargets of all br_tables in one function, Targets in the module.
	BranchTable     int64
	FunctionTargets int64
	Targets         int64
	// CompileWork is an upper estimate of the time to compile, in nanoseconds
	// of one core; see work.go.
	CompileWork int64
	// MemoryBytes is the most a memory may grow to, in whole pages of 64 KiB.
	MemoryBytes int64
	// TableElements is the most entries a table may grow to.
	TableElements int64

	// InitialFuel is the value with which the fuel of an instance starts. With
	// 0 the first function that runs asks the host.
	InitialFuel int64
}

// DefaultLimits are the limits of a module for which the operator set none.
func DefaultLimits() Limits { return Limits{}.withDefaults() }

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *int64
		value int64
	}{
		{&l.ModuleBytes, 64 << 20},
		{&l.CodeBytes, 32 << 20},
		{&l.BodyBytes, 1 << 20},
		{&l.Types, 10_000},
		{&l.Imports, 1000},
		{&l.Functions, 100_000},
		{&l.Tables, 16},
		{&l.Globals, 10_000},
		{&l.Exports, 10_000},
		{&l.ElementSegments, 10_000},
		{&l.DataSegments, 100_000},
		{&l.Elements, 1 << 20},
		{&l.Values, 1000},
		{&l.Locals, 2000},
		{&l.Nesting, 1000},
		{&l.BranchTable, 10_000},
		{&l.FunctionTargets, 10_000},
		{&l.Targets, 1_000_000},
		{&l.CompileWork, 60_000_000_000},
		{&l.MemoryBytes, 256 << 20},
		{&l.TableElements, 1 << 20},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return l
}

const pageBytes = 64 << 10

// pages is MemoryBytes in pages, at most what 32-bit addresses reach.
func (l Limits) pages() uint32 { return uint32(min(l.MemoryBytes/pageBytes, 1<<16)) }

func (l Limits) elements() uint32 { return uint32(min(l.TableElements, 1<<32-1)) }
