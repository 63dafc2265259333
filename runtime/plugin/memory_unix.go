//go:build unix

package plugin

import "golang.org/x/sys/unix"

// mapped is address space that becomes readable as the guest grows: growing
// copies nothing, and untouched pages cost nothing.
type mapped struct {
	all  []byte
	open uint64
}

func reserve(size uint64) region {
	if size == 0 {
		return &heap{}
	}
	all, err := unix.Mmap(-1, 0, int(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return &heap{}
	}
	return &mapped{all: all}
}

func (m *mapped) grow(size uint64) []byte {
	if size > uint64(len(m.all)) {
		return nil
	}
	if size > m.open {
		page := uint64(unix.Getpagesize())
		end := min((size+page-1)/page*page, uint64(len(m.all)))
		if err := unix.Mprotect(m.all[:end], unix.PROT_READ|unix.PROT_WRITE); err != nil {
			return nil
		}
		m.open = end
	}
	return m.all[:size:size]
}

func (m *mapped) free() {
	if m.all != nil {
		_ = unix.Munmap(m.all)
		m.all = nil
	}
}
