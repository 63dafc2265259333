package state

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// The index of a run says how its file is cut, and holds the sums that are
// checked before anything there is believed:
//
//	uvarint  length of the head (magic and schema)
//	8 bytes  xxh3 of the head and the tail (end of stream, footer)
//	for each block (record batch message):
//	  uvarint  rows
//	  uvarint  length of its header, then of its body
//	  8 bytes  xxh3 of the header
//	  8 bytes  xxh3 of the body
type index struct {
	head   int64
	sum    uint64
	blocks []blockInfo
}

type blockInfo struct {
	rows, from, body, to  int64 // header at from, body at body, end at to
	headerSum, contentSum uint64
}

func (x *index) encode() []byte {
	out := binary.AppendUvarint(nil, uint64(x.head))
	out = binary.LittleEndian.AppendUint64(out, x.sum)
	for _, b := range x.blocks {
		out = binary.AppendUvarint(out, uint64(b.rows))
		out = binary.AppendUvarint(out, uint64(b.body-b.from))
		out = binary.AppendUvarint(out, uint64(b.to-b.body))
		out = binary.LittleEndian.AppendUint64(out, b.headerSum)
		out = binary.LittleEndian.AppendUint64(out, b.contentSum)
	}
	return out
}

// decodeIndex reads the index of a run.
func decodeIndex(p []byte, info RunInfo) (*index, bool) {
	r := indexReader{p: p}
	x := &index{head: r.number(info.Bytes), sum: r.word()}
	at, rows := x.head, int64(0)
	for r.ok() && len(r.p) > 0 {
		b := blockInfo{rows: r.number(maxBlockRows), from: at}
		b.body = b.from + r.number(info.Bytes)
		b.to = b.body + r.number(info.Bytes)
		b.headerSum, b.contentSum = r.word(), r.word()
		if b.rows == 0 || b.to > info.Bytes {
			return nil, false
		}
		at, rows = b.to, rows+b.rows
		x.blocks = append(x.blocks, b)
	}
	return x, r.ok() && rows >= info.Entries && at <= info.Bytes
}

// maxBlockRows bounds what a block may claim.
const maxBlockRows = 1 << 30

type indexReader struct {
	p   []byte
	bad bool
}

func (r *indexReader) ok() bool { return !r.bad }

func (r *indexReader) number(limit int64) int64 {
	v, n := binary.Uvarint(r.p)
	if n <= 0 || v > uint64(limit) {
		r.bad = true
		r.p = nil
		return 0
	}
	r.p = r.p[n:]
	return int64(v)
}

func (r *indexReader) word() uint64 {
	if len(r.p) < 8 {
		r.bad = true
		r.p = nil
		return 0
	}
	v := binary.LittleEndian.Uint64(r.p)
	r.p = r.p[8:]
	return v
}

// sumEnds is the sum of what stands before the first block and after the last.
func (x *index) sumEnds(head, tail []byte) uint64 {
	h := xxh3.New()
	_, _ = h.Write(head) // a hash takes everything
	_, _ = h.Write(tail)
	return h.Sum64()
}

// tail is where the last block ends.
func (x *index) tail() int64 {
	if n := len(x.blocks); n > 0 {
		return x.blocks[n-1].to
	}
	return x.head
}
