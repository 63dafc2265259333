package delta

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// boundedAllocator refuses what is out of proportion to the file that is read:
// the header of a page may promise gigabytes in a file of a few bytes. It
// panics, as allocators do that cannot give; guard makes an error of that.
type boundedAllocator struct {
	memory.Allocator
	most int
}

// Room for what any file may need at once: to decode a page, and for an array of a batch.
const (
	pageRoom  = 64 << 20
	arrayRoom = 512 << 20
)

func newBoundedAllocator(mem memory.Allocator, room, fileSize int64) memory.Allocator {
	return &boundedAllocator{mem, int(room + min(256*fileSize, 1<<40))}
}

func (a *boundedAllocator) check(size int) {
	if size > a.most {
		panic(fmt.Sprintf("it asks for %d bytes at once, at most %d are in proportion to its size", size, a.most))
	}
}

// Allocate implements memory.Allocator.
func (a *boundedAllocator) Allocate(size int) []byte {
	a.check(size)
	return a.Allocator.Allocate(size)
}

// Reallocate implements memory.Allocator.
func (a *boundedAllocator) Reallocate(size int, b []byte) []byte {
	a.check(size)
	return a.Allocator.Reallocate(size, b)
}
