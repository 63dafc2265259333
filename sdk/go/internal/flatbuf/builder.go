package flatbuf

// Builder writes one flatbuffer back to front. Offsets it hands out count from the end of the buffer.
// The zero Builder is ready; Reset keeps its memory for the next one.
type Builder struct {
	buf      []byte
	head     int // first used byte of buf
	minAlign int
	fields   []int // offsets of the open table's fields; 0 = default
	tableEnd int
}

// Reset forgets what was written.
func (b *Builder) Reset() {
	b.head = len(b.buf)
	b.minAlign = 1
}

func (b *Builder) offset() int { return len(b.buf) - b.head }

func (b *Builder) room(n int) {
	if b.head >= n {
		return
	}
	grown := make([]byte, 2*len(b.buf)+n+256)
	at := len(grown) - b.offset()
	copy(grown[at:], b.buf[b.head:])
	b.head, b.buf = at, grown
}

// align pads so that, once extra more bytes are written, the position is a multiple of size.
//
//go:noinline
func (b *Builder) align(size, extra int) {
	if size > b.minAlign {
		b.minAlign = size
	}
	pad := -(b.offset() + extra) & (size - 1)
	b.room(pad + extra + size)
	for range pad {
		b.head--
		b.buf[b.head] = 0
	}
}

//go:noinline
func (b *Builder) push(v uint64, size int) {
	b.align(size, 0)
	b.head -= size
	for i := range size {
		b.buf[b.head+i] = byte(v >> (8 * i))
	}
}

//go:noinline
func (b *Builder) pushOffset(target int) {
	b.align(4, 0)
	b.push(uint64(b.offset()+4-target), 4)
}

// Start opens a table of n fields. Strings, vectors and tables it refers to must exist already.
//
//go:noinline
func (b *Builder) Start(n int) {
	b.fields = b.fields[:0]
	for range n {
		b.fields = append(b.fields, 0)
	}
	b.tableEnd = b.offset()
}

// Scalar sets field i to a number of size bytes, written even if it is the default.
//
//go:noinline
func (b *Builder) Scalar(i int, v uint64, size int) {
	b.push(v, size)
	b.fields[i] = b.offset()
}

// Bool sets field i.
//
//go:noinline
func (b *Builder) Bool(i int, v bool) {
	if v {
		b.Scalar(i, 1, 1)
	}
}

// Ref sets field i to a string, vector or table written before; 0 leaves it unset.
//
//go:noinline
func (b *Builder) Ref(i, target int) {
	if target == 0 {
		return
	}
	b.pushOffset(target)
	b.fields[i] = b.offset()
}

// End closes the table and gives its offset.
//
//go:noinline
func (b *Builder) End() int {
	b.push(0, 4) // place of the distance to the vtable
	table := b.offset()
	n := len(b.fields)
	for i := n - 1; i >= 0; i-- {
		off := 0
		if b.fields[i] != 0 {
			off = table - b.fields[i]
		}
		b.push(uint64(off), 2)
	}
	b.push(uint64(table-b.tableEnd), 2)
	b.push(uint64(4+2*n), 2)
	at := len(b.buf) - table
	dist := uint32(b.offset() - table)
	for i := range 4 {
		b.buf[at+i] = byte(dist >> (8 * i))
	}
	return table
}

// String writes a string and gives its offset.
func (b *Builder) String(s string) int {
	b.align(4, len(s)+1)
	b.head--
	b.buf[b.head] = 0
	b.head -= len(s)
	copy(b.buf[b.head:], s)
	b.push(uint64(len(s)), 4)
	return b.offset()
}

// Refs writes a vector of offsets to tables.
func (b *Builder) Refs(targets []int) int {
	b.align(4, 4*len(targets))
	for i := len(targets) - 1; i >= 0; i-- {
		b.pushOffset(targets[i])
	}
	b.push(uint64(len(targets)), 4)
	return b.offset()
}

// Pairs writes a vector of structs of two longs.
func (b *Builder) Pairs(pairs [][2]int64) int {
	b.align(4, 16*len(pairs))
	b.align(8, 16*len(pairs))
	for i := len(pairs) - 1; i >= 0; i-- {
		b.push(uint64(pairs[i][1]), 8)
		b.push(uint64(pairs[i][0]), 8)
	}
	b.push(uint64(len(pairs)), 4)
	return b.offset()
}

// Finish closes the buffer with its root table. The bytes are valid until Reset.
func (b *Builder) Finish(root int) []byte {
	b.align(b.minAlign, 4)
	b.pushOffset(root)
	return b.buf[b.head:]
}
