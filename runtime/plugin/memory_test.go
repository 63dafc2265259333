package plugin

import "testing"

func TestMemoryGrowsInPlaceUpToItsLimit(t *testing.T) {
	for name, make := range map[string]func(uint64) region{"reserved": reserve, "heap": func(uint64) region { return &heap{} }} {
		t.Run(name, func(t *testing.T) {
			l := &linear{limit: 10 * page, budget: &budget{limit: noBound}}
			l.Allocate(0, 1<<32)
			l.mem.free()
			l.mem = make(l.max)
			defer l.Free()
			if b := l.Reallocate(0); b == nil || len(b) != 0 {
				t.Error("no memory at all is a refusal")
			}
			b := l.Reallocate(2 * page)
			if len(b) != 2*page || l.exhausted() {
				t.Fatalf("%d bytes, exhausted %v", len(b), l.exhausted())
			}
			b[0], b[2*page-1] = 1, 2
			b = l.Reallocate(9 * page)
			if b[0] != 1 || b[2*page-1] != 2 || b[9*page-1] != 0 {
				t.Error("growing lost what was written, or gave memory that is not zero")
			}
			if l.exhausted() {
				t.Error("exhausted before the end")
			}
			if l.Reallocate(11*page) != nil || !l.exhausted() {
				t.Error("grown past the limit")
			}
			if len(l.Reallocate(10*page)) != 10*page {
				t.Error("the limit itself is refused")
			}
		})
	}
}

func TestAMaximumOfTheModulesOwnCounts(t *testing.T) {
	l := &linear{limit: 100 * 65536, budget: &budget{limit: noBound}}
	l.Allocate(0, 4*65536)
	defer l.Free()
	l.Reallocate(4 * 65536)
	if !l.exhausted() {
		t.Error("a memory at the module's own maximum is not exhausted: wazero refuses to grow it and tells nobody")
	}
}
