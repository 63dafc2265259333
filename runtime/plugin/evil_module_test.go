package plugin

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"testing"
	"time"
)

// repeat gives n times the same bytes.
func repeat(n int, b ...[]byte) []byte { return bytes.Repeat(cat(b...), n) }

// TestEvilModules are harm by a module's form, or before its first call. The
// compiler cannot be interrupted, so what makes it slow is refused before.
func TestEvilModules(t *testing.T) {
	nop := []byte{0x01}
	block := []byte{0x02, 0x40}
	loopHead, end := []byte{0x03, 0x40}, []byte{0x0b}
	edit := func(f func(a *asm)) []byte {
		a := guestAsm(oneFunction, append([]string{"log"}, echoImports...), echo(nil))
		a.sections = map[byte][][]byte{}
		f(a)
		return a.bytes()
	}
	more := func(n int, f asmFunc) func(a *asm) {
		return func(a *asm) {
			for range n {
				a.more = append(a.more, f)
			}
		}
	}
	items := func(section byte, n int, item []byte) func(a *asm) {
		return func(a *asm) {
			for range n {
				a.sections[section] = append(a.sections[section], item)
			}
		}
	}
	brTable := func(n int) []byte {
		return cat(block, i32(0), []byte{0x0e}, leb(uint64(n)), repeat(n, []byte{0}), []byte{0}, end)
	}
	forever := loop(br0)
	deeper := func(a *asm, name string) []byte { // calls itself: describe is the first function behind the imports, weir_call the next
		index := len(a.imports)
		if name == "weir_call" {
			index++
		}
		return cat([]byte{0x10}, leb(uint64(index)))
	}
	small := Limits{SetupTime: 300 * time.Millisecond, MemoryBytes: 16 << 20}
	for name, c := range map[string]struct {
		wasm  []byte
		code  string
		parts []string
	}{
		"five thousand nested loops":     {edit(more(1, asmFunc{body: cat(repeat(5000, loopHead), repeat(5000, end))})), CodeLimit, []string{"nesting = "}},
		"a hundred nested loops":         {edit(more(1, asmFunc{body: cat(repeat(100, loopHead), repeat(100, end))})), CodeLimit, []string{"loop_nesting = 64"}},
		"a body of 4 MiB":                {edit(more(1, asmFunc{body: repeat(4<<20, nop)})), CodeLimit, []string{"body_bytes = "}},
		"code of 48 MiB":                 {edit(more(48*2+1, asmFunc{body: repeat(1<<19, nop)})), CodeLimit, []string{"code_bytes = "}},
		"a br_table of 100,000":          {edit(more(1, asmFunc{body: brTable(100_000)})), CodeLimit, []string{"branch_table = "}},
		"a function of many br_tables":   {edit(more(1, asmFunc{body: repeat(20, brTable(5000))})), CodeLimit, []string{"function_targets = "}},
		"a module of many br_tables":     {edit(more(400, asmFunc{body: brTable(9000)})), CodeLimit, []string{"targets = "}},
		"a hundred thousand locals":      {edit(more(1, asmFunc{locals: cat([]byte{1}, leb(100_000), []byte{0x7f})})), CodeLimit, []string{"locals = "}},
		"four billion locals":            {edit(more(1, asmFunc{locals: cat([]byte{1}, leb(1<<32-1), []byte{0x7e})})), CodeLimit, []string{"locals = "}},
		"locals that overflow a number":  {edit(more(1, asmFunc{locals: cat([]byte{3}, leb(1<<32-1), []byte{0x7e}, leb(1<<32-1), []byte{0x7f}, leb(2), []byte{0x7f})})), CodeLimit, []string{"locals = "}},
		"two hundred thousand functions": {edit(more(200_000, asmFunc{})), CodeLimit, []string{"functions = "}},
		"a hundred thousand globals":     {edit(items(6, 100_000, cat([]byte{0x7f, 0}, i32(0), end))), CodeLimit, []string{"globals = "}},
		"a hundred thousand types":       {edit(items(1, 100_000, funcType("", ""))), CodeLimit, []string{"types = "}},
		"types of ten thousand values":   {edit(items(1, 1, cat([]byte{0x60}, leb(10_000), repeat(10_000, []byte{0x7f}), []byte{0}))), CodeLimit, []string{"values = "}},
		"a thousand tables":              {edit(items(4, 1000, []byte{0x70, 0, 0})), CodeLimit, []string{"tables = "}},
		"a table of a billion":           {edit(items(4, 1, cat([]byte{0x70, 0}, leb(1_000_000_000)))), CodeLimit, []string{"table_size = 131072"}},
		"half a million data segments":   {edit(items(11, 500_000, cat([]byte{1}, leb(0)))), CodeLimit, []string{"data_segments = "}},
		"a hundred thousand segments": {edit(func(a *asm) {
			items(4, 1, []byte{0x70, 0, 0})(a)
			items(9, 100_000, cat([]byte{0}, i32(0), end, leb(0)))(a)
		}), CodeLimit, []string{"element_segments = "}},
		"a hundred thousand exports": {edit(func(a *asm) {
			for i := range 100_000 {
				a.sections[7] = append(a.sections[7], cat(str(strconv.Itoa(i)), []byte{0}, leb(uint64(len(a.imports)))))
			}
		}), CodeLimit, []string{"exports = "}},
		"two thousand imports": {edit(func(a *asm) {
			for range 2000 {
				a.weirImport("fd_write")
			}
		}), CodeLimit, []string{"imports = "}},
		"a segment of two million entries": {edit(func(a *asm) {
			items(4, 1, []byte{0x70, 0, 0})(a)
			items(9, 1, cat([]byte{0}, i32(0), end, leb(2<<20), repeat(2<<20, []byte{0})))(a)
		}), CodeLimit, []string{"elements = "}},
		"a memory of 4 GiB":             {edit(func(a *asm) { a.pages, a.maxPages = 65536, 65536 }), CodeLimit, []string{"4294967296 bytes", "memory = 16777216"}},
		"a start function that loops":   {edit(func(a *asm) { a.code["_initialize"], a.start = forever, "_initialize" }), CodeLimit, []string{"setup_time = 300ms"}},
		"an _initialize that loops":     {edit(func(a *asm) { a.code["_initialize"] = forever }), CodeLimit, []string{"setup_time = 300ms"}},
		"a weir_describe that loops":    {edit(func(a *asm) { a.code["weir_describe"] = cat(forever, i32(0)) }), CodeLimit, []string{"setup_time = 300ms"}},
		"a weir_describe that recurses": {edit(func(a *asm) { a.code["weir_describe"] = deeper(a, "weir_describe") }), "", nil},
		"a weir_describe that logs": {edit(func(a *asm) {
			a.code["weir_describe"] = cat(loop(i32(1), i32(0), i32(4096), a.call("log"), br0), i32(0))
		}), CodeLimit, []string{"setup_time = 300ms"}},
		"an import of the meter":         {edit(func(a *asm) { a.imports = append(a.imports, asmImport{"weir_meter", "refuel", "l", "l"}) }), CodeUnknownImport, []string{`"weir_meter"."refuel"`}},
		"an export of the meter's":       {edit(items(7, 1, cat(str("weir_meter.fuel"), []byte{0}, leb(5)))), "PLUGIN_RESERVED_NAME", []string{"weir_meter.fuel"}},
		"a global that will be the fuel": {edit(func(a *asm) { a.code["weir_call"] = cat(i64(1<<62), []byte{0x24, 0}, forever, i32(0)) }), CodeInvalidModule, []string{"global"}},
		"a function that will be refuel": {edit(func(a *asm) {
			a.code["weir_call"] = cat(i64(1), []byte{0x10}, leb(uint64(len(a.imports)+2)), drop, i32(0))
		}), CodeInvalidModule, nil},
		"exceptions":                     {edit(func(a *asm) { a.code["weir_call"] = []byte{0x08, 0} }), "PLUGIN_UNSUPPORTED_FEATURE", []string{"exception-handling"}},
		"threads":                        {edit(func(a *asm) { a.code["weir_call"] = []byte{0xfe, 0x03, 0} }), "PLUGIN_UNSUPPORTED_FEATURE", []string{"threads"}},
		"tail calls":                     {edit(func(a *asm) { a.code["weir_call"] = []byte{0x12, 0} }), "PLUGIN_UNSUPPORTED_FEATURE", []string{"tail-call"}},
		"an unknown import among honest": {edit(func(a *asm) { a.imports = append(a.imports, asmImport{"env", "system", "i", "i"}) }), CodeUnknownImport, []string{`"env"."system"`}},
		"a socket of a later WASI": {edit(func(a *asm) {
			a.imports = append(a.imports, asmImport{"wasi_snapshot_preview2", "sock_open", "i", "i"})
		}), CodeUnknownImport, []string{"sock_open"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, Options{Limits: small})
			good := load(t, e, guest(oneFunction, echoImports, echo(nil)), nil)
			start := time.Now()
			m, err := e.Load(context.Background(), c.wasm, Config{Name: "evil"})
			if err == nil {
				_ = m.Close(context.Background())
			}
			if took := time.Since(start); took > patience {
				t.Errorf("it took %v", took)
			}
			var named *Error
			if errors.As(err, &named) && named.Limit == "compile_work" {
				c.parts = nil // the sum of what is slow was looked at first
			}
			if c.code == "" { // its stack overflows, or its time is over first
				c.code = code(err)
			}
			wantError(t, err, c.code, append(c.parts, "evil")...)
			if _, err := mapRows(t, good, Call{Function: "f"}, numbered(t, checked(t), 3)); err != nil {
				t.Errorf("afterwards a good module gives %v", err)
			}
			if n := e.MemoryInUse(); n != 0 {
				t.Errorf("%d bytes of linear memory are still charged", n)
			}
		})
	}
}

// TestATableGrowsToItsLimit: table.grow of 10⁹ is refused, and growing by one in
// a loop ends at the limit.
func TestATableGrowsToItsLimit(t *testing.T) {
	tableGrow := func(n uint32) []byte { return cat([]byte{0xd0, 0x70}, i32(n), []byte{0xfc, 15, 0}) }
	a := guestAsm(badManifest, []string{"input_close"}, func(a *asm) []byte {
		return cat(
			tableGrow(1_000_000_000), i32(0), ltS, eqz, when(unreachable),
			tableGrow(0xffffffff), i32(0), ltS, eqz, when(unreachable),
			loop(tableGrow(1), i32(0), ltS, eqz, []byte{0x0d, 0}),
			[]byte{0xfc, 16, 0}, i32(1000), []byte{0x46}, eqz, when(unreachable), // table.size
			i32(0), a.call("input_close"))
	})
	a.sections = map[byte][][]byte{4: {{0x70, 0, 10}}}
	m := load(t, newEngine(t, Options{Limits: Limits{TableElements: 1000}}), a.bytes(), nil)
	if _, err := mapRows(t, m, Call{Function: "f"}, numbered(t, checked(t), 1)); err != nil {
		t.Error(err)
	}
}
