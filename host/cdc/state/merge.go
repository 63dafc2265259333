package state

import (
	"bytes"

	"github.com/weir-data/weir/host/cdc/rowcode"
)

// mergeRules say which entries a merge passes on.
type mergeRules struct {
	perKey  bool
	removed bool // pass on entries of kind Removed: older runs lie beneath
	forget  bool // nothing lies beneath, so that what can have no effect any more is left out:
	before  int64
	below   []byte
	above   []view
}

// leading tells the deletes that stand before everything else of their key.
type leading struct {
	hash, key []byte
	over      bool // the key has had something else
}

// drops says whether the entry at row of a block is left out. Entries come ascending.
func (s *scanner) drops(b *block, row int) bool {
	kind := b.kinds[row]
	if kind == Removed {
		return !s.rules.removed
	}
	if !s.rules.forget {
		return false
	}
	if s.rules.below != nil && bytes.Compare(b.orders.at(row), s.rules.below) < 0 {
		return true
	}
	l := &s.leading
	if hash, key := b.hash(row), b.keys.at(row); !bytes.Equal(hash, l.hash) || !bytes.Equal(key, l.key) {
		*l = leading{hash: hash, key: key}
	}
	if kind != Delete {
		l.over = true
	}
	if l.over || b.times[row] >= s.rules.before || s.newer(l.hash) {
		return false
	}
	if h := rowcode.Hash(l.hash); len(s.forgotten) == 0 || s.forgotten[len(s.forgotten)-1] != h {
		s.forgotten = append(s.forgotten, h)
	}
	return true
}

// newer says whether runs above those that are merged have entries of a key. They
// may come before its deletes, which then lead nothing.
func (s *scanner) newer(hash []byte) bool {
	for _, v := range s.rules.above {
		found := false
		err := v.search([]rowcode.Hash{rowcode.Hash(hash)}, func(int, *block, int) error {
			found = true
			return nil
		})
		if found || err != nil { // who cannot tell forgets nothing
			return true
		}
	}
	return false
}

// merge collects the rows of one batch.
func (s *scanner) merge() ([]source, []span, error) {
	var sources []source
	var spans []span
	rows := int64(0)
	for _, c := range s.cursors {
		c.src = -1
	}
	add := func(c *cursor, row, n int) {
		if c.src < 0 {
			sources = append(sources, source{c.number, c.block})
			c.src = int32(len(sources) - 1)
		}
		spans = appendSpan(spans, c.src, int32(row), int32(n))
		rows += int64(n)
	}
	for rows < blockRows {
		first, second := s.lowest()
		if first == nil {
			break
		}
		var err error
		if n := stretch(first, second, int(blockRows-rows)); n > 0 {
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
func stretch(first, second *cursor, limit int) int {
	end := min(first.end, first.row+limit)
	if second != nil && bytes.Compare(first.block.hash(end-1), second.hash()) >= 0 {
		end = min(end, first.block.lowerBound(first.row, second.hash()))
	}
	return end - first.row
}

// alone takes entries of keys that only one run has.
func (s *scanner) alone(c *cursor, n int, add func(c *cursor, row, n int)) {
	b := c.block
	for row, end := c.row, c.row+n; row < end; {
		m := end - row
		switch {
		case s.rules.forget:
			for m = 0; row+m < end && !s.drops(b, row+m); {
				m++
			}
		case !s.rules.removed:
			if i := bytes.IndexByte(b.kinds[row:end], Removed); i >= 0 {
				m = i
			}
		}
		if m > 0 {
			add(c, row, m)
		}
		row += m + 1 // and over the one that is left out
	}
}

// together takes the entries of one key from all runs.
func (s *scanner) together(first *cursor, add func(c *cursor, row, n int)) error {
	hash, key := first.hash(), first.key()
	var same []*cursor
	newest := int32(-1)
	for _, c := range s.cursors {
		if c.on(hash, key) {
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
		order := best.order()
		if (!s.rules.perKey || best.number == newest) && !s.drops(best.block, best.row) {
			add(best, best.row, 1)
		}
		left := same[:0]
		for _, c := range same {
			if bytes.Equal(c.order(), order) {
				if err := c.move(1); err != nil {
					return err
				}
			}
			if c.on(hash, key) {
				left = append(left, c)
			}
		}
		same = left
	}
	return nil
}
