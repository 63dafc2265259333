package delta

import (
	"hash/maphash"
	"maps"
)

// fileSet holds the logical files of a snapshot by their keys. It is cheap to
// derive from a big one: versions share a frozen base, and what differs from it
// lies in a few maps on top, each at least twice as big as the one above. A
// snapshot of a table with many files thus advances by the size of a commit.
type fileSet[T any] struct {
	base *fileBase[T]
	over []map[string]*T // frozen, oldest first; nil for what was dropped
	top  map[string]*T   // of this value alone
	own  bool            // base belongs to this value alone and may be changed
	n    int
}

func newFileSet[T any]() *fileSet[T] {
	return &fileSet[T]{base: newFileBase[T](), own: true}
}

// fork gives a value that can be changed without changing s, which must be frozen.
func (s *fileSet[T]) fork() *fileSet[T] {
	above := 0
	for _, m := range s.over {
		above += len(m)
	}
	if above <= 1024 || above*4 <= len(s.base.items) {
		return &fileSet[T]{base: s.base, over: s.over[:len(s.over):len(s.over)], n: s.n}
	}
	return &fileSet[T]{base: s.compact(), n: s.n, own: true}
}

// compact makes a base of what is live.
func (s *fileSet[T]) compact() *fileBase[T] {
	base := newFileBase[T]()
	base.reserve(s.n)
	s.each(func(k string, v *T) { base.put(k, v) })
	return base
}

// freeze ends the changes to the value.
func (s *fileSet[T]) freeze() {
	if s.own && len(s.base.items) > 2*s.n+1024 {
		s.base = s.compact() // a long history leaves many names of files that are gone
	}
	s.own = false
	if len(s.top) == 0 {
		return
	}
	top := s.top
	s.top = nil
	for len(s.over) > 0 && len(s.over[len(s.over)-1]) < 2*len(top) {
		merged := maps.Clone(s.over[len(s.over)-1])
		maps.Copy(merged, top)
		top, s.over = merged, s.over[:len(s.over)-1]
	}
	s.over = append(s.over[:len(s.over):len(s.over)], top)
}

func (s *fileSet[T]) get(k string) (*T, bool) {
	if v, ok := s.top[k]; ok {
		return v, v != nil
	}
	for i := len(s.over) - 1; i >= 0; i-- {
		if v, ok := s.over[i][k]; ok {
			return v, v != nil
		}
	}
	v := s.base.get(k)
	return v, v != nil
}

func (s *fileSet[T]) set(k string, v *T) {
	if s.own {
		if s.base.put(k, v) {
			s.n++
		}
		return
	}
	if _, ok := s.get(k); !ok {
		s.n++
	}
	s.put(k, v)
}

// reserve makes room for n more entries.
func (s *fileSet[T]) reserve(n int) {
	if s.own {
		s.base.reserve(len(s.base.keys) + n)
	}
}

func (s *fileSet[T]) drop(k string) {
	if s.own {
		if s.base.drop(k) {
			s.n--
		}
		return
	}
	if _, ok := s.get(k); ok {
		s.n--
		s.put(k, nil)
	}
}

func (s *fileSet[T]) put(k string, v *T) {
	if s.top == nil {
		s.top = map[string]*T{}
	}
	s.top[k] = v
}

// each calls f for every live entry: those of the base in the order they came, then the others in none.
func (s *fileSet[T]) each(f func(k string, v *T)) {
	s.eachWhile(func(k string, v *T) bool { f(k, v); return true })
}

// eachWhile is each, until f says false.
func (s *fileSet[T]) eachWhile(f func(k string, v *T) bool) {
	if s.eachBase(f) {
		s.eachAbove(f)
	}
}

// maps gives what lies above the base, oldest first.
func (s *fileSet[T]) maps() []map[string]*T {
	if len(s.top) == 0 {
		return s.over
	}
	return append(s.over[:len(s.over):len(s.over)], s.top)
}

func hidden[T any](k string, above []map[string]*T) bool {
	for _, m := range above {
		if _, ok := m[k]; ok {
			return true
		}
	}
	return false
}

