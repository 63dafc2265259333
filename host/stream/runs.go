package stream

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

var fpFilesCompacted = failpoint.New("stream.files_compacted")

// A run is the files of the batches from..to as one sorted, immutable object
// below files/. Runs are made from the offset and commit entries and from
// smaller runs, and they repeat nothing but what those say.

const (
	runMagic = "WEIRFS1\n"
	// compactEvery is how many batches are left to the offset log before
	// their files become a run.
	compactEvery = 10
)

// runID names a run by the batches it covers.
type runID struct{ from, to int64 }

func (id runID) name() string { return fmt.Sprintf("files/%020d-%020d.run", id.from, id.to) }
func (id runID) span() int64  { return id.to - id.from + 1 }

func parseRun(name string) (runID, bool) {
	stem, ok := strings.CutSuffix(path.Base(name), ".run")
	a, b, cut := strings.Cut(stem, "-")
	from, err1 := strconv.ParseInt(a, 10, 64)
	to, err2 := strconv.ParseInt(b, 10, 64)
	id := runID{from, to}
	return id, ok && cut && err1 == nil && err2 == nil && 0 <= from && from <= to && id.name() == "files/"+path.Base(name)
}

// chooseRuns picks the fewest runs that cover the batches from 0 on without a
// gap. The others were merged into a chosen one and wait to be deleted, or
// come after a gap; either way nothing needs them.
func chooseRuns(all []runID) (cover, obsolete []runID) {
	slices.SortFunc(all, func(a, b runID) int {
		if a.from != b.from {
			return int(min(max(a.from-b.from, -1), 1))
		}
		return int(min(max(b.to-a.to, -1), 1))
	})
	next := int64(0)
	for _, id := range all {
		if id.from == next {
			cover = append(cover, id)
			next = id.to + 1
		} else {
			obsolete = append(obsolete, id)
		}
	}
	return cover, obsolete
}

// batchTimes are the times a run keeps of each of its batches.
type batchTimes struct{ planned, committed time.Time }

// runReader reads a run. Close it.
type runReader struct {
	blockReader
	id      runID
	batches []batchTimes // of id.from and the following
	entries int64
	object  io.Closer
}

func openRun(ctx context.Context, store storage.Store, id runID) (*runReader, error) {
	obj, err := store.Open(ctx, id.name())
	if err != nil {
		return nil, fault.Wrap(err, "CHECKPOINT_UNAVAILABLE", "cannot read a list of files")
	}
	r, err := readRun(bufio.NewReaderSize(obj, 256<<10), id)
	if err != nil {
		return nil, errors.Join(damagedRun(err, id), obj.Close())
	}
	r.object = obj
	return r, nil
}

func damagedRun(err error, id runID) error {
	return fault.Wrap(err, "CHECKPOINT_CORRUPT", "%s is damaged", id.name()).
		WithHint("Delete it if the offset and commit entries of its batches are there: it will be made again")
}

// readRun reads the head of a run.
func readRun(r *bufio.Reader, id runID) (*runReader, error) {
	magic := make([]byte, len(runMagic))
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != runMagic {
		return nil, errDamaged
	}
	p, err := readFrame(r, nil)
	if err != nil {
		return nil, errDamaged
	}
	from, p, ok1 := uvarint(p)
	to, p, ok2 := uvarint(p)
	entries, p, ok3 := uvarint(p)
	if !ok1 || !ok2 || !ok3 || (runID{int64(from), int64(to)}) != id || uint64(len(p)) < 2*uint64(id.span()) {
		return nil, errDamaged
	}
	rr := &runReader{id: id, entries: int64(entries), blockReader: blockReader{r: r, from: id.from}}
	for range id.span() {
		var planned, committed int64
		planned, p, ok1 = varint(p)
		committed, p, ok2 = varint(p)
		if !ok1 || !ok2 {
			return nil, errDamaged
		}
		rr.batches = append(rr.batches, batchTimes{time.UnixMicro(planned).UTC(), time.UnixMicro(committed).UTC()})
	}
	if len(p) != 0 {
		return nil, errDamaged
	}
	return rr, nil
}

// next moves to the next file, and checks at the end that none is missing.
func (r *runReader) next() (bool, error) {
	ok, err := r.blockReader.next()
	if err == nil && !ok && r.count != r.entries {
		err = errDamaged
	}
	if err != nil {
		return false, damagedRun(err, r.id)
	}
	return ok, nil
}

func (r *runReader) view() ([]byte, *knownFile) { return r.path, &r.cur }

func (r *runReader) close() error { return r.object.Close() }

// writeRun writes the run of the batches of id from sources that are sorted.
func writeRun(ctx context.Context, store storage.Store, id runID, batches []batchTimes, entries int64, files *merged) (err error) {
	w, err := store.Create(ctx, id.name())
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Abort())
		}
	}()
	bw := bufio.NewWriterSize(w, 256<<10)
	if err := encodeRun(bw, id, batches, entries, files); err != nil {
		return err
	}
	if err := bw.Flush(); err != nil {
		return err
	}
	return w.Commit()
}

func encodeRun(w io.Writer, id runID, batches []batchTimes, entries int64, files *merged) error {
	if _, err := io.WriteString(w, runMagic); err != nil {
		return err
	}
	head := binary.AppendUvarint(nil, uint64(id.from))
	head = binary.AppendUvarint(head, uint64(id.to))
	head = binary.AppendUvarint(head, uint64(entries))
	for _, b := range batches {
		head = binary.AppendVarint(head, b.planned.UnixMicro())
		head = binary.AppendVarint(head, b.committed.UnixMicro())
	}
	if err := writeFrame(w, head); err != nil {
		return err
	}
	blocks := &blockWriter{w: w, from: id.from}
	for {
		ok, err := files.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		name, f := files.view()
		entry := *f
		entry.path = string(name)
		if err := blocks.add(entry); err != nil {
			return err
		}
	}
	if blocks.count != entries {
		return fault.New("INTERNAL_ERROR", "run %s has %d files, not %d", id.name(), blocks.count, entries)
	}
	return blocks.end()
}

// compaction says which run to make now: the batches since the last run and
// every run before it that is no longer, so that runs stay few (a logarithm of
// the batches) and a file is rewritten as rarely.
func compaction(cover []runID, last int64) (into runID, inputs []runID) {
	into = runID{from: 0, to: last}
	if n := len(cover); n > 0 {
		into.from = cover[n-1].to + 1
	}
	i := len(cover)
	for i > 0 && cover[i-1].span() <= into.span() {
		i--
		into.from = cover[i].from
	}
	return into, cover[i:]
}
