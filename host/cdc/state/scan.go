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
	return st.scan(ctx, partStart(part, parts), partStart(part+1, parts), nil)
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
	refs atomic.Int64
	ctx  context.Context
	st   *State
	keep func(key []cursor) // what a compaction forgets

	cursors []*cursor
	rec     arrow.RecordBatch
	err     error
}

// cursor is where the merge stands in a run.
type cursor struct {
	run    *run
	number int32 // higher is newer
	to     []byte
	at     int // block
	block  *block
	row    int
	end    int // first row of the block that is out of range
	src    int32
}

func (st *State) scan(ctx context.Context, from, to []byte, keep func([]cursor)) (*scanner, error) {
	s := &scanner{ctx: ctx, st: st, keep: keep}
	s.refs.Store(1)
	for i, r := range st.runs {
		c := &cursor{run: r, number: int32(i), to: to}
		r.retain()
		s.cursors = append(s.cursors, c)
		if err := c.seek(from); err != nil {
			s.Release()
			return nil, err
		}
	}
	return s, nil
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
	c.row, c.end = 0, len(b.hashes)/16
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

// compareKeys compares where two cursors stand by (hash, key).
func compareKeys(a, b *cursor) int {
	if c := bytes.Compare(a.hash(), b.hash()); c != 0 {
		return c
	}
	return bytes.Compare(a.key(), b.key())
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
		// An error of unmapping is one of the program: the store meets it again when it closes.
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
	whole := &run{name: "a run"}
	s.err = whole.guard(func() (err error) {
		sources, spans, err = s.merge()
		return err
	})
	if s.err != nil || len(spans) == 0 {
		return false
	}
	s.rec, s.err = s.st.take(sources, spans)
	return s.err == nil
}

// merge collects the rows of one batch.
func (s *scanner) merge() ([]source, []span, error) {
	var sources []source
	var spans []span
	rows := int64(0)
	for _, c := range s.cursors {
		c.src = -1
	}
	add := func(c *cursor, n int) {
		if c.src < 0 {
			sources = append(sources, source{c.number, c.block})
			c.src = int32(len(sources) - 1)
		}
		spans = appendSpan(spans, c.src, int32(c.row), int32(n))
		rows += int64(n)
	}
	for rows < blockRows {
		first, second := s.lowest()
		if first == nil {
			break
		}
		var err error
		if n := s.stretch(first, second, int(blockRows-rows)); n > 0 {
			s.alone(first, n, add)
			err = first.move(n)
		} else {
			err = s.together(first, add)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return sources, spans, nil
}

// lowest gives the cursor with the lowest (hash, key), and the lowest of the others.
func (s *scanner) lowest() (first, second *cursor) {
	for _, c := range s.cursors {
		switch {
		case c.block == nil:
		case first == nil:
			first = c
		case compareKeys(c, first) < 0:
			first, second = c, first
		case second == nil || compareKeys(c, second) < 0:
			second = c
		}
	}
	return first, second
}

// stretch gives how many entries the first run has before any other has one.
func (s *scanner) stretch(first, second *cursor, limit int) int {
	if s.keep != nil {
		return 0
	}
	end := min(first.end, first.row+limit)
	if second != nil && bytes.Compare(first.block.hash(end-1), second.hash()) >= 0 {
		end = min(end, first.block.lowerBound(first.row, second.hash()))
	}
	return end - first.row
}

// alone takes entries that only one run has.
func (s *scanner) alone(c *cursor, n int, add func(*cursor, int)) {
	row := c.row
	for end := row + n; c.row < end; {
		m := bytes.IndexByte(c.block.kinds[c.row:end], Removed)
		switch {
		case m < 0:
			add(c, end-c.row)
			c.row = end
		case m > 0:
			add(c, m)
			c.row += m + 1
		default:
			c.row++
		}
	}
	c.row = row
}

// together takes the entries of one key from all runs.
func (s *scanner) together(first *cursor, add func(*cursor, int)) error {
	hash, key := bytes.Clone(first.hash()), bytes.Clone(first.key())
	var same []*cursor
	newest := int32(-1)
	for _, c := range s.cursors {
		if c.block != nil && bytes.Equal(c.hash(), hash) && bytes.Equal(c.key(), key) {
			same = append(same, c)
			newest = max(newest, c.number)
		}
	}
	for len(same) > 0 {
		// Cursors go from old to new: of equal orders the last one is the newest.
		best := same[0]
		for _, c := range same[1:] {
			if bytes.Compare(c.order(), best.order()) <= 0 {
				best = c
			}
		}
		order := bytes.Clone(best.order())
		if best.block.kinds[best.row] != Removed && (!s.st.manifest.PerKey || best.number == newest) {
			add(best, 1)
		}
		left := same[:0]
		for _, c := range same {
			if bytes.Equal(c.order(), order) {
				if err := c.move(1); err != nil {
					return err
				}
			}
			if c.block != nil && bytes.Equal(c.hash(), hash) && bytes.Equal(c.key(), key) {
				left = append(left, c)
			}
		}
		same = left
	}
	return nil
}
