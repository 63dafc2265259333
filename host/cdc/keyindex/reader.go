package keyindex

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"

	"github.com/weir-data/weir/host/cdc/rowcode"
)

// reader is an index file that is open. Its methods may be called at once.
type reader struct {
	file   *os.File
	head   *header
	fences []uint64
}

// openReader opens an index file. Any error means that it is to be made anew.
func openReader(name string) (*reader, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	r := &reader{file: f}
	if err := r.start(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// start reads the header and the fences.
func (r *reader) start() error {
	buf := make([]byte, headerUsed)
	if _, err := r.file.ReadAt(buf, 0); err != nil {
		return broken("the header: %v", err)
	}
	var err error
	if r.head, err = decodeHeader(buf); err != nil {
		return err
	}
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != r.head.size() {
		return broken("%d bytes long instead of %d", info.Size(), r.head.size())
	}
	n := r.head.blocks()
	buf = make([]byte, 8*n)
	if _, err := r.file.ReadAt(buf, headerSize+n*blockSize); err != nil && !errors.Is(err, io.EOF) {
		return broken("the fences: %v", err)
	}
	if crc32.Checksum(buf, castagnoli) != r.head.fences {
		return broken("the checksum of the fences is wrong")
	}
	r.fences = make([]uint64, n)
	for i := range r.fences {
		r.fences[i] = binary.LittleEndian.Uint64(buf[8*i:])
	}
	return nil
}

func (r *reader) close() error { return r.file.Close() }

// readAhead is the most blocks that are read at once.
const readAhead = 64

// window is the part of a file that a search has in memory.
type window struct {
	r           *reader
	buf         []byte
	first, have int64 // blocks
	ahead       int64 // how many to read at once
}

// block gives a block.
func (w *window) block(number int64) ([]byte, error) {
	if number < w.first || number >= w.first+w.have {
		n := min(w.ahead, w.r.head.blocks()-number)
		w.have = 0
		if _, err := w.r.file.ReadAt(w.buf[:n*blockSize], headerSize+number*blockSize); err != nil {
			return nil, broken("block %d: %v", number, err)
		}
		for i := range n {
			if err := checkBlock(w.buf[i*blockSize:(i+1)*blockSize], number+i); err != nil {
				return nil, err
			}
		}
		w.first, w.have = number, n
	}
	at := (number - w.first) * blockSize
	return w.buf[at : at+blockSize], nil
}

// search calls hit for every record with one of the sorted hashes. Both sides
// are sorted, so each search starts where the one before ended, and blocks
// between that hold nothing are not read.
func (r *reader) search(ids []rowcode.Hash, hit func(at int, row int64)) error {
	blocks := r.head.blocks()
	if blocks == 0 || len(ids) == 0 {
		return nil
	}
	// Where about every second block will be needed, whole stretches are read.
	first := gallop(r.fences, 0, prefix(ids[0][:]))
	spread := gallop(r.fences, first, prefix(ids[len(ids)-1][:])) - first
	w := &window{r: r, ahead: min(readAhead, max(1, 2*int64(len(ids))/max(1, spread)))}
	if w.ahead > 1 {
		w.ahead = readAhead
	}
	w.buf = make([]byte, w.ahead*blockSize)
	var at position
	for i := range ids {
		if i > 0 && ids[i] == ids[i-1] {
			continue
		}
		if err := r.one(w, &at, &ids[i], func(row int64) { hit(i, row) }); err != nil {
			return err
		}
	}
	return nil
}

// position is a record: everything before it is less than what was looked for last.
type position struct {
	block  int64
	record int
}

// one looks for a hash that is not less than the one before it.
func (r *reader) one(w *window, at *position, id *rowcode.Hash, hit func(row int64)) error {
	p := prefix(id[:])
	// The first record that may be it lies in the last block that begins before.
	if b := gallop(r.fences, at.block, p) - 1; b > at.block {
		*at = position{block: b}
	}
	for number, from := at.block, at.record; number < int64(len(r.fences)) && r.fences[number] <= p; number, from = number+1, 0 {
		b, err := w.block(number)
		if err != nil {
			return err
		}
		n := int(min(perBlock, r.head.records-number*perBlock))
		i := lowerBound(b, from, n, id)
		if number == at.block {
			at.record = i
		}
		for ; i < n && compareHashes(record(b, i), id) == 0; i++ {
			row := int64(binary.LittleEndian.Uint32(b[i*recordSize+16:]))
			if row >= r.head.rows {
				return broken("it has row %d of %d", row, r.head.rows)
			}
			hit(row)
		}
		if i < n {
			break
		}
	}
	return nil
}

// record gives the hash of a record.
func record(b []byte, i int) *rowcode.Hash {
	return (*rowcode.Hash)(b[i*recordSize : i*recordSize+16])
}

// gallop gives the first fence, from a place on, that is not less than p.
func gallop(fences []uint64, from int64, p uint64) int64 {
	n := int64(len(fences))
	low, step := from, int64(1)
	for low+step < n && fences[low+step] < p {
		low += step
		step *= 2
	}
	high := min(low+step, n)
	for low < high {
		if mid := (low + high) / 2; fences[mid] < p {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// lowerBound gives the first of the records from..n that is not less than a
// hash. It is near where many are looked for, and steps grow where few are.
func lowerBound(b []byte, from, n int, id *rowcode.Hash) int {
	low, step := from, 1
	for low+step <= n && compareHashes(record(b, low+step-1), id) < 0 {
		low += step
		step *= 2
	}
	high := min(low+step-1, n)
	for low < high {
		mid := (low + high) / 2
		if compareHashes(record(b, mid), id) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}