func (s *fileSet[T]) eachBase(f func(k string, v *T) bool) bool {
	above := s.maps()
	for i, v := range s.base.items {
		if v != nil && !(len(above) > 0 && hidden(s.base.keys[i], above)) && !f(s.base.keys[i], v) {
			return false
		}
	}
	return true
}

func (s *fileSet[T]) eachAbove(f func(k string, v *T) bool) {
	above := s.maps()
	for i, m := range above {
		for k, v := range m {
			if v != nil && !hidden(k, above[i+1:]) && !f(k, v) {
				return
			}
		}
	}
}

// split gives the live entries of the base, in the order they came, and the others in none.
func (s *fileSet[T]) split() (base, above []*T) {
	base = make([]*T, 0, s.n)
	s.eachBase(func(_ string, v *T) bool { base = append(base, v); return true })
	s.eachAbove(func(_ string, v *T) bool { above = append(above, v); return true })
	return base, above
}

// fileBase is a hash table that keeps its entries in the order they came: two
// slices and a table of 32-bit positions instead of a map, which is what a
// hundred thousand files are opened with.
type fileBase[T any] struct {
	seed   maphash.Seed
	keys   []string
	items  []*T // nil for what was dropped
	hashes []uint32
	slots  []uint32 // position + 1, 0 is free; a power of two long
}

func newFileBase[T any]() *fileBase[T] { return &fileBase[T]{seed: maphash.MakeSeed()} }

func (b *fileBase[T]) hash(k string) uint32 { return uint32(maphash.String(b.seed, k)) }

// find gives the slot of a key, and whether it is taken by it; the table must not be empty.
func (b *fileBase[T]) find(k string, h uint32) (slot uint32, ok bool) {
	mask := uint32(len(b.slots) - 1)
	for slot = h & mask; ; slot = (slot + 1) & mask {
		at := b.slots[slot]
		if at == 0 {
			return slot, false
		}
		if b.hashes[at-1] == h && b.keys[at-1] == k {
			return slot, true
		}
	}
}

func (b *fileBase[T]) get(k string) *T {
	if len(b.slots) == 0 {
		return nil
	}
	slot, ok := b.find(k, b.hash(k))
	if !ok {
		return nil
	}
	return b.items[b.slots[slot]-1]
}

// put sets an entry and tells whether there was none.
func (b *fileBase[T]) put(k string, v *T) bool {
	return b.putHashed(k, b.hash(k), v)
}

func (b *fileBase[T]) putHashed(k string, h uint32, v *T) bool {
	if len(b.keys)*2 >= len(b.slots) {
		b.reserve(len(b.keys) + 1)
	}
	slot, ok := b.find(k, h)
	if ok {
		at := b.slots[slot] - 1
		fresh := b.items[at] == nil
		b.items[at] = v
		return fresh
	}
	b.keys, b.items, b.hashes = append(b.keys, k), append(b.items, v), append(b.hashes, h)
	b.slots[slot] = uint32(len(b.keys))
	return true
}

// drop takes an entry out and tells whether there was one.
func (b *fileBase[T]) drop(k string) bool {
	if len(b.slots) == 0 {
		return false
	}
	slot, ok := b.find(k, b.hash(k))
	if !ok || b.items[b.slots[slot]-1] == nil {
		return false
	}
	b.items[b.slots[slot]-1] = nil
	return true
}

// reserve makes room for n entries altogether.
func (b *fileBase[T]) reserve(n int) {
	size := 64
	for size < 2*n+2 {
		size *= 2
	}
	if size <= len(b.slots) {
		return
	}
	if room := size / 2; cap(b.keys) < n {
		b.keys = append(make([]string, 0, room), b.keys...)
		b.items = append(make([]*T, 0, room), b.items...)
		b.hashes = append(make([]uint32, 0, room), b.hashes...)
	}
	b.slots = make([]uint32, size)
	mask := uint32(size - 1)
	for i, h := range b.hashes {
		slot := h & mask
		for b.slots[slot] != 0 {
			slot = (slot + 1) & mask
		}
		b.slots[slot] = uint32(i + 1)
	}
}
