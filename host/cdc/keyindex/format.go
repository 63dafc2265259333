package keyindex

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/weir-data/weir/host/cdc/rowcode"
)

// An index file is a header, blocks of records in the order of (hash, row), and
// the fences: the first eight bytes of the first hash of each block, so that a
// search reads the one block that can hold what it looks for. Numbers are
// little-endian, but hashes are compared as bytes. What changes here, or in how
// rowcode codes keys, needs another last byte of magic.
const (
	magic      = "weirkix\x01"
	blockSize  = 4096
	recordSize = 20 // hash, then the row in four bytes
	perBlock   = (blockSize - 4) / recordSize
	headerSize = blockSize
	headerUsed = 8 + 8 + 8 + 16 + 16 + 4 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errBroken says that an index file is not what it should be: it is built anew.
var errBroken = errors.New("the index file is damaged")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errBroken, fmt.Sprintf(format, args...))
}

// header says what an index file is of.
type header struct {
	records  int64 // in the file; rows without an identity have none
	rows     int64 // of the data file
	identity [16]byte
	file     [16]byte
	fences   uint32 // their checksum
}

func (h *header) blocks() int64 { return (h.records + perBlock - 1) / perBlock }

// size is how long the whole file is.
func (h *header) size() int64 { return headerSize + h.blocks()*(blockSize+8) }

func (h *header) encode() []byte {
	b := append(make([]byte, 0, headerSize), magic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.records))
	b = binary.LittleEndian.AppendUint64(b, uint64(h.rows))
	b = append(b, h.identity[:]...)
	b = append(b, h.file[:]...)
	b = binary.LittleEndian.AppendUint32(b, h.fences)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return b[:headerSize]
}

func decodeHeader(b []byte) (*header, error) {
	if len(b) < headerUsed || string(b[:8]) != magic {
		return nil, broken("no header of this version")
	}
	if crc32.Checksum(b[:headerUsed-4], castagnoli) != binary.LittleEndian.Uint32(b[headerUsed-4:]) {
		return nil, broken("the checksum of the header is wrong")
	}
	h := &header{
		records: int64(binary.LittleEndian.Uint64(b[8:])), rows: int64(binary.LittleEndian.Uint64(b[16:])),
		identity: [16]byte(b[24:40]), file: [16]byte(b[40:56]), fences: binary.LittleEndian.Uint32(b[56:]),
	}
	if h.records < 0 || h.rows < h.records || h.rows > maxRows {
		return nil, broken("%d records of %d rows", h.records, h.rows)
	}
	return h, nil
}

// sealBlock fills the checksum in. It covers the place in the file, too.
func sealBlock(b []byte, number int64) {
	binary.LittleEndian.PutUint32(b[blockSize-4:], blockSum(b, number))
}

func blockSum(b []byte, number int64) uint32 {
	return crc32.Checksum(b[:blockSize-4], castagnoli) ^ uint32(number)*0x9E3779B1
}

func checkBlock(b []byte, number int64) error {
	if binary.LittleEndian.Uint32(b[blockSize-4:]) != blockSum(b, number) {
		return broken("the checksum of block %d is wrong", number)
	}
	return nil
}

// entry is one record.
type entry struct {
	hash rowcode.Hash
	row  uint32
}

func (e *entry) put(b []byte) {
	copy(b, e.hash[:])
	binary.LittleEndian.PutUint32(b[16:], e.row)
}

func compareEntries(a, b entry) int {
	// Written out: it is most of what making an index file takes.
	x, y := prefix(a.hash[:]), prefix(b.hash[:])
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	if c := compareHashes(&a.hash, &b.hash); c != 0 {
		return c
	}
	switch {
	case a.row < b.row:
		return -1
	case a.row > b.row:
		return 1
	}
	return 0
}

func compareHashes(a, b *rowcode.Hash) int {
	x, y := prefix(a[:]), prefix(b[:])
	if x == y {
		x, y = prefix(a[8:]), prefix(b[8:])
	}
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// prefix gives the first eight bytes of a hash, such that numbers compare as the bytes do.
func prefix(hash []byte) uint64 { return binary.BigEndian.Uint64(hash) }
