package plugin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-data/weir/abi"
)

// mostShown is how much of a name or type of a module an error shows.
const mostShown = 200

// verify checks imports and exports by name, before anything is compiled.
func (info *moduleInfo) verify(limits Limits) error {
	if err := info.verifyImports(); err != nil {
		return err
	}
	describe, hasDescribe := info.exports[abi.ExportDescribe]
	call, hasCall := info.exports[abi.ExportCall]
	if _, command := info.exports[abi.ExportStart]; command && !hasDescribe && !hasCall {
		return errorf(CodeNotSupported, "it is a command module (it exports %s and not %s); this version runs reactors: in Go, build with -buildmode=c-shared", abi.ExportStart, abi.ExportCall)
	}
	var missing []string
	if e, ok := info.exports[abi.ExportMemory]; !ok || e.kind != externMemory {
		missing = append(missing, abi.ExportMemory)
	}
	if !hasDescribe {
		missing = append(missing, abi.ExportDescribe)
	}
	if !hasCall {
		missing = append(missing, abi.ExportCall)
	}
	if missing != nil {
		return errorf(CodeInvalidModule, "it does not export %s", strings.Join(missing, ", "))
	}
	for _, e := range []struct {
		name, want string
		got        exportEntry
		there      bool
	}{
		{abi.ExportDescribe, "() -> (i32)", describe, true},
		{abi.ExportCall, "(i32) -> (i32)", call, true},
		{abi.ExportInitialize, "() -> ()", info.exports[abi.ExportInitialize], has(info.exports, abi.ExportInitialize)},
	} {
		if e.there && (e.got.kind != externFunc || e.got.signature != e.want) {
			return errorf(CodeInvalidModule, "export %s has type %s instead of %s", e.name, clip(e.got.signature, mostShown), e.want)
		}
	}
	if info.memoryMore {
		return errorf(CodeInvalidModule, "its memory is shared or has 64-bit addresses")
	}
	if info.memoryMin > limits.MemoryBytes {
		return overLimit("memory", limits.MemoryBytes, fmt.Sprintf("the initial memory of %d bytes", info.memoryMin))
	}
	return nil
}

func has[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

func (info *moduleInfo) verifyImports() error {
	var unknown []string
	for _, e := range info.imports {
		want, known := signatures[e.module][e.name]
		switch {
		case e.kind != externFunc || !known:
			name := fmt.Sprintf("%s %q.%q", externNames[e.kind], clip(e.module, mostShown), clip(e.name, mostShown))
			if !slices.Contains(unknown, name) {
				unknown = append(unknown, name)
			}
		case e.signature != want:
			return errorf(CodeUnknownImport, "import %s.%s has type %s instead of %s", e.module, e.name, clip(e.signature, mostShown), want)
		}
	}
	if unknown == nil {
		return nil
	}
	more := ""
	if len(unknown) > 5 {
		more = fmt.Sprintf(" and %d more", len(unknown)-5)
		unknown = unknown[:5]
	}
	return errorf(CodeUnknownImport, "it imports %s%s, which this host does not give; it speaks %s", strings.Join(unknown, ", "), more, abi.ImportModule)
}

// signatures holds the type of every function that a host gives, by module and name.
var signatures = func() map[string]map[string]string {
	out := map[string]map[string]string{abi.ImportModule: {}, abi.WASIModule: {}}
	for _, f := range weirImports {
		out[abi.ImportModule][f.name] = f.signature()
	}
	for _, f := range wasiImports {
		out[abi.WASIModule][f.name] = f.signature()
	}
	return out
}()
