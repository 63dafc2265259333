package plugin

import (
	"fmt"
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

// budget is what the linear memories of all instances of an engine may take
// together.
type budget struct {
	limit   int64
	used    atomic.Int64
	relieve func() bool // gives up something that is only kept; nil where there is nothing
}

func (b *budget) take(n int64) bool {
	for b.used.Add(n) > b.limit {
		b.used.Add(-n)
		if b.relieve == nil || !b.relieve() {
			return false
		}
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// linear is the memory of one instance. It keeps the module under its limit,
// whatever maximum the module declares, charges the engine's budget for what it
// grows by, and remembers that it said no, since a guest only sees that it is out
// of memory.
type linear struct {
	limit   uint64
	budget  *budget
	max     uint64
	size    uint64
	charged uint64
	refused bool
	shared  bool // refused for the budget's sake
	mem     region
}

// region is reserved address space whose front is in use.
type region interface {
	// grow gives the first size bytes, or nil.
	grow(size uint64) []byte
	free()
}

// begin charges what the instance starts with, before wazero asks for it: it
// takes no refusal then.
func (l *linear) begin(size uint64) error {
	if !l.charge(size) {
		return overLimit("memory_budget", l.budget.limit, fmt.Sprintf("the memory of all instances with one more of %d bytes", size))
	}
	return nil
}

func (l *linear) charge(size uint64) bool {
	if size > l.charged {
		if !l.budget.take(int64(size - l.charged)) {
			return false
		}
		l.charged = size
	}
	return true
}

// Allocate implements experimental.MemoryAllocator for this one instance.
func (l *linear) Allocate(_, most uint64) experimental.LinearMemory {
	l.max = min(most, l.limit)
	l.mem = reserve(l.max)
	return l
}

// Reallocate implements experimental.LinearMemory.
func (l *linear) Reallocate(size uint64) []byte {
	if size > l.max {
		l.refused = true
		return nil
	}
	if !l.charge(size) {
		l.refused, l.shared = true, true
		return nil
	}
	b := l.mem.grow(size)
	if b == nil {
		l.refused = true
		return nil
	}
	l.size = size
	return b
}

// Free implements experimental.LinearMemory.
func (l *linear) Free() {
	if l.mem != nil {
		l.mem.free()
		l.mem = nil
	}
	l.budget.give(int64(l.charged))
	l.charged = 0
}

// exhausted reports whether the guest ran, or nearly ran, into the end of its
// memory: wazero itself refuses to grow past the maximum a module declares,
// and tells nobody.
func (l *linear) exhausted() bool {
	return l.refused || l.max > 0 && l.size >= l.max-l.max/16
}

// reason says which limit it was that a guest ran into.
func (l *linear) reason() string {
	if l.shared {
		return fmt.Sprintf("it has %d bytes of memory and the instances of this host together may have no more; limit memory_budget = %d", l.size, l.budget.limit)
	}
	return fmt.Sprintf("its memory of %d bytes is used up; limit memory = %d", l.size, l.limit)
}

// heap is a region of the Go heap, for systems without mmap and when
// reserving fails.
type heap struct{ b []byte }

func (h *heap) grow(size uint64) []byte {
	if h.b == nil || size > uint64(cap(h.b)) {
		b := make([]byte, size, max(size, min(2*uint64(cap(h.b)), 1<<32)))
		copy(b, h.b)
		h.b = b
	}
	h.b = h.b[:size]
	return h.b
}

func (h *heap) free() { h.b = nil }
