package meter

// Limits bounds the shape of a module and what its instances may ever hold. A
// zero field means its default. Compiling is work that nothing can interrupt,
// so what makes it slow is refused before it starts. The comments name the
// most that was seen in honest modules: Go with arrow-go (17 MB), Go plugins
// with the SDK (2.5 MB), Rust (1.2 MB, a formatter), C.
type Limits struct {
	// ModuleBytes is the size of the binary. Go with arrow-go 17 MB.
	// Default 64 MiB.
	ModuleBytes int64
	// CodeBytes is the sum of all function bodies. Go with arrow-go 11 MB.
	// Default 32 MiB.
	CodeBytes int64
	// BodyBytes is one function's body. Go with arrow-go 502 kB, with the SDK
	// 29 kB. Default 1 MiB.
	BodyBytes int64
	// CompileWork is an upper estimate of the time to compile in nanoseconds of
	// one core (work.go). Go with arrow-go 25 s (11 s in truth), with the SDK
	// 1.7 s. Default 60 s.
	CompileWork int64

	// Functions counts imported ones too. Go with arrow-go 9,395. Default 100,000.
	Functions int64
	// Types, Imports, Exports, Globals, DataSegments and ElementSegments are
	// counts that compilers keep in the hundreds, Go's data segments in the
	// thousands. Defaults 10,000, 1,000, 10,000, 1,000, 100,000 and 10,000.
	Types           int64
	Imports         int64
	Exports         int64
	Globals         int64
	DataSegments    int64
	ElementSegments int64
	// Elements is the entries of all element segments together. One for each
	// function whose address is taken. Default 1 Mi.
	Elements int64
	// Values is the parameters, or the results, of one type. Default 1,000,
	// as in browsers.
	Values int64
	// Locals is the locals of one function with its parameters. C built by
	// zig 813, Go 21. Default 2,000.
	Locals int64
	// Nesting is the depth of blocks in a function. Go has a block for each
	// place where a function can be resumed: with arrow-go 6,750, with fmt 549.
	// Default 10,000.
	Nesting int64
	// LoopNesting is the depth of loops in loops, for which compiling pays
	// with the third power and more. Default 64.
	LoopNesting int64
	// BranchTable is the targets of one br_table, FunctionTargets of all of a
	// function, Targets of all. Go with arrow-go has 15,890 in a function and
	// 345,150 in all. Defaults 20,000, 50,000 and 1,000,000.
	BranchTable     int64
	FunctionTargets int64
	Targets         int64

	// MemoryBytes is the most that a memory may grow to, in whole pages of
	// 64 KiB. Default 256 MiB.
	MemoryBytes int64
	// Tables is how many tables there may be, TableElements the most entries,
	// of 8 bytes, that one may grow to. Defaults 16 and 1 Mi.
	Tables        int64
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
		{&l.CompileWork, 60_000_000_000},
		{&l.Functions, 100_000},
		{&l.Types, 10_000},
		{&l.Imports, 1000},
		{&l.Exports, 10_000},
		{&l.Globals, 1000},
		{&l.DataSegments, 100_000},
		{&l.ElementSegments, 10_000},
		{&l.Elements, 1 << 20},
		{&l.Values, 1000},
		{&l.Locals, 2000},
		{&l.Nesting, 10_000},
		{&l.LoopNesting, 64},
		{&l.BranchTable, 20_000},
		{&l.FunctionTargets, 50_000},
		{&l.Targets, 1_000_000},
		{&l.MemoryBytes, 256 << 20},
		{&l.Tables, 16},
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
