package plugin

import "github.com/tetratelabs/wazero/experimental"

// linear is the memory of one instance. It keeps the module under the limit,
// whatever maximum the module declares, and remembers that it said no, since
// a guest only sees that it is out of memory.
type linear struct {
	limit   uint64
	max     uint64
	size    uint64
	refused bool
	mem     region
}

// region is reserved address space whose front is in use.
type region interface {
	// grow gives the first size bytes, or nil.
	grow(size uint64) []byte
	free()
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
}

// exhausted reports whether the guest ran, or nearly ran, into the end of its
// memory: wazero itself refuses to grow past the maximum a module declares,
// and tells nobody.
func (l *linear) exhausted() bool {
	return l.refused || l.max > 0 && l.size >= l.max-l.max/16
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
