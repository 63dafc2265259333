package keyindex

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"

	"github.com/weir-data/weir/host/failpoint"
)

var (
	fpWritten = failpoint.New("keyindex.written")
	fpRenamed = failpoint.New("keyindex.renamed")
)

// tempPattern names files that are being written; sweep knows them by it.
const tempPattern = "making-*.tmp"

// writer writes an index file from sorted entries.
type writer struct {
	file   *os.File
	out    *bufio.Writer
	head   header
	block  [blockSize]byte
	filled int
	fences []byte
}

// create begins an index file under a name of its own.
func (x *Index) create(head header) (*writer, error) {
	f, err := os.CreateTemp(x.folder, tempPattern)
	if err != nil {
		return nil, x.cacheFault(err)
	}
	w := &writer{file: f, out: bufio.NewWriterSize(f, 1<<18), head: head}
	if _, err := w.out.Write(make([]byte, headerSize)); err != nil {
		return nil, errors.Join(x.cacheFault(err), w.abort())
	}
	return w, nil
}

// write adds entries, which come after those written before.
func (w *writer) write(entries []entry) error {
	for i := range entries {
		if w.filled == 0 {
			w.fences = binary.LittleEndian.AppendUint64(w.fences, prefix(entries[i].hash[:]))
		}
		entries[i].put(w.block[w.filled*recordSize:])
		w.head.records++
		if w.filled++; w.filled == perBlock {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes the block that is filled.
func (w *writer) flush() error {
	clear(w.block[w.filled*recordSize:])
	sealBlock(w.block[:], w.head.blocks()-1)
	w.filled = 0
	_, err := w.out.Write(w.block[:])
	return err
}

// commit makes the file appear under its name. It is not synced: a file that a
// power cut left incomplete is found out by its checksums.
func (w *writer) commit(name string) error {
	err := w.finish()
	if err == nil {
		fpWritten.Hit()
		err = os.Rename(w.file.Name(), name)
	}
	if err != nil {
		return errors.Join(err, removeTemp(w.file.Name()))
	}
	fpRenamed.Hit()
	return nil
}

// finish writes what is left, the header last, and closes the file.
func (w *writer) finish() error {
	var err error
	if w.filled > 0 {
		err = w.flush()
	}
	if err == nil {
		_, err = w.out.Write(w.fences)
	}
	if err == nil {
		err = w.out.Flush()
	}
	if err == nil {
		w.head.fences = crc32.Checksum(w.fences, castagnoli)
		_, err = w.file.WriteAt(w.head.encode(), 0)
	}
	return errors.Join(err, w.file.Close())
}

// abort drops the file.
func (w *writer) abort() error {
	return errors.Join(w.file.Close(), removeTemp(w.file.Name()))
}

func removeTemp(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
