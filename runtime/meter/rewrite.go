package meter

import "encoding/binary"

// Version changes whenever Rewrite gives other bytes for the same module and
// limits. It is part of the key of compiled code.
const Version = "2"

// Names that a rewritten module shares with its host. A guest that uses one is
// refused, and so is every import from ImportModule.
const (
	ImportModule = "weir_meter"
	ImportRefuel = "refuel"          // (i64) -> i64
	ExportFuel   = "weir_meter.fuel" // global (mut i64)
)

// Quantum is how much fuel a host hands out at a time. At about a nanosecond a
// unit or less the guest comes back every 30 to 100 µs, often enough for the
// garbage collector, and the call (50 ns) does not show. The worst that a guest
// can do between two calls is some milliseconds, or one bulk instruction.
const Quantum = 100_000

// Report says what a module holds and what was put in.
type Report struct {
	Functions    int    // with imported ones, without refuel
	CodeBytes    int    // of the bodies, before
	MeteredBytes int    // of the bodies, after
	Charges      int    // places that subtract fuel
	BulkCharges  int    // of these, ones whose amount depends on a length
	MemoryPages  uint32 // the memory's maximum, as written; 0 without a memory
	// What the shape limits are compared with.
	MaxBodyBytes       int
	MaxLocals          int
	MaxNesting         int
	MaxLoopNesting     int
	MaxFunctionTargets int
	Targets            int
	CompileWork        int64
}

// Rewrite gives the module with its metering, or an *Error that says why it is
// refused. The result depends on nothing but the arguments and Version.
func Rewrite(module []byte, limits Limits) (out []byte, report Report, err error) {
	w := &rewriter{limits: limits.withDefaults(), out: make([]byte, 0, len(module)+len(module)/3+128)}
	if fault := w.rewrite(module); fault != nil {
		return nil, Report{}, fault
	}
	return w.out, w.report, nil
}

// rewriter carries what earlier sections say to later ones.
type rewriter struct {
	limits Limits
	report Report
	out    []byte

	types             []signature
	refuelType        uint32
	functions         []uint32 // type of each, imported ones first, without refuel
	importedFunctions uint32   // also the index of refuel
	waitType          uint32   // () -> ()
	tables            uint32
	memories          uint32
	mutable           uint32 // globals
	globals           uint32 // also the index of the fuel
	elements          uint32
	dataCount         uint32
	hasDataCount      bool

	body body
	full []byte // the body that assemble makes, used again
}

// signature is how many values a function, or a block, takes and gives.
type signature struct{ params, results int }

// Section numbers, in the order in which the format wants them.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
	sectionTag       = 13
)

// place gives a section's rank in the order.
var place = [...]int{
	sectionType: 1, sectionImport: 2, sectionFunction: 3, sectionTable: 4, sectionMemory: 5, sectionGlobal: 6, sectionExport: 7,
	sectionStart: 8, sectionElement: 9, sectionDataCount: 10, sectionCode: 11, sectionData: 12,
}

var sectionNames = [...]string{"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data", "data count"}

func (w *rewriter) rewrite(module []byte) *Error {
	if int64(len(module)) > w.limits.ModuleBytes {
		return over("bytes of the module", uint64(len(module)), "ModuleBytes", w.limits.ModuleBytes)
	}
	sections, names, fault := split(module)
	if fault != nil {
		return fault
	}
	w.out = append(w.out, module[:8]...)
	for _, step := range []struct {
		id      byte
		always  bool // written even where the module has none
		rewrite func(r *reader) []byte
	}{
		{sectionType, true, w.typeSection},
		{sectionImport, true, w.importSection},
		{sectionFunction, true, w.functionSection},
		{sectionTable, false, w.tableSection},
		{sectionMemory, false, w.memorySection},
		{sectionGlobal, true, w.globalSection},
		{sectionExport, true, w.exportSection},
		{sectionStart, false, w.startSection},
		{sectionElement, false, w.elementSection},
		{sectionDataCount, false, w.dataCountSection},
		{sectionCode, true, w.codeSection},
		{sectionData, false, w.dataSection},
	} {
		content := sections[step.id]
		if content == nil && !step.always {
			continue
		}
		r := &reader{b: content}
		if content == nil {
			r.b = []byte{0}
		}
		rewritten := step.rewrite(r)
		if r.fault == nil && r.left() > 0 {
			r.fail(invalid("%d bytes follow its last item", r.left()))
		}
		if r.fault != nil {
			if r.fault.Code == CodeInvalidModule {
				r.fault.Message = "section " + sectionNames[step.id] + ": " + r.fault.Message
			}
			return r.fault
		}
		w.section(step.id, rewritten)
	}
	if names != nil {
		if kept := w.nameSection(names); kept != nil {
			w.section(sectionCustom, kept)
		}
	}
	return nil
}

func (w *rewriter) section(id byte, content []byte) {
	w.out = append(w.out, id)
	w.out = appendU32(w.out, uint32(len(content)))
	w.out = append(w.out, content...)
}

// split gives the content of each section by number, and of the name section.
func split(module []byte) (sections [13][]byte, names []byte, fault *Error) {
	if len(module) < 8 || string(module[:4]) != "\x00asm" {
		return sections, nil, invalid("it is not a WebAssembly module")
	}
	if v := binary.LittleEndian.Uint32(module[4:8]); v != 1 {
		return sections, nil, invalid("its version is %#x; a core module has 1", v)
	}
	r := &reader{b: module, at: 8}
	for last := 0; r.left() > 0; {
		id := r.byte()
		content := r.take(uint64(r.u32()))
		switch {
		case r.fault != nil:
			return sections, nil, r.fault
		case id == sectionCustom:
			s := &reader{b: content}
			name := s.name()
			if s.fault != nil {
				return sections, nil, s.fault
			}
			if name == "name" {
				names = content[s.at:]
			}
			continue
		case id == sectionTag:
			return sections, nil, unsupported("exception-handling", "it has a tag section")
		case int(id) >= len(sections):
			return sections, nil, invalid("it has a section of the unknown kind %d", id)
		case place[id] <= last:
			return sections, nil, invalid("section %s comes twice or too late", sectionNames[id])
		}
		last = place[id]
		if content == nil {
			content = []byte{}
		}
		sections[id] = content
	}
	return sections, names, nil
}

// shifted gives the new index of a function: refuel is the last import.
func (w *rewriter) shifted(index uint32) uint32 {
	if index < w.importedFunctions {
		return index
	}
	return index + 1
}

func appendU32(b []byte, v uint32) []byte { return binary.AppendUvarint(b, uint64(v)) }

func appendSigned(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func appendName(b []byte, name string) []byte {
	return append(appendU32(b, uint32(len(name))), name...)
}
