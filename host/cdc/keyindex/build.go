package keyindex

import (
	"context"
	"errors"
	"math"
	"math/big"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// maxRows is how many rows a data file may have: a position takes four bytes.
const maxRows = math.MaxUint32

// build makes the index file of a data file, again when the folder is cleared meanwhile.
func (x *Index) build(ctx context.Context, snap *delta.Snapshot, f *indexed, identity [16]byte, most int) error {
	const tries = 10
	for try := 1; ; try++ {
		err := x.buildOnce(ctx, snap, f, identity, most)
		if err == nil || try == tries || !fault.Is(err, "CDC_INDEX_CACHE") || !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
}

// buildOnce makes the index file of a data file: every row that was ever written to
// it, deleted or not, since a deletion vector may be taken back. It reads the
// identity columns as often as needed to hold no more than so many records:
// each time those of the next stretch of hashes.
func (x *Index) buildOnce(ctx context.Context, snap *delta.Snapshot, f *indexed, identity [16]byte, most int) error {
	if err := os.MkdirAll(x.folder, 0o755); err != nil {
		return x.cacheFault(err)
	}
	w, err := x.create(header{identity: identity, file: fileID(f.file)})
	if err != nil {
		return err
	}
	whole := *f.file
	whole.DeletionVector = nil
	c := &collector{most: most}
	for more := true; more; {
		if err := x.scan(ctx, snap, whole, c); err != nil {
			return errors.Join(err, w.abort())
		}
		sortEntries(c.entries)
		if err := w.write(c.entries); err != nil {
			return errors.Join(x.cacheFault(err), w.abort())
		}
		w.head.rows = c.rows
		more = c.next()
	}
	if err := w.commit(filepath.Join(x.folder, f.name)); err != nil {
		return x.cacheFault(err)
	}
	if f.r, err = openReader(filepath.Join(x.folder, f.name)); err != nil {
		return x.cacheFault(err)
	}
	return nil
}

// scan gives the identity of every row of a data file to c.
func (x *Index) scan(ctx context.Context, snap *delta.Snapshot, f delta.AddFile, c *collector) error {
	r, err := snap.Scan(ctx, delta.ScanOptions{Columns: x.columns(), Files: []delta.AddFile{f}, RowIndex: true})
	if err != nil {
		return err
	}
	defer r.Release()
	c.rows = 0
	for r.Next() {
		if err := x.take(r.RecordBatch(), c); err != nil {
			return err
		}
	}
	return r.Err()
}

// take hashes a batch of identity columns, whose last column is the position.
func (x *Index) take(rec arrow.RecordBatch, c *collector) error {
	keys := make([]int, len(x.opt.Keys))
	for i := range keys {
		keys[i] = i
	}
	start := -1
	if x.opt.Start != "" {
		start = len(keys)
	}
	ids, err := IDs(rec, keys, start)
	if err != nil {
		return err
	}
	last := int(rec.NumCols()) - 1
	positions, ok := rec.Column(last).(*array.Int64)
	if !ok {
		return fault.New("DELTA_INVALID_DATA_FILE", "the position of a row is of type %s", rec.Column(last).DataType())
	}
	for i, row := range positions.Int64Values() {
		if row >= maxRows {
			return fault.New("CDC_INDEX_FILE_TOO_LARGE", "a data file of a CDC target has more than %d rows", int64(maxRows)).
				WithHint("Run OPTIMIZE with a smaller delta.targetFileSize")
		}
		c.rows = max(c.rows, row+1)
		if !anyNull(rec, last, i) {
			c.add(entry{ids[i], uint32(row)})
		}
	}
	return nil
}

// anyNull tells whether one of the first n columns is NULL: such a row has no
// identity, no event can mean it.
func anyNull(rec arrow.RecordBatch, n, row int) bool {
	for j := range n {
		if rec.Column(j).IsNull(row) {
			return true
		}
	}
	return false
}

// IDs gives the identity of each row: the hash of its key columns, and with a
// start column (-1: none) of both.
func IDs(rec arrow.RecordBatch, keys []int, start int) ([]rowcode.Hash, error) {
	coded, err := rowcode.Keys(rec, keys)
	if err != nil {
		return nil, err
	}
	ids := rowcode.Hashes(coded)
	if start < 0 {
		return ids, nil
	}
	starts, err := rowcode.Order(rec.Column(start))
	if err != nil {
		return nil, err
	}
	for i := range ids {
		ids[i] = WithStart(ids[i], starts.At(i))
	}
	return ids, nil
}

// collector keeps the entries of one stretch of hashes, from one to another.
type collector struct {
	most     int
	entries  []entry
	rows     int64
	from, to rowcode.Hash // to is the first that is not in it; zero is the end
}

func (c *collector) add(e entry) {
	if compareHashes(&e.hash, &c.from) < 0 || c.to != (rowcode.Hash{}) && compareHashes(&e.hash, &c.to) >= 0 {
		return
	}
	if c.entries = append(c.entries, e); len(c.entries) > c.most {
		c.halve()
	}
}

// halve makes the stretch half as long. One of a single hash stays: that many
// equal rows are a duplicate that a lookup will name.
func (c *collector) halve() {
	from, to := new(big.Int).SetBytes(c.from[:]), new(big.Int).SetBytes(c.to[:])
	if to.Sign() == 0 {
		to.SetBit(to, 128, 1)
	}
	mid := new(big.Int).Add(from, to)
	mid.Rsh(mid, 1)
	if mid.Cmp(from) == 0 {
		c.most *= 2
		return
	}
	mid.FillBytes(c.to[:])
	kept := c.entries[:0]
	for i := range c.entries {
		if compareHashes(&c.entries[i].hash, &c.to) < 0 {
			kept = append(kept, c.entries[i])
		}
	}
	if c.entries = kept; len(kept) > c.most {
		c.halve()
	}
}

// next goes on to the stretch behind this one; false is the end.
func (c *collector) next() bool {
	end := c.to == rowcode.Hash{}
	c.from, c.to, c.entries = c.to, rowcode.Hash{}, c.entries[:0]
	return !end
}
