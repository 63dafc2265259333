package state

import (
	"bytes"
	"context"
	"math/bits"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/fault"
)

// Scan streams every entry whose hash lies in the part-th of so many equal
// ranges, ascending. Parts may be read at the same time.
func (st *State) Scan(ctx context.Context, part, parts int) (array.RecordReader, error) {
	if parts < 1 || part < 0 || part >= parts {
		return nil, fault.New("INTERNAL_ERROR", "there is no part %d of %d", part, parts)
	}
	return st.scan(ctx, partStart(part, parts), partStart(part+1, parts), mergeRules{perKey: st.manifest.PerKey})
}

// partStart is the hash a part starts with; nil is the end of all.
func partStart(part, parts int) []byte {
	if part >= parts {
		return nil
	}
	first, _ := bits.Div64(uint64(part), 0, uint64(parts))
	var h rowcode.Hash
	for i := range 8 {
		h[i] = byte(first >> (56 - 8*i))
	}
	return h[:]
}

// scanner merges the runs of a state.
type scanner struct {
	refs  atomic.Int64
	ctx   context.Context
	st    *State
	rules mergeRules

	cursors   []*cursor
	leading   leading
	forgotten []rowcode.Hash // keys of which deletes were left out, ascending
	rec       arrow.RecordBatch
	err       error
}

// scan merges what lies in a range of hashes; to is nil at the end of all.
func (st *State) scan(ctx context.Context, from, to []byte, rules mergeRules) (*scanner, error) {
	s := &scanner{ctx: ctx, st: st, rules: rules}
	s.refs.Store(1)
	for i, v := range st.runs {
		c := &cursor{run: v.run, number: int32(i), to: to}
		v.retain()
		s.cursors = append(s.cursors, c)
		start := from
		if bytes.Compare(v.from, start) > 0 {
			start = v.from
		}
		if v.to != nil && (to == nil || bytes.Compare(v.to, to) < 0) {
			c.to = v.to
		}
		if err := c.seek(start); err != nil {
			s.Release()
			return nil, err
		}
	}
	return s, nil
}

func (s *scanner) Schema() *arrow.Schema          { return s.st.schema }
func (s *scanner) RecordBatch() arrow.RecordBatch { return s.rec }
func (s *scanner) Record() arrow.RecordBatch      { return s.rec }
func (s *scanner) Err() error                     { return s.err }
func (s *scanner) Retain()                        { s.refs.Add(1) }

func (s *scanner) Release() {
	if s.refs.Add(-1) > 0 {
		return
	}
	if s.rec != nil {
		s.rec.Release()
		s.rec = nil
	}
	for _, c := range s.cursors {
		// The store holds each run as well and meets an error of unmapping when it closes.
		_ = c.run.release()
	}
	s.cursors = nil
}

// Next gives the next batch.
func (s *scanner) Next() bool {
	if s.rec != nil {
		s.rec.Release()
		s.rec = nil
	}
	if s.err != nil {
		return false
	}
	if s.err = s.ctx.Err(); s.err != nil {
		return false
	}
	var sources []source
	var spans []span
	s.err = guard(someRun, func() (err error) {
		sources, spans, err = s.merge()
		return err
	})
	if s.err != nil || len(spans) == 0 {
		return false
	}
	s.rec, s.err = s.st.take(sources, spans)
	return s.err == nil
}

// cursor is where the merge stands in a run.
type cursor struct {
	run    *run
	number int32  // higher is newer
	to     []byte // where it ends
	at     int    // block
	block  *block
	row    int
	end    int // first row of the block that is out of range
	src    int32
}

// seek goes to the first entry whose hash is not less than from.
func (c *cursor) seek(from []byte) error {
	return c.run.guard(func() error {
		at, err := c.run.blockOf(0, from)
		if err != nil {
			return err
		}
		return c.enter(at, from)
	})
}

// enter opens a block, or ends the cursor (block is nil).
func (c *cursor) enter(at int, from []byte) error {
	c.at, c.block, c.src = at, nil, -1
	if at >= len(c.run.index.blocks) {
		return nil
	}
	b, err := c.run.block(at, true)
	if err != nil {
		return err
	}
	c.row, c.end = 0, b.rows()
	if from != nil {
		c.row = b.lowerBound(0, from)
	}
	if c.to != nil {
		c.end = b.lowerBound(0, c.to)
	}
	if c.row < c.end {
		c.block = b
	}
	return nil
}

// move steps over n entries of the block.
func (c *cursor) move(n int) error {
	if c.row += n; c.row < c.end {
		return nil
	}
	return c.run.guard(func() error { return c.enter(c.at+1, nil) })
}

func (c *cursor) hash() []byte  { return c.block.hash(c.row) }
func (c *cursor) key() []byte   { return c.block.keys.at(c.row) }
func (c *cursor) order() []byte { return c.block.orders.at(c.row) }

// on says whether the cursor stands on an entry of a key.
func (c *cursor) on(hash, key []byte) bool {
	return c.block != nil && bytes.Equal(c.hash(), hash) && bytes.Equal(c.key(), key)
}

// compareKeys compares where two cursors stand by (hash, key).
func compareKeys(a, b *cursor) int {
	if c := bytes.Compare(a.hash(), b.hash()); c != 0 {
		return c
	}
	return bytes.Compare(a.key(), b.key())
}
