package stream

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/weir-data/weir/host/fault"
)

// Lists of files are kept sorted by path and front-coded: an entry says how
// many bytes of the path before it also begin its own. docs/formats.md has the
// bytes. The same blocks serve for runs in the checkpoint and for what a run
// found and has not read yet, in memory.

// knownFile is one entry: a file, the batch that reads it, how that ended.
type knownFile struct {
	path  string
	batch int64
	size  int64
	mtime int64 // microseconds since 1970
	state byte  // an index of states
}

// states are the outcomes as a run stores them; the order is part of the format.
var states = [...]IngestionState{Ingested, SkippedCorrupted, SkippedMissing}

func stateCode(s IngestionState) byte {
	for i, have := range states {
		if have == s {
			return byte(i)
		}
	}
	return 0
}

const (
	blockBytes = 64 << 10 // a block ends once it is this long
	maxFrame   = 64 << 20 // a longer one is damage
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writeFrame writes length, checksum, payload.
func writeFrame(w io.Writer, payload []byte) error {
	var head [8]byte
	binary.LittleEndian.PutUint32(head[:4], uint32(len(payload)))
	binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(payload, castagnoli))
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.Write(payload)
	return err
}

// readFrame reads one frame into buf, grown as needed.
func readFrame(r io.Reader, buf []byte) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:4])
	if n > maxFrame {
		return nil, errDamaged
	}
	if cap(buf) < int(n) {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, err
	}
	if crc32.Checksum(buf, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, errDamaged
	}
	return buf, nil
}

// errDamaged says that bytes are not what this package wrote.
var errDamaged = fault.New("CHECKPOINT_CORRUPT", "the bytes are damaged")

// blockWriter writes entries as blocks. Paths must ascend.
type blockWriter struct {
	w     io.Writer
	from  int64 // batches are stored relative to this
	block []byte
	last  string // the path before
	mtime int64  // the mtime before, in this block
	count int64
}

func (b *blockWriter) add(f knownFile) error {
	if b.count > 0 && f.path <= b.last {
		return fault.New("INTERNAL_ERROR", "file %q after %q", f.path, b.last)
	}
	shared := 0
	if len(b.block) > 0 {
		shared = commonPrefix(b.last, f.path)
	} else {
		b.mtime = 0
	}
	b.block = binary.AppendUvarint(b.block, uint64(shared))
	b.block = binary.AppendUvarint(b.block, uint64(len(f.path)-shared))
	b.block = append(b.block, f.path[shared:]...)
	b.block = binary.AppendUvarint(b.block, uint64(f.batch-b.from))
	b.block = binary.AppendVarint(b.block, f.size)
	b.block = binary.AppendVarint(b.block, f.mtime-b.mtime)
	b.block = append(b.block, f.state)
	b.last, b.mtime = f.path, f.mtime
	b.count++
	if len(b.block) >= blockBytes {
		return b.flush()
	}
	return nil
}

func (b *blockWriter) flush() error {
	if len(b.block) == 0 {
		return nil
	}
	err := writeFrame(b.w, b.block)
	b.block = b.block[:0]
	return err
}

// end writes the last block and the empty frame after it.
func (b *blockWriter) end() error {
	if err := b.flush(); err != nil {
		return err
	}
	return writeFrame(b.w, nil)
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// blockReader reads what blockWriter wrote.
type blockReader struct {
	r     *bufio.Reader
	from  int64
	buf   []byte // the memory of the block
	block []byte // what is left of it
	path  []byte // of the current entry, valid until the next
	cur   knownFile
	first bool // the next entry starts a block
	count int64
	done  bool
}

// next moves to the next entry; false at the end. The entry's path is in
// b.path; b.cur.path is left empty, since most callers only compare.
func (b *blockReader) next() (bool, error) {
	if b.done {
		return false, nil
	}
	for len(b.block) == 0 {
		buf, err := readFrame(b.r, b.buf[:cap(b.buf)])
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = errDamaged
			}
			return false, err
		}
		if len(buf) == 0 {
			b.done = true
			return false, nil
		}
		b.buf, b.block, b.first = buf, buf, true
	}
	return b.entry()
}

func (b *blockReader) entry() (bool, error) {
	p := b.block
	shared, p, ok1 := uvarint(p)
	rest, p, ok2 := uvarint(p)
	if b.first {
		b.cur.mtime = 0
	}
	if !ok1 || !ok2 || shared > uint64(len(b.path)) || rest > uint64(len(p)) || (b.first && shared != 0) {
		return false, errDamaged
	}
	suffix, p := p[:rest], p[rest:]
	if b.count > 0 && !follows(b.path, int(shared), suffix) {
		return false, errDamaged
	}
	b.path = append(b.path[:shared], suffix...)
	batch, p, ok1 := uvarint(p)
	size, p, ok2 := varint(p)
	mtime, p, ok3 := varint(p)
	if !ok1 || !ok2 || !ok3 || len(p) == 0 || int(p[0]) >= len(states) {
		return false, errDamaged
	}
	b.cur.batch = b.from + int64(batch)
	b.cur.size = size
	b.cur.mtime += mtime
	b.cur.state = p[0]
	b.block, b.first = p[1:], false
	b.count++
	return true, nil
}

// follows tells whether prev[:shared]+suffix is greater than prev.
func follows(prev []byte, shared int, suffix []byte) bool {
	return string(suffix) > string(prev[shared:])
}

func uvarint(p []byte) (uint64, []byte, bool) {
	if len(p) > 0 && p[0] < 0x80 {
		return uint64(p[0]), p[1:], true
	}
	v, n := binary.Uvarint(p)
	if n <= 0 {
		return 0, p, false
	}
	return v, p[n:], true
}

func varint(p []byte) (int64, []byte, bool) {
	u, p, ok := uvarint(p)
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v, p, ok
}
